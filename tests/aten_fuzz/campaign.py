# SPDX-License-Identifier: Apache-2.0
"""What is called when, and what of the answers is a finding."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from .children import Pair, Runs, how
from .library import Outcome, Signature
from .mutations import case
from .report import Finding, Report, difference, problem
from .values import Call
from .zygote import Answer

FIRST_CASES = 60  # of each function, in the first round
MORE_CASES = 300
MOST_DEATHS = 20  # of a function, which is then left alone; a hang counts as five


def aten_home() -> Path:
    words = [sys.executable, "-m", "openaclnn", "home", "--aten"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip()) / "lib64"


def aten_signatures() -> list[Signature]:
    from openaclnn.aten import prototypes

    return [
        Signature(
            name,
            tuple(replace(p, written=prototypes.is_written(row, p)) for p in row.given),
        )
        for name, row in sorted(prototypes.functions().items())
    ]


class Campaign:
    def __init__(self, pair: Pair, seed: str, report: Report, seconds: float = 20.0) -> None:
        self.pair, self.seed, self.report = pair, seed, report
        self.runs = Runs(pair, seconds)
        self.pools: dict[str, list[Call]] = {}
        self.deaths: Counter[str] = Counter()

    # ---- findings ----

    def add(self, kind: str, signature: Signature, detail: str, call: Call, number: str) -> None:
        names = [p.name for p in signature.parameters]
        command = f"python tests/aten_fuzz --seed {self.seed} --only '^{signature.name}$' {number}"
        finding = Finding(kind, signature.name, detail, call.describe(names), command)
        self.report.add(finding)

    def look(self, signature: Signature, call: Call, outcome: Outcome, number: str) -> None:
        self.report.calls += 1
        self.report.accepted += outcome.accepted
        for kind, what in outcome.faults:
            self.add(kind, signature, what, call, number)
        if wrong := problem(signature.name, outcome):
            self.add(wrong[0], signature, wrong[1], call, number)

    def death(self, signature: Signature, answer: Answer, before: list[Call], number: str) -> None:
        """The call alone, and if that does not end the child, after those before it."""
        call = answer.call
        kind = "hang" if how(answer) == "hangs" else "death"
        detail = how(answer)
        if answer.stderr:
            detail += f": {answer.stderr[-300:]}"
        self.deaths[signature.name] += 5 if kind == "hang" else 1
        if call is None or self.deaths[signature.name] > 5:  # enough is known
            return self.add(
                kind,
                signature,
                detail,
                call or Call(signature.name, (None,) * len(signature.parameters)),
                number,
            )
        zygote = self.pair.zygotes[0]
        alone = self.runs.calls(zygote, signature, [call])
        if alone.status == 0:
            few = before
            while len(few) > 1:
                half = few[len(few) // 2 :]
                if self.runs.calls(zygote, signature, [*half, call]).status == 0:
                    break
                few = half
            if len(few) == 1:
                names = [p.name for p in signature.parameters]
                detail += f"; after {few[0].describe(names)}"
            else:
                detail += f"; not alone, but after {len(few)} calls"
        self.add(kind, signature, detail, call, number)

    # ---- work ----

    def pool(self, signature: Signature, zygote: int = 0) -> list[Call]:
        """Accepted calls; what the search finds besides is reported."""
        if signature.name in self.pools:
            return self.pools[signature.name]
        searched = self.runs.search(self.pair.zygotes[zygote], signature, self.seed)
        return self.searched(signature, searched)

    def searched(self, signature: Signature, result: tuple) -> list[Call]:
        found, deaths, outcomes = result
        for answer in deaths:
            self.death(signature, answer, [], f"--list  # candidate {answer.number}")
        self.report.calls += len(outcomes)
        if not found:
            self.add(
                "never accepted",
                signature,
                "no call was accepted",
                Call(signature.name, (None,) * len(signature.parameters)),
                "--list",
            )
        self.pools[signature.name] = found
        return found

    def cases(self, signature: Signature, first: int, last: int) -> None:
        pool = self.pools[signature.name]
        if not pool or self.deaths[signature.name] > MOST_DEATHS:
            return

        def one(zygote) -> tuple[list[Answer], dict[int, Outcome]]:
            return self.runs.cases(zygote, signature, self.seed, pool, first, last)

        (deaths, a), (others, b) = self.pair.threads.map(one, self.pair.zygotes)
        seen = set()
        for answer in (*deaths, *others):
            if answer.number in seen:
                continue
            seen.add(answer.number)
            start = max([first, *(n + 1 for n in seen if n < answer.number)])
            before = [case(signature, pool, self.seed, n) for n in range(start, answer.number)]
            self.death(signature, answer, before, f"--case {answer.number}")
        for number in range(first, last):
            if number not in a or number not in b:
                continue
            differs = difference(a[number], b[number])
            interesting = a[number].faults or a[number].plan or a[number].run or differs
            call = case(signature, pool, self.seed, number) if interesting else pool[0]
            self.look(signature, call, a[number], f"--case {number}")
            if differs:
                self.add("differs", signature, differs, call, f"--case {number}")

    def show_case(self, signature: Signature, number: int) -> None:
        pool = self.pool(signature)
        if pool:
            call = case(signature, pool, self.seed, number)
            print(call.describe([p.name for p in signature.parameters]))
            for zygote in self.pair.zygotes:
                answer = self.runs.calls(zygote, signature, [call])
                print(answer.outcomes.get(0), "" if answer.status == 0 else how(answer))
                print(answer.stderr)
            self.cases(signature, number, number + 1)

    def run(self, signatures: list[Signature], end: float, once: bool) -> None:
        order = list(signatures)
        random.Random(self.seed).shuffle(order)
        started = shown = time.monotonic()
        done = {s.name: 0 for s in order}
        for rounds in range(1 if once else 1 << 30):
            for k, signature in enumerate(order):
                if time.monotonic() > end and rounds:
                    return
                if rounds == 0:
                    self.pool(signature)
                first = done[signature.name]
                count = FIRST_CASES if rounds == 0 else MORE_CASES
                self.cases(signature, first, first + count)
                done[signature.name] = first + count
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    rate = self.report.calls / (shown - started)
                    died = sum(n for (kind, _), n in self.report.counts.items() if kind == "death")
                    print(
                        f"round {rounds + 1}, {k + 1} of {len(order)} functions, {rate:.0f} "
                        f"calls/s, {died} deaths",
                        file=sys.stderr,
                        flush=True,
                    )
            if time.monotonic() > end:
                return
