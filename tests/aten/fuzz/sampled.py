# SPDX-License-Identifier: Apache-2.0
"""Calls of functions with many arguments that depend on each other, from golden/calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openaclnn.golden.samples import CALLS

from .values import BOOL, FLOAT, INT32, INT64, UINT8, List, S, T

if TYPE_CHECKING:
    from .plausible import Draw

SAMPLED = re.compile(
    r"Attention|Cache|TopKTopP|AdvanceStep|ScatterUpdate|QuantScatter|ScatterList|WithSinCos"
)
WORD = re.compile(r"([a-zF])((?:\d+(?:x\d+)*)?)(?:\[(.+),(.+)\]|=(.+))?$")
INT8 = 2
LETTERS = {"F": FLOAT, "s": INT8, "i": INT64, "b": BOOL, "u": UINT8, "w": INT32}
FILE = CALLS / "written.txt"


def lines() -> Iterator[tuple[str, list[Any]]]:
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition("(")
        if name.startswith("aclnn") and SAMPLED.search(name):
            yield name, eval(f"[{rest[:-1]}]")


CALLS: dict[str, list[list[Any]]] = {}
for _name, _words in lines():
    CALLS.setdefault(_name, []).append(_words)


def tensor(word: str, draw: Draw, written: bool) -> T:
    match = WORD.match(word)
    assert match, word
    letter, sizes, _, high, listed = match.groups()
    shape = tuple(int(size) for size in sizes.split("x")) if sizes else ()
    dtype = draw.dtype if letter == "f" else LETTERS[letter]
    if letter in "iwu" and (high or listed):
        limit = int(high) if high else max(map(int, listed.split(",")))
        return T(shape, dtype, fill=f"index:{max(limit, 0) + 1}", salt=draw.chance.randrange(500))
    fill = "poison" if written and not (high or listed) else "random"
    return T(shape, dtype, fill=fill, salt=draw.chance.randrange(500))


def sampled(draw: Draw) -> dict[str, Any]:
    """One of the calls; its numbers are those of the line, its data are random."""
    words = draw.chance.choice(CALLS[draw.signature.name])
    found: dict[str, Any] = {}
    for p, word in zip(draw.signature.parameters, words, strict=True):
        if word is None:
            found[p.name] = None
        elif p.kind == "tensor":
            found[p.name] = tensor(word, draw, p.written)
        elif p.kind == "tensors":
            found[p.name] = List("tensors", tuple(tensor(one, draw, p.written) for one in word))
        elif p.kind == "scalar":
            found[p.name] = S(word)
        else:
            found[p.name] = tuple(word) if isinstance(word, list) else word
    return found
