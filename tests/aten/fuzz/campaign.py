# SPDX-License-Identifier: Apache-2.0
"""What is called when, and what of the answers is a finding."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue

from .children import Pair, Runs, Zygote, how
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


class Worker:
    """Two zygotes, and what they are asked."""

    def __init__(self, pair: Pair, seed: str, report: Report, seconds: float = 20.0) -> None:
        self.pair, self.seed, self.report = pair, seed, report
        self.runs = Runs(seconds)

    # ---- findings ----

    def add(
        self, kind: str, signature: Signature, detail: str, call: Call | None, number: str
    ) -> None:
        names = [p.name for p in signature.parameters]
        command = (
            f"python -m tests.aten.fuzz --seed {self.seed} --only '^{signature.name}$' {number}"
        )
        described = call.describe(names) if call else ""
        self.report.add(Finding(kind, signature.name, detail, described, command))

    def look(self, signature: Signature, call: Call, outcome: Outcome, number: str) -> None:
        for kind, what in outcome.faults:
            self.add(kind, signature, what, call, number)
        if wrong := problem(signature.name, outcome):
            self.add(wrong[0], signature, wrong[1], call, number)

    def death(
        self, signature: Signature, answer: Answer, before: list[Call], number: str, known: int
    ) -> None:
        """The call alone, and if that does not end the child, after those before it."""
        kind = "hang" if how(answer) == "hangs" else "death"
        detail = how(answer)
        if said := last_words(answer.stderr):
            detail += f": {said}"
        zygote = self.pair.zygotes[0]
        if known > 5 or answer.call is None:  # enough is known
            pass
        elif self.runs.calls(zygote, signature, [answer.call]).status == 0:
            few = before if kind == "death" else []
            while len(few) > 1:
                half = few[len(few) // 2 :]
                if self.runs.calls(zygote, signature, [*half, answer.call]).status == 0:
                    break
                few = half
            if len(few) == 1:
                names = [p.name for p in signature.parameters]
                detail += f"; not alone, but after {few[0].describe(names)}"
            elif few:
                detail += f"; not alone, but after {len(few)} calls"
            else:
                detail += "; not alone"
        self.add(kind, signature, detail, answer.call, number)

    # ---- work ----

    def search(self, signatures: list[Signature]) -> list[tuple[list[Call], int]]:
        """Accepted calls, and deaths, of as many functions as there are zygotes, or fewer."""

        def one(zygote: Zygote, signature: Signature):
            return self.runs.search(zygote, signature, self.seed)

        zygotes = self.pair.zygotes[: len(signatures)]
        results = []
        for signature, (found, deaths, outcomes) in zip(
            signatures, self.pair.threads.map(one, zygotes, signatures), strict=True
        ):
            for k, answer in enumerate(deaths):
                number = f"--list  # candidate {answer.number}"
                self.death(signature, answer, [], number, k)
            for outcome in outcomes.values():
                self.report.count(outcome.accepted)
            if not found:
                self.add("never accepted", signature, "no call was accepted", None, "--list")
            results.append((found, sum(_weight(answer) for answer in deaths)))
        return results

    def cases(self, signature: Signature, pool: list[Call], first: int, last: int) -> int:
        """Runs these cases in both zygotes. The deaths."""

        def one(zygote: Zygote):
            return self.runs.cases(zygote, signature, self.seed, pool, first, last)

        (deaths, a), (others, b) = self.pair.threads.map(one, self.pair.zygotes)
        seen: set[int] = set()
        for answer in (*deaths, *others):
            if answer.number not in seen:
                start = max([first, *(n + 1 for n in seen if n < answer.number)])
                before = [case(signature, pool, self.seed, n) for n in range(start, answer.number)]
                number = f"--case {answer.number}"
                self.death(signature, answer, before, number, len(seen))
                seen.add(answer.number)
        for number in sorted(a.keys() & b.keys()):
            self.report.count(a[number].accepted)
            differs = difference(a[number], b[number])
            if differs or a[number].faults or a[number].plan or a[number].run:
                call = case(signature, pool, self.seed, number)
                self.look(signature, call, a[number], f"--case {number}")
                if differs:
                    self.add("differs", signature, differs, call, f"--case {number}")
        return sum(_weight(answer) for answer in deaths)

    def show_case(self, signature: Signature, number: int) -> None:
        """One case alone, for a person who wants to see it again."""
        [(pool, _)] = self.search([signature])
        if not pool:
            return
        call = case(signature, pool, self.seed, number)
        print(call.describe([p.name for p in signature.parameters]))
        for zygote in self.pair.zygotes:
            answer = self.runs.calls(zygote, signature, [call])
            print(answer.outcomes.get(0), "" if answer.status == 0 else how(answer))
            print(answer.stderr)
        self.cases(signature, pool, number, number + 1)


def last_words(stderr: str) -> str:
    """What a process says when it ends by itself, without warnings and frames."""
    lines = [line for line in stderr.splitlines() if line and not line.startswith(("[W", "frame"))]
    thrown = [line for line in lines if "what():" in line]
    return (thrown or lines[:1] or [""])[0].strip()[:300]


def _weight(answer: Answer) -> int:
    return 5 if how(answer) == "hangs" else 1


class Campaign:
    """All functions again and again, until the time is over; each at least once."""

    def __init__(self, workers: list[Worker], seed: str, end: float) -> None:
        self.seed, self.end = seed, end
        self.free: Queue[Worker] = Queue()
        for worker in workers:
            self.free.put(worker)
        self.report, self.jobs = workers[0].report, len(workers)
        self.pools: dict[str, list[Call]] = {}
        self.done: Counter[str] = Counter()  # cases
        self.deaths: Counter[str] = Counter()
        self.started = self.shown = time.monotonic()

    def late(self) -> bool:
        return time.monotonic() > self.end

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        """One that is free; it is free again afterwards, also where the use of it failed."""
        worker = self.free.get()
        try:
            yield worker
        finally:
            self.free.put(worker)

    def first(self, signatures: list[Signature]) -> None:
        with self.worker() as worker:
            searched = zip(signatures, worker.search(signatures), strict=True)
            for signature, (pool, deaths) in searched:
                self.pools[signature.name] = pool
                self.deaths[signature.name] += deaths
                count = self.cases or (4 if self.late() else FIRST_CASES)
                self.some(worker, signature, len(pool) + count)

    def more(self, signatures: list[Signature]) -> None:
        with self.worker() as worker:
            for signature in signatures:
                if not self.late():
                    self.some(worker, signature, MORE_CASES)

    def some(self, worker: Worker, signature: Signature, count: int) -> None:
        name = signature.name
        if self.pools[name] and self.deaths[name] <= MOST_DEATHS:
            first = self.done[name]
            last = self.done[name] = first + count
            self.deaths[name] += worker.cases(signature, self.pools[name], first, last)

    def run(self, signatures: list[Signature], cases: int | None = None) -> None:
        """cases: of each function in the first round."""
        self.cases = cases
        order = list(signatures)
        random.Random(self.seed).shuffle(order)
        pairs = [order[k : k + 2] for k in range(0, len(order), 2)]
        rounds = 0
        with ThreadPoolExecutor(self.jobs) as threads:
            while rounds == 0 or not self.late():
                work = self.more if rounds else self.first
                rounds += 1
                for k, _ in enumerate(threads.map(work, pairs)):
                    self.progress(rounds, min(2 * k + 2, len(order)), len(order))

    def progress(self, rounds: int, done: int, functions: int) -> None:
        now = time.monotonic()
        if now - self.shown < 5:
            return
        self.shown = now
        counts = self.report.counts
        died = sum(n for (kind, _), n in counts.items() if kind in ("death", "hang"))
        rate = self.report.calls / (now - self.started)
        print(
            f"round {rounds}, {done} of {functions} functions, {rate:.0f} calls/s, {died} deaths",
            file=sys.stderr, flush=True,
        )  # fmt: skip
