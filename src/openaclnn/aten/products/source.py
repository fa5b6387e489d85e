# SPDX-License-Identifier: Apache-2.0
"""The entries as C++: a table beside that of the rows, for core/torch/aten/products.cpp."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...rows.table import PRODUCTS
from .. import Row, rows
from . import DTYPES, Entry, entry_of

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by openaclnn/aten/products/source.py from the entries beside it.
#include "core/torch/aten/products.h"

namespace openaclnn::aten {
namespace {
"""
ALL = (1 << len(PRODUCTS)) - 1


def bits(numbers: Iterator[int]) -> str:
    return f"{sum(1 << number for number in numbers):#x}"


def lines(row: Row, entry: Entry) -> Iterator[str]:
    """A ProductRule for each tensor and group of products with the same dtypes."""
    names = [p.name for p in row.parameters]
    for name, rule in entry.rules.items():
        masks: dict[str, int] = defaultdict(int)
        for i, product in enumerate(PRODUCTS):
            if entry.products is not None and product.key not in entry.products:
                continue
            accepted = rule.accepted(product)
            masks["~uint64_t{}" if accepted is None else bits(DTYPES[d] for d in accepted)] |= (
                1 << i
            )
        ranks = "~uint64_t{}" if rule.ranks is None else bits(iter(rule.ranks))
        like = -1 if rule.like is None else names.index(rule.like)
        contiguous = str(rule.contiguous).lower()
        for dtypes, products in masks.items():
            yield f"{{{products:#x}, {names.index(name)}, {like}, {contiguous}, {ranks}, {dtypes}}}"


def source() -> str:
    arrays, table = "", ""
    for row in rows():
        entry = entry_of(row)
        found = list(lines(row, entry)) if entry is not None else []
        if found:
            arrays += f"constexpr ProductRule {row.name}_rules[] = {{{', '.join(found)}}};\n"
        keys = entry.products if entry is not None else None
        products = ALL if keys is None else sum(
            1 << i for i, product in enumerate(PRODUCTS) if product.key in keys
        )  # fmt: skip
        rules = f"{row.name}_rules" if found else "nullptr"
        table += f"    {{{products:#x}, {rules}, {len(found)}}},\n"
    return (
        f"{HEAD}{arrays}}}  // namespace\n\n"
        f"extern const ProductRules product_rules[] = {{\n{table}}};\n\n"
        "}  // namespace openaclnn::aten\n"
    )
