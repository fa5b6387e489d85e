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
            ("as if scale and input_scale were swapped$", "(x|the right result) is NaN"),
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
    for cause in causes:
        check(found[:2], "wrong", cause)


def test_the_element_shown_is_one_of_the_finding(capsys):
    """The sign of zero is lost, and a wrong NaN beside it is worse in every such case."""
    source = """
import numpy as np

def hardshrink(x, lambd):
    y = np.where(np.abs(x) <= max(lambd, 0), 0.0, x)
    return np.where(np.isnan(x), 1.0, np.where(y == 0, -0.0, y)).astype(x.dtype)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    verified("python:mine.py:hardshrink", "hardshrink", "--dtype", "fp32")
    lines = capsys.readouterr().out.splitlines()
    shown = {lines[i].partition("common: ")[2]: lines[i + 2 : i + 5] for i, line in enumerate(lines)
             if " cases, FLOAT: " in line}  # fmt: skip
    (of_zero,) = (text for cause, text in shown.items() if "zero of the wrong sign" in cause)
    (of_nan,) = (text for cause, text in shown.items() if "x is NaN" in cause)
    assert [line.split()[:2] for line in of_zero[1:]] == [["expected", "0"], ["got", "-0"]], shown
    assert "x = nan (" in of_nan[0], shown
    assert of_nan[2].split()[:2] == ["got", "1"], shown


BACKWARD = """
import numpy as np

def exp(x):
    return np.exp(np.where(np.isfinite(x), np.clip(x, -8000, 8000), x))

def elu_backward(grad_output, alpha, scale, input_scale, is_result, x):
    g, x = grad_output.astype(np.longdouble), x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        {body}
        steep = g * (factor * input_scale) * exp(input_scale * x)
        low = g * input_scale * (x + factor) if is_result else steep
        y = np.where(x > 0, g * scale, low).astype(grad_output.dtype)
    {after}
    return y
"""


@pytest.mark.parametrize(
    ("body", "after", "causes"),
    [
        (
            "factor = np.longdouble(scale)",
            "if x.size % 8: y.reshape(-1)[-(x.size % 8):] = 12345",
            ("as if alpha were 1$", "it lies past the last full block of 8 elements"),
        ),
        (
            "factor, x = np.longdouble(alpha), np.maximum(x, -5)",
            "",
            ("as if scale were left out for self_or_result <= 0$", "self_or_result is below -5"),
        ),
    ],
    ids=("alpha ignored and a tail", "scale ignored and a clamp"),
)
def test_an_attribute_beside_elements(body, after, causes):
    source = BACKWARD.format(body=body, after=after)
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:elu_backward", "elu_backward", "--dtype", "fp32")
    for cause in causes:
        check(found, "wrong", cause)


def test_precision_of_a_narrower_dtype(monkeypatch):
    """Also where differences cancel, and beyond its range."""
    monkeypatch.setenv("OPENACLNN_PRODUCT", "any")
    source = """
import numpy as np

def hardshrink(x, lambd):
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        return np.where(np.abs(wide) <= max(lambd, 0), 0, x.astype(np.float16)).astype(x.dtype)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:hardshrink", "hardshrink")
    check(found, "wrong", "its result has only the precision of FLOAT16$")
    check(found, "wrong", "the right result is outside the range of FLOAT16$")


def test_a_mistake_of_a_kernel_that_computes_in_float():
    """Rounding and a lost -0 are found besides, and do not hide it."""
    source = """
import numpy as np

def elu(x, alpha, scale, input_scale):
    w = x.astype(np.float32)
    a, s, i = map(np.float32, (alpha, scale, input_scale))
    y = np.where(w > 0, s * w, s * a * (np.exp(i * w) - np.float32(1)))
    y = np.where(w < -20, np.float32(0), y)
    return y.astype(x.dtype)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32", "--dtype", "fp16")
    check(found[:1], "wrong", "x is below -20; all such")
    check(found[1:], "wrong", "its result is a zero of the wrong sign; |the right result is -0")
    check(found[2:], "wrong", "its result is off by little")


def test_a_wrong_dtype_beside_wrong_values():
    """Whatever else is wrong with a result counts as another finding."""
    source = """
import numpy as np

