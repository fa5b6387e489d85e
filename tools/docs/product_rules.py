# SPDX-License-Identifier: Apache-2.0
"""Adds an entry of src/openaclnn/aten/products for each function that ATen computes and that has
none yet, from a folder of tables: functions.tsv, parameters.tsv, exceptions.tsv. Entries that exist
stay as they are.

    python tools/docs/product_rules.py FOLDER
"""

from __future__ import annotations

import csv
import sys
import textwrap
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build"))
from rows import ROOT, load

aten, language = load("aten"), load("aten.products")
body = load("aten.products.text").entry_text
ATEN = ROOT / "src" / "openaclnn" / "aten"
NAMES = {"BF16": "BFLOAT16"}
# Their column of products is doubtful on the pages.
ANYWHERE = {
    "aclnnRepeatInterleaveGrad",
    *(f"aclnnNormal{mean}{std}" for mean in ("Float", "Tensor") for std in ("Float", "Tensor")),
}
# Whose tensors must be contiguous where the page says so: elsewhere torch_npu passes any view.
CONTIGUOUS = {"attention", "grouped_matmul", "quantisation", "quantised_matmul"}
WIDTH = 108


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def dtypes(text: str) -> frozenset[str]:
    """What no product of table.py has is left out."""
    return frozenset({NAMES.get(t, t) for t in text.split(",")} & language.DTYPES.keys())


def on_product(row: dict[str, str], key: str) -> frozenset[str]:
    found = dtypes(row["dtypes"])
    for exception in filter(None, row["products"].split(";")):
        keys, _, change = exception.partition("=")
        kind, _, listed = change.partition(":")
        if key in keys.split("/"):
            found = dtypes(listed) if kind == "only" else found - dtypes(listed)
    return found


def rule(row, parameter, names, products, exceptions):
    accepted = {kind: {e["accepted"] for e in exceptions if e["kind"] == kind} for kind in
                ("dtype", "rank")}  # fmt: skip
    ranks = language.ranks_of(row["ranks"]) if row["ranks"] else None
    if ranks is not None:
        ranks |= {int(rank) for rank in accepted["rank"]}
    if not row["dtypes"] or (row["dtypes"].startswith("=") and accepted["dtype"]):
        return language.Rule(None, None, ranks)
    if row["dtypes"].startswith("="):
        return language.Rule(None, names[row["dtypes"][1:]], ranks)
    more = dtypes(",".join(accepted["dtype"]))
    base = on_product(row, "A2") | on_product(row, "A3") | more
    other = defaultdict(list)
    for key in language.KEYS:
        if key in ("A2", "A3") or (products is not None and key not in products):
            continue
        own = (on_product(row, key) | more) - {"BFLOAT16"}
        if own != base - {"BFLOAT16"} and own:
            other[own].append(key)
    on = tuple((tuple(keys), found) for found, keys in other.items())
    return language.Rule(base, None, ranks, on) if base else language.Rule(None, None, ranks)


def tensor_of(r, row) -> str | None:
    """The tensor of the row, by name or by position: some pages lack a parameter before it."""
    tensors = {p.name.lower(): p.name for p in row.given if p.kind in ("tensor", "tensors")}
    name = r["parameter"].removesuffix("Optional").lower()
    if name in tensors or int(r["index"]) >= len(row.given):
        return tensors.get(name)
    return tensors.get(row.given[int(r["index"])].name.lower())


def products_of(facts, function):
    """What a page does not say is accepted, except on products older than one that lacks it."""
    known = {key: facts[key] for key in language.KEYS if facts[key]}
    whole = len(known) == len(language.KEYS)
    if function in ANYWHERE or not (whole or {"0", "1"} <= set(known.values())):
        return None
    missing = known.get("A2", "1") == "0"
    return tuple(k for k in language.KEYS if known.get(k, "0" if missing else "1") == "1")


def entry(function, facts, rows, exceptions, row, theme):
    products = products_of(facts, function)
    names = {r["parameter"]: name for r in rows if (name := tensor_of(r, row)) is not None}
    rules = {}
    for r in rows:
        if r["parameter"] not in names or "Tensor" not in r["type"]:
            continue
        own = [e for e in exceptions if e["parameter"] == r["parameter"]
               and e["verdict"] != "placeholder"]  # fmt: skip
        refuses_strides = r["strided"] == "0" and r["role"] != "out" and theme in CONTIGUOUS
        found = rule(r, row, names, products, own)
        rules[names[r["parameter"]]] = replace(found, contiguous=refuses_strides)
    everything = language.Rule(None, None, None)
    rules = {name: rule for name, rule in rules.items() if rule != everything}
    deterministic = {"yes": True, "configurable": False}.get(facts["deterministic"])
    return language.Entry(products, rules, deterministic)


def same_inplace(entry, inplace) -> bool:
    """Whether the entry of the function says all of its in-place form."""
    shared = {name: entry.rules.get(name) for name in inplace.rules}
    return (entry.products, entry.deterministic, shared) == (
        inplace.products, inplace.deterministic, inplace.rules)  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    facts = {row["function"]: row for row in table(folder / "functions.tsv")}
    parameters, exceptions = defaultdict(list), defaultdict(list)
    for row in table(folder / "parameters.tsv"):
        parameters[row["function"]].append(row)
    for row in table(folder / "exceptions.tsv"):
        exceptions[row["function"]].append(row)
    there = language.entries()
    for path in sorted(ATEN.glob("*.txt")):
        rows = {row.name: row for line in aten.lines(path.read_text()) for row in aten.parse(line)}
        made = {
            name: entry(name, facts[name], parameters[name], exceptions[name], row, path.stem)
            for name, row in rows.items()
            if name in facts and name not in there
        }
        shared = defaultdict(list)
        for name, found in sorted(made.items()):
            inplace = f"aclnnInplace{name.removeprefix('aclnn')}"
            plain = f"aclnn{name.removeprefix('aclnnInplace')}"
            if plain != name and plain in made and same_inplace(made[plain], found):
                continue
            both = inplace in made and same_inplace(found, made[inplace])
            shared[body(found)].append(f"{name} Inplace" if both else name)
        new = [
            "\n".join(textwrap.wrap(" ".join(names) + text, WIDTH, subsequent_indent="    ",
                                    break_long_words=False, break_on_hyphens=False))
            for text, names in shared.items()
        ]  # fmt: skip
        if not new:
            continue
        target = ATEN / "products" / path.name
        head = (
            "# SPDX-License-Identifier: Apache-2.0\n# What products accept of the rows of "
            f"../{path.name}. The language of entries is in __init__.py.\n\n"
        )
        text = target.read_text() if target.exists() else head
        target.write_text(text + "\n".join(new) + "\n")
        print(f"{target.relative_to(ROOT)}: {len(made)} functions, {len(new)} entries")


if __name__ == "__main__":
    main()
