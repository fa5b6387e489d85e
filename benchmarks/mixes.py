# SPDX-License-Identifier: Apache-2.0
"""What values and attributes people use: the default attributes, and data with special values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from openaclnn.reference.evaluation import REFERENCES
from openaclnn.reference.formulas import elu
from openaclnn.rows.schema import Op

Array = np.ndarray[Any, Any]

SHARES = (0.001, 0.2)
# A subnormal number of each dtype; bf16 has the exponents of fp32.
SUBNORMAL = {"fp32": 1e-40, "bf16": 1e-40, "fp16": 6e-6, "fp64": 1e-310}
SATURATING = {"elu": -100.0, "elu_backward": -100.0, "logit": 1e-30, "logit_grad": 1e-30}
SWEPT = ("x", "input", "self_or_result")  # the input that chooses, or that the formula bends


@dataclass(frozen=True)
class Mix:
    """Ordinary data, in which so many values of an input are this special one; none if the share
    is 0."""

    name: str = "ordinary"
    value: float = 0.0
    share: float = 0.0
    gradient: bool = False  # in the gradient, not in the input that the formula bends

    def __str__(self) -> str:
        where = " in the gradient" if self.gradient else ""
        return f"{100 * self.share:g}% {self.name}{where}" if self.share else self.name


def mixes_of(op: Op, dtype: str) -> list[Mix]:
    values = {
        "0": 0.0,
        "-0": -0.0,
        "1": 1.0,
        "inf": math.inf,
        "-inf": -math.inf,
        "nan": math.nan,
        "subnormal": SUBNORMAL[dtype],
    }
    if op.python in SATURATING and dtype != "fp16":
        values["saturating"] = SATURATING[op.python]
    elif op.python in SATURATING:  # 1e-30 is 0
        values["saturating"] = SATURATING[op.python] if SATURATING[op.python] < 0 else 6.2e-5
    special = [Mix(name, value, share) for name, value in values.items() for share in SHARES]
    if len(op.inputs_) > 1:
        special += [Mix(name, values[name], SHARES[0], True) for name in ("0", "inf", "nan")]
    return [Mix(), *special]


def mixes_of_flags() -> list[Mix]:
    """Data for attributes beside the first set."""
    return [Mix(), *(Mix("nan", math.nan, share) for share in SHARES)]


def attribute_sets(op: Op) -> list[dict[str, Any]]:
    """The defaults, and the sets of the tests."""
    names = [p.python_name for p in op.attributes]
    sets = [{name: given[name] for name in names} for given in REFERENCES[op.kernel].attributes]
    defaults = {p.python_name: p.default for p in op.attributes}
    if None not in defaults.values():
        sets = [defaults, *(one for one in sets if one != defaults)]
    return sets


def values_of(op: Op, name: str, count: int) -> Array:
    """float32: what the inputs of a row usually are. Those of logit are numbers of (0, 1)."""
    rng = np.random.default_rng([count, len(name)])
    if name in SWEPT and op.python.startswith("logit"):
        return rng.random(count, np.float32) * np.float32(0.998) + np.float32(0.001)
    return rng.standard_normal(count, np.float32)


def mixed(op: Op, name: str, values: Array, mix: Mix, attributes: Mapping[str, Any]) -> Array:
    """The values of one input, with special ones if the mix is of this input."""
    rng = np.random.default_rng(values.size)
    if name in SWEPT and attributes.get("is_result") is True:
        given = {name: attributes[name] for name in ("alpha", "scale", "input_scale")}
        values = elu(values.astype(np.float64), **given).astype(values.dtype)
    if mix.share and (name in SWEPT) != mix.gradient:
        values = values.copy()
        values[rng.random(values.size) < mix.share] = mix.value
    return values
