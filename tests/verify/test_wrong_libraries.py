# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/own_c_kernel.md, and Triton in own_kernel.md: their kernels pass as the pages say,
and each wrong with one edit is caught, with a cause that a stranger understands."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.verify.kernels_of_the_page import (
    C_PAGE,
    LEAKY,
    SECOND,
    SHOWN_IN_C,
    THIRD,
    TRITON,
    C,
    check,
    edited,
    verified,
)

from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main

pytestmark = pytest.mark.programs
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
needs_triton = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton")),
    reason="torch or triton is not installed",
)

# Text of the kernel, what stands there instead, kind of the finding, its cause.
IN_C = {
    "strides of the output": ("place(&p->out, i), (double)result", "i, (double)result", "wrong",
                              "^only where grad_input is not contiguous$"),
    "strides of the input": ("const double x = get(&p->x, place(&p->x,",
                             "openaclnnTensorView v = p->x;\n"
                             "    int64_t n = 1;\n    for (uint64_t d = v.rank; d-- > 0; n *= "
                             "v.shape[d]) v.strides[d] = n;\n    const double x = get(&p->x, "
                             "place(&v,",
                             None, "^only where self_or_result is not contiguous "),
    "input_scale of results": ("g * p->inputScale * (x + negative)", "g * (x + negative)", "wrong",
                               "as if input_scale were 1, only with is_result = True "),
    "the last elements": ("i < count; ++i", "i < count - count % 8; ++i", "wrong",
                          "it lies past the last full block of 8 elements"),
    "reads ahead": ("const double x = get(&p->x, place(&p->x, i));",
                    "const double x = get(&p->x, place(&p->x, i));\n"
                    "    volatile double next = get(&p->x, place(&p->x, i) + 8);\n"
                    "    (void)next;", "outside", ""),
    "writes whole blocks": ("  free(p);",
                            "  bool dense = true;\n"
                            "  for (int64_t i = 0; i < count; ++i)\n"
                            "    dense &= place(&p->x, i) == i && place(&p->grad, i) == i\n"
                            "             && place(&p->out, i) == i;\n"
                            "  for (int64_t i = count; dense && i % 8; ++i) put(&p->out, i, 0);\n"
                            "  free(p);", "damaged",
                            "^only where all tensors are contiguous and the number of elements is "
                            "not a multiple of 8$"),
    "crashes on empty tensors": ("  free(p);", "  if (count == 0) abort();\n  free(p);", "crashed",
                                 "for empty tensors"),
    "stride 0 taken for 1": ("* t->strides[d]", "* (t->strides[d] ? t->strides[d] : 1)",
                             None, "where a stride is 0"),
    "zeroes the output first": ("  for (int64_t i = 0; i < count; ++i) {", "  for (int64_t i = 0; "
                                "i < count; ++i) put(&p->out, place(&p->out, i), 0);\n"
                                "  for (int64_t i = 0; i < count; ++i) {", "wrong",
                                "only when grad_input is in the memory of an input"),
    "scalars in double": ("*value = (float)*value", "(void)0", "wrong",
                          "is computed as if scalars were not rounded to FLOAT$"),
    "ignores isResult": ("p->isResult", "0", "wrong", "as if is_result were False"),
    "a stub": ("  Plan p = {.isResult = isResult};", "  return 161001;\n  Plan p = {0};", "status",
               "in every case|must be refused"),
    "accepts every shape": ("if (!sameShape(&p.grad, &p.x) ||", "if (0 &&", None,
                            "when the output has the wrong shape"),
}  # fmt: skip
IN_TRITON = {
    "<= for <": ("x < low", "x <= low", "wrong", "x is exactly eps"),
    "NaN is 0": ("(x < low) | (x > 1.0 - low)", "~((x >= low) & (x <= 1.0 - low))", "wrong",
                 "x is NaN"),
    "strides of the inputs": ("    x, dy = x.contiguous(), dy.contiguous()\n", "", "wrong",
                              "only where a tensor has gaps between its elements"),
    "ignores eps": ("out, n, eps,", "out, n, 0.1,", "wrong", "is computed as if eps were 0.1"),
    "an integer eps": ("out, n, eps,", "out, n, int(eps),", "wrong",
                       "is computed as if eps were 0"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def built(source: str, command: str) -> None:
    Path("mine.c").write_text(source, encoding="utf-8")
    done = subprocess.run(compile_command(command.split()[2:], {}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_the_c_kernel_of_the_page(capsys):
    build, verify = SECOND.splitlines()
    built(C, build)
    assert main([*verify.split()[1:], "--quiet"]) == 0
    first, of_double = re.findall(r"`(All \d+ passed)`", C_PAGE)
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


@needs_compiler
def test_the_first_c_kernel_of_the_page(capsys):
    Path("leaky.c").write_text(LEAKY, encoding="utf-8")
    build, verify = re.findall(r"^openaclnn (.*leaky.*)$", C_PAGE, re.M)
    assert subprocess.run([sys.executable, "-m", "openaclnn", *build.split()]).returncode == 0
    assert main([*verify.split(), "--quiet"]) == 0
    (passed,) = re.findall(r"`(111 passed, .* ulp)`", C_PAGE)
    assert passed in capsys.readouterr().out


# What the page says in words.
RELU = (
    ("leaky_relu", "relu"),
    ("LeakyRelu", "Relu"),
    (" const aclScalar* negativeSlope,\n", "\n"),
    (" ||\n      (status = openaclnnReadScalar(negativeSlope, &p.slope))", ""),
    ("  double slope;\n", ""),
    ("x > 0 ? x : (float)p->slope * x", "x < 0 ? 0 : x"),
)


@needs_compiler
def test_the_function_of_aten_of_the_page(capsys):
    pytest.importorskip("torch")
    source = LEAKY
    for old, new in RELU:
        source = edited(source, old, new)
    assert "lope" not in source
    Path("relu.c").write_text(source, encoding="utf-8")
    build, verify = re.findall(r"^openaclnn (.*relu.c .*|.*librelu.*)$", C_PAGE, re.M)
    words = [sys.executable, "-m", "openaclnn", *build.split()]
    assert subprocess.run(words).returncode == 0
    assert main([*verify.split(), "--quiet"]) == 0, capsys.readouterr().out


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
    wrong = edited(LEAKY, "*element(&p->out, i) = ", "((float*)p->out.data)[i] = ")
    Path("leaky.c").write_text(wrong, encoding="utf-8")
    build, verify = re.findall(r"^openaclnn (.*leaky.*)$", C_PAGE, re.M)
    assert subprocess.run([sys.executable, "-m", "openaclnn", *build.split()]).returncode == 0
    assert main([*verify.split(), "--quiet"]) == 1
    assert SHOWN_IN_C in capsys.readouterr().out
    assert main(["verify", "library:./libleaky.so", "--op", "elu", "--quiet"]) == 2
    assert "libleaky.so has no aclnnElu" in capsys.readouterr().out


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
