# SPDX-License-Identifier: Apache-2.0
"""The page of `openaclnn check --html`: each mistake with the places it comes from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..report.html_page import document, signed, table
from ..settings import config

AROUND = 2  # lines of source before and after that of a place
LONGEST = 4 << 20  # bytes of a file whose lines are shown


def page(found: Mapping[str, Any], said: str) -> str:
    """`found` is what --json writes; `said` the closing line without mistakes."""
    reports = found["reports"]
    count = len(reports)
    kinds = list(dict.fromkeys(r["kind"] for r in reports))
    if reports:
        verdict, sentence = "bad", f"{count} mistake{'s' if count != 1 else ''}"
    else:
        verdict, sentence = ("good" if found["checked"] else "none"), said
    now = config()
    facts = [shlex.join(found["program"]), f"exit status {found['status']}"]
    facts += [f"openaclnn {now['version']}", now["product"]]
    overview = [
        [f'<a href="#mistake-{i}">{i}</a>', escape(_title(r)), escape(_first_place(r))]
        for i, r in enumerate(reports, 1)
    ]
    main = [_section(i, r) for i, r in enumerate(reports, 1)]
    if count > 1:
        head = table(["", "kind", "where"], overview, "Mistakes, in the order of the run", "rll")
        main.insert(0, f'<section id="overview">{head}</section>')
    if not reports:
        main = [f'<section id="result"><p class="hint">{_explained(found)}</p></section>']
    first = ("overview" if count > 1 else "mistake-1") if reports else "result"
    words = "the mistakes" if kinds else "the result"
    return document("check", verdict, sentence, facts, "\n".join(main), (first, words))


def _explained(found: Mapping[str, Any]) -> str:
    if found["checked"]:
        return (
            "The program used memory, streams or operators, and made none of the mistakes that "
            "check mode reports."
        )
    return "The program made no call that check mode looks at."


def _title(report: Mapping[str, Any]) -> str:
    return str(report["kind"]).replace("_", " ")


def _first_place(report: Mapping[str, Any]) -> str:
    for place in report["places"]:
        for frame in place["frames"]:
            return _frame(frame)
    return ""


def _section(number: int, report: Mapping[str, Any]) -> str:
    """What happened, what to do, and each place with its frames and lines of source."""
    title = signed("bad", f"{number}. {_title(report)}")
    parts = [f'<section id="mistake-{number}" aria-label="mistake {number}"><h2>{title}</h2>']
    parts.append(f"<p>{escape(report['what'])}</p>")
    if report["advice"]:
        parts.append(f"<p><b>To do:</b> {escape(report['advice'])}</p>")
    parts += [_place(place) for place in report["places"]]
    if consequences := report["consequences"]:
        items = "".join(f"<li>{escape(r['what'])}</li>" for r in consequences)
        more = (
            f"{len(consequences)} call{'s' if len(consequences) != 1 else ''} failed because of it"
        )
        parts.append(f"<details><summary>{more}</summary><ul>{items}</ul></details>")
    return "".join([*parts, "</section>"])


def _place(place: Mapping[str, Any]) -> str:
    head = " ".join(filter(None, (place["role"], place["call"])))
    frames: Sequence[Mapping[str, Any]] = place["frames"]
    lines = "".join(f"<li><code>{escape(_frame(frame))}</code></li>" for frame in frames)
    source = _source(frames[0]) if frames else ""
    listed = f'<ol class="mono">{lines}</ol>' if lines else ""
    return f"<h3>{escape(head)}</h3>{listed}{source}"


def _frame(frame: Mapping[str, Any]) -> str:
    """main at a.cpp:12, or main in libmine.so+0x1234."""
    function = frame.get("function") or "?"
    if frame.get("file"):
        return f"{function} at {frame['file']}:{frame['line']}"
    module = frame.get("module") or "?"
    return f"{function} in {module}+{frame.get('offset') or 0:#x}"


def _source(frame: Mapping[str, Any]) -> str:
    """The lines around a place, its own marked, if the file is still there."""
    path, line = frame.get("file"), frame.get("line") or 0
    try:
        if not path or line < 1 or Path(path).stat().st_size > LONGEST:
            return ""
        text = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    if line > len(text):
        return ""
    shown = []
    for number in range(max(1, line - AROUND), min(len(text), line + AROUND) + 1):
        row = escape(f"{number:6}  {text[number - 1]}")
        shown.append(f"<mark>{row}</mark>" if number == line else row)
    return f'<pre class="source" tabindex="0"><code>{chr(10).join(shown)}</code></pre>'
