# SPDX-License-Identifier: Apache-2.0
"""The suites of bench.py: a table each, with a record in records/ and a section of
docs/reference/performance.md."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import openaclnn
from openaclnn.bench.cases import BROADCAST, Case, Special, count
from openaclnn.plotting.curves import default_attributes
from openaclnn.reference.dtypes import dtype_of
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.schema import Op

SHARES = (0.001, 0.2)  # of special values
GROUP_NORM_SHAPES = (
    *("1x32x8x8/8", "2x320x64x64/32", "2x1280x16x16/32", "8x512x32x32/32"),
    *("1x128x512x512/32", "1x512x1x1/512", "4x64x7x7/1"),
)
Row = tuple[tuple[str, ...], dict[str, Any]]  # labels, and what a Case has beside op and dtype


class Item(NamedTuple):
    labels: tuple[str, ...]
    column: str
    case: Case


@dataclass(frozen=True)
class Suite:
    title: str
    labels: tuple[str, ...]  # heads of the first columns
    rows: Callable[[Op, str], Iterator[Row]]
    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16")
    sizes: tuple[str, ...] = ("64Ki", "1Mi", "16Mi")  # none where rows have shapes
    baselines: tuple[str, ...] = ("torch",)
    loops: tuple[str, ...] = ()
    after_torch: bool = False
    same_results: bool = True  # False: torch has other results for some attributes and values


def attribute_sets(op: Op) -> list[dict[str, Any]]:
    """The defaults, and the sets of the tests."""
    first = default_attributes(op)
    sets = [{name: given[name] for name in first} for given in REFERENCES[op.kernel].attributes]
    return [first, *(one for one in sets if one != first)]


def flag_sets(op: Op) -> list[dict[str, Any]]:
    """The defaults, and these with each flag set."""
    first = default_attributes(op)
    return [first, *(first | {k: not v} for k, v in first.items() if isinstance(v, bool))]


def words(attributes: dict[str, Any]) -> str:
    return " ".join(
        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in attributes.items()
    )


def defaults(op: Op, dtype: str) -> Iterator[Row]:
    if op.pointwise:
        yield (op.python,), {"attributes": default_attributes(op)}


def layouts(op: Op, dtype: str) -> Iterator[Row]:
    """Of the gradients, which stand for all."""
    if op.pointwise and len(op.input_tensors) > 1:
        views = ("transposed", "transposed_in", *(BROADCAST if op.shapes == "broadcast" else ()))
        for layout in views:
            yield (op.python, layout), {"attributes": default_attributes(op), "layout": layout}


def flags(op: Op, dtype: str) -> Iterator[Row]:
    for i, one in enumerate(flag_sets(op) if op.pointwise else ()):
        changed = {k: v for k, v in one.items() if v != default_attributes(op)[k]}
        yield (op.python, words(changed) if i else "defaults"), {"attributes": one}


def attributes(op: Op, dtype: str) -> Iterator[Row]:
    for one in attribute_sets(op) if op.pointwise else ():
        yield (op.python, words(one)), {"attributes": one}


def special_values(op: Op, dtype: str) -> Iterator[Row]:
    """Ordinary data, and the same with special values; with a flag set, NaN alone."""
    if not op.pointwise:
        return
    values = {"0": 0.0, "-0": -0.0, "1": 1.0, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    values["subnormal"] = 6e-6 if dtype == "fp16" else 1e-40
    kinds = [Special(name, value, s) for name, value in values.items() for s in SHARES]
    if len(op.input_tensors) > 1:
        kinds += [Special(name, values[name], SHARES[0], True) for name in ("0", "inf", "nan")]
    for one in flag_sets(op):
        for special in (None, *kinds):
            labels = op.python, words(one), str(special or "ordinary")
            yield labels, {"attributes": one, "special": special}
        kinds = [kind for kind in kinds if kind.name == "nan" and not kind.in_gradient]


def group_norms(op: Op, dtype: str) -> Iterator[Row]:
    for text in GROUP_NORM_SHAPES if op.family == "group_norm" else ():
        dims, groups = text.split("/")
        shape = tuple(map(int, dims.split("x")))
        chosen = default_attributes(op) | {"num_groups": int(groups)}
        yield (op.python, text), {"attributes": chosen, "shape": shape}


SUITES = {
    "elementwise": Suite("Default attributes, contiguous tensors", ("operator",), defaults,
                         sizes=("4Ki", "64Ki", "1Mi", "16Mi", "64Mi")),
    "group_norm": Suite("Group norm", ("operator", "shape / groups"), group_norms, sizes=(),
                        baselines=("torch", "recomputed", "compiled"), loops=("streaming",)),
    "compilers": Suite("torch.compile", ("operator",), defaults, baselines=("torch", "compiled")),
    "layouts": Suite("Transposed and broadcast tensors", ("operator", "layout"), layouts,
                     dtypes=("fp32", "bf16"), sizes=("1Mi", "16Mi")),
    "after_torch": Suite("Right after an operator of torch", ("operator", "attributes"), flags,
                         dtypes=("fp32", "bf16"), sizes=("64Ki", "256Ki", "1Mi", "4Mi"),
                         after_torch=True),
    "attributes": Suite("Every set of attributes", ("operator", "attributes"), attributes,
                        same_results=False),
    "special_values": Suite("Special values among ordinary ones",
                            ("operator", "attributes", "data"), special_values,
                            same_results=False),
}  # fmt: skip


def cases(suite: Suite, options: argparse.Namespace) -> Iterator[Item]:
    """`--quick`: two rows of each operator, in the first dtype and size."""
    few = 1 if options.quick else None
    for op in openaclnn.OPS:
        if op.inplace or (options.ops and not {op.python, op.name} & set(options.ops)):
            continue
        for dtype in (options.dtypes or suite.dtypes)[:few]:
            if (kind := dtype_of(dtype, "--dtypes")) not in op.dtypes:
                continue
            for labels, given in islice(suite.rows(op, dtype), 2 * few if few else None):
                if "shape" in given:
                    yield Item(labels, dtype, Case(op, kind, **given))
                    continue
                for size in (options.sizes or suite.sizes)[:few]:
                    shape = shape_of(count(size), given.get("layout", "contiguous"))
                    case = Case(op, kind, shape, **given)
                    yield Item(labels, f"{dtype} {size}", case)


def shape_of(elements: int, layout: str) -> tuple[int, ...]:
    if layout == "contiguous":
        return (elements,)
    columns = min(elements & -elements, 1 << (elements.bit_length() // 2))
    rows = elements // columns
    middle = min(64, rows & -rows)
    return (rows // middle, middle, columns) if layout == "middle" else (rows, columns)
