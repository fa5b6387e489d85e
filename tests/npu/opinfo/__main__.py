# SPDX-License-Identifier: Apache-2.0
"""What works on device npu: PyTorch's own table of operators, run there and on the CPU.

    openaclnn npu -- python -m tests.npu.opinfo
    openaclnn npu -- python -m tests.npu.opinfo --samples 10 --dtype float32 --only matmul
    openaclnn npu -- python -m tests.npu.opinfo --check   against known.txt and known_A2.txt

A product refuses calls and changes no result. So all runs once as product A2, or OPENACLNN_PRODUCT,
and only what fails runs again as product any: known.txt lists what fails then, known_A2.txt what
A2 refuses beyond that, with the rules.

Each operator runs on its first samples; a result or gradient that differs from the CPU's is a
failure, unless it is as near to that of float64, and so is an exception where the CPU has none.
What draws random numbers, or returns memory that nobody wrote, is compared by shape and counted by
itself. Needs expecttest and hypothesis, which torch.testing._internal imports.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.npu.opinfo.attempts import attempt, attempt_call, only_shapes
from tests.npu.opinfo.calls import calls
from tests.npu.opinfo.known import counted, surprises, write
from tests.npu.opinfo.reached import provider, reached_rows
from torch.testing._internal.common_methods_invocations import op_db

import openaclnn
from openaclnn.rows.table import ANY

DTYPES = ["float32", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64"]
SKIPPED = re.compile(r"sparse|^to_sparse|jiterator|_jvp|tensorrt")
Found = dict[str, str | None]  # by product: why it fails


def tried(products: list[str], attempt: Callable[[], str | None]) -> Found:
    """What passes as one product passes as those behind it, which refuse less."""
    found: Found = dict.fromkeys(products)
    for product in products:
        openaclnn.set_product(product)
        found[product] = attempt()
        if found[product] is None:
            break
    return found


def table(
    dtype: torch.dtype, samples: int, only: str | None, products: list[str]
) -> dict[str, dict[str, Found]]:
    found: dict[str, dict[str, Found]] = {"forward": {}, "backward": {}, "inplace": {}}
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if (only is not None and not re.search(only, name)) or SKIPPED.search(name):
            continue
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for direction in found:
            if direction == "inplace" and op.inplace_variant is None:
                continue
            if direction == "backward" and not (op.supports_autograd and dtype.is_floating_point):
                continue
            try:
                found[direction][name] = tried(
                    products, partial(attempt, op, dtype, samples, direction)
                )
            except LookupError:
                continue
    for direction in list(found):
        shapes = {
            name: found[direction].pop(name) for name in [*found[direction]] if only_shapes(name)
        }
        found[f"{direction}, by shape"] = shapes
    return found


def other_calls(only: str | None, products: list[str]) -> dict[str, Found]:
    return {
        name: tried(products, partial(attempt_call, name, call))
        for name, call in calls().items()
        if only is None or re.search(only, name)
    }


def of_product(product: str, found: dict[str, Found]) -> dict[str, str | None]:
    return {name: whys[product] for name, whys in found.items()}


def show(title: str, results: dict[str, str | None]) -> None:
    print(f"{title}: {counted(results)}")
    for why, count in Counter(filter(None, results.values())).most_common():
        names = [name for name, found in results.items() if found == why]
        print(f"  {count} {why}: {', '.join(names[:6])}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--dtype", nargs="+", default=DTYPES)
    parser.add_argument("--only", help="a pattern of names")
    parser.add_argument("--json", help="a file for all results")
    parser.add_argument(
        "--check", action="store_true", help="fail where something is not as it is known to be"
    )
    parser.add_argument("--write-known", action="store_true", help="write what fails down as known")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    library = provider()
    products = list(dict.fromkeys([openaclnn.config()["product"], ANY.key]))
    documents: dict[str, dict[str, Any]] = {
        product: {"samples": arguments.samples, "tables": {}} for product in products
    }
    for dtype in arguments.dtype:
        found = table(getattr(torch, dtype), arguments.samples, arguments.only, products)
        for product, document in documents.items():
            results = {where: of_product(product, those) for where, those in found.items()}
            document["tables"][dtype] = results
            for direction, those in results.items():
                if those:
                    show(f"{product}: {dtype} {direction}", those)
    others = other_calls(arguments.only, products)
    for product, document in documents.items():
        document["calls"] = of_product(product, others)
        show(f"{product}: other calls", document["calls"])
    openaclnn.set_product(ANY.key)
    unreached = reached_rows(library, documents[ANY.key])
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(documents[products[0]], indent=1))
    if arguments.write_known:
        for product in reversed(products):  # what A2 refuses is counted from what fails as any
            write(documents[product], product)
    if not arguments.check:
        return 0
    wrong = [f"no call reached {name}" for name in unreached]
    for product, document in documents.items():
        wrong += [f"{product}: {what}" for what in surprises(document, product)]
    print("\n".join(["as known" if not wrong else "NOT as known:", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
