# SPDX-License-Identifier: Apache-2.0
"""Wrong and unusual arguments, made of those of an accepted call."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .library import C_TYPES, Signature
from .values import BOOL, COMPLEX, DOUBLE, DTYPES, FLOAT, INT64, Bad, Call, List, S, Same, T, Text
from .values import name_of as named

LARGEST, LEAST = (1 << 63) - 1, -(1 << 63)
HUGE = (1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, LARGEST)
INTEGERS = (0, 1, -1, 2, 3, 7, -2, 100, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, LARGEST, LEAST)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e308, -1e308, 1e10, float("nan"), float("inf"),
         float("-inf"))  # fmt: skip
CODES = (*DTYPES, -1, 5, 1000, 1 << 30)
Mutation = tuple[str, Any]
OTHER_DTYPES = tuple((f"dtype {named(code)}", {"dtype": code}) for code in CODES)
SINGLES = 60  # cases with one change for each parameter, before those with several


def tensors(t: T) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of the fields."""
    shape, rank = t.shape, len(t.shape)

    def shaped(*sizes: int, **others: Any) -> dict[str, Any]:
        return {"shape": sizes, "strides": None, "offset": 0, **others}

    yield from OTHER_DTYPES
    yield "rank 0", shaped()
    yield "rank 8", shaped(*[1] * (8 - rank), *shape)
    yield "rank 9", shaped(*[1] * (9 - rank), *shape)
    yield "rank 9, of 2", shaped(*[2] * 9)
    yield "a dim in front", shaped(2, *shape)
    yield "a dim at the end", shaped(*shape, 2)
    yield "a 1 in front", shaped(1, *shape)
    yield "a 1 at the end", shaped(*shape, 1)
    yield "shape [1]", shaped(1)
    yield "shape [0]", shaped(0)
    yield "no memory", shaped(*shape, no_memory=True)
    if rank:
        yield "without the first dim", shaped(*shape[1:])
        yield "without the last dim", shaped(*shape[:-1])
        yield "flat", shaped(t.count)
        yield "all 1", shaped(*[1] * rank)
        yield "all 0", shaped(*[0] * rank)
        yield "reversed", shaped(*reversed(shape))
        yield "twice all", shaped(*[2 * size for size in shape])
        zeros = (0,) * rank
        yield "all stride 0", shaped(*shape, strides=zeros)
        for size in HUGE:
            huge = (size, *shape[1:])
            yield f"first dim {size} of stride 0", shaped(*huge, strides=zeros)
            huge = (*shape[:-1], size)
            yield f"last dim {size} of stride 0", shaped(*huge, strides=zeros)
        steps = T(shape).steps()
        yield "gaps", shaped(*shape, strides=tuple(3 * s for s in steps))
        yield "an offset", shaped(*shape, strides=steps, offset=3)
        yield "overlapping", shaped(*shape, strides=tuple(min(s, 1) for s in steps))
        yield "huge stride", shaped(*shape, strides=(LARGEST,) * rank)
        backwards = T(tuple(reversed(shape))).steps()
        yield "transposed", shaped(*shape, strides=tuple(reversed(backwards)))
        last = sum((size - 1) * s for size, s in zip(shape, steps, strict=True) if size)
        yield "negative strides", shaped(*shape, strides=tuple(-s for s in steps), offset=last)
    for k in range(rank):
        for size in (shape[k] - 1, shape[k] + 1, 0, 1, 2 * shape[k]):
            yield f"dim {k} of {size}", shaped(*shape[:k], max(size, 0), *shape[k + 1 :])
    limit = max([*shape, 1])
    if t.fill != "poison":
        for fill in ("wild", "wild", "zero", "one", "unit", "const:-1", f"const:{limit}",
                     f"const:{limit - 1}", "const:1000000", f"const:{LARGEST}",
                     f"const:{LEAST}"):  # fmt: skip
            yield fill, {"fill": fill}


def _scalars() -> Iterator[Mutation]:
    for code in CODES:
        yield f"dtype {named(code)}", S(1, code)
    for real in REALS:
        yield f"{real}", S(real, DOUBLE)
        yield f"{real}", S(real, FLOAT)
    for integer in INTEGERS:
        yield f"{integer}", S(integer, INT64)
    yield "true", S(1, BOOL)
    yield "complex", S(2.5, COMPLEX[1])


SCALARS = tuple(_scalars())


