# SPDX-License-Identifier: Apache-2.0
"""The language of the rows: how a public function is written in table.py.

A row is one `op(...)`. Its signature reads like the C prototype, in the C order:

    "self, negativeSlope: scalar = 0.01, out!"

    self            const aclTensor*      an input
    out!            aclTensor*            an output ("const out!": const aclTensor*)
    selfRef!&       aclTensor*            input and output in one
    alpha: scalar   const aclScalar*      attributes; also double, int64, bool, text
    bias?           may be NULL
    gamma~          has the dtype of the first tensor or FLOAT, like all others with this mark
    = 0.01          the default in Python; None for text
    out! if flag    an output that is neither needed nor touched when the attribute `flag` is false
    x[N,C,*]        a shape (shapes.py); unless said, one shape for all tensors

Its gradient is another row, and what the parameters of that row receive:

    gradient("aclnnEluBackward", gradOutput="d out", selfOrResult="self", isResult=False, ...)

The build imports this module; it needs nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from .schema import C_TYPES, Default, Gradient, Kind, Op, Parameter, Role
from .shapes import parse

_PARAMETER = re.compile(
    r"(?P<const>const )?(?P<name>\w+)(?:\[(?P<shape>[^\]]*)\])?(?P<marks>[!&?~]*)"
    r"(?:: (?P<kind>\w+))?"
    r"(?: = (?P<default>\S+))?(?: if (?P<condition>\w+))?"
)
_COMMA = re.compile(r",(?![^\[]*\])")  # outside of brackets


def _default(text: str | None) -> Default:
    if text in (None, "None"):
        return None
    if text in ("True", "False"):
        return text == "True"
    return float(text) if "." in text or "e" in text else int(text)


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a parameter: {text!r}")
    kind: Kind = match["kind"] or "tensor"  # type: ignore[assignment]
    if kind not in C_TYPES:
        raise ValueError(f"parameter {text!r}: {kind} is not one of {', '.join(C_TYPES)}")
    marks = match["marks"]
    role: Role = "attribute"
    if kind == "tensor":
        role = "inout" if "&" in marks else "output" if "!" in marks else "input"
    mutable = role in ("output", "inout") and match["const"] is None
    return Parameter(
        name=match["name"],
        kind=kind,
        role=role,
        required=kind in ("tensor", "scalar") and "?" not in marks,
        c_type="aclTensor*" if mutable else C_TYPES[kind],
        default=_default(match["default"]),
        companion="~" in marks,
        condition=match["condition"],
        form=parse(match["shape"]),
    )


def gradient(
    row: str,
    /,
    *,
    zero: str = "",
    only_if: str | None = None,
    nonnegative: str = "",
    **given: str | bool,
) -> Gradient:
    """A gradient: gradient("aclnnHardshrinkBackward", gradOutput="d out", gradInput="d self")."""
    return Gradient(row, given, tuple(zero.split()), only_if, tuple(nonnegative.split()))


def op(
    name: str,
    signature: str,
    *,
    python: str,
    kernel: str,
    products: str,
    dtypes: str,
    formula: str,
    doc: str,
    where: str = "",
    extra_dtypes: str = "",
    family: str = "elementwise",
    sizes: str = "",
    limits: str = "",
    inputs: Literal["promote", "equal"] = "promote",
    output: Literal["castable", "equal"] = "castable",
    rules: Iterable[str] = (),
    gradient: Gradient | None = None,
) -> Op:
    """A row. Lists are written as words: products="910 A2 A3". Named sizes are explained as
    sizes="N: samples, C: channels % numGroups, numGroups: groups": C is a multiple of numGroups.
    The letters of the formula are defined in where="v = h * gamma + beta; h = (x - mean) * rstd".
    """
    words = [part.strip().split(": ") for part in sizes.split(",") if part]
    counted = {name: text.partition(" % ")[0] for name, text in words}
    multiples = {name: text.partition(" % ")[2] for name, text in words if " % " in text}
    return Op(
        name=name,
        python=python,
        parameters=tuple(_parameter(part.strip()) for part in _COMMA.split(signature)),
        family=family,
        kernel=kernel,
        products=tuple(products.split()),
        dtypes=tuple(dtypes.split()),
        extra_dtypes=tuple(extra_dtypes.split()),
        sizes=counted,
        multiples=multiples,
        limits=limits,
        inputs=inputs,
        output=output,
        rules=tuple(rules),
        formula=formula,
        where=tuple(part.strip() for part in where.split(";") if part),
        doc=doc,
        gradient=gradient,
    )
