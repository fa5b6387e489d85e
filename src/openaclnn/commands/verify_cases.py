# SPDX-License-Identifier: Apache-2.0
"""The cases that the options of `openaclnn verify` choose."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..aten import catalogue as aten
from ..reference.dtypes import dtype_of, missing_module
from ..rows.catalogue import find_operator, nearest
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean
from ..rows.table import ANY, OPS, PRODUCTS
from ..settings import config

if TYPE_CHECKING:
    from ..aten import Row
    from ..verify.cases import Case


def named_by_functions(arguments: argparse.Namespace) -> list[str] | None:
    """The operators whose names Python functions have, if nothing else is judged."""
    names = [word.rpartition(":")[2] for word in arguments.providers]
    every = all(word.startswith("python:") for word in arguments.providers)
    return names if names and every and all(map(find_operator, names)) else None


def aten_rows(arguments: argparse.Namespace) -> list[Row]:
    """The functions that ATen computes among the operators asked for: all or none of them."""
    from ..aten.prototypes import functions

    names = arguments.op or ()
    rows = [functions()[name] for name in names if name in functions()]
    if rows and len(rows) < len(names):
        raise ValueError("--op must name either functions that ATen computes or others")
    if rows and (arguments.cases or arguments.list or arguments.exhaustive):
        raise ValueError(f"{rows[0].name} is computed by ATen: no --cases, --list or --exhaustive")
    return rows


def chosen_cases(arguments: argparse.Namespace, rows: Sequence[Row]) -> list[Case]:
    """Those of the file or of the rows, as far as the options let them."""
    from ..verify.cases import BadCase, read
    from ..verify.exhaustive import chunks, targets
    from ..verify.generate import FLOATS, generate

    ops = [_operator(n) for n in arguments.op] if arguments.op and not rows else list(OPS)
    dtypes = [dtype_of(name, "--dtype") for name in arguments.dtype or ()] or list(FLOATS)
    for dtype in dtypes:
        if module := missing_module(dtype):
            message = f"{dtype} is left out: it needs {module} (pip install {module})"
            print(f"openaclnn verify: {message}", file=sys.stderr)
    key = config()["product"]
    product = next(p for p in (*PRODUCTS, ANY) if p.key == key)
    if rows:
        from ..golden.cases import generate as of_aten

        made = of_aten(rows, dtypes, product, arguments.seed)
    elif arguments.cases:
        given = read(arguments.cases, arguments.seed)
        made = [case for case in given if case.op in ops and case.dtype in dtypes]
    else:
        made = generate(ops, dtypes, product, arguments.seed)
    if arguments.exhaustive:
        aimed = targets(made, arguments.cases is not None)
        if arguments.only:  # of a million chunks
            spans = tuple(name.rpartition("/every/")[0] for name in arguments.only)
            aimed = [case for case in aimed if case.id in spans]
        made = chunks(aimed)
    if arguments.only:
        known = {case.id for case in made}
        if missing := [name for name in arguments.only if name not in known]:
            hint = "" if rows else "; --list shows them"
            raise BadCase(f"there is no case {missing[0]}{hint}")
        made = [case for case in made if case.id in arguments.only]
    if not made:
        if arguments.cases:
            raise BadCase(f"{arguments.cases} has no cases of this --op and --dtype")
        hint = "" if product is ANY else "; OPENACLNN_PRODUCT=any takes every dtype"
        raise BadCase(f"there are no such cases on product {product.key}{hint}")
    return made


def _operator(name: str) -> Op:
    from ..verify.cases import operator

    if find_operator(name) is None:
        known = aten.find(name)
        meant = known.name if known else "" if nearest(name) else aten.nearest(name)
        if meant:
            raise ValueError(f"no operator {name!r}{did_you_mean(f'{meant}, which ATen computes')}")
    return operator(name)
