# SPDX-License-Identifier: Apache-2.0
"""How fast the operators are beside torch.

    python benchmarks/bench.py elementwise --out benchmarks/records     one suite, for the record
    python benchmarks/bench.py --quick                 a smoke run; its figures mean nothing
    python benchmarks/bench.py elementwise --ops leaky_relu --dtypes fp32 --sizes 4Ki 64Mi

README.md describes the suites and the method.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import record
from page import section
from suites import SUITES, Item, Suite, cases

from openaclnn.bench.baseline_table import BASELINES
from openaclnn.bench.machine import busy
from openaclnn.bench.measure import Bench, CannotCompile, Result

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str | None:
    """Of these sources, "-dirty" if they differ from it; None outside a repository."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def command() -> str:
    """What was typed, without the folder of the results."""
    typed = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    if "--out" in typed:
        at = typed.index("--out")
        del typed[at : at + 2]
    return shlex.join(typed)


def measure(bench: Bench, suite: Suite, item: Item, quick: bool) -> Result:
    has = {"torch", "compiled", *BASELINES[item.case.op.python].others}
    has -= {"compiled"} if quick else set()  # takes seconds
    names = [name for name in suite.baselines if name in has]
    before = None
    if suite.after_torch:
        import torch

        x = torch.ones(item.case.shape)
        before = partial(torch.add, x, 1.0, out=torch.empty_like(x))
    try:
        return bench.measure(item.case, names, before)
    except CannotCompile as error:
        print(f"    {error}", file=sys.stderr)
        return bench.measure(item.case, [n for n in names if n != "compiled"], before)


def run(name: str, options: argparse.Namespace, load: float) -> tuple[record.Record, list[str]]:
    """All cases, --runs times, and those whose results differ."""
    suite, bench = SUITES[name], Bench(options.threads, options.rounds, SUITES[name].loops)
    found: list[record.Measured] = []
    wrong = []
    todo = list(cases(suite, options)) * options.runs
    for i, item in enumerate(todo):
        title = f"{name} {' '.join(item.labels)} {item.column}"
        print(f"[{i + 1}/{len(todo)}] {title}", file=sys.stderr, flush=True)
        result = measure(bench, suite, item, options.quick)
        values = {k: v for k, v in result.ratios.items() if k != "ours"}
        found.append((item.labels, item.column, values | {record.BANDWIDTH: result.gbps}))
        if result.differs:
            wrong.append(f"{title}: {', '.join(result.differs)}")
    run_by = {"runs": options.runs, "command": command(), "commit": COMMIT}
    return record.collect(bench.about(load) | run_by, found), wrong


COMMIT = commit()  # before anything is measured: another may follow meanwhile


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    add: Any = parser.add_argument
    add("suites", nargs="*", metavar="SUITE", help=f"default all: {', '.join(SUITES)}")
    add("--ops", nargs="+", metavar="OP", help="C or Python names; default all")
    add("--dtypes", nargs="+", metavar="DTYPE", help="fp32, bf16, fp16; default those of the suite")
    add("--sizes", nargs="+", metavar="N", help="elements, such as 64Ki; default the suite's")
    add("--threads", type=int, default=2, help="of ours and of torch, default 2")
    add("--rounds", type=int, help="samples of a median, default 11")
    add("--runs", type=int, default=1, help="how often all cases are measured, default 1")
    add("--out", type=Path, metavar="FOLDER", help="write SUITE.jsonl there")
    add("--quick", action="store_true", help="one round of few cases")
    options = parser.parse_args(arguments)
    for name in set(options.suites) - set(SUITES):
        parser.error(f"unknown suite {name}; choose from {', '.join(SUITES)}")
    options.rounds = options.rounds or (1 if options.quick else 11)
    if options.quick:
        options.sizes = options.sizes or ["4Ki"]
    if options.runs < 1 or options.rounds < 1:
        parser.error("--runs and --rounds must be at least 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_from(arguments)
    load = os.getloadavg()[0]
    if note := busy(load):
        print(note, file=sys.stderr)
    status = 0
    for name in options.suites or SUITES:
        found, wrong = run(name, options, load)
        print(section(name, found))
        if wrong:
            print("results that differ from ours:\n  " + "\n  ".join(wrong))
            status |= SUITES[name].same_results
        if options.out:
            record.save(name, found, options.out)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
