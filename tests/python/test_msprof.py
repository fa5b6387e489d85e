# SPDX-License-Identifier: Apache-2.0
"""msprof on records written by hand: kernels and a copy on a stream, a collective on another."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.trace_format import check_order, check_trace

MSPROF = Path(__file__).resolve().parents[2] / "python" / "msprof" / "msprof.py"
START = {"collectionTimeBegin": "1700000000000000.123", "clockMonotonicRaw": "1000", "pid": "42"}
WALL = 1700000000000000123 - 1000
WORK = [  # begin, end, stream, submitted, submitted_end, thread, name
    (2000, 5000, 1, 1500, 1600, 7, "aclnnMatmul"),
    (6000, 7000, 1, 1600, 1700, 7, "aclnnRelu"),
    (7500, 8000, 1, 1700, 1800, 7, "aclrtMemcpyAsync"),
    (4000, 6500, 2, 1800, 1900, 8, "HcclAllReduce"),
]


@pytest.fixture
def folder(tmp_path):
    profile = tmp_path / "PROF_000001_20261127000000000_ABCDEFGHIJKLMNOP"
    for part in ("host/data", "device_0/data"):
        (profile / part).mkdir(parents=True)
    (profile / "host" / "start_info").write_text(json.dumps(START))
    text = "".join("\t".join(map(str, fields)) + "\n" for fields in WORK)
    (profile / "device_0" / "data" / "work.tsv").write_text(text)
    (profile / "host" / "data" / "marks.tsv").write_text("1200\t9000\t7\ta step\n")
    return profile


def msprof(*words):
    return subprocess.run([sys.executable, MSPROF, *words], capture_output=True, text=True)


def rows(folder, name):
    (path,) = (folder / "mindstudio_profiler_output").glob(f"{name}_2*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def micros(nanoseconds):
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def test_tables(folder):
    assert msprof("--export=on", f"--output={folder.parent}").returncode == 0
    summary = rows(folder, "op_summary")
    assert [row["Op Name"] for row in summary] == ["aclnnMatmul", "HcclAllReduce", "aclnnRelu"]
    assert summary[0]["Task Start Time(us)"] == micros(WALL + 2000)
    assert [row["Task Duration(us)"] for row in summary] == ["3.000", "2.500", "1.000"]
    assert summary[2]["Task Wait Time(us)"] == "1.000"
    (first, *_) = rows(folder, "op_statistic")
    assert (first["OP Type"], first["Count"], first["Ratio(%)"]) == ("Matmul", "1", "46.154")
    assert len(rows(folder, "task_time")) == len(WORK)
    assert {row["Time(us)"] for row in rows(folder, "api_statistic")} == {"0.100"}


def test_timeline(folder):
    assert msprof("--export=on", f"--output={folder}").returncode == 0
    (path,) = (folder / "mindstudio_profiler_output").glob("msprof_*.json")
    events = json.loads(path.read_text())
    assert check_trace(events) == len(WORK)
    check_order(events)
    slices = [e for e in events if e["ph"] == "X"]
    assert {(e["name"], e["dur"]) for e in slices} >= {("Matmul", 3), ("a step", 7.8)}
    spent = {}
    for event in slices:
        spent[event["name"]] = spent.get(event["name"], 0) + event["dur"]
    assert spent["Computing"] == 4
    assert spent["Communication"] == 2.5
    assert spent["Communication(Not Overlapped)"] == 1  # between the two kernels
    assert "Free" not in spent


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name what to do: --export=on --output=DIR"),
        (("--export=on", "--output=."), "is not a folder PROF_* and holds none"),
        (("--application=x",), "--application=x is not supported"),
    ],
)
def test_refusals(words, sentence, tmp_path):
    words = [word.replace("=.", f"={tmp_path}") for word in words]
    done = msprof(*words)
    assert done.returncode == 2
    assert sentence in done.stderr
