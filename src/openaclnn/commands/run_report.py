# SPDX-License-Identifier: Apache-2.0
"""The report of `openaclnn npu --report`: what core/trace/tally.h counted in each process, as one
document with the worst first, and as text."""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..aten.products import entries
from ..report.text_table import columns
from ..rows.table import OPS
from .run_processes import process_of

WAITS = ("aclrtSynchronize", "aclrtMemcpy", "aclrtMemset")  # without Async: the host waits
MICROSECONDS = 1e3  # nanoseconds
SHOWN = 20  # functions by time, in the text


@dataclass
class Counted:
    """A function with dtypes, over all processes and ranks."""

    kind: str
    name: str
    dtypes: str
    calls: int = 0
    refused: int = 0
    planned: float = 0
    worked: float = 0
    sentence: str = ""
    verdicts: dict[str, tuple[int, str]] = field(default_factory=dict)  # calls and a sentence

    def add(self, entry: Mapping[str, Any]) -> None:
        self.calls += entry["calls"]
        self.refused += entry["refused"]
        self.planned += entry["planned"] / MICROSECONDS
        self.worked += entry["worked"] / MICROSECONDS
        self.sentence = entry["sentence"] or self.sentence
        for verdict in entry["verdicts"]:
            calls, sentence = self.verdicts.get(verdict["product"], (0, verdict["sentence"]))
            self.verdicts[verdict["product"]] = calls + entry["calls"], sentence

    def as_data(self, **more: Any) -> dict[str, Any]:
        return {"function": self.name, "dtypes": self.dtypes, "calls": self.calls, **more}


def dtypes_text(tensors: Iterable[Sequence[Any]]) -> str:
    """`FLOAT, index INT64`: the dtype that most tensors have, and who has another."""
    own = {(name, "BFLOAT16" if dtype == "BF16" else dtype) for name, dtype, _ in tensors}
    if not own:
        return ""
    usual = Counter(dtype for _, dtype in sorted(own)).most_common(1)[0][0]
    others = [f"{name} {dtype}" for name, dtype in sorted(own) if dtype != usual]
    return ", ".join([usual, *others])


def merged(files: Sequence[Path]) -> tuple[list[Counted], list[dict[str, Any]], list[str]]:
    """What was counted, the documents of the processes, and the processes with a part of one."""
    found: dict[tuple[str, str, str], Counted] = {}
    documents, lost = [], []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        if not text:  # it ended by a signal
            lost.append(process_of(path))
            continue
        documents.append(json.loads(text))
        if not documents[-1]["complete"]:
            lost.append(process_of(path))
        for entry in documents[-1]["entries"]:
            key = entry["kind"], entry["name"], dtypes_text(entry["tensors"])
            found.setdefault(key, Counted(*key)).add(entry)
    return list(found.values()), documents, lost


