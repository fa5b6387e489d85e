# SPDX-License-Identifier: Apache-2.0
"""What several commands read: an operator, its attributes; and how they report wrong use."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from ..aten import catalogue as aten
from ..rows.catalogue import find_operator, nearest
from ..rows.schema import Op, Parameter
from ..rows.suggestions import did_you_mean
from ..rows.table import OPS

ATTRIBUTE = "attribute_"  # before the names of attributes among the arguments
WRONG_USE = 2  # exit status, as argparse has it


class WrongUse(Exception):
    """One sentence."""


def separated(text: str) -> list[str]:
    """The words of an option that takes several, with commas between them or each with its own."""
    return [word for word in text.split(",") if word]


# Of add_argument: an option that takes several words.
SEVERAL: dict[str, Any] = {"action": "extend", "type": separated}


def add_operators(sub: argparse.ArgumentParser) -> None:
    text = "only this one, or several: elu,logit"
    sub.add_argument("--op", metavar="OPERATOR", help=text, **SEVERAL)


def operator(name: str) -> Op:
    op = find_operator(name)
    if op is None:
        if (row := aten.find(name)) is not None:
            raise WrongUse(
                f"{row.name} is computed by ATen, but this command takes openaclnn's own "
                "operators; see:  openaclnn ops"
            )
        hint = did_you_mean(nearest(name), "see:  openaclnn ops")
        raise WrongUse(f"there is no operator {name}{hint}")
    return op


def add_attributes(sub: argparse.ArgumentParser) -> None:
    """An option for each attribute that some row has; `given_attributes` reads them."""
    attributes = sub.add_argument_group("attributes of the operators")
    for name, (parameter, rows) in _attributes().items():
        attributes.add_argument(
            _option(name),
            dest=f"{ATTRIBUTE}{name}",
            type=_reader(parameter),
            metavar=parameter.kind,
            help=f"of {', '.join(rows)}",
        )


def _option(attribute: str) -> str:
    return f"--{attribute.replace('_', '-')}"


def attribute_options() -> list[str]:
    return [_option(name) for name in _attributes()]


def given_attributes(arguments: argparse.Namespace) -> dict[str, Any]:
    """By Python name, of any row."""
    return {
        name.removeprefix(ATTRIBUTE): value
        for name, value in vars(arguments).items()
        if name.startswith(ATTRIBUTE) and value is not None
    }


def refuse_others(op: Op, given: Iterable[str]) -> None:
    """Attributes that the operator lacks are wrong use."""
    has = [p.python_name for p in op.attributes]
    for name in given:
        if name not in has:
            raise WrongUse(f"{op.python} has no attribute {name}; it has {', '.join(has)}")


def _attributes() -> dict[str, tuple[Parameter, list[str]]]:
    """By Python name: the parameter, and the rows that have it."""
    found: dict[str, tuple[Parameter, list[str]]] = {}
    for op in OPS:
        for p in op.attributes:
            found.setdefault(p.python_name, (p, []))[1].append(op.python)
    return found


def _reader(parameter: Parameter) -> Callable[[str], Any]:
    """Turns a word into a value of the kind of the parameter."""

    def flag(word: str) -> bool:
        if word.lower() not in ("true", "false", "1", "0"):
            raise argparse.ArgumentTypeError(f"must be true or false, but is {word!r}")
        return word.lower() in ("true", "1")

    readers: dict[str, Callable[[str], Any]] = {"bool": flag, "int64": int, "text": str}
    return readers.get(parameter.kind, float)
