# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing else: no network, no other file.

The verdict, the findings and the matrix of operators and dtypes are HTML, which people see without
JavaScript, too. The rest is data; the scripts in report_page show the part that the reader opens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from ..reference.comparison import described
from ..report.html_page import SIGNS, document
from ..rows.catalogue import SHORT
from .finding import Finding
from .page_data import cells, numbers, page_data
from .report import Report, example_lines
from .report_data import environment
from .runner import FAILED, LEFT_OUT, Result

PARTS = Path(__file__).parent / "report_page"
SCRIPTS = ("base.js", "charts.js", "cases.js", "page.js")  # each uses those before it
SHOWN = 8  # findings that are open at once


def page(report: Report) -> str:
    verdict, sentence = _verdict(report)
    data = json.dumps(page_data(report), separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c")  # no text of a library can close the script element
    scripts = "\n".join((PARTS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    main = (
        f"{_findings(report)}{_matrix(report)}\n"
        f'<section id="detail" hidden></section>\n{_environment(report)}'
    )
    end = (
        "<noscript><p>The cases behind each cell of the matrix need JavaScript.</p></noscript>\n"
        f'<script type="application/json" id="data">{data}</script>\n'
    )
    skip = ("matrix", "the matrix")
    return document("verify", verdict, sentence, _facts(report), main, skip, end, scripts)


def _verdict(report: Report) -> tuple[str, str]:
    failed = len(report.failed)
    if failed:
        return "bad", f"{failed:,} of {report.compared:,} results failed"
    if not report.compared:
        return "none", "nothing was verified"
    return "good", f"All {report.compared:,} results passed"


def _facts(report: Report) -> list[str]:
    cases = len({id(r.case) for r in report.results})
    left = sum(r.status == LEFT_OUT for r in report.results)
    facts = [", ".join(report.providers), f"{cases:,} cases", f"seed {report.seed}"]
    facts += [described(report.standard), f"{report.seconds:.1f} s"]
    facts += [f"{left:,} left out"] if left else []
    return facts


def _address(op: str, dtype: str, number: int | None = None) -> str:
    return escape(f"#/{op}/{dtype}" + ("" if number is None else f"/{number}"), quote=True)


# ---- findings ----


def _findings(report: Report) -> str:
    """Each finding with its cause, in which dtypes, and its example."""
    items = [
        _finding(report, provider, op, finding)
        for provider, op in report.failing
        for finding in report.findings(provider, op)
    ]
    if not items:
        return ""
    rest = items[SHOWN:]
    more = f"<details><summary>{len(rest)} more</summary><ul>{''.join(rest)}</ul></details>"
    return (
        '<section id="findings"><h2>Findings</h2>'
        f"<ul>{''.join(items[:SHOWN])}</ul>{more if rest else ''}</section>\n"
    )


def _finding(report: Report, provider: str, op: str, finding: Finding) -> str:
    found, links = cells(report), []
    for dtype in dict.fromkeys(r.case.dtype for r in finding.results):  # as the matrix has them
        same = [r for r in finding.results if r.case.dtype == dtype]
        worst = max(same, key=lambda r: r.error)
        ids = list(dict.fromkeys(r.case.id for r in found[op, dtype]))
        address = _address(op, dtype, numbers(ids)[ids.index(worst.case.id)])
        links.append(f'<a href="{address}">{SHORT[dtype]}</a> {len(same):,}')
    cause = f"<p>{escape(finding.cause)}</p>" if finding.cause else ""
    example = escape("\n".join(example_lines(report, finding.example)))
    return (
        f"<li><b>{escape(op)}</b> "
        f'<span class="count">{escape(provider)}, {finding.kind}: {", ".join(links)}</span>'
        f"{cause}<pre>{example}</pre></li>"
    )


# ---- the matrix ----


def _matrix(report: Report) -> str:
    found = cells(report)
    ops = list(dict.fromkeys(op for op, _ in found))
    dtypes = list(dict.fromkeys(dtype for _, dtype in found))
    head = "".join(f'<th scope="col">{SHORT[d]}<small>{d}</small></th>' for d in dtypes)
    rows = []
    for op in ops:
        row = "".join(_cell(op, dtype, found.get((op, dtype))) for dtype in dtypes)
        rows.append(f'<tr><th scope="row">{escape(op)}</th>{row}</tr>')
    return (
        '<section id="matrix" tabindex="-1"><h2 id="matrix-title">Operators and dtypes</h2>'
        '<p class="hint">Each cell has its greatest distance from the formula and the number of '
        "results. Open one to see its cases; the arrow keys move between cells.</p>"
        '<div class="scroll"><table aria-labelledby="matrix-title">'
        f'<thead><tr><th scope="col">operator</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _cell(op: str, dtype: str, results: Sequence[Result] | None) -> str:
    if results is None:
        return '<td class="none"><span title="the product has no such kernel">–</span></td>'
    done = [r for r in results if r.status != LEFT_OUT]
    failed = sum(r.status == FAILED for r in done)
    verdict = "bad" if failed else "good" if done else "none"
    if failed:
        big, small = f"{failed:,} failed", f"of {len(done):,}"
    elif done:
        big, small = _worst(done), f"{len(done):,} passed"
    else:
        big, small = "left out", f"{len(results):,}"
    label = f"{op} {dtype}: {big}, {small}"
    return (
        f'<td class="{verdict}"><a href="{_address(op, dtype)}" aria-label="{escape(label)}">'
        f'<span class="sign" aria-hidden="true">{SIGNS[verdict]}</span> <b>{big}</b>'
        f"<small>{small}</small></a></td>"
    )


def _worst(done: Iterable[Result]) -> str:
    """The greatest distance; outputs of another dtype have another unit."""
    worst = max((r for r in done if r.unit and not r.case.out), key=lambda r: r.error, default=None)
    if worst is None or math.isinf(worst.error):
        return "passed"
    return f"{worst.error:.4f} {worst.unit}" if worst.error else "exact"


# ---- the environment ----


def _environment(report: Report) -> str:
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>"
        for name, value in environment().items()
    )
    again = "".join(
        f"<li><code>{escape(report.command_of(provider))} ID</code></li>"
        for provider in report.providers
    )
    return (
        f'<section id="environment"><h2>Environment</h2><dl>{rows}</dl>'
        f"<p>These commands run one case again; ID is the name of the case.</p>"
        f"<ul>{again}</ul></section>"
    )
