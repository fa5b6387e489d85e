# SPDX-License-Identifier: Apache-2.0
"""Entries as text: in the notation of the files, and as people read them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...rows.table import ANY, PRODUCTS
from . import DTYPES, KEYS, RANKS, SETS, Entry, Rule

LEGEND = "; ".join(
    [
        *(f"{name}: {', '.join(members)}" for name, members in SETS.items()),
        "BFLOAT16 only where the product has it",
    ]
)


def dtypes_text(found: frozenset[str]) -> str:
    """A set is named where it is whole, int also where one dtype is missing."""
    words: list[str] = []
    left = set(found)
    for name, members in SETS.items():
        missing = [m for m in members if m not in left]
        if len(missing) <= (name == "int"):
            words += [name, *(f"-{m}" for m in missing)]
            left -= set(members)
    return " ".join([*words, *(d for d in DTYPES if d in left)])


def ranks_text(ranks: frozenset[int] | None) -> str:
    if ranks is None:
        return "any"
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def rule_text(rule: Rule) -> str:
    text = rule.like or ("any" if rule.dtypes is None else dtypes_text(rule.dtypes))
    if rule.ranks != RANKS:
        text += f", rank {ranks_text(rule.ranks)}"
    if rule.contiguous:
        text += ", contiguous"
    return text + "".join(f", on {' '.join(keys)} {dtypes_text(d)}" for keys, d in rule.on)


def entry_text(entry: Entry) -> str:
    """What follows the names."""
    groups: dict[Rule, list[str]] = defaultdict(list)
    for name, rule in entry.rules.items():
        groups[rule].append(name)
    parts = [f"{' '.join(names)} = {rule_text(rule)}" for rule, names in groups.items()]
    if entry.deterministic is not True:
        parts.append("determinism ?" if entry.deterministic is None else "nondeterministic")
    products = "" if entry.products is None else f" on {' '.join(entry.products) or 'none'}"
    return products + (f": {'; '.join(parts)}" if parts else "")


def products_text(entry: Entry) -> str:
    if entry.products is None:
        return "not known; accepted on every product"
    return ", ".join(entry.products) or f"only {ANY.key}"


def determinism_text(entry: Entry) -> str:
    if entry.deterministic is None:
        return "not known"
    if entry.deterministic:
        return "the same bits in every run"
    return "may differ from run to run, unless the runtime's deterministic option is set"


def readable(rule: Rule) -> str:
    """`float DOUBLE, rank 4; on 910: FLOAT FLOAT16`."""
    text = f"the dtype of {rule.like}" if rule.like else ""
    if not text:
        text = "any dtype" if rule.dtypes is None else dtypes_text(rule.dtypes)
    text += f", rank {ranks_text(rule.ranks)}{', contiguous' if rule.contiguous else ''}"
    return text + "".join(f"; on {', '.join(keys)}: {dtypes_text(d)}" for keys, d in rule.on)


def as_data(entry: Entry) -> dict[str, Any]:
    def of(rule: Rule) -> dict[str, Any]:
        accepted = {
            p.key: sorted(dtypes)
            for p in PRODUCTS
            if p.key in (KEYS if entry.products is None else entry.products)
            and (dtypes := rule.accepted(p)) is not None
        }
        return {
            "dtypes": accepted,
            "dtype_of": rule.like,
            "ranks": ranks_text(rule.ranks),
            "contiguous": rule.contiguous,
        }

    return {
        "products": entry.products,
        "parameters": {name: of(rule) for name, rule in entry.rules.items()},
        "deterministic": entry.deterministic,
    }
