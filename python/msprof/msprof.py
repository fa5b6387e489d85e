# SPDX-License-Identifier: Apache-2.0
"""`msprof --export=on --output=DIR`: tables and a timeline of a profile that aclprof* recorded.

DIR is a folder PROF_* or one that holds such folders. The files are written into
PROF_*/mindstudio_profiler_output: msprof_*.json, op_summary, op_statistic, api_statistic and
task_time, with microseconds of the wall clock.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from profile_records import read
from profile_tables import TABLES
from profile_timeline import timeline

FOLDER = re.compile(r"PROF_\d+_\d+_[0-9a-zA-Z]+")
OUTPUT = "mindstudio_profiler_output"


def export(folder: Path) -> None:
    profile = read(folder)
    output = folder / OUTPUT
    output.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d%H%M%S")
    text = json.dumps(timeline(profile))
    (output / f"msprof_{stamp}.json").write_text(text, encoding="utf-8")
    for name, (header, rows) in TABLES.items():
        with (output / f"{name}_{stamp}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header.split(","))
            writer.writerows(rows(profile))


def refuse(sentence: str) -> int:
    print(f"msprof: {sentence}", file=sys.stderr)
    return 2


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="msprof", description=__doc__, allow_abbrev=False)
    parser.add_argument("--export", choices=("on", "off"), default="off")
    parser.add_argument("--analyze", choices=("on", "off"), default="off")
    parser.add_argument("--output", type=Path)
    given, rest = parser.parse_known_args(words)
    if rest:
        return refuse(f"{rest[0]} is not supported; record with aclprof* or torch_npu.profiler")
    if given.output is None or "on" not in (given.export, given.analyze):
        return refuse("name what to do: --export=on --output=DIR")
    if given.output.is_dir() and FOLDER.match(given.output.resolve().name):
        folders = [given.output]
    else:
        folders = [path for path in given.output.glob("PROF_*") if FOLDER.match(path.name)]
    if not folders:
        return refuse(f"{given.output} is not a folder PROF_* and holds none")
    if given.export == "on":  # there is nothing to analyse: collectives have no transfers here
        for folder in sorted(folders):
            export(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
