# SPDX-License-Identifier: Apache-2.0
"""The sample calls of golden/calls: what the search begins with. tests/aten/aten_samples.py
makes torch's tensors of the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openaclnn.golden.samples import lines, tensor_word, words

from .library import Signature
from .values import BFLOAT16, BOOL, CODES, FLOAT, HALF, INT32, INT64, UINT8, Call, List, S, T, Text

LETTERS = {
    "F": FLOAT, "s": CODES["int8"], "i": INT64, "b": BOOL, "u": UINT8, "w": INT32,
    "c": CODES["complex64"],
}  # fmt: skip


def dtype_of(letter: str, floats: int) -> int:
    return floats if letter == "f" else LETTERS[letter]


def tensor(word: str, floats: int, written: bool) -> T:
    letter, shape, low, high, listed = tensor_word(word)
    dtype = dtype_of(letter, floats)
    if written:
        fill = "poison"
    elif listed is not None:
        fill = f"list:{','.join(map(repr, listed))}"
    elif letter in "iuws":
        fill = f"index:{int(high or 0) + 1}"
    else:
        fill = "unit" if float(low or 0) >= 0 else "random"
    return T(shape, dtype, fill=fill)


def value(parameter: Any, word: Any, floats: int) -> Any:
    kind, written = parameter.kind, parameter.written
    if word is None:
        return None
    if kind == "tensor":
        return tensor(word, floats, written)
    if kind == "tensors":
        return List(kind, tuple(w and tensor(w, floats, written) for w in word))
    if kind == "dtype":
        return dtype_of(word, floats)
    if kind == "text":
        return Text(word)
    if kind == "scalar":
        return S(word, FLOAT if isinstance(word, float) else INT64)
    if kind == "scalars":
        return List(kind, tuple(S(w) for w in word))
    return List(kind, tuple(word)) if kind in ("ints", "bools", "floats") else word


def calls(signature: Signature) -> Iterator[Call]:
    for line in lines().get(signature.name, []):
        given = words(line)
        if len(given) != len(signature.parameters):
            continue
        for floats in (FLOAT, HALF, BFLOAT16):
            pairs = zip(signature.parameters, given, strict=True)
            yield Call(signature.name, tuple(value(p, w, floats) for p, w in pairs))
