# SPDX-License-Identifier: Apache-2.0
"""A call as plain data: it can be sent to another process, changed, and read by people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# aclDataType: name, bytes of an element (INT4 has two elements in a byte).
DTYPES = {
    0: ("float", 4), 1: ("half", 2), 2: ("int8", 1), 3: ("int32", 4), 4: ("uint8", 1),
    6: ("int16", 2), 7: ("uint16", 2), 8: ("uint32", 4), 9: ("int64", 8), 10: ("uint64", 8),
    11: ("double", 8), 12: ("bool", 1), 13: ("string", 1), 16: ("complex64", 8),
    17: ("complex128", 16), 27: ("bfloat16", 2), 28: ("undefined", 1), 29: ("int4", 1),
    30: ("uint1", 1), 33: ("complex32", 4), 34: ("hifloat8", 1), 35: ("float8_e5m2", 1),
    36: ("float8_e4m3fn", 1),
}  # fmt: skip
CODES = {name: code for code, (name, _) in DTYPES.items()}
FLOAT, HALF, INT32, INT64 = CODES["float"], CODES["half"], CODES["int32"], CODES["int64"]
DOUBLE, BOOL, UINT8, BFLOAT16 = CODES["double"], CODES["bool"], CODES["uint8"], CODES["bfloat16"]
FLOATS = (FLOAT, DOUBLE, HALF, BFLOAT16)
COMPLEX = (CODES["complex64"], CODES["complex128"])


def name_of(dtype: int) -> str:
    return DTYPES[dtype][0] if dtype in DTYPES else f"dtype {dtype}"


@dataclass(frozen=True)
class T:
    """A tensor. fill: random, wild (NaN, infinities, extremes), poison, zero, one, const:V,
    index:N (0 to N - 1), list:A,B,... begin: flush with the beginning of its memory, or else with
    the end.
    """

    shape: tuple[int, ...]
    dtype: int = FLOAT
    strides: tuple[int, ...] | None = None
    offset: int = 0
    fill: str = "random"
    salt: int = 0
    begin: bool = False
    no_memory: bool = False

    @property
    def count(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    def steps(self) -> tuple[int, ...]:
        if self.strides is not None:
            return self.strides
        steps, n = [], 1
        for size in reversed(self.shape):
            steps.append(n)
            n *= max(size, 1)
        return tuple(reversed(steps))

    def extent(self) -> tuple[int, int]:
        """The first element and the one after the last, from the beginning of the storage."""
        if any(size <= 0 for size in self.shape):
            return self.offset, self.offset
        reach = [(size - 1) * step for size, step in zip(self.shape, self.steps(), strict=True)]
        low = sum(min(r, 0) for r in reach)
        return self.offset + low, self.offset + sum(max(r, 0) for r in reach) + 1

    def __str__(self) -> str:
        text = f"{name_of(self.dtype)}{list(self.shape)}"
        if self.strides is not None:
            text += f" strides {list(self.strides)}"
        if self.offset:
            text += f" offset {self.offset}"
        if self.fill not in ("random", "poison"):
            text += f" of {self.fill}"
        return text + (" at the begin" if self.begin else "") + (" NULL data" * self.no_memory)


@dataclass(frozen=True)
class S:
    """An aclScalar."""

    value: Any = 1
    dtype: int = FLOAT

    def __str__(self) -> str:
        return f"{name_of(self.dtype)} scalar {self.value}"


@dataclass(frozen=True)
class List:
    """kind: ints, bools, floats, tensors, scalars."""

    kind: str
    items: tuple[Any, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


@dataclass(frozen=True)
class Text:
    value: str

    def __str__(self) -> str:
        return repr(self.value if len(self.value) < 40 else f"{self.value[:20]}… {len(self.value)}")


@dataclass(frozen=True)
class Bad:
    """A handle that is not what the function wants: gone (destroyed), or of another kind."""

    what: str  # gone, tensor, scalar, ints, tensors
    kind: str

    def __str__(self) -> str:
        return f"destroyed {self.kind}" if self.what == "gone" else f"a handle of {self.what}"


@dataclass(frozen=True)
class Same:
    """The handle of another argument."""

    index: int

    def __str__(self) -> str:
        return f"the handle of argument {self.index}"


@dataclass(frozen=True)
class Call:
    """args: one of the classes above, None for NULL, or a number."""

    name: str
    args: tuple[Any, ...]
    changes: tuple[str, ...] = field(default=(), compare=False)

    def having(self, index: int, value: Any, change: str = "") -> Call:
        args = (*self.args[:index], value, *self.args[index + 1 :])
        return Call(self.name, args, (*self.changes, change) if change else self.changes)

    def describe(self, names: list[str]) -> str:
        shown = ["NULL" if a is None else str(a) for a in self.args]
        text = f"{self.name}({', '.join(f'{n}={a}' for n, a in zip(names, shown, strict=True))})"
        return text + (f"  # {'; '.join(self.changes)}" if self.changes else "")
