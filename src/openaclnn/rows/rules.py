# SPDX-License-Identifier: Apache-2.0
"""What phase 1 refuses beyond the dtypes and shapes of a row, for tools that run no library.

A rule of core/ops/rules.cpp is here, by the name that rows have for it; what a family checks in
core/ops/<family>_checks.cpp is with its formulas; `refused` of reference.py asks them all. Their
sentences are those of the library: tests/operators/test_rules.py compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .schema import Op, Parameter

Refusal = tuple[Parameter, str]  # and what follows "must"
Rule = Callable[[Op, Mapping[str, Any]], Refusal | None]  # sizes and attributes by name


def attribute(op: Op, name: str) -> Parameter:
    return next(p for p in op.attributes if p.name == name)


# The branch of the formula follows from the sign of the result. NaN is accepted.
def _nonnegative(name: str, flag: str) -> Rule:
    def rule(op: Op, known: Mapping[str, Any]) -> Refusal | None:
        if not known[flag] or not known[name] < 0:
            return None
        when = f"when {attribute(op, flag).python_name} is true"
        return attribute(op, name), f"be at least 0 {when}, but got {known[name]:g}"

    return rule


RULES: dict[str, Rule] = {
    "slope_of_result": _nonnegative("negativeSlope", "selfIsResult"),
    "alpha_of_result": _nonnegative("alpha", "isResult"),
}
