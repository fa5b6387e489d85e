# SPDX-License-Identifier: Apache-2.0
"""From the rows of table.py to Python functions."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .kinds import KINDS, Kind
from .library import LIBRARY
from .table import ROWS

ROW = re.compile(r"(?P<name>[\w.]+) = (?P<result>\w+) (?P<function>\w+)\((?P<parameters>.*)\)")
PARAMETER = re.compile(r"(?P<role>>>|>|\+|) ?(?P<name>\w+): (?P<kind>\w+)(?P<optional>\??)")


class Parameter(NamedTuple):
    role: str  # "" argument, ">" and ">>" result, "+" both, "#" count of lists
    name: str
    kind: Kind
    optional: bool


class Row(NamedTuple):
    name: str
    result: str
    function: str
    parameters: tuple[Parameter, ...]


COUNT = Parameter("#", "", KINDS["int"], False)


def parse(line: str) -> Row:
    found = ROW.fullmatch(line)
    assert found is not None, line
    parameters = []
    for text in filter(None, found["parameters"].split(", ")):
        if text == "#":
            parameters.append(COUNT)
            continue
        part = PARAMETER.fullmatch(text)
        assert part is not None, line
        parameters.append(
            Parameter(part["role"], part["name"], KINDS[part["kind"]], bool(part["optional"]))
        )
    return Row(found["name"], found["result"], found["function"], tuple(parameters))


def rows() -> list[Row]:
    """A row may go on in indented lines."""
    return [parse(line) for line in re.sub(r"\n +", " ", ROWS).split("\n") if line]


def counted(row: Row, passed: list[Any]) -> None:
    """Fills in the number of items of the lists behind each count."""
    place = count = -1
    for index, parameter in enumerate(row.parameters):
        if parameter is COUNT:
            place, count = index, -1
        elif parameter.kind.is_list:
            found = len(passed[index])
            if count not in (-1, found):
                raise ValueError(
                    f"acl.{row.name}: {parameter.name} must have {count} items, but got {found}"
                )
            count = passed[place] = found


def reader(kind: Kind) -> Callable[[Any], Any]:
    if issubclass(kind.ctype, ctypes.Structure | ctypes.Array):
        return kind.to_python
    return lambda written: kind.to_python(written.value)


def bind(row: Row) -> Callable[..., Any]:
    """The function; its docstring is its call, as `ptr, ret = acl.rt.malloc(size, policy)`."""
    name = f"acl.{row.name}"
    given = [(i, p) for i, p in enumerate(row.parameters) if p.role in ("", "+")]
    outputs = [(i, p) for i, p in enumerate(row.parameters) if p.role in (">", ">>")]
    results = [(i, p) for i, p in enumerate(row.parameters) if p.role in (">", ">>", "+")]
    results.sort(key=lambda result: result[1].role != ">>")
    returned = KINDS[row.result]
    function = getattr(LIBRARY, row.function)
    function.restype = returned.ctype
    function.argtypes = [
        ctypes.POINTER(p.kind.ctype) if p.role in (">", ">>") else p.kind.ctype
        for p in row.parameters
    ]
    words = ", ".join(p.name for _, p in given)
    least = sum(not p.optional for _, p in given)
    steps = [(i, p.kind.to_c) for i, p in given]
    made = [(i, p.kind.ctype) for i, p in outputs]
    read = [(i, reader(p.kind) if p.role != "+" else None) for i, p in results]
    has_count = COUNT in row.parameters
    template = [None] * len(row.parameters)

    def call(*arguments: Any) -> Any:
        if not least <= len(arguments) <= len(given):
            raise TypeError(f"{name}({words}) takes {len(given)} arguments, got {len(arguments)}")
        passed: list[Any] = template.copy()
        for (index, to_c), value in zip(steps, arguments, strict=False):
            try:
                passed[index] = to_c(value)  # type: ignore[misc]
            except (TypeError, ValueError) as error:
                word = row.parameters[index].name
                raise type(error)(f"{name}: {word} {error}") from None
        for index, ctype in made:
            passed[index] = ctype()
        if has_count:
            counted(row, passed)
        status = returned.to_python(function(*passed))
        if not read:
            return status
        found = [passed[i] if reads is None else reads(passed[i]) for i, reads in read]
        return (*found, status)

    call.__name__ = call.__qualname__ = row.name.rpartition(".")[2]
    call.__module__ = name.rpartition(".")[0]
    names = [p.name for _, p in results]
    names += {"ret": ["ret"], "none": []}.get(row.result, ["value"])
    call.__doc__ = f"{', '.join(names)} = {name}({words})".removeprefix(" = ")
    return call


ALL = {row.name: bind(row) for row in rows()}


def functions(module: str) -> dict[str, Callable[..., Any]]:
    """The functions of acl.MODULE, or of acl itself."""
    return {
        name.rpartition(".")[2]: function
        for name, function in ALL.items()
        if name.rpartition(".")[0] == module
    }
