# SPDX-License-Identifier: Apache-2.0
"""Calls that a function may accept: from the shapes of its row, or from the names of parameters."""

from __future__ import annotations

import math
import random
from typing import Any

from .hints import HINTS
from .library import Signature
from .names import INDEX, MASK, OPTIONAL, SPATIAL, TEXTS, VECTOR, integer, integers
from .values import (
    BFLOAT16,
    BOOL,
    CODES,
    DOUBLE,
    FLOAT,
    FLOATS,
    HALF,
    INT32,
    INT64,
    UINT8,
    Call,
    List,
    S,
    T,
    Text,
)


class Symbols(dict):
    """Sizes of one call, drawn when they are first named."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def __missing__(self, name: str) -> int:
        self[name] = self.chance.choice((1, 2, 2, 3, 3, 4, 4, 6, 8))
        return self[name]


class Draw:
    """One candidate."""

    def __init__(self, signature: Signature, chance: random.Random) -> None:
        self.signature, self.chance = signature, chance
        self.sizes = Symbols(chance)
        self.count = chance.choice((1, 1, 2, 2, 3))  # of the tensors of a list
        kinds = FLOATS[:1] * 6 + (DOUBLE, HALF, BFLOAT16, INT64, INT32, BOOL, CODES["complex64"])
        self.dtype = chance.choice(kinds)
        self.index_dtype = chance.choice((INT64, INT64, INT32))
        self.places = {p.name: i for i, p in enumerate(signature.parameters)}
        self.made: dict[str, Any] = {}
        self.missing: dict[str, bool] = {}
        self.dims = self.some_dims()
        self.named = {  # the numbers that are sizes
            token.rstrip("?+")
            for p in signature.parameters
            for token in (*(getattr(p, "shape", None) or ()), *(getattr(p, "bound", None) or ()))
        }
        rank = chance.choice((1, 2, 2, 3, 3, 4, 4, 5))
        if found := SPATIAL.search(signature.name):
            self.spatial = int(found[1])
            if chance.random() < 0.8:
                rank = self.spatial + chance.choice((1, 2, 2))
        else:
            self.spatial = max(rank - 2, 1)
        even = chance.random() < 0.3
        choices = (2, 4, 8) if even else (1, 2, 3, 4, 5)
        self.base = tuple(chance.choice(choices) for _ in range(rank))
        if chance.random() < 0.3:
            self.base = (chance.choice(choices),) * rank
        self.dim = chance.randrange(rank)
        self.optional_null = chance.random() < 0.5
        self.same = chance.random() < 0.5  # all tensors of one shape

    # ---- tensors ----

    def annotated(self, parameter: Any) -> tuple[int, ...] | None:
        """The shape that the row says, or None."""
        tokens = getattr(parameter, "shape", None)
        if tokens is None or self.chance.random() < 0.02:
            return None
        shape: list[int] = []
        for token in tokens:
            name = token.rstrip("?+")
            if token.endswith("?") and self.is_missing(name):
                continue
            if name.isdigit():
                shape.append(int(name))
            elif name in ("*", "..."):
                shape.extend(self.dims if name == "*" else self.some_dims())
            elif name in self.places:
                value = self.argument(name)
                if isinstance(value, T | List):
                    shape.extend(value.shape if isinstance(value, T) else value.items)
                elif isinstance(value, int):
                    shape.append(max(value, 1 if token.endswith("+") else 0))
            else:
                shape.append(self.sizes[name])
        if getattr(parameter, "flat", False) and self.chance.random() < 0.3:
            return (math.prod(shape),)
        return tuple(shape)

    def some_dims(self) -> tuple[int, ...]:
        return tuple(self.chance.randint(1, 4) for _ in range(self.chance.randrange(3)))

    def is_missing(self, name: str) -> bool:
        if name not in self.missing:
            self.missing[name] = self.chance.random() < 0.3
        return self.missing[name]

    def limit(self, parameter: Any) -> int:
        """Of the elements of an index tensor."""
        factors = (getattr(parameter, "below", None) or "").split("*")
        if factors == [""]:
            return min(self.base)
        found = 1
        for factor in factors:
            value = self.argument(factor) if factor in self.places else self.sizes[factor]
            found *= value if isinstance(value, int) else 1
        return found

    def guess(self, name: str) -> tuple[int, ...]:
        chance, base = self.chance, self.base
        if self.same and chance.random() < 0.9:
            return base
        if VECTOR.match(name) and chance.random() < 0.7:
            channel = base[1] if len(base) > 1 and chance.random() < 0.5 else base[-1]
            return chance.choice(((channel,), (channel,), (base[0],), (*base[:-1], 1), (1,), ()))
        k = self.dim
        return chance.choice((
            base, base, base, base, base[:-1], base[1:], (), (1,), (base[-1],), (base[0],),
            (*base[:-1], 2 * base[-1]), (*base[:-1], base[-1] // 2), base[:-2] + base[:-3:-1],
            base[:k] + base[k + 1 :], (*base[:k], 1, *base[k + 1:]), base[:2], base[-2:],
            tuple(reversed(base)), (*base[:-1], 1), (base[0], *base[2:]),
        ))  # fmt: skip

    def tensor(self, parameter: Any, late_inputs: bool) -> T | None:
        name, chance = parameter.name, self.chance
        optional = OPTIONAL.match(name) or getattr(parameter, "nullable", False)
        if optional and self.optional_null and chance.random() < 0.85:
            return None
        shape = self.annotated(parameter)
        if shape is None:
            shape = self.guess(name)
        dtype, fill, roll = self.dtype, "random", chance.random()
        of = getattr(parameter, "of", "any")
        if of == "index" or getattr(parameter, "below", None) or INDEX.search(name):
            limit = self.limit(parameter)
            if roll < 0.9 or of == "index":
                dtype, fill = self.index_dtype, f"index:{limit}"
        elif of == "float":
            dtype = dtype if dtype in FLOATS else FLOAT
        elif MASK.search(name) and roll < 0.9:
            dtype = chance.choice((BOOL, BOOL, UINT8))
        elif parameter.written and roll < 0.3:
            dtype = chance.choice((BOOL, BOOL, INT64, INT32, FLOAT, FLOAT, DOUBLE, UINT8))
        if parameter.written and not late_inputs:
            fill = "poison"
        elif fill == "random" and chance.random() < 0.2:
            fill = chance.choice(("unit", "unit", "zero", "one"))
        return T(shape, dtype, fill=fill, salt=chance.randrange(500))

    # ---- numbers and lists ----

    def scalar(self) -> S:
        chance = self.chance
        if self.dtype in (INT64, INT32, BOOL) and chance.random() < 0.7:
            return S(chance.choice((1, 1, 2, 3, 0)), INT64)
        return S(chance.choice((0.5, 1.0, 1.0, 2.0, 0.0, -1.0)), chance.choice((FLOAT, DOUBLE)))

    def value(self, i: int) -> Any:
        parameter, chance = self.signature.parameters[i], self.chance
        kind, name = parameter.kind, parameter.name
        least, most = getattr(parameter, "least", None), getattr(parameter, "most", None)
        after = self.signature.parameters[i + 1 :]
        late_inputs = i == 0 or any(
            p.kind in ("tensor", "tensors") and not p.written for p in after
        )
        if kind == "tensor":
            return self.tensor(parameter, late_inputs)
        if kind in ("tensors", "scalars"):
            n = self.count
            if kind == "scalars":
                return List(kind, tuple(self.scalar() for _ in range(n)))
            items = [self.tensor(parameter, late_inputs) for _ in range(n)]
            if items[0] is None:
                return None
            if chance.random() < 0.8:
                items = [items[0]] * n
            return List(kind, tuple(items))
        if kind == "scalar":
            if name in ("dim",):
                return S(self.dim, INT64)
            return self.scalar()
        if kind == "ints":
            optional = OPTIONAL.match(name) or getattr(parameter, "nullable", False)
            if optional and self.optional_null:
                return None
            items, length = integers(self, name), self.annotated(parameter)
            if length is not None and len(items) != (n := math.prod(length)):
                items = (items * n or (1,) * n)[:n]
            return List(kind, items)
        if kind == "bools":
            length = self.annotated(parameter)
            n = chance.choice((2, 3, 3)) if length is None else math.prod(length)
            return List(kind, tuple(chance.random() < 0.8 for _ in range(n)))
        if kind == "floats":
            return List(kind, tuple(chance.random() for _ in range(self.spatial)))
        if kind == "text":
            return Text(chance.choice(TEXTS.get(name, ("", "none", "sum"))))
        if kind in ("int", "int32", "byte"):
            number = integer(self, name, least, most)
            if divisor := getattr(parameter, "multiple", None):
                number = -(-number // (unit := max(self.argument(divisor), 1))) * unit
            return number
        if kind == "dtype":
            return self.dtype if chance.random() < 0.8 else chance.choice((FLOAT, INT64, UINT8))
        if kind == "bool":
            return chance.random() < 0.5
        return chance.choice((0.5, 1e-5, 1.0, 0.0, 2.0))

    def call(self) -> Call:
        parameters = self.signature.parameters
        if self.signature.name in HINTS and self.chance.random() < 0.7:
            return self.hinted()
        values = tuple(self.argument(p.name) for p in parameters)
        return Call(self.signature.name, values)

    def argument(self, name: str) -> Any:
        """Made when it is first asked for: shapes name other arguments."""
        if name not in self.made:
            self.made[name] = None  # a row that goes in a circle
            self.made[name] = self.value(self.places[name])
        return self.made[name]

    def hinted(self) -> Call:
        """With the arguments of the table; () stands for a shape, or for a list."""
        for name, value in HINTS[self.signature.name](self).items():
            parameter = self.signature.parameters[self.places[name]]
            if isinstance(value, tuple) and parameter.kind == "tensor":
                fill = "poison" if parameter.written else "random"
                value = T(value, self.dtype, fill=fill, salt=self.chance.randrange(500))
            elif isinstance(value, tuple):
                value = List(parameter.kind, value)
            elif isinstance(value, str):
                value = Text(value)
            self.made[name] = value
        return Call(
            self.signature.name, tuple(self.argument(p.name) for p in self.signature.parameters)
        )
