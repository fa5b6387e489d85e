# SPDX-License-Identifier: Apache-2.0
"""Checks and measures the operators on an NVIDIA GPU: everything in one run of a few minutes.

    python benchmarks/gpu.py --out FOLDER                     # all sections
    python benchmarks/gpu.py --out FOLDER --sections copy group_norm
    TRITON_INTERPRET=1 python benchmarks/gpu.py --out FOLDER --dry-run   # tiny sizes, on a CPU

Each section appends its records to FOLDER/<section>.jsonl as it goes; its first line says what
computed. An exception is a record too, and the section goes on. `python benchmarks/gpu_page.py
FOLDER` makes tables of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEGIN = time.perf_counter()
# Checks, which run beside one another, in so many processes; kernels are compiled on all CPUs.
CHECKS = {"matrix": 6, "warm": 6, "ways": 1, "determinism": 1, "sanitizer": 3}
# Times: one after the other, what matters most first.
TIMES = (
    "copy", "resident", "group_norm", "compiled", "elementwise", "blocks", "variants", "unet",
    "compiled_unet",
)  # fmt: skip
SECTIONS = ("smoke", *CHECKS, *TIMES)
LIMITS = {  # seconds
    **{"compiled": 100, "resident": 25, "variants": 60, "blocks": 40},
    "compiled_unet": 240,
}


def limit_of(args: argparse.Namespace, section: str) -> float:
    return float(args.limit or LIMITS.get(section, 90))


class Run:
    """What a section gets: where to write, on what to compute, how large."""

    def __init__(self, args: argparse.Namespace, section: str) -> None:
        self.args, self.section = args, section
        self.dry: bool = args.dry_run
        self.device = "cpu" if self.dry else "cuda"
        self.shard, self.shards = map(int, args.shard.split("/"))
        suffix = f"-{self.shard}" if self.shards > 1 else ""
        self.path = Path(args.out) / f"{section}{suffix}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.begin = time.perf_counter()
        self.limit = limit_of(args, section)
        self.failures = 0

    def record(self, **values: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(values, default=str) + "\n")

    def say(self, text: str) -> None:
        at = time.perf_counter() - BEGIN
        print(f"[{at:6.1f} s] {self.section}: {text}", flush=True)

    @contextmanager
    def attempt(self, **labels: Any) -> Iterator[None]:
        """An exception becomes a record."""
        try:
            yield
        except Exception as error:
            self.failures += 1
            text = "".join(traceback.format_exception(error))[-3000:]
            self.record(**labels, error=f"{type(error).__name__}: {error}"[:600], traceback=text)
            if self.failures <= 3:
                self.say(f"{labels}: {type(error).__name__}: {str(error)[:300]}")

    def out_of_time(self) -> bool:
        return time.perf_counter() - self.begin > self.limit


def machine(dry: bool) -> dict[str, Any]:
    import torch
    import triton

    about = {"torch": torch.__version__, "triton": triton.__version__,
             "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%d %H:%M")}  # fmt: skip
    if not dry:
        p = torch.cuda.get_device_properties(0)
        about |= {"device": p.name, "multiprocessors": p.multi_processor_count,
                  "L2": getattr(p, "L2_cache_size", None), "cuda": torch.version.cuda}  # fmt: skip
    return about


def run_section(args: argparse.Namespace, name: str) -> int:
    """In its own process, which a crash or a hang ends."""
    from gpu_sections import sections

    run = Run(args, name)
    run.record(about=machine(run.dry))
    function: Callable[[Run], None] = getattr(sections(name), name)
    with run.attempt(section=name):
        function(run)
    run.say(f"done, {run.failures} exceptions")
    return run.failures


def run_children(args: argparse.Namespace, names: list[tuple[str, int]]) -> None:
    """Runs sections beside one another, each in so many processes; ends what takes too long."""
    left = args.total - (time.perf_counter() - BEGIN)
    if not names:
        return
    if left < 15:
        print(f"{[name for name, _ in names]}: left out, {left:.0f} s left", flush=True)
        return
    begin = time.perf_counter()
    children = []
    for name, count in names:
        for i in range(count):
            command = [sys.executable, __file__, "--out", args.out, "--sections", name, "--here"]
            command += ["--shard", f"{i}/{count}", "--limit", str(limit_of(args, name))]
            command += ["--dry-run"] * args.dry_run
            children.append((name, subprocess.Popen(command)))
    for name, child in children:
        try:
            child.wait(max(1, min(left, limit_of(args, name) + 30) - (time.perf_counter() - begin)))
        except subprocess.TimeoutExpired:
            print(f"{name}: no end after {time.perf_counter() - begin:.0f} s", flush=True)
            child.kill()
            child.wait()
    codes = {f"{name} {child.returncode}" for name, child in children if child.returncode}
    which = " ".join(name for name, _ in names)
    print(f"=== {which}: {time.perf_counter() - begin:.1f} s {sorted(codes)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--limit", type=float, help="seconds of each section")
    parser.add_argument("--total", type=float, default=480, help="seconds of all sections")
    parser.add_argument("--jobs", type=int, default=8, help="processes of a section")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shard", default="0/1", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    if args.here:
        return min(run_section(args, args.sections[0]), 100)
    wanted = [name for name in SECTIONS if name in args.sections]
    run_children(args, [("smoke", 1)] if "smoke" in wanted else [])
    run_children(args, [(name, min(n, args.jobs)) for name, n in CHECKS.items() if name in wanted])
    for name in TIMES:
        run_children(args, [(name, 1)] if name in wanted else [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
