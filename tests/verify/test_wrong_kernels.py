# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/own_kernel.md: its kernels in NumPy pass as the page says, and each wrong with one
edit is caught, with a cause that a stranger understands."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.verify.kernels_of_the_page import (
    COMPARE,
    FIRST,
    GROUP_NORM,
    NUMPY,
    PASSED,
    SHOWN,
    check,
    edited,
    verified,
)

from openaclnn.commands.cli import main
from openaclnn.rows.catalogue import find_operator
from openaclnn.rows.table import ANY
from openaclnn.verify.cases import SCHEMA
from openaclnn.verify.generate import generate

pytestmark = pytest.mark.programs
# Text of the kernel, what stands there instead, kind of the finding, its cause.
IN_NUMPY = {
    "ignores an attribute": ("max(lambd, 0)", "0.5", "wrong", r"computed as if lambd were 0\.5$"),
    "< for <=": (r"<= max", "< max", "wrong", "x is exactly at a threshold of the formula"),
    "flushes subnormals": (", 0, wide)", ", 0, wide * (np.abs(wide) >= 2.0**-126))", "wrong",
                           "(x|the right result) is subnormal; all such elements are wrong"),
    "raises for rank 0": ("    wide =", "    x[0]\n    wide =", "refused", "for tensors of rank 0"),
    "another dtype": (".astype(x.dtype)", ".astype(np.float32)", "wrong",
                      "^only in dtypes of 16 bits$"),
    "a lower bound": ("max(lambd, 0)", "max(lambd, 0.5)", "wrong",
                      r"lambd were 0\.5, only with lambd below 0\.5 \(\d+ of \d+ such cases\)$"),
    "an integer": ("max(lambd, 0)", "max(np.trunc(lambd), 0)", "wrong",
                   r"as if lambd were 0, only with a finite lambd "),
    "keeps -0": ("np.abs(wide) <= max(lambd, 0), 0", "np.abs(wide) <= max(lambd, 0), "
                 "np.where(wide == 0, wide, 0)", "wrong", "of the wrong sign; x is -0$"),
    "lambd of NaN is 0": ("max(lambd, 0)", "np.fmax(lambd, 0)", "wrong",
                          "its result is a zero of the wrong sign; (x|the right result) is -0$"),
    "no abs": ("np.abs(wide)", "wide", "wrong",
               r"^every wrong element is computed as if x were compared, not \|x\|"),
    "NaN becomes 0": ("np.abs(wide) <= max(lambd, 0)", "~(np.abs(wide) > max(lambd, 0))", "wrong",
                      "x is NaN; all such elements are wrong"),
}  # fmt: skip
ELU = """
import numpy as np

def cut(x, dtype):
    y = x.astype(dtype)
    return np.where(np.abs(y) > np.abs(x), np.nextafter(y, np.zeros_like(y)), y)

def elu(x, alpha, scale, input_scale):
    wide = x.astype(np.float64)
    low = alpha * scale * np.expm1(input_scale * wide)
    return np.where(wide > 0, scale * wide, low).astype(x.dtype)
"""
LAST = "np.where(wide > 0, scale * wide, low).astype(x.dtype)"
SIGNATURE = "(x, alpha, scale, input_scale):"
IN_ELU = {
    "has no scale": (SIGNATURE, "(x, alpha, input_scale, n=1):\n    scale = n",
                     r"as if scale were 1; elu\(\) has no parameter scale$"),
    "cuts results": (LAST, "cut(np.where(wide > 0, scale * wide, low), x.dtype)",
                     "cut toward 0 instead of rounded to nearest"),
    "results of FLOAT16": (LAST, "np.where(wide > 0, scale * wide, low).astype(np.float16)"
                           ".astype(x.dtype)", "its result has only the precision of FLOAT16"),
    "rounds between": ("np.expm1(input_scale * wide)", "np.expm1(input_scale * wide)"
                       ".astype(x.dtype).astype(np.float64)",
                       "off by a few ulp, as from rounded intermediate results; x is negative"),
    "saturates": ("np.expm1(input_scale * wide)", "np.where(wide < -20, 0, np.expm1(input_scale "
                  "* wide))", "x is below -20"),
    "saturates products": ("np.expm1(input_scale * wide)", "np.where(input_scale * wide < -8, -1, "
                           "np.expm1(input_scale * wide))",
                           r"input_scale \* x is (below -8|between -16 and -8)"),
    "has no two attributes": (SIGNATURE, "(x, alpha, n=1.0):\n    scale = input_scale = n",
                              r"^only where scale is not 1 or input_scale is not 1( \(.*\))?; "
                              r"elu\(\) has no parameter scale or input_scale$"),
    "rounds inputs": ("x.astype(np.float64)", "x.astype(np.float16).astype(np.float64)",
                      "is computed as if inputs were rounded to FLOAT16$"),
    "a factor": ("np.expm1(input_scale * wide)", "np.expm1(input_scale * wide) * (1 - 2e-7)",
                 "as from a wrong term or factor: each is too small in magnitude"),
}  # fmt: skip
IN_GROUP_NORM = {
    "eps outside the root": ("1 / np.sqrt(groups.var(-1) + eps)", "1 / (np.sqrt(groups.var(-1)) "
                             "+ eps)", "rstd is computed as if eps were added to the root; .*mean "
                             "is right in all of them"),
    "n - 1": ("groups.var(-1)", "groups.var(-1, ddof=1)",
              "rstd is computed as if the variance were divided by n - 1; .*mean is right in all"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_numpy_kernel_of_the_page(capsys):
    Path("mine.py").write_text(NUMPY, encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 0
    if importlib.util.find_spec("ml_dtypes"):  # the page counts cases of BFLOAT16
        assert PASSED.strip() in capsys.readouterr().out


@pytest.mark.parametrize("how", IN_NUMPY)
def test_a_wrong_numpy_kernel(how):
    old, new, kind, cause = IN_NUMPY[how]
    Path("mine.py").write_text(edited(NUMPY, old, new), encoding="utf-8")
    dtypes = () if "16 bits" in cause else ("--dtype", "fp32", "--dtype", "fp16")
    status, found = verified("python:mine.py:my_hardshrink", "hardshrink", *dtypes)
    assert status == 1
    check(found, kind, cause)


@pytest.mark.parametrize("how", IN_ELU)
def test_a_wrong_elu(how, capsys):
    old, new, cause = IN_ELU[how]
    Path("mine.py").write_text(edited(ELU, old, new), encoding="utf-8")
    status, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32")
    assert status == 1
    assert len(found) <= 3
    check(found[:1], "wrong", cause)
    command = found[0]["command"].split()
    capsys.readouterr()
    assert main([*command[1:], "--quiet"]) == 1
    again = capsys.readouterr().out
    assert "1 case, seed 1" in again
    assert "1 case, FLOAT: only" not in again  # one case has no others to differ from


def test_names_that_are_out_of_order(capsys):
    typo = ELU.replace("alpha", "alhpa").replace("(x, alhpa, scale,", "(x, scale, alhpa,")
    Path("mine.py").write_text(typo, encoding="utf-8")
    assert main(["verify", "python:mine.py:elu", "--op", "elu", "--quiet"]) == 2
    said = "alhpa is no argument of elu (x, alpha, scale, input_scale); did you mean alpha?"
    assert said in capsys.readouterr().err
    Path("mine.py").write_text("def elu(scale, zz, alpha, x):\n    return x\n", encoding="utf-8")
    assert main(["verify", "python:mine.py:elu", "--op", "elu", "--quiet"]) == 2
    assert "; by position scale would be another one" in capsys.readouterr().err


def test_an_input_that_is_written_is_the_cause(capsys):
    source = NUMPY.replace("    wide =", "    x[...] = 0\n    wide =")
    Path("mine.py").write_text(source, encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 1
    printed = capsys.readouterr().out
    assert "damaged: wrote into x, which is an input" in printed
    assert "no common cause" not in printed


def test_a_formula_that_holds_in_a_range():
    """max(x, slope x) is leaky_relu for slopes of up to 1."""
    source = "import numpy as np\n\ndef leaky_relu(x, negative_slope):\n    "
    source += "y = x * x.dtype.type(negative_slope)\n    return np.where(x > y, x, y)\n"
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:leaky_relu", "leaky_relu", "--dtype", "fp32")
    check(found, "wrong", r"computed as if the result were max\(x, negative_slope \* x\)$")


def test_the_numpy_kernel_with_several_outputs_of_the_page():
    Path("mine.py").write_text(GROUP_NORM, encoding="utf-8")
    status, found = verified("python:mine.py:my_group_norm_swish", "group_norm_swish")
    assert (status, found) == (0, [])


@pytest.mark.parametrize("how", IN_GROUP_NORM)
def test_a_wrong_group_norm(how):
    old, new, cause = IN_GROUP_NORM[how]
    Path("mine.py").write_text(edited(GROUP_NORM, old, new), encoding="utf-8")
    options = ("group_norm_swish", "--dtype", "fp32")
    status, found = verified("python:mine.py:my_group_norm_swish", *options)
    assert status == 1
    check(found, "wrong", cause)


def test_results_of_the_page_are_compared():
    Path("mine.py").write_text(NUMPY, encoding="utf-8")
    Path("judge.py").write_text(COMPARE, encoding="utf-8")
    done = subprocess.run([sys.executable, "judge.py"], capture_output=True, text=True)
    assert "PASSED aclnnHardshrink" in done.stdout


def test_a_parameter_that_the_operator_lacks(capsys):
    typo = ELU.replace("alpha", "alhpa").replace(
        SIGNATURE.replace("alpha", "alhpa"), "(x, scale, input_scale, alhpa=1.0, threads=2):"
    )
    Path("mine.py").write_text(typo, encoding="utf-8")
    status, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32")
    said = capsys.readouterr().err
    assert "alhpa is no argument of elu (x, alpha, scale, input_scale); did you mean alpha?" in said
    assert "threads is no argument of elu (x, alpha, scale, input_scale); it keeps its def" in said
    check(found, "wrong", r"as if alpha were 1; elu\(\) has no parameter alpha$")
    assert status == 1


def test_the_finding_that_the_page_shows(capsys):
    pytest.importorskip("ml_dtypes", reason="the page counts cases of BFLOAT16")
    Path("mine.py").write_text(edited(NUMPY, "<=", "<"), encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 1
    assert SHOWN in capsys.readouterr().out


def test_attributes_that_set_the_same_cases_apart():
    source = edited(ELU, "    wide =", "    x = x + (scale != 1)\n    wide =")
    Path("mine.py").write_text(source, encoding="utf-8")
    usual = {"op": "elu", "dtype": "FLOAT", "shapes": [[5]], "values": "uniform"}
    cases = [
        usual | {"attributes": {"alpha": n, "scale": n, "input_scale": 1.0}}
        for n in (1.0, 2.0, 3.0)
    ]
    Path("cases.json").write_text(json.dumps({"schema": SCHEMA, "cases": cases}), encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--cases", "cases.json")
    check(found, "wrong", "where alpha is not 1; these are also the cases where scale is not 1$")


def test_names_of_arguments_that_are_passed_by_position(capsys):
    Path("mine.py").write_text(NUMPY.replace("lambd", "threshold"), encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 0
    said = "threshold: no argument of hardshrink; passed by position: x, lambd"
    assert said in capsys.readouterr().err


def test_cases_of_one_dtype_have_no_tensor_of_another():
    made = generate([find_operator("leaky_relu")], ["FLOAT"], ANY, 1)
    assert made
    assert all(case.dtypes == {"FLOAT"} for case in made)
    two = generate([find_operator("leaky_relu")], ["FLOAT", "FLOAT16"], ANY, 1)
    assert {"FLOAT", "FLOAT16"} in [case.dtypes for case in two]


def test_a_missing_bound_is_named():
    source = """
import numpy as np

def logit(input, eps):
    x = input.astype(np.longdouble)
    with np.errstate(all="ignore"):
        if eps >= 0:
            x = np.where(x < eps, np.longdouble(eps), x)
        return (np.log(x) - np.log1p(-x)).astype(np.float32)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    _, found = verified("python:mine.py:logit", "logit", "--dtype", "fp32")
    check(found[:1], "wrong", "as if input were only clamped to eps from below$")


def test_a_comparison_of_another_input_is_named():
    source = """
import numpy as np

def hardshrink_backward(grad_output, x, lambd):
    grad_output, _ = np.broadcast_arrays(grad_output, x)
    return np.where(np.abs(grad_output) <= np.maximum(lambd, 0), 0, grad_output).astype(x.dtype)
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    options = ("hardshrink_backward", "--dtype", "fp32")
    _, found = verified("python:mine.py:hardshrink_backward", *options)
    check(found, "wrong", r"computed as if \|grad_output\| were compared, not \|x\|$")


def test_elements_of_a_new_array_that_nobody_writes():
    """np.empty would hold zeros in fresh memory, which are right where x is 0."""
    Path("mine.py").write_text(
        """
import numpy as np

def leaky_relu(x, negative_slope):
    flat, y = x.reshape(-1), np.empty(x.size, x.dtype)
    n = x.size - x.size % 8
    w = flat[:n].astype(float)
    y[:n] = np.where(w > 0, w, w * negative_slope)
    return y.reshape(x.shape)
""",
        encoding="utf-8",
    )
    _, found = verified("python:mine.py:leaky_relu", "leaky_relu", "--dtype", "fp32")
    check(found, "wrong", "past the last full block of 8 elements.* elements were never written")
