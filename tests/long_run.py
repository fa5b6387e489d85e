# SPDX-License-Identifier: Apache-2.0
"""A long run with fresh seeds, for a schedule: the fuzzer, also with results past the cache, the
soak test, the search of attributes, and all 2^32 fp32 patterns with drawn attributes. It runs all
of them, prints every command with its seed, and fails if one of them fails.

    python -m tests.long_run [--minutes 60] [--seed N] [--build build/c]

The package is installed, and the C tests are built (-DOPENACLNN_TESTS=ON)."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SWEEPS = "drawn-elu- or drawn-elu_backward- or drawn-logit- or drawn-logit_grad-"


def commands(minutes: float, seed: int, build: Path) -> list[tuple[dict[str, str], list[str]]]:
    """Environment and command of each step. The sweeps take about a third of an hour's run on two
    cores, however short the rest is."""
    pytest = [sys.executable, "-m", "pytest", "-s"]
    rounds = str(max(1, round(minutes)))

    def program(name: str, share: float) -> list[str]:
        seconds = round(60 * minutes * share)
        path = build / "tests" / "fuzz" / name
        return [str(path), "--seed", str(seed), "--seconds", str(seconds)]

    drawn = {"SEED": str(seed)}
    return [
        ({}, program("fuzz", 0.2)),
        ({"OPENACLNN_STREAMING_BYTES": "1"}, program("fuzz", 0.1)),
        ({}, program("soak", 0.1)),
        (drawn | {"ROUNDS": rounds}, [*pytest, "tests/operators/test_attributes.py"]),
        (drawn, [*pytest, "-m", "exhaustive", "-k", SWEEPS, "tests/operators/test_exhaustive.py"]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "c")
    given = parser.parse_args()
    failed = []
    for environment, command in commands(given.minutes, given.seed, given.build.resolve()):
        shown = " ".join([*(f"{k}={v}" for k, v in environment.items()), *map(repr, command)])
        print(f"\n{shown}", flush=True)
        if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode != 0:
            failed.append(shown)
    print(f"\nseed {given.seed}: " + ("all passed" if not failed else "failed:"))
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