def waits(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls in which the host waits for the device."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for document in documents:
        for name, count, total in document["calls"]:
            if name.startswith(WAITS) and "Async" not in name:
                found[name][0] += count
                found[name][1] += total / MICROSECONDS
    rows = [{"function": n, "calls": c, "microseconds": t} for n, (c, t) in found.items()]
    return sorted(rows, key=lambda row: -row["calls"])


def report(folder: Path, products: Sequence[str], **facts: Any) -> dict[str, Any]:
    """The document, `products` the judged ones; times are microseconds."""
    counted, documents, lost = merged(sorted(folder.glob("*.json")))
    functions = [c for c in counted if c.kind == "function"]
    rules, own = entries(), {op.name for op in OPS}

    def deterministic(name: str) -> bool | None:
        """None: not known, as of a function without rules. Own kernels are."""
        return rules[name].deterministic if name in rules else True if name in own else None

    peaks: dict[int, int] = {}
    for document in documents:
        for use in document["memory"]:
            peaks[use["device"]] = max(peaks.get(use["device"], 0), use["peak"])
    current = documents[0]["product"] if documents else None
    by_time = sorted(counted, key=lambda c: -(c.planned + c.worked))
    return {
        **facts,
        "product": current,
        "processes": len(documents),
        "lost_processes": lost,
        "refused": [
            c.as_data(refused=c.refused, sentence=c.sentence)
            for c in sorted(functions, key=lambda c: -c.refused)
            if c.refused and not (current in products and current in c.verdicts)
        ],
        "products": {
            product: [
                c.as_data(calls=c.verdicts[product][0], sentence=c.verdicts[product][1])
                for c in sorted(functions, key=lambda c: -c.verdicts.get(product, (0,))[0])
                if product in c.verdicts
            ]
            for product in products
        },
        "fallbacks": [
            c.as_data(microseconds=c.worked)
            for c in sorted(counted, key=lambda c: -c.worked)
            if c.kind == "fallback"
        ],
        "nondeterministic": [
            c.as_data(calls=c.calls - c.refused)
            for c in sorted(functions, key=lambda c: c.refused - c.calls)
            if c.calls > c.refused and deterministic(c.name) is False
        ],
        "determinism_unknown": sorted({c.name for c in functions if deterministic(c.name) is None}),
        "waits": waits(documents),
        "memory": [{"device": d, "peak": p} for d, p in sorted(peaks.items()) if p],
        "functions": [
            c.as_data(phase_1=c.planned, phase_2=c.worked) for c in by_time if c.kind == "function"
        ],
    }


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def verdict_text(product: str, rows: Sequence[Mapping[str, Any]], current: str | None) -> str:
    """On another product torch_npu may choose other calls than on the one of this run."""
    if not rows and product == current:
        return f"{product} accepts every call"
    if not rows:
        return f"{product} accepts the calls that torch_npu makes on {current}"
    calls = plural(sum(row["calls"] for row in rows), "call")
    return f"{product} refuses {calls} of {plural(len({r['function'] for r in rows}), 'function')}"


def headline(found: Mapping[str, Any]) -> tuple[str, str]:
    """good, bad or none; and the sentence of the whole report, on each product. A program that
    failed may have called what openaclnn lacks, which nothing counts."""
    status = found["status"]
    failed = f"; the program ended with status {status}: fix that first" if status else ""
    if not found["functions"] and not found["fallbacks"]:
        return "none", f"the program called no function of aclnn{failed}"
    refusals = any(found["products"].values())
    fallbacks = len({row["function"] for row in found["fallbacks"]})
    parts = [
        "; ".join(
            verdict_text(product, rows, found["product"])
            for product, rows in found["products"].items()
        ),
        f"{plural(fallbacks, 'operator')} {'falls' if fallbacks == 1 else 'fall'} back to the CPU"
        if fallbacks
        else "no fallback to the CPU seen",
    ]
    verdict = "bad" if refusals else "none" if fallbacks or status else "good"
    return verdict, ", ".join(parts) + failed


def time_text(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:,.2f} s"
    return f"{microseconds / 1e3:,.2f} ms"


def bytes_text(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError


def not_covered(found: Mapping[str, Any]) -> list[str]:
    """What the verdict does not cover, in sentences."""
    others = [product for product in found["products"] if product != found["product"]]
    again = (
        f"torch_npu makes other calls on {' and '.join(others)}: also run  openaclnn npu --product "
        f"{others[0]} -- {shlex.join(found['command'])}"
        if others and found["functions"]
        else ""
    )
    return [s for s in (again, _lost(found["lost_processes"])) if s]


def _lost(lost: Sequence[str]) -> str:
    if not lost:
        return ""
    processes = f"{len(lost)} process{'' if len(lost) == 1 else 'es'}"
    return (
        f"{processes} ended by a signal or by exec, or still run, and lack the figures of the last "
        f"second: {', '.join(lost)}"
    )


def as_text(found: Mapping[str, Any]) -> str:
    lines = [headline(found)[1], ""]

    def section(title: str, rows: Sequence[Sequence[str]], align: str) -> None:
        if rows:
            lines.extend([title, *(f"  {line}" for line in columns(rows, align)), ""])

    for product, rows in found["products"].items():
        section(
            f"refused by {product}",
            [[r["function"], r["dtypes"], str(r["calls"]), r["sentence"]] for r in rows],
            "llrl",
        )
    section(
        "also refused in this run",
        [[r["function"], r["dtypes"], str(r["refused"]), r["sentence"]] for r in found["refused"]],
        "llrl",
    )
    section(
        "computed by the CPU: a device waits for it",
        [
            [r["function"], r["dtypes"], str(r["calls"]), time_text(r["microseconds"])]
            for r in found["fallbacks"]
        ],
        "llrr",
    )
    section(
        "not deterministic by default",
        [[r["function"], r["dtypes"], str(r["calls"])] for r in found["nondeterministic"]],
        "llr",
    )
    section(
        "calls in which the host waits",
        [[r["function"], str(r["calls"]), time_text(r["microseconds"])] for r in found["waits"]],
        "lrr",
    )
    section(
        "peak of device memory",
        [[f"device {use['device']}", bytes_text(use["peak"])] for use in found["memory"]],
        "lr",
    )
    total = sum(r["phase_1"] + r["phase_2"] for r in found["functions"])

    def share(row: Mapping[str, Any]) -> str:
        return f"{(row['phase_1'] + row['phase_2']) / total:.1%}" if total else ""

    shown, count = min(SHOWN, len(found["functions"])), len(found["functions"])
    section(
        f"functions by time, and their share: {shown} of {count}",
        [
            [
                r["function"],
                r["dtypes"],
                str(r["calls"]),
                time_text(r["phase_1"] + r["phase_2"]),
                share(r),
            ]
            for r in found["functions"][:SHOWN]
        ],
        "llrrr",
    )
    lines += not_covered(found)
    return "\n".join(lines).rstrip() + "\n"
