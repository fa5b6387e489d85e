# SPDX-License-Identifier: Apache-2.0
"""Plausible calls of functions that ATen computes, from the lines of calls/*.txt.

    aclnnGather('f5x4[-2,2]', 0, 'i5x4[0,4]', 'f5x4')      parameters in the order of C

A tensor is a letter (f: the dtype of the case, F FLOAT, c complex, i INT64, w INT32, s INT8,
u UINT8, b BOOL), sizes, and the range of its values or, after =, the values.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..aten import Parameter, Row
from ..aten.products import DTYPES
from ..aten.prototypes import functions
from ..reference.arrays import Array
from ..reference.evaluation import numpy_dtype
from .arguments import code_of

CALLS = Path(__file__).with_name("calls")
LETTERS = {"F": "float32", "s": "int8", "i": "int64", "b": "bool", "u": "uint8", "w": "int32"}
TENSOR = re.compile(r"([a-zF])((?:\d+(?:x\d+)*)?)(?:\[(.+),(.+)\]|=(.+))?$")
# Numbers whose names Python's literals lack.
NAMES = {"inf": math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Sample:
    row: Row
    words: tuple[Any, ...]  # of the C function's parameters

    def __str__(self) -> str:
        return f"{self.row.name}({', '.join(map(str, self.words))})"

    def tensors(self) -> Iterator[tuple[Parameter, str]]:
        """The parameters and words of its tensors."""
        for p, word in zip(self.row.given, self.words, strict=True):
            if p.kind in ("tensor", "tensors"):
                yield from ((p, w) for w in (word if isinstance(word, list) else [word]) if w)

    @property
    def has_floats(self) -> bool:
        return any(word.startswith("f") for _, word in self.tensors())


class TensorWord(NamedTuple):
    """A tensor, read from its word."""

    letter: str
    shape: tuple[int, ...]
    low: int | float | None  # the range of its values
    high: int | float | None
    listed: tuple[int | float, ...] | None  # its values


def tensor_word(word: str) -> TensorWord:
    match = TENSOR.match(word)
    assert match, word
    letter, sizes, low, high, listed = match.groups()
    shape = tuple(int(size) for size in sizes.split("x")) if sizes else ()
    values = None if listed is None else tuple(map(_number, listed.split(",")))
    if low is None:
        return TensorWord(letter, shape, None, None, values)
    return TensorWord(letter, shape, _number(low), _number(high), values)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


@cache
def lines() -> dict[str, list[str]]:
    """The arguments of the calls, by function."""
    found: dict[str, list[str]] = {}
    for file in sorted(CALLS.glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, _, rest = line.partition("(")
                found.setdefault(name, []).append(rest[:-1])
    return found


def samples(row: Row) -> list[Sample]:
    return [Sample(row, words(text)) for text in lines().get(row.name, [])]


def words(text: str) -> tuple[Any, ...]:
    """The arguments of a line: words of tensors, numbers, lists."""
    tree = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(tree, ast.List)
    return tuple(map(_word, tree.elts))


def _word(node: ast.expr) -> Any:
    if isinstance(node, ast.List):
        return [_word(one) for one in node.elts]
    if isinstance(node, ast.Name):
        return NAMES[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
        return -NAMES[node.operand.id]
    return ast.literal_eval(node)


def tensor(word: str, dtype: str, rng: np.random.Generator) -> Array:
    """The tensor of a word; `dtype`: of the case."""
    letter, shape, low, high, listed = tensor_word(word)
    kind = numpy_dtype(dtype) if letter == "f" else np.dtype(LETTERS[letter])
    if listed is not None:
        return np.array(listed).reshape(shape).astype(kind)
    if letter == "b":
        return rng.random(shape) < 0.5
    first, last = float(low or 0), float(high or 0)
    if kind.kind in "iu":
        return rng.integers(int(first), int(last), shape, endpoint=True).astype(kind)
    return np.asarray(rng.random(shape) * (last - first) + first).astype(kind)


def dtype_code(word: Any, dtype: str) -> int:
    """aclDataType of a parameter that names one."""
    return DTYPES[dtype] if word == "f" else code_of(LETTERS[word]) or 0


def find(name: str) -> Row | None:
    """By C name."""
    return functions().get(name)
