# SPDX-License-Identifier: Apache-2.0
"""The page of what products refuse of the functions that ATen computes: the entries of
src/openaclnn/aten/products, and what A2 refused of PyTorch's samples (known_A2.txt).

python tools/docs/product_rules_page.py > docs/reference/product_rules.md
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))
from rows import PRODUCTS, load  # noqa: E402

aten, language = load("aten"), load("aten.products")
text = load("aten.products.text")
A2 = next(p for p in PRODUCTS if p.key == "A2")
KNOWN = ROOT / "tests" / "npu" / "opinfo" / "known_A2.txt"

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/docs/product_rules_page.py -->
# What products refuse

Product A2 is the default; `OPENACLNN_PRODUCT` and `--product` choose another, and `any` accepts \
all that the library computes. `openaclnn ops aclnnMatmul` shows the rules of one function, and \
[aten/products](../../src/openaclnn/aten/products) has all of them: {ruled} of {all} functions. \
Refused are functions that a product lacks (561003), and dtypes, ranks and gaps of tensors \
(161002), never attributes.
"""
LACKING = """
## Functions that a product lacks

Of the functions that ATen computes. Ascend 950 alone has those of the last line; `any` takes them.

| product | lacks | functions |
| --- | --- | --- |
"""
REFUSED = """
## What A2 refuses of PyTorch's operators

Of the first sample of each operator in PyTorch's own table (OpInfo), with the eight dtypes of \
[what was measured](npu_coverage.md#pytorchs-operators), A2 refuses these calls, which \
`any` computes. `float` stands for {float}, `int` for {int}, `complex` for {complex}.

| function | parameter | A2 accepts | refused | operators of PyTorch |
| --- | --- | --- | --- | --- |
"""
UNRULED = """
## Functions without a rule

Nothing is known of these {count}: every product accepts all that the library computes, and a \
report says "not known" of their determinism. A program that a device refuses may pass here. \
Operators by type, the interface before aclnn, have no rules either.

"""


def functions() -> list[str]:
    return [row.name for row in aten.rows() if not row.is_type]


def code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def lacking() -> str:
    entries = language.entries()
    lines = ""
    nowhere = [n for n in functions() if n in entries and entries[n].products == ()]
    for product in PRODUCTS:
        lacked = [
            name
            for name in functions()
            if name in entries and (having := entries[name].products) and product.key not in having
        ]
        shown = code(lacked) if len(lacked) <= 60 else "`openaclnn ops` shows where each exists"
        lines += f"| {product.title} ({product.key}) | {len(lacked)} | {shown} |\n"
    return lines + f"| none has them | {len(nowhere)} | {code(nowhere)} |\n"


def accepted(name: str, parameter: str) -> str:
    rule = language.entries()[name].rules[parameter]
    if rule.like is not None:
        return f"the dtype of {rule.like}"
    return text.dtypes_text(rule.accepted(A2))


def refused() -> str:
    dtypes: dict[tuple[str, str], set[str]] = defaultdict(set)
    operators: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"[^:]+: (.*) \| (\w+): (\w+) is (\w+)", line)
        if match is None:
            continue
        names, function, parameter, dtype = match.groups()
        dtypes[function, parameter].add(dtype)
        operators[function, parameter] |= set(names.split(", "))
    return "".join(
        f"| `{function}` | {parameter} | {accepted(function, parameter)} | "
        f"{', '.join(sorted(dtypes[function, parameter]))} | "
        f"{', '.join(sorted(operators[function, parameter]))} |\n"
        for function, parameter in sorted(dtypes)
    )


def page() -> str:
    names = functions()
    unruled = [name for name in names if name not in language.entries()]
    sets = {name: ", ".join(members) for name, members in language.SETS.items()}
    return (
        HEAD.format(ruled=len(names) - len(unruled), all=len(names))
        + LACKING
        + lacking()
        + REFUSED.format(**sets)
        + refused()
        + UNRULED.format(count=len(unruled))
        + code(unruled)
        + ".\n"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
