# SPDX-License-Identifier: Apache-2.0
"""A page that needs nothing else: no network, no other file. verify, demo and check mode write one.

It is light or dark as the reader's system is, or as the button says; headings, tables and charts
have the names that screen readers read.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

PARTS = Path(__file__).parent / "html_parts"
# The page fetches nothing, whatever text the data hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
SIGNS = {"good": "✓", "bad": "✕", "none": "–"}


def document(
    command: str,
    verdict: str,
    sentence: str,
    facts: Sequence[str],
    main: str,
    skip: tuple[str, str],
    end: str = "",
    scripts: str = "",
) -> str:
    """`verdict` is good, bad or none; `skip` the id and the words of what the first link leads to;
    `end` follows the main part."""
    style = (PARTS / "style.css").read_text(encoding="utf-8")
    theme = (PARTS / "theme.js").read_text(encoding="utf-8")
    shown = "".join(f"<span>{escape(fact)}</span> " for fact in facts).strip()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<title>openaclnn {command}: {escape(sentence)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#{skip[0]}">Skip to {skip[1]}</a>
<header>
<div class="brand"><span>openaclnn {command}</span>
<button type="button" id="theme" hidden>Theme: system</button></div>
<h1 class="{verdict}"><span aria-hidden="true">{SIGNS[verdict]}</span> {escape(sentence)}</h1>
<p class="facts">{shown}</p>
</header>
<main>
{main}
</main>
{end}<script>
"use strict";
{{
{theme}{scripts}}}
</script>
</body>
</html>
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, align: str) -> str:
    """Cells are HTML; `align` has a letter for each column, l or r. The first names its row."""
    kinds = [' class="right"' if letter == "r" else "" for letter in align]
    top = "".join(
        f'<th scope="col"{kind}>{escape(word)}</th>' for word, kind in zip(head, kinds, strict=True)
    )
    lines = []
    for row in rows:
        first, *rest = row
        cells = "".join(f"<td{k}>{cell}</td>" for cell, k in zip(rest, kinds[1:], strict=True))
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="plain"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def signed(verdict: str, words: str) -> str:
    """Words with a sign, in a colour."""
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[verdict]}</span>'
    return f'<span class="{verdict} nowrap">{sign} {escape(words)}</span>'
