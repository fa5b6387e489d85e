# SPDX-License-Identifier: Apache-2.0
"""Calls the functions that ATen computes with wrong arguments: nothing may die, hang or differ.

python -m tests.aten.fuzz --seconds 60
python -m tests.aten.fuzz --only aclnnGroupNorm --seed 7 --case 120
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.aten.fuzz.campaign import Campaign, Worker, aten_home, aten_signatures
from tests.aten.fuzz.children import Pair, built
from tests.aten.fuzz.report import Report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--share", type=float, default=1.0, help="of the functions, at random")
    parser.add_argument("--only", default="", metavar="PATTERN", help="functions, a regex")
    parser.add_argument("--seed", default=None, help="by default another one each time")
    parser.add_argument("--case", type=int, default=None, help="run this case of --only alone")
    parser.add_argument("--list", action="store_true", help="accepted calls of each function")
    parser.add_argument("--strict", action="store_true", help="all findings fail")
    parser.add_argument(
        "--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="of two processes each"
    )
    wish = parser.parse_args()
    seed = wish.seed or str(random.SystemRandom().randrange(1 << 32))
    signatures = [s for s in aten_signatures() if re.search(wish.only, s.name)]
    if not signatures:
        parser.error(f"no function matches {wish.only}")
    if wish.share < 1:
        count = max(1, round(wish.share * len(signatures)))
        signatures = random.Random(seed).sample(signatures, count)
    print(f"seed {seed}, {len(signatures)} functions", file=sys.stderr)
    report = Report()
    jobs = min(wish.jobs, -(-len(signatures) // 2))
    folder = tempfile.TemporaryDirectory()
    fence = built("fence.c", Path(folder.name) / "fence.so")
    pairs = [Pair(aten_home(), "aclnnExp", fence) for _ in range(jobs)]
    workers = [Worker(pair, seed, report) for pair in pairs]
    started = time.monotonic()
    try:
        if wish.case is not None:
            for signature in signatures:
                workers[0].show_case(signature, wish.case)
        elif wish.list:
            for signature in signatures:
                [(pool, _)] = workers[0].search([signature])
                print(f"{signature.name} {len(pool)}", flush=True)
        else:
            Campaign(workers, seed, started + wish.seconds).run(signatures)
    finally:
        for pair in pairs:
            pair.close()
        folder.cleanup()
    spent = time.monotonic() - started
    report.summary()
    print(
        f"\nseed {seed}: {len(signatures)} functions, {report.calls} calls, {report.accepted} "
        f"accepted, in {spent:.0f} s ({report.calls / spent:.0f} calls/s)"
    )
    return int(report.failed(wish.strict))


if __name__ == "__main__":
    sys.exit(main())
