# SPDX-License-Identifier: Apache-2.0
"""One kernel with each mistake of a list, computed in FLOAT, whose rounding is found besides; and
with two of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verify.kernels_of_the_page import check, verified

pytestmark = pytest.mark.programs

KERNEL = """
import numpy as np
F = np.{dtype}

def elu(x, alpha, scale, input_scale):
    a, s, i = (F(np.float32(v)) for v in (alpha, scale, input_scale))
    with np.errstate(all="ignore"):
        w = {x}.astype(F)
        {before}
        y = np.where(w > 0, {high}, {low})
        {after}
        return y.astype(x.dtype)
"""
RIGHT = {"x": "x", "before": "pass", "high": "s * w", "low": "s * a * np.expm1(i * w)",
         "after": "pass"}  # fmt: skip
MISTAKES = {
    "no alpha": ({"low": "s * np.expm1(i * w)"}, "as if alpha were 1$"),
    "no input_scale": ({"low": "s * a * np.expm1(w)"}, "as if input_scale were 1$"),
    "scale of negative x alone": ({"high": "w"}, "as if scale were left out for x > 0$"),
    "exp(x) - 1": ({"low": "s * a * (np.exp(i * w) - F(1))"}, "almost equal numbers"),
    "a tail": ({"after": "y.reshape(-1)[y.size - y.size % 32:] = 7"}, "block of (32|16|8) elem"),
    "a bound above": ({"before": "w = np.minimum(w, F(10))"}, "x is above 10"),
    "a bound below": ({"before": "w = np.where(w < -4, F(-4), w)"}, "x is below -4"),
    "NaN is 0": ({"before": "w = np.where(np.isnan(w), F(0), w)"}, "x is NaN"),
    "no infinities": ({"before": "w = np.clip(w, F(-88), F(88))"}, "x is (infinite|above 88)"),
    "the order of the memory": ({"x": 'x.ravel(order="K").reshape(x.shape)'},
                                "permuted|not contiguous"),
    "the first element": ({"after": "y.reshape(-1)[:1] = 3"}, "it is the first element"),
    "no -0": ({"before": "w = w + F(0)"}, "a zero of the wrong sign; "),
}  # fmt: skip
PAIRS = [
    ("a tail", "NaN is 0"),
    ("a bound above", "no alpha"),
    ("a bound below", "no -0"),
    ("no alpha", "a tail"),
    ("the order of the memory", "a bound below"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def findings(dtype, *changes):
    parts = {**RIGHT, "dtype": dtype}
    for change in changes:
        for k, v in change.items():
            parts[k] = f"{parts[k]}; {v}" if k in ("before", "after") else v
    Path("mine.py").write_text(KERNEL.format(**parts), encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32")
    return found


@pytest.mark.parametrize("name", MISTAKES)
def test_one(name):
    """It is named before the errors of rounding."""
    change, cause = MISTAKES[name]
    found = findings("float32", change)
    check(found[:1], "wrong", cause)


@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_two(names):
    changes, causes = zip(*(MISTAKES[name] for name in names), strict=True)
    found = findings("float64", *changes)
    for cause in causes:
        check(found, "wrong", cause)
