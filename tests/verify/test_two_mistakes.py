# SPDX-License-Identifier: Apache-2.0
"""Kernels with two mistakes: each finding names one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verify.kernels_of_the_page import check, verified

pytestmark = pytest.mark.programs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        (
            """    w = np.fmax(x.astype(float), -1e308)
    y = np.where(w > 0, input_scale * w, input_scale * alpha * np.expm1(scale * w))""",
            ("^only where scale is not 1 or input_scale is not 1$", "x is NaN; all such elements"),
        ),
        (
            """    w = x.astype(float)
    low = scale * alpha * np.expm1(np.maximum(input_scale * w, -8))
    y = np.where(w > 0, scale * w, 0.0) + np.where(w > 0, 0.0, low)""",
            ("a zero of the wrong sign", "input_scale \\* x is below -8"),
        ),
    ],
    ids=("swapped attributes and NaN", "sign of zero and a clamp"),
)
def test_each_of_two_mistakes_is_named(body, causes):
    source = f"""
import numpy as np

def elu(x, alpha, scale, input_scale):
{body}
    return y.astype(x.dtype)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32", "--dtype", "fp16")
    assert len(found) == 2
    for cause in causes:
        check(found, "wrong", cause)