def group_norm_swish(x, gamma, beta, num_groups, eps, activate_swish, swish_scale):
    n, c = x.shape[:2]
    w = x.astype(np.float64).reshape(n, num_groups, -1)
    mean, var = w.mean(-1, keepdims=True), w.var(-1, keepdims=True)
    rstd = 1 / (np.sqrt(var) + eps)
    y = ((w - mean) * rstd).reshape(n, c, -1)
    y = y * (1 if gamma is None else gamma.astype(np.float64)[:, None])
    y = y + (0 if beta is None else beta.astype(np.float64)[:, None])
    y = y / (1 + np.exp(-swish_scale * y)) if activate_swish else y
    mean, rstd = (s.reshape(n, num_groups).astype(x.dtype) for s in (mean, rstd))
    return y.reshape(x.shape).astype(x.dtype), mean, rstd
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified(
        "python:mine.py:group_norm_swish", "group_norm_swish", "--dtype", "fp32", "--dtype", "fp16"
    )
    check(found, "wrong", "^only with tensors of FLOAT beside those of 16 bits$")
    check(found, "wrong", "y is computed as if eps were added to the root; rstd is wrong in most")
    assert not any(", ;" in f["cause"] for f in found)


def test_a_threshold_beside_a_tail():
    """Tensors that have both kinds of wrong elements do not hide the rarer one."""
    source = """
import numpy as np

def hardshrink(x, lambd):
    y = np.where(np.abs(x.astype(float)) < max(lambd, 0), 0, x).astype(x.dtype).reshape(-1)
    y[y.size - y.size % 16 :] = 1
    return y.reshape(x.shape)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:hardshrink", "hardshrink", "--dtype", "fp32")
    check(found, "wrong", "it lies past the last full block of 16 elements")
    check(found, "wrong", "^all other wrong elements have .*: x is exactly at a threshold")


THREE_MISTAKES = """
import numpy as np

def leaky_relu(x, negative_slope):
    x = x.ravel(order="K").reshape(x.shape)  # the order of the memory
    y = np.where(x > 0, x, x * negative_slope)  # rounds the slope first in fp16
    return np.where(x == 0, 1, y).astype(x.dtype)
"""


def test_three_mistakes_have_three_causes():
    """Elements, a layout, and a dtype; many cases have two of them."""
    Path("mine.py").write_text(THREE_MISTAKES, encoding="utf-8")
    options = ("--dtype", "fp32", "--dtype", "fp16")
    _, found = verified("python:mine.py:leaky_relu", "leaky_relu", *options)
    assert len(found) <= 4
    check(found, "wrong", "^most wrong elements have this in common: x is ±0$")
    check(found, "wrong", r"^only where the dims of a tensor are permuted in memory \(\d+ of \d+")
    check(found, "wrong", "as if negative_slope were rounded to the dtype of x$")


ROUNDED = """
import numpy as np

def elu(x, alpha, scale, input_scale):
    x32, f = x.astype(np.float32), np.float32
    with np.errstate(all="ignore"):
        low = f(scale) * f(alpha) * np.expm1(f(input_scale) * x32)
    y = np.where(x32 > 0, f(scale) * x32, low)
    if x.dtype.name != "bfloat16":
        return y.astype(x.dtype)
    return (y.view(np.uint32) >> 16).astype(np.uint16).view(x.dtype)
"""


def test_results_that_are_cut_beside_rounded_ones():
    Path("mine.py").write_text(ROUNDED, encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32", "--dtype", "bf16")
    assert len(found) <= 3
    check(found, "wrong", "cut toward 0 instead of rounded to nearest, only in BFLOAT16 ")
    check(found, "wrong", "its result is off by a few ulp")


FLAG = """
import numpy as np

def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    f = np.float32
    g, x = grad_output.astype(f), self_or_result.astype(f)
    with np.errstate(all="ignore"):
        low = g * f(alpha * scale * input_scale) * np.exp(f(input_scale) * x)
    return np.where(x > 0, g * f(scale), low).astype(grad_output.dtype)
"""


def test_a_flag_that_is_ignored_beside_rounding():
    Path("mine.py").write_text(FLAG, encoding="utf-8")
    _, found = verified("python:mine.py:elu_backward", "elu_backward", "--dtype", "fp32")
    check(found[:1], "wrong", "as if is_result were False$")
