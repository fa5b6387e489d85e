# SPDX-License-Identifier: Apache-2.0
"""What a row says about the shapes of its tensors, in brackets behind their names:

    x[*]                 any shape, the same for all tensors of the row that have it; the default
    self[...]            any shape; those of the inputs broadcast, and outputs have what they make
    x[N,C,*]             named sizes, the same wherever the name stands, then any more dimensions
    meanOut[N,numGroups] the name of an attribute is the attribute's value
    mean[(N,numGroups)]  as many elements, in that order, in whatever dimensions

The build imports this module; it needs nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """The shape of one tensor."""

    sizes: tuple[str, ...]
    rest: bool = False  # any more dimensions follow
    flat: bool = False  # only the number of elements and their order count
    broadcast: bool = False

    def __str__(self) -> str:
        inside = ", ".join((*self.sizes, *(["..."] if self.rest else [])))
        return "any" if self.broadcast or self == ANY_SHAPE else f"({inside})"


ANY_SHAPE = Form((), rest=True)
BROADCAST = Form((), rest=True, broadcast=True)


def parse(text: str | None) -> Form:
    """The form that stands in brackets."""
    if text is None or text == "*":
        return ANY_SHAPE
    if text == "...":
        return BROADCAST
    flat = text.startswith("(") and text.endswith(")")
    *sizes, last = [part.strip() for part in text.strip("()").split(",")]
    if last != "*":
        sizes.append(last)
    if not sizes or (flat and last == "*") or not all(re.fullmatch(r"\w+", s) for s in sizes):
        raise ValueError(f"not a shape: [{text}]")
    return Form(tuple(sizes), rest=last == "*", flat=flat)


def bind(forms: Mapping[str, Form], shapes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The sizes by name, "*" for the dimensions that follow, from the shapes of some tensors."""
    known: dict[str, Any] = {}
    for name, shape in shapes.items():
        form = forms[name]
        if form.flat or form.broadcast:
            continue
        for size, n in zip(form.sizes, shape, strict=False):
            known.setdefault(size, n)
        if form.rest:
            known.setdefault("*", tuple(shape[len(form.sizes) :]))
    return known


def shape_of(form: Form, known: Mapping[str, Any]) -> tuple[Any, ...]:
    """The shape of a tensor where the sizes are known, those of attributes among them."""
    rest = known["*"] if form.rest else ()
    return (*(known[size] for size in form.sizes), *rest)
