# SPDX-License-Identifier: Apache-2.0
"""Defects of element-wise gradients."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import torch

import openaclnn
from openaclnn.reference.evaluation import rounded, ulp_error
from openaclnn.reference.formulas import REFERENCES, ROUNDED

from .defect import Demonstration, Line, bf16, number, to_torch

aten = torch.ops.aten


def nan_by_position() -> Demonstration:
    x, g = np.full(67, math.nan, np.float32), np.ones(67, np.float32)
    tx, tg = to_torch(x), to_torch(g)
    cases = (
        ("elu_backward", aten.elu_backward(tg, 1.0, 1.0, 1.0, False, tx),
         openaclnn.elu_backward(g, 1.0, 1.0, 1.0, False, x)),
        ("hardshrink_backward", aten.hardshrink_backward(tg, tx, 0.5),
         openaclnn.hardshrink_backward(g, x, 0.5)),
        ("logit_backward", aten.logit_backward(tg, tx, 0.1), openaclnn.logit_grad(x, g, 0.1)),
    )  # fmt: skip
    lines = []
    for name, theirs, ours in cases:
        kernel = name.replace("logit_backward", "logit_grad")
        reference = REFERENCES[kernel]
        inputs = (x, g) if kernel == "logit_grad" else (g, x)
        with np.errstate(invalid="ignore"):
            wide = [np.float64(v) for v in inputs]
            named = reference.attributes[0] | ({"eps": 0.1} if kernel == "logit_grad" else {})
            true = np.broadcast_to(reference.formula(*wide, **named), x.shape)
        texts = [
            ", ".join(f"{value} × {count}" for value, count in Counter(map(str, y)).items())
            for y in (theirs.numpy(), ours, true.astype(np.float32))
        ]
        lines.append(Line(f"{name}, 67 × NaN", *texts, "," in texts[0], texts[1] == texts[2]))
    return Demonstration(lines, "The gradient of NaN then depends on its position in the tensor.")


def rounded_attributes() -> Demonstration:
    one, lines = bf16([1.0]), []
    eps = 1e-3
    high = rounded(np.log((1 - eps) / eps), "BFLOAT16")
    x = bf16([0.1])  # the bfloat16 next to 0.1 is above it
    cases = (
        ("logit(1), eps = 1e-3", aten.logit(to_torch(one), eps), openaclnn.logit(one, eps), high),
        ("logit_backward(1, 1), eps = 1e-3", aten.logit_backward(to_torch(one), to_torch(one), eps),
         openaclnn.logit_grad(one, one, eps), 0.0),
        (f"hardshrink({float(x[0])}), lambd = 0.1", aten.hardshrink(to_torch(x), 0.1),
         openaclnn.hardshrink(x, 0.1), x[0]),
    )  # fmt: skip
    for case, theirs, ours, true in cases:
        found = float(theirs[0]), float(ours[0]), float(true)
        lines.append(Line(case, *map(number, found), found[0] != found[2], found[1] == found[2]))
    return Demonstration(lines, "Here the dtype is bfloat16.")


def misrounded() -> Demonstration:
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = patterns[(patterns > 0) & (patterns < 1)]
    g, wide = np.ones_like(x), x.astype(np.float64)
    exact = 1 / (wide * (1 - wide))
    true = rounded(exact, "FLOAT16")
    theirs = aten.logit_backward(to_torch(g), to_torch(x), None).numpy()
    ours = openaclnn.logit_grad(x, g)
    counts = [int((y.view(np.uint16) != true.view(np.uint16)).sum()) for y in (theirs, ours)]
    worst = [ulp_error(y, exact, "FLOAT16").max() for y in (theirs, ours)]
    texts = [f"{count}, worst {ulp:.5f} ulp" for count, ulp in zip(counts, worst, strict=True)]
    case = f"wrong of {x.size:,} fp16 inputs"
    line = Line(case, *texts, "0", worst[0] > ROUNDED, bool(worst[1] <= ROUNDED))
    text = (
        "The table shows logit_backward with g = 1 on every fp16 value between 0 and 1. A tie that "
    )
    text += "fp32 makes or breaks costs at most 2^-10 ulp; more than that is misrounded."
    return Demonstration([line], text)


def overflow() -> Demonstration:
    g, x = np.array([1e30], np.float32), np.array([-60], np.float32)
    theirs = aten.elu_backward(to_torch(g), 1e10, 1.0, 1.0, False, to_torch(x))
    ours = openaclnn.elu_backward(g, 1e10, 1.0, 1.0, False, x)
    true = np.float64(g[0]) * 1e10 * np.exp(np.float64(x[0]))
    error = ulp_error(ours, np.array([true]), "FLOAT")[0]
    texts = number(theirs[0]), number(ours[0]), number(true)
    wrong = not math.isfinite(float(theirs[0]))
    line = Line("g = 1e30, alpha = 1e10, x = -60", *texts, wrong, bool(error <= 1))
    return Demonstration([line])
