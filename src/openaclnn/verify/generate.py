# SPDX-License-Identifier: Apache-2.0
"""Cases from the rows: dtypes, shapes, layouts, attributes and values, all from one seed.

Of an operator in a dtype: every attribute set with every kind of values, the layouts taking turns;
every shape in two layouts; broadcasting, outputs and companions of other dtypes where the row has
them; one tensor large enough to be split over threads; and calls that must be refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ..reference.dtypes import missing_module
from ..reference.evaluation import REFERENCES, Attributes, input_shapes, refused
from ..reference.layouts import EXPANDED, FORWARD_LAYOUTS
from ..rows.schema import Op, Product
from . import values as kinds
from .cases import OF_ROWS, Case, Shape, aliases, seed_of, tensor_names

USUAL = (5, 3, 67)
LARGE = ((1 << 18) + 3,)
LONG = 1 << 17  # positions of a channel, where a plain sum loses digits
SHAPES: tuple[Shape, ...] = (
    (), (1,), (7,), (0,), (2, 0, 3), (6, 11), (3, 1, 5), (2, 3, 4, 5), (2, 1, 2, 1, 3, 1, 2, 2),
    (65_537,),
)  # fmt: skip
BROADCASTS: tuple[tuple[Shape, Shape], ...] = (
    ((2, 3, 4), ()), ((4,), (2, 3, 4)), ((3, 1), (1, 4)), ((5, 1, 3, 1), (2, 1, 70)),
    ((0, 1), (1, 3)), ((1,), (1, 1, 1)), ((3, 3), (3,)),
)  # fmt: skip
FLOATS = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE")


def generate(ops: Iterable[Op], dtypes: Iterable[str], product: Product, seed: int) -> list[Case]:
    """The cases of some operators whose tensors all have some dtypes, as far as the product has
    them."""
    wanted = {dtype for dtype in dtypes if not missing_module(dtype)}
    return [
        case
        for op in ops
        for dtype in op.accepted(product)
        if dtype in wanted
        for case in of_one(op, dtype, product, seed)
        if case.dtypes <= wanted
    ]


def of_one(op: Op, dtype: str, product: Product, seed: int) -> list[Case]:
    made = []
    for i, fields in enumerate(_fields(op, dtype, product)):
        name = f"{op.python}/{dtype}/{i}"
        chosen: dict[str, Any] = {"attributes": REFERENCES[op.kernel].usual} | fields
        if "shapes" not in chosen:
            shape = chosen.pop("shape")
            chosen["shapes"] = tuple(input_shapes(op, shape, chosen["attributes"]))
        made.append(Case(name, op, dtype, seed=seed_of(seed, name), **chosen))
    return made


def _fields(op: Op, dtype: str, product: Product) -> Iterator[dict[str, Any]]:
    ordinary = "mixed" if op.pointwise else "ordinary"
    layouts = itertools.cycle(FORWARD_LAYOUTS)
    usual, shapes, large = _shapes(op)
    for attributes, values in itertools.product(
        REFERENCES[op.kernel].attributes, kinds.names(op, dtype)
    ):
        shape = kinds.shape_of(op, dtype, values, attributes) or usual
        fields = {"shape": shape, "attributes": attributes, "values": values}
        yield fields | {"layout": next(layouts)}
    for attributes in _alone(op):
        for values in dict.fromkeys((ordinary, "uniform")):
            yield {"shape": usual, "attributes": attributes, "values": values}
    for shape in shapes:
        yield {"shape": shape, "values": ordinary}
        yield {"shape": shape, "values": ordinary, "layout": next(layouts)}
    yield {"shape": large, "values": ordinary}
    if not op.pointwise:
        yield {"shape": (1, *large[1:]), "values": ordinary, "layout": "channels_last"}
    if "like sign" in kinds.names(op, dtype):
        one_group = REFERENCES[op.kernel].attributes[1]
        yield {"shape": (1, large[1], LONG), "values": "like sign", "attributes": one_group}
    if op.shapes == "broadcast":
        for pair in BROADCASTS:
            for ordered in (pair, pair[::-1]):
                yield {"shapes": ordered, "values": ordinary, "layout": next(layouts)}
    usual_set = REFERENCES[op.kernel].usual
    for p in op.attributes:
        if any(output.condition == p.name for output in op.outputs):
            fields = {"shape": usual, "values": ordinary}
            yield fields | {"attributes": {**usual_set, p.python_name: False}}
    if op.output == "castable" and not op.inplace:
        for other in FLOATS:
            accepted = product.bfloat16 or other != "BFLOAT16"
            if other != dtype and accepted and not missing_module(other):
                yield {"shape": usual, "values": ordinary, "out": other}
    if any(p.companion for p in op.tensors) and dtype in ("FLOAT16", "BFLOAT16"):
        for shape in (usual, *shapes):
            yield {"shape": shape, "values": ordinary, "companion": "FLOAT"}
    for mistake in OF_ROWS:
        if op.inplace and mistake == "wrong shape":  # there is no second shape
            continue
        yield {"shape": usual, "values": "ordinary", "mistake": mistake}
    if not op.inplace:
        for layout in EXPANDED:
            yield {"shape": usual, "values": ordinary, "layout": layout}
        for attributes in _of_aliases(op):
            for name in aliases(op, input_shapes(op, usual, attributes)):
                yield {"shape": usual, "values": ordinary, "attributes": attributes, "alias": name}
        for layout, name in itertools.product(("transposed", "strided"), tensor_names(op)):
            yield {"shape": usual, "values": ordinary, "layout": layout, "of": name}


def _alone(op: Op) -> Iterator[Attributes]:
    """For each value of an attribute the set in which it alone differs from the first, and with
    each flag changed from that, where no set does that: a finding can then name the attribute that
    a kernel has wrong."""
    first, *others = REFERENCES[op.kernel].attributes
    known = list(others)
    flags = [n for n, v in first.items() if isinstance(v, bool) and any(a[n] != v for a in others)]
    for base in (first, *({**first, n: not first[n]} for n in flags)):
        for name in first if len(first) > 1 else ():
            for made in [{**base, name: a[name]} for a in others if a[name] != first[name]]:
                shapes = input_shapes(op, _shapes(op)[0], made)
                if made not in known and refused(op, shapes, made) is None:
                    known.append(made)
                    yield made


def _of_aliases(op: Op) -> list[Attributes]:
    """The usual set, and the one that differs the most from it."""
    usual, every = REFERENCES[op.kernel].usual, REFERENCES[op.kernel].attributes
    return [usual, max(every, key=lambda a: sum(a[n] != v for n, v in usual.items()))]


def _shapes(op: Op) -> tuple[Shape, tuple[Shape, ...], Shape]:
    """The usual one, others, and a large one. Rows that are not pointwise keep the sizes that
    their attributes must go with: the first two of the example."""
    if op.pointwise:
        return USUAL, SHAPES, LARGE
    example = REFERENCES[op.kernel].example
    named = example[:2]
    others = ((), (1,), (64,), (7, 1, 5), (3, 2, 1, 2, 3, 2), (1025,))
    return example, tuple((*named, *rest) for rest in others), (*named, 96, 128)