def lists(value: List) -> Iterator[Mutation]:
    items = value.items

    def having(*changed: Any) -> List:
        return List(value.kind, tuple(changed))

    yield "empty", having()
    yield "shorter", having(*items[1:])
    yield "longer", having(*items, *(items[-1:] or (_one(value.kind),)))
    yield "twice", having(*items, *items)
    yield "long", having(*(items or (_one(value.kind),)) * 40)
    yield "one", having(*(items[:1] or (_one(value.kind),)))
    for k, item in enumerate(items):
        if value.kind == "ints":
            yield from ((f"[{k}] {n}", having(*items[:k], n, *items[k + 1 :])) for n in INTEGERS)
        elif value.kind == "floats":
            yield from ((f"[{k}] {n}", having(*items[:k], n, *items[k + 1 :])) for n in REALS[:3])
        elif value.kind == "bools":
            yield f"[{k}] turned", having(*items[:k], not item, *items[k + 1 :])
        else:
            yield f"[{k}] NULL", having(*items[:k], None, *items[k + 1 :])
            for what, one in changes(item):
                one = replace(item, **one) if isinstance(one, dict) else one
                yield f"[{k}] {what}", having(*items[:k], one, *items[k + 1 :])
    if value.kind == "ints":
        yield from ((f"all {n}", having(*[n] * len(items))) for n in INTEGERS)
        yield "reversed", having(*reversed(items))


def changes(item: T | S | None) -> Iterator[Mutation]:
    if item is None:
        return iter(())
    return tensors(item) if isinstance(item, T) else iter(SCALARS)


def _one(kind: str) -> Any:
    return {"ints": 1, "bools": True, "floats": 1.0, "tensors": T((2,)), "scalars": S()}[kind]


def numbers(kind: str, value: Any) -> Iterator[Mutation]:
    if kind in ("double", "float"):
        values: tuple[Any, ...] = REALS
    elif kind == "bool":
        values = (not value,)
    elif kind == "dtype":
        values = CODES
    else:
        values = (*INTEGERS, value + 1, value - 1)
    yield from ((str(n), n) for n in values)


TEXTS = ("", "unknown", "x" * 100_000, "BSND", "TND", "NONE", "%s%n", "\u00e9")


def mutations(call: Call, i: int, signature: Signature) -> list[Mutation]:
    """All changes of an argument: another value, or other fields of a tensor."""
    kind, value = signature.parameters[i].kind, call.args[i]
    if kind in C_TYPES:
        return list(numbers(kind, value))
    found: list[Mutation] = [("NULL", None)] * 3
    if kind == "text":
        return found + [(repr(text[:9]), Text(text)) for text in TEXTS]
    found.append(("destroyed", Bad("gone", kind)))
    for other in ("tensor", "scalar", "ints", "tensors"):
        if other != kind:
            found.append((f"a handle of {other}", Bad(other, kind)))
    if kind == "tensor":
        for k, p in enumerate(signature.parameters):
            if k != i and p.kind == "tensor" and isinstance(call.args[k], T):
                found.append((f"the handle of {p.name}", Same(k)))
        found.extend(tensors(value if isinstance(value, T) else T((2, 3))))
    elif kind == "scalar":
        found.extend(SCALARS)
    else:
        found.extend(lists(value if isinstance(value, List) else List(kind, (_one(kind),) * 2)))
    return found


def case(signature: Signature, pool: list[Call], seed: str, n: int) -> Call:
    """Case n of a function: first the accepted calls, then one change each, then several."""
    if n < len(pool):
        return pool[n]
    chance = random.Random(f"{seed} {signature.name} {n}")
    call, count = chance.choice(pool), len(signature.parameters)
    k = n - len(pool)
    single = k < SINGLES * count
    places = [k % count] if single else chance.choices(range(count), k=chance.choice((1, 2, 2, 3)))
    for i in places:
        if single or not isinstance(call.args[i], Same):
            what, value = chance.choice(mutations(call, i, signature))
            if isinstance(value, dict):
                old = call.args[i] if isinstance(call.args[i], T) else T((2, 3))
                value = replace(old, **value)
            call = call.having(i, value, f"{signature.parameters[i].name}: {what}")
    if chance.random() < 0.25:
        begin = tuple(replace(a, begin=True) if isinstance(a, T) else a for a in call.args)
        call = Call(call.name, begin, call.changes)
    return call
