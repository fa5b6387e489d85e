# SPDX-License-Identifier: Apache-2.0
"""What the fuzzer found: kinds of findings, functions, one example each."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

from .library import Outcome

# Statuses of a refusal. 561000, an internal error, is right only where memory ran out.
REFUSED = {161001, 161002, 361001, *range(561001, 561004), *range(561101, 561121)}
INTERNAL = 561000
UNCLEAR = re.compile(
    r"INTERNAL ASSERT|report a bug|error message be improved|c10::|at::|aten/src|\.cpp:|"
    r"^\w+: \w+Error$"
)
# Findings that fail the run only with --strict; the last depends on the seed of the search.
SOFT = ("unclear", "untouched", "never accepted")


@dataclass
class Finding:
    kind: str
    function: str
    detail: str
    call: str
    command: str


@dataclass
class Report:
    found: dict[tuple[str, str], Finding] = field(default_factory=dict)  # by kind and function
    counts: Counter = field(default_factory=Counter)
    calls: int = 0
    accepted: int = 0
    lock: Lock = field(default_factory=Lock)

    def add(self, finding: Finding) -> None:
        key = (finding.kind, finding.function)
        with self.lock:
            self.counts[key] += 1
            if key in self.found:
                return
            self.found[key] = finding
            if finding.kind not in SOFT:
                show(finding, sys.stderr)

    def count(self, accepted: bool) -> None:
        with self.lock:
            self.calls += 1
            self.accepted += accepted

    def failed(self, strict: bool) -> bool:
        return any(strict or kind not in SOFT for kind, _ in self.found)

    def summary(self) -> None:
        kinds = sorted({kind for kind, _ in self.found}, key=lambda kind: (kind in SOFT, kind))
        for kind in kinds:
            here = [f for (k, _), f in sorted(self.found.items()) if k == kind]
            print(f"\n== {kind}: {len(here)} functions")
            for finding in here:
                show(finding, sys.stdout, self.counts[kind, finding.function])
        if not kinds:
            print("nothing found")


def show(finding: Finding, file, count: int | None = None) -> None:
    times = f" ({count} calls)" if count and count > 1 else ""
    detail = finding.detail if len(finding.detail) < 500 else finding.detail[:500] + "…"
    call = finding.call if len(finding.call) < 1500 else finding.call[:1500] + "…"
    print(f"{finding.function}: {finding.kind}{times}: {detail}", file=file)
    print(f"    {call}\n    {finding.command}", file=file, flush=True)


def problem(name: str, outcome: Outcome) -> tuple[str, str] | None:
    """What is wrong with the refusal: kind, detail."""
    status = outcome.plan or outcome.run
    if not status:
        return None
    sentence = outcome.sentence
    said = f"{status} {sentence!r}"
    if not re.match(rf"(\S+: )?{name}(GetWorkspaceSize)?: *\S", sentence):
        return "no sentence", said
    text = sentence.split(f"{name}: ", 1)[-1]
    if status == INTERNAL:
        return None if "memory" in text else ("unclear", said)
    if status not in REFUSED:
        return "status", said
    if UNCLEAR.search(text):
        return "unclear", said
    return None


def plain(sentence: str) -> str:
    """Without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x…", sentence)


def difference(a: Outcome, b: Outcome) -> str | None:
    """Between the same call in two processes."""
    if (a.plan, a.run) != (b.plan, b.run):
        return f"status {a.plan}, {a.run} or {b.plan}, {b.run}: {a.sentence or b.sentence}"
    if plain(a.sentence) != plain(b.sentence):
        return f"{a.sentence!r} or {b.sentence!r}"
    if a.accepted and a.digest != b.digest:
        return "the results differ with what malloc's memory held"
    return None
