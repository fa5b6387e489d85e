# SPDX-License-Identifier: Apache-2.0
"""The page of `openaclnn npu --report`, for the person who decides whether a program is ready for
the device: the worst first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..report.html_page import document, table
from .run_report import bytes_text, headline, not_covered, time_text

FIRST = 15  # rows of a long table that are shown at once


def page(found: Mapping[str, Any]) -> str:
    verdict, sentence = headline(found)
    memory = [f"device {u['device']}: {bytes_text(u['peak'])} at most" for u in found["memory"]]
    processes = found["processes"]
    facts = [
        shlex.join(found["command"]),
        f"exit status {found['status']}",
        f"{found['seconds']:.1f} s",
        f"{processes} process{'' if processes == 1 else 'es'}",
        *memory,
        f"openaclnn {found['openaclnn']}, product {found['product']}",
    ]
    sections = [
        *(
            _section(
                f"product-{key}",
                f"Refused by {key}",
                f"Calls of this run that {key} would refuse, and why.",
                _sentences(rows, "calls"),
            )
            for key, rows in found["products"].items()
        ),
        _section(
            "refused",
            "Also refused in this run",
            "Calls that raised an error, beside those above: wrong shapes, wrong values, what "
            "openaclnn lacks.",
            _sentences(found["refused"], "refused"),
        ),
        _section(
            "fallbacks",
            "Computed by the CPU",
            "Operators without an implementation for the device. There each call waits for the "
            "stream, copies its tensors to the host, and copies the results back.",
            _table(
                ["operator", "dtypes", "calls", "time"],
                [
                    [_name(r), _dtypes(r), _count(r["calls"]), time_text(r["microseconds"])]
                    for r in found["fallbacks"]
                ],
                "llrr",
            ),
        ),
        _section(
            "determinism",
            "Not deterministic by default",
            "On a device the results differ from run to run, unless "
            "torch.use_deterministic_algorithms(True) is set. Here they are the same."
            + _unknown(found["determinism_unknown"]),
            _table(
                ["function", "dtypes", "calls"],
                [[_name(r), _dtypes(r), _count(r["calls"])] for r in found["nondeterministic"]],
                "llr",
            ),
        ),
        _section(
            "waits",
            "Calls in which the host waits",
            "Each waits for work that was submitted before it: .item(), .cpu(), printing, "
            "synchronisation. In a training step few are needed.",
            _table(
                ["function", "calls", "time here"],
                [
                    [_name(r), _count(r["calls"]), time_text(r["microseconds"])]
                    for r in found["waits"]
                ],
                "lrr",
            ),
        ),
        _section(
            "functions",
            "Functions by time",
            "Of this CPU, which says nothing about a device. Phase 1 is the check, phase 2 the "
            "work.",
            _table(
                ["function", "dtypes", "calls", "phase 1", "phase 2"],
                [
                    [
                        _name(r),
                        _dtypes(r),
                        _count(r["calls"]),
                        time_text(r["phase_1"]),
                        time_text(r["phase_2"]),
                    ]
                    for r in found["functions"]
                ],
                "llrrr",
            ),
        ),
    ]
    sections[:0] = [f'<p class="hint">{escape(sentence)}</p>' for sentence in not_covered(found)]
    return document(
        "npu",
        verdict,
        sentence,
        facts,
        "\n".join(sections),
        (f"product-{next(iter(found['products']))}", "what is refused"),
    )


def _section(name: str, title: str, hint: str, content: str) -> str:
    """A section without content says so in one line."""
    if not content:
        return f'<section id="{name}"><h2>{escape(title)}: none</h2></section>'
    return (
        f'<section id="{name}"><h2>{escape(title)}</h2>'
        f'<p class="hint">{escape(hint)}</p>{content}</section>'
    )


def _unknown(names: Sequence[str]) -> str:
    return f" Whether it is deterministic is not known of {', '.join(names)}." if names else ""


def _sentences(rows: Sequence[Mapping[str, Any]], count: str) -> str:
    """The sentence lies under the function, where a narrow screen has room for it."""
    return _table(
        ["function", "dtypes", "calls"],
        [
            [
                f"{_name(r)}<small>{escape(r['sentence'].removeprefix(r['function'] + ': '))}"
                "</small>",
                _dtypes(r),
                _count(r[count]),
            ]
            for r in rows
        ],
        "llr",
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    if not rows:
        return ""
    first = table(head, rows[:FIRST], "", align)
    if len(rows) <= FIRST:
        return first
    more = table(head, rows[FIRST:], "", align)
    return f"{first}<details><summary>{len(rows) - FIRST} more</summary>{more}</details>"


def _name(row: Mapping[str, Any]) -> str:
    return f"<code>{escape(row['function'])}</code>"


def _dtypes(row: Mapping[str, Any]) -> str:
    return f'<span class="mono">{escape(row["dtypes"])}</span>'


def _count(count: int) -> str:
    return f"{count:,}"
