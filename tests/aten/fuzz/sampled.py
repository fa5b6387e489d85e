# SPDX-License-Identifier: Apache-2.0
"""Calls of functions with many arguments that depend on each other, from golden/calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openaclnn.golden.samples import lines, tensor_word, words

from .values import BOOL, FLOAT, INT32, INT64, UINT8, List, S, T

if TYPE_CHECKING:
    from .plausible import Draw

SAMPLED = re.compile(
    r"Attention|Cache|TopKTopP|AdvanceStep|ScatterUpdate|QuantScatter|ScatterList|WithSinCos"
)
INT8 = 2
LETTERS = {"F": FLOAT, "s": INT8, "i": INT64, "b": BOOL, "u": UINT8, "w": INT32}
CALLS = {
    name: [words(text) for text in texts] for name, texts in lines().items() if SAMPLED.search(name)
}


def tensor(word: str, draw: Draw, written: bool) -> T:
    letter, shape, _, high, listed = tensor_word(word)
    dtype = draw.dtype if letter == "f" else LETTERS[letter]
    has_values = high is not None or listed is not None
    if letter in "iwu" and has_values:
        limit = int(max(listed) if high is None else high)
        return T(shape, dtype, fill=f"index:{max(limit, 0) + 1}", salt=draw.chance.randrange(500))
    fill = "poison" if written and not has_values else "random"
    return T(shape, dtype, fill=fill, salt=draw.chance.randrange(500))


def sampled(draw: Draw) -> dict[str, Any]:
    """One of the calls; its numbers are those of the line, its data are random."""
    call = draw.chance.choice(CALLS[draw.signature.name])
    found: dict[str, Any] = {}
    for p, word in zip(draw.signature.parameters, call, strict=True):
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
