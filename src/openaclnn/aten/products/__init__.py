# SPDX-License-Identifier: Apache-2.0
"""What products accept of the functions that ATen computes: one entry each in the text files of
this folder, by the themes of the rows. A function without an entry accepts everything.

    aclnnMatmul on 910 A2 A3 310P: self other = float, rank 1-6; out = float, rank 0-6
    aclnnGridSampler2DBackward on 910 A2 A3: gradOutput input grid = float DOUBLE, rank 4,
        on 910 float; nondeterministic

On the left are the functions that share the entry, and the products that have them: none, or all
where `on` is missing. Inplace adds aclnnInplaceXxx, whose parameters are those of the entry that it
has. On the right are tensors, by the names of the row, and their dtypes: sets of SETS, names of
aclDataType, int -INT16 for a set without one, the name of another parameter for its dtype, or any.
`on` gives products other dtypes. BFLOAT16 is refused by products without it, so no entry says that.
Without a rank, 0-8 dims are accepted. `contiguous` refuses gaps and other orders of the elements,
but the last two dims may be swapped. `nondeterministic`: results differ from run to run unless the
runtime's deterministic option is set; `determinism ?`: not known.
Tensors that an entry does not name accept everything. Lines that start with a blank continue an
entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...rows.schema import Product
from ...rows.table import PRODUCTS
from .. import Row

SETS = {
    "float": ("FLOAT", "FLOAT16", "BFLOAT16"),
    "int": ("INT8", "INT16", "INT32", "INT64", "UINT8"),
    "uint": ("UINT16", "UINT32", "UINT64"),
    "complex": ("COMPLEX64", "COMPLEX128"),
}
# aclDataType of include/aclnn/aclnn_base.h.
DTYPES = {
    "FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "UINT16": 7,
    "UINT32": 8, "INT64": 9, "UINT64": 10, "DOUBLE": 11, "BOOL": 12, "COMPLEX64": 16,
    "COMPLEX128": 17, "BFLOAT16": 27, "INT4": 29, "COMPLEX32": 33,
}  # fmt: skip
KEYS = tuple(product.key for product in PRODUCTS)
RANKS = frozenset(range(9))


@dataclass(frozen=True)
class Rule:
    """What a tensor accepts; None: everything."""

    dtypes: frozenset[str] | None
    like: str | None = None  # the parameter whose dtype it must have
    ranks: frozenset[int] | None = RANKS
    on: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = ()  # products with other dtypes
    contiguous: bool = False  # the last two dims may be swapped

    def accepted(self, product: Product) -> frozenset[str] | None:
        found = next((dtypes for keys, dtypes in self.on if product.key in keys), self.dtypes)
        return found if found is None or product.bfloat16 else found - {"BFLOAT16"}


@dataclass(frozen=True)
class Entry:
    products: tuple[str, ...] | None  # None: not known, so all
    rules: dict[str, Rule]
    deterministic: bool | None = True  # None: not known


def dtypes_of(words: list[str]) -> frozenset[str]:
    found: set[str] = set()
    for word in words:
        if word.startswith("-"):
            found.remove(word[1:])
        else:
            found.update(SETS.get(word, (word,)))
    if unknown := found - DTYPES.keys():
        raise ValueError(f"no dtypes: {', '.join(sorted(unknown))}")
    return frozenset(found)


def ranks_of(text: str) -> frozenset[int] | None:
    if text == "any":
        return None
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def rule(text: str) -> Rule:
    """`float DOUBLE, rank 3,4, on 910 310P float`."""
    first, *others = text.split(", ")
    words, like, dtypes = first.split(), None, None
    ranks: frozenset[int] | None = RANKS
    if len(words) == 1 and words[0] not in (*SETS, *DTYPES):
        like = None if words[0] == "any" else words[0]
    else:
        dtypes = dtypes_of(words)
    on = []
    contiguous = False
    for other in others:
        kind, *words = other.split()
        if kind == "rank":
            ranks = ranks_of(words[0])
        elif other == "contiguous":
            contiguous = True
        elif kind == "on":
            keys = tuple(word for word in words if word in KEYS)
            on.append((keys, dtypes_of(words[len(keys) :])))
        else:
            raise ValueError(f"neither a rank nor products: {other}")
    return Rule(dtypes, like, ranks, tuple(on), contiguous)


def products_of(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    keys = () if text == "none" else tuple(text.split())
    if unknown := set(keys) - set(KEYS):
        raise ValueError(f"no products: {', '.join(sorted(unknown))}")
    return keys


ENTRY = re.compile(r"([\w ]+?)(?: on ([\w ]+))?(?:: (.*))?$")


def parse(line: str) -> Iterator[tuple[str, Entry]]:
    """The functions of an entry. In-place functions get the rules of all parameters."""
    match = ENTRY.match(line)
    if match is None:
        raise ValueError(f"not an entry: {line}")
    names, products, right = match.groups()
    rules: dict[str, Rule] = {}
    deterministic: bool | None = True
    for group in right.split("; ") if right else ():
        if group == "nondeterministic":
            deterministic = False
        elif group == "determinism ?":
            deterministic = None
        else:
            parameters, _, text = group.partition(" = ")
            rules |= dict.fromkeys(parameters.split(), rule(text))
    entry = Entry(products_of(products), rules, deterministic)
    words = names.split()
    for i, name in enumerate(words):
        if name != "Inplace":
            yield name, entry
        else:
            yield f"aclnnInplace{words[i - 1].removeprefix('aclnn')}", entry


def lines(text: str) -> Iterator[str]:
    """The entries, each on one line."""
    for line in re.sub(r"\s*\n[ \t]+", " ", text).splitlines():
        if line and not line.startswith("#"):
            yield line


def entry_of(row: Row) -> Entry | None:
    """An in-place function has no out, which the entry that it shares may name."""
    found = entries().get(row.name)
    if found is None:
        return None
    given = {p.name for p in row.given}
    return replace(found, rules={n: rule for n, rule in found.rules.items() if n in given})


@cache
def entries() -> dict[str, Entry]:
    """All entries, by the name of the function."""
    found: dict[str, Entry] = {}
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        for line in lines(path.read_text(encoding="utf-8")):
            for name, entry in parse(line):
                if name in found:
                    raise ValueError(f"{path.name}: a second entry of {name}")
                found[name] = entry
    return found
