# SPDX-License-Identifier: Apache-2.0
"""The page of `openaclnn compare --html`: the distances and the worst elements of each output."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..reference.comparison import Compared, Comparison, described, pair
from ..report.html_page import document, signed, table
from ..rows.catalogue import attributes_text
from ..settings import config


def page(found: Comparison) -> str:
    if found.is_empty:
        verdict, sentence = "none", "nothing was compared"
    elif found.passed:
        verdict, sentence = "good", f"{found.op.name} passed"
    else:
        verdict, sentence = "bad", f"{found.op.name} failed"
    facts = [described(found.standard), attributes_text(found.op, found.attributes)]
    facts += [f"openaclnn {config()['version']}"]
    main = "\n".join(_section(compared) for compared in found.outputs)
    skip = (f"output-{found.outputs[0].output.name}", "the results")
    return document("compare", verdict, sentence, [f for f in facts if f], main, skip)


def _section(compared: Compared) -> str:
    output, found = compared.output, compared.verdict
    shape = list(output.got.shape)
    verdict = "none" if not output.got.size else "good" if found.passed else "bad"
    notes = [f"{count:,} x {kind}" for kind, count in compared.mismatches.items()]
    if output.other_nans:
        notes.append(f"{output.other_nans:,} NaNs have other bits than ours, which is allowed")
    parts = [
        f'<section id="output-{escape(output.name)}" tabindex="-1">'
        f"<h2>{signed(verdict, output.name)} {escape(f'{shape} {output.dtype}')}</h2>",
        f"<p>{escape(found.reason)}</p>",
        *([f"<p>{escape(compared.common)}</p>"] if compared.common else []),
        *(f"<p>{escape(note)}</p>" for note in notes),
    ]
    if output.got.size:
        parts.append(_distances(compared))
    if compared.worst:
        parts.append(_worst(compared))
    return "\n".join([*parts, "</section>"])


def _distances(compared: Compared) -> str:
    total = compared.output.got.size
    rows = [
        [escape(label), f"{count:,}", f"{100 * count / total:.3g} %"]
        for label, count in compared.histogram.items()
    ]
    caption = f"Distances in ulp of {compared.output.unit}"
    return table(["ulp", "elements", "share"], rows, caption, "lrr")


def _worst(compared: Compared) -> str:
    names = list(compared.worst[0].inputs)
    rows: list[Sequence[str]] = []
    for element in compared.worst:
        values = [*(element.inputs[n] for n in names), element.nearest, element.got]
        row = [str(list(element.index)), *(pair(*v) for v in values), f"{element.ulp:.4g}"]
        rows.append([escape(cell) for cell in row])
    head = ["index", *names, "expected", "got", "ulp"]
    return table(head, rows, "The worst elements", "l" * (len(names) + 3) + "r")
