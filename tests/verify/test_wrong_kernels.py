# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/own_kernel.md: its kernels pass as the page says, and each wrong with one edit is
caught, with a cause that a stranger understands."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main
from openaclnn.verify.cases import SCHEMA

PAGE = (Path(__file__).resolve().parents[2] / "docs/tutorials/own_kernel.md").read_text("utf-8")
NUMPY, TRITON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
(C,) = re.findall(r"^```c\n(.*?)^```$", PAGE, re.M | re.S)
FIRST, SECOND, THIRD = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
pytestmark = pytest.mark.programs
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
needs_triton = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton")),
    reason="torch or triton is not installed",
)

# Text of the kernel, what stands there instead, kind of the finding, its cause.
IN_NUMPY = {
    "ignores an attribute": ("max(lambd, 0)", "0.5", "wrong", r"where lambd is not 0\.5"),
    "< for <=": (r"<= max", "< max", "wrong", "x is exactly at a threshold of the formula"),
    "flushes subnormals": (", 0, wide)", ", 0, wide * (np.abs(wide) >= 2.0**-126))", "wrong",
                           "x is subnormal"),
    "raises for rank 0": ("    wide =", "    x[0]\n    wide =", "refused", "for tensors of rank 0"),
    "another dtype": (".astype(x.dtype)", ".astype(np.float32)", "wrong", "in "),
    "a lower bound": ("max(lambd, 0)", "max(lambd, 0.5)", "wrong",
                      r"^only with lambd below 0\.5 \(\d+ of \d+ such cases\)$"),
    "an integer": ("max(lambd, 0)", "max(np.trunc(lambd), 0)", "wrong",
                   r"^only with lambd = 0\.001, 0\.1 or 0\.5 "),
    "keeps -0": ("np.abs(wide) <= max(lambd, 0), 0", "np.abs(wide) <= max(lambd, 0), "
                 "np.where(wide == 0, wide, 0)", "wrong", "x is -0; all such elements are wrong"),
    "lambd of NaN is 0": ("max(lambd, 0)", "np.fmax(lambd, 0)", "wrong",
                          r"x is -0; .*, only with lambd = nan \(\d+ of \d+ such cases\)$"),
    "no abs": ("np.abs(wide)", "wide", "wrong",
               "^every wrong element has this in common: the right result is negative; all such"),
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
                     "only where scale is not 1; elu\\(\\) has no parameter scale$"),
    "ignores scale": ("    wide =", "    scale = 1.0\n    wide =", "only where scale is not 1; "
                      "these are also the cases where alpha is not 1 or 2$"),
    "clamps": ("np.expm1(input_scale * wide)", "np.expm1(np.where(wide < -8, -8, input_scale "
               "* wide))", "x is below -8$"),
    "cuts results": (LAST, "cut(np.where(wide > 0, scale * wide, low), x.dtype)",
                     "cut toward 0 instead of rounded to nearest"),
    "results of FLOAT16": (LAST, "np.where(wide > 0, scale * wide, low).astype(np.float16)"
                           ".astype(x.dtype)", "its result has only the precision of FLOAT16"),
    "rounds between": ("np.expm1(input_scale * wide)", "np.expm1(input_scale * wide)"
                       ".astype(x.dtype).astype(np.float64)",
                       "off by a few ulp, as from rounded intermediate results; x is negative"),
    "saturates": ("np.expm1(input_scale * wide)", "np.where(wide < -20, 0, np.expm1(input_scale "
                  "* wide))", "x is below -20"),
}  # fmt: skip
IN_C = {
    "strides of the output": ("place(&p->out, i), (double)result", "i, (double)result", "wrong",
                              "^only where grad_input is not contiguous$"),
    "strides of the input": ("const double x = get(&p->x, place(&p->x,",
                             "openaclnnTensorView v = p->x;\n"
                             "    int64_t n = 1;\n    for (uint64_t d = v.rank; d-- > 0; n *= "
                             "v.shape[d]) v.strides[d] = n;\n    const double x = get(&p->x, "
                             "place(&v,",
                             None, r"^only where a tensor is not contiguous \(\d+ of \d+ such"),
    "input_scale of results": ("g * p->inputScale * (x + negative)", "g * (x + negative)", "wrong",
                               "with is_result = True, only where input_scale is not 1 "),
    "the last elements": ("i < count; ++i", "i < count - count % 8; ++i", "wrong",
                          "it lies past the last full block of 8 elements"),
    "reads ahead": ("const double x = get(&p->x, place(&p->x, i));",
                    "const double x = get(&p->x, place(&p->x, i));\n"
                    "    volatile double next = get(&p->x, place(&p->x, i) + 8);\n"
                    "    (void)next;", "outside", ""),
    "crashes on empty tensors": ("  free(p);", "  if (count == 0) abort();\n  free(p);", "crashed",
                                 "for empty tensors"),
    "stride 0 taken for 1": ("* t->strides[d]", "* (t->strides[d] ? t->strides[d] : 1)",
                             None, "where a stride is 0"),
    "zeroes the output first": ("  for (int64_t i = 0; i < count; ++i) {", "  for (int64_t i = 0; "
                                "i < count; ++i) put(&p->out, place(&p->out, i), 0);\n"
                                "  for (int64_t i = 0; i < count; ++i) {", "wrong",
                                "only when grad_input is in the memory of an input"),
    "ignores isResult": ("p->isResult", "0", "wrong", "with is_result = True"),
    "accepts every shape": ("if (!sameShape(&p.grad, &p.x) ||", "if (0 &&", None,
                            "when the output has the wrong shape"),
}  # fmt: skip
IN_TRITON = {
    "<= for <": ("x < low", "x <= low", "wrong", "x is exactly at a threshold of the formula"),
    "NaN is 0": ("(x < low) | (x > 1.0 - low)", "~((x >= low) & (x <= 1.0 - low))", "wrong",
                 "x is NaN"),
    "strides of the inputs": ("    x, dy = x.contiguous(), dy.contiguous()\n", "", "wrong",
                              "only where a tensor is not contiguous"),
    "ignores eps": ("out, n, eps,", "out, n, 0.1,", "wrong", "where eps is not 0.1"),
    "an integer eps": ("out, n, eps,", "out, n, int(eps),", "wrong", "where eps is not -1, 0, 1"),
}  # fmt: skip


