# SPDX-License-Identifier: Apache-2.0
"""Operators that ATen computes: one row each in the text files of this folder, by theme.

    aclnnAdd Inplace(self, other, alpha: scalar, out!) = add.Tensor(self, other, alpha)

On the left are the C function and its parameters in their order, with what they accept
(parameters.py has their notation). Inplace adds aclnnInplaceAdd, without out: self takes its
place. On the right is the operator of ATen with its overload and leading arguments: parameters,
none, true, false, numbers, "text", or the dtype of out. Its results go to the written parameters
that are not arguments, in their order, or else to the first. `in float` computes 16-bit floats in
float; `promoted` computes tensors of several dtypes in the one that holds them all and out;
`moved` only moves values, which need not be initialised before the result is read. Where
one operator of ATen is not enough, `composite name` is a function of
core/torch/aten/composites.
A name without acl is a type of the interface before aclnn: tensors come in this order, the
others are attributes, by these names.
Lines that start with a blank continue a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from .parameters import KINDS, Parameter, parameter

__all__ = ["KINDS", "Parameter", "Row", "parse", "rows"]


@dataclass(frozen=True)
class Row:
    name: str
    parameters: tuple[Parameter, ...]
    op: str
    overload: str | None  # None: op is a composite
    arguments: tuple[str, ...]
    computed: str  # as_given, in_float, promoted, moved: of core/aten/row.h
    inplace: bool = False  # the C function has no out: self takes its place

    @property
    def is_type(self) -> bool:
        """An operator of the interface before aclnn, by type: it has no functions."""
        return not self.name.startswith("acl")

    @property
    def outputs(self) -> tuple[int, ...]:
        """The parameters that take the results."""
        written = [i for i, p in enumerate(self.parameters) if p.written]
        free = [i for i in written if self.parameters[i].name not in self.arguments]
        return tuple(free or written[:1])

    @property
    def given(self) -> tuple[Parameter, ...]:
        """The parameters of the C function."""
        if not self.inplace:
            return self.parameters
        return tuple(p for i, p in enumerate(self.parameters) if i not in self.outputs)


ROW = re.compile(
    r"(\w+)( Inplace)?\((.*?)\) = (?:composite (\w+)|(\w+)(?:\.(\w+))?\((.*?)\))"
    r"( in float| promoted| moved)?$"
)
BRACES = re.compile(r"\{([^}]+)\}")


def lines(text: str) -> Iterator[str]:
    """The rows of a file, each on one line, names in braces spelled out."""
    joined = re.sub(r"\s*\n[ \t]+", " ", text)
    for line in joined.splitlines():
        if not line or line.startswith("#"):
            continue
        if found := BRACES.search(line):
            for name in found[1].split():
                one = line[: found.start()] + name + line[found.end() :]
                yield one.replace("{}", name.lower())
        else:
            yield line


def parse(line: str) -> list[Row]:
    """The row, and its in-place form."""
    match = ROW.match(line)
    if match is None:
        raise ValueError(f"not a row: {line}")
    name, inplace, left, composite, op, overload, right, computed = match.groups()
    parameters = tuple(map(parameter, left.split(", ")))
    arguments = () if composite else tuple(filter(None, right.split(", ")))
    row = Row(
        name, parameters, composite or op, None if composite else overload or "", arguments,
        (computed or " as given").strip().replace(" ", "_"),
    )  # fmt: skip
    if inplace is None:
        return [row]
    return [row, replace(row, name=f"aclnnInplace{name.removeprefix('aclnn')}", inplace=True)]


@cache
def rows() -> tuple[Row, ...]:
    """All rows, by name."""
    found = [
        row
        for path in sorted(Path(__file__).parent.glob("*.txt"))
        for line in lines(path.read_text(encoding="utf-8"))
        for row in parse(line)
    ]
    return tuple(sorted(found, key=lambda row: row.name))