def edited(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


def verified(provider: str, op: str, *options: str) -> tuple[int, list[dict[str, object]]]:
    command = ["verify", provider, "--op", op, "--quiet", "--json", "report.json", *options]
    status = main([*command, "--timeout", "10"])
    return status, json.loads(Path("report.json").read_text(encoding="utf-8"))["findings"]


def check(found, kind, cause):
    causes = [f["cause"] for f in found if kind in (None, f["kind"])]
    assert causes, found
    if cause is not None:
        assert any(re.search(cause, text) for text in causes), causes


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_numpy_kernel_of_the_page(capsys):
    Path("mine.py").write_text(NUMPY, encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 0


@pytest.mark.parametrize("how", IN_NUMPY)
def test_a_wrong_numpy_kernel(how):
    old, new, kind, cause = IN_NUMPY[how]
    Path("mine.py").write_text(edited(NUMPY, old, new), encoding="utf-8")
    status, found = verified("python:mine.py:my_hardshrink", "hardshrink")
    assert status == 1
    check(found, kind, cause)


@pytest.mark.parametrize("how", IN_ELU)
def test_a_wrong_elu(how, capsys):
    old, new, cause = IN_ELU[how]
    Path("mine.py").write_text(edited(ELU, old, new), encoding="utf-8")
    status, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32")
    assert status == 1
    assert len(found) == 1
    check(found, "wrong", cause)
    command = found[0]["command"].split()
    capsys.readouterr()
    assert main([*command[1:], "--quiet"]) == 1
    again = capsys.readouterr().out
    assert "1 case, seed 1" in again
    assert "1 case, FLOAT: only" not in again  # one case has no others to differ from


TWO_MISTAKES = """
import numpy as np

def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    g, x = grad_output.astype(np.float64), self_or_result.astype(np.float64)
    t = x + alpha if is_result else scale * alpha * np.exp(input_scale * x)
    return np.where(x > 0, g * scale, g * input_scale * t).astype(grad_output.dtype)
"""


def test_two_mistakes_have_two_causes():
    """One in finite values, and infinity times an exp that is 0, which no pattern has in common."""
    Path("mine.py").write_text(TWO_MISTAKES, encoding="utf-8")
    status, found = verified("python:mine.py:elu_backward", "elu_backward", "--dtype", "fp32")
    assert status == 1
    check(found, "wrong", "^where inputs and results are finite, with is_result = True, only where "
          "scale is not 1 ")  # fmt: skip
    check(found, "wrong", "^where an input or a result is NaN or infinite, every wrong element")


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
    assert len(found) == 3
    check(found, "wrong", "every wrong element has this in common: x is ±0; all such elements")
    check(found, "wrong", "^where the dims of a tensor are permuted in memory$")
    check(found, "wrong", "its result is off by a few ulp; x is negative$")


def test_a_parameter_that_the_operator_lacks(capsys):
    typo = ELU.replace("alpha", "alhpa").replace(
        SIGNATURE.replace("alpha", "alhpa"), "(x, scale, input_scale, alhpa=1.0, threads=2):"
    )
    Path("mine.py").write_text(typo, encoding="utf-8")
    status, found = verified("python:mine.py:elu", "elu", "--dtype", "fp32")
    said = capsys.readouterr().err
    assert "alhpa is no argument of elu (x, alpha, scale, input_scale); did you mean alpha?" in said
    assert "threads is no argument of elu (x, alpha, scale, input_scale), and keeps its def" in said
    check(found, "wrong", "; elu\\(\\) has no parameter alpha$")
    assert status == 1


def test_the_finding_that_the_page_shows(capsys):
    pytest.importorskip("ml_dtypes", reason="the page counts cases of BFLOAT16")
    shown = SHOWN[0]
    Path("mine.py").write_text(edited(NUMPY, "<=", "<"), encoding="utf-8")
    assert main([*FIRST.split()[1:], "--quiet"]) == 1
    assert shown in capsys.readouterr().out


def built(source: str, command: str) -> None:
    Path("mine.c").write_text(source, encoding="utf-8")
    done = subprocess.run(compile_command(command.split()[2:], {}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_the_c_kernel_of_the_page(capsys):
    build, verify = SECOND.splitlines()
    built(C, build)
    assert main([*verify.split()[1:], "--quiet"]) == 0
    first, of_double = re.findall(r"`(All \d+ passed)`", PAGE)
    assert first in capsys.readouterr().out
    words = [sys.executable, "-m", "openaclnn", *verify.split()[1:], "--dtype", "fp64"]
    done = subprocess.run(words, env=os.environ | {"OPENACLNN_PRODUCT": "any"}, capture_output=True,
                          text=True)  # fmt: skip
    assert of_double in done.stdout


@needs_compiler
def test_a_library_without_phase_2(capsys):
    half = edited(C, "aclnnStatus aclnnEluBackward(", "aclnnStatus aclnnEluBackwardV2(")
    built(half, SECOND.splitlines()[0])
    assert main([*SECOND.splitlines()[1].split()[1:], "--quiet"]) == 2
    said = "has aclnnEluBackwardGetWorkspaceSize, but no aclnnEluBackward, phase 2"
    assert said in capsys.readouterr().err


def test_attributes_that_set_the_same_cases_apart():
    Path("mine.py").write_text(edited(ELU, *IN_ELU["ignores scale"][:2]), encoding="utf-8")
    usual = {"op": "elu", "dtype": "FLOAT", "shapes": [[5]], "values": "uniform"}
    cases = [
        usual | {"attributes": {"alpha": n, "scale": n, "input_scale": 1.0}} for n in (1.0, 2.0)
    ]
    Path("cases.json").write_text(json.dumps({"schema": SCHEMA, "cases": cases}), encoding="utf-8")
    _, found = verified("python:mine.py:elu", "elu", "--cases", "cases.json")
    check(found, "wrong", "where alpha is not 1; these are also the cases where scale is not 1$")


@needs_compiler
@pytest.mark.parametrize("how", IN_C)
def test_a_wrong_c_kernel(how):
    old, new, kind, cause = IN_C[how]
    built(edited(C, old, new), SECOND.splitlines()[0].replace("-O2", "-O0"))
    status, found = verified("library:./libmine.so", "elu_backward", "--dtype", "fp32")
    assert status == 1
    check(found, kind, cause)


@needs_compiler
def test_the_finding_of_strides_that_the_page_shows(capsys):
    build, verify = SECOND.splitlines()
    built(edited(C, *IN_C["strides of the output"][:2]), build.replace("-O2", "-O0"))
    assert main([*verify.split()[1:5], "--dtype", "fp32", "--quiet"]) == 1
    assert SHOWN[1] in capsys.readouterr().out
    assert main(["verify", "library:./libmine.so", "--op", "elu", "--quiet"]) == 2
    assert "libmine.so has no aclnnElu" in capsys.readouterr().out


@needs_triton
def test_the_triton_kernel_of_the_page():
    Path("grad.py").write_text(TRITON, encoding="utf-8")
    command = THIRD.replace("--dtype fp32 ", "").split()
    assert main([*command[1:], "--quiet"]) == 0


@needs_triton
@pytest.mark.parametrize("how", IN_TRITON)
def test_a_wrong_triton_kernel(how):
    old, new, kind, cause = IN_TRITON[how]
    Path("grad.py").write_text(edited(TRITON, old, new), encoding="utf-8")
    status, found = verified("python:grad.py:logit_grad", "logit_grad", "--dtype", "fp16")
    assert status == 1
    check(found, kind, cause)


@needs_compiler
@pytest.mark.parametrize("way", ["linked", "preloaded"])
def test_a_program_uses_the_kernel_before_ours(way):
    """Both phases of the program's calls are the library's, whichever way the page names."""
    marked = edited(
        C, "  Plan* p = (Plan*)executor;", '  puts("mine");\n  Plan* p = (void*)executor;'
    )
    built(edited(marked, "#include <math.h>", "#include <math.h>\n#include <stdio.h>"),
          SECOND.splitlines()[0])  # fmt: skip
    program = Path(__file__).resolve().parents[2] / "examples" / "elu_backward.cpp"
    own = ["-L.", "-lmine", "-Wl,-rpath,."] if way == "linked" else []
    command = compile_command([str(program), "-o", "test", *own], {})
    subprocess.run(command, check=True, capture_output=True)
    variables = {"LD_PRELOAD": str(Path("libmine.so").resolve())} if way == "preloaded" else {}
    run = [sys.executable, "-m", "openaclnn", "run", "./test"]
    done = subprocess.run(run, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("mine") == 2
