# SPDX-License-Identifier: Apache-2.0
"""The special values of every row: the results of torch, of openaclnn and of the formula.

A tensor holds the value 67 times, so that torch's vector loop and its tail both show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import openaclnn
from openaclnn.reference.evaluation import evaluate
from openaclnn.rows.table import OPS

from .defect import Line, number, to_torch

aten = torch.ops.aten
INF, NAN = math.inf, math.nan


def eps_of(a: Any) -> float | None:
    """torch has None where we have a negative eps."""
    return None if a["eps"] < 0 else a["eps"]


TORCH: dict[str, Callable[..., Any]] = {
    "leaky_relu": lambda a, x: aten.leaky_relu(x, a["negative_slope"]),
    "leaky_relu_backward": lambda a, g, x: aten.leaky_relu_backward(
        g, x, a["negative_slope"], a["self_is_result"]
    ),
    "elu": lambda a, x: aten.elu(x, a["alpha"], a["scale"], a["input_scale"]),
    "elu_backward": lambda a, g, x: aten.elu_backward(
        g, a["alpha"], a["scale"], a["input_scale"], a["is_result"], x
    ),
    "hardshrink": lambda a, x: aten.hardshrink(x, a["lambd"]),
    "hardshrink_backward": lambda a, g, x: aten.hardshrink_backward(g, x, a["lambd"]),
    "logit": lambda a, x: aten.logit(x, eps_of(a)),
    "logit_grad": lambda a, x, dy: aten.logit_backward(dy, x, eps_of(a)),
}

# Attributes in the order of the row, and the inputs they are tried with.
CASES: dict[str, list[tuple[tuple[Any, ...], list[tuple[float, ...]]]]] = {
    "leaky_relu": [
        ((0.5,), [(NAN,), (-0.0,), (-INF,)]),
        ((0.0,), [(-INF,), (-2.0,)]),
        ((INF,), [(0.0,), (2.0,)]),
        ((NAN,), [(2.0,), (-2.0,)]),
    ],
    "leaky_relu_backward": [((0.5, False), [(2.0, NAN), (2.0, 0.0), (NAN, 1.0)])],
    "elu": [
        ((1.5, 2.0, 1.0), [(NAN,), (-INF,), (INF,), (-0.0,), (-1e-40,)]),
        ((1.0, 1.0, 0.0), [(-INF,), (-2.0,)]),
        ((1.0, 1.0, -1.0), [(-INF,)]),
    ],
    "elu_backward": [
        ((1.5, 2.0, 1.0, False), [(1.0, NAN), (1.0, 0.0), (1.0, -INF), (0.0, -INF), (NAN, 1.0)]),
        ((1.0, 1.0, 0.0, False), [(1.0, -INF)]),
        ((1.5, 2.0, 1.0, True), [(1.0, NAN), (1.0, -3.0), (1.0, 0.0)]),
    ],
    "hardshrink": [
        ((0.5,), [(NAN,), (0.5,), (-0.5,), (-0.0,), (INF,)]),
        ((-1.0,), [(0.0,), (-0.0,), (1e-45,)]),
        ((INF,), [(INF,), (NAN,)]),
        ((NAN,), [(0.25,)]),
    ],
    "hardshrink_backward": [
        ((0.5,), [(2.0, NAN), (2.0, 0.5), (NAN, 0.25), (NAN, 1.0)]),
        ((-1.0,), [(2.0, 0.0)]),
        ((NAN,), [(2.0, 0.25)]),
    ],
    "logit": [
        ((-1.0,), [(0.0,), (-0.0,), (1.0,), (-0.5,), (1.5,), (NAN,), (0.5,)]),
        ((0.0,), [(-0.5,), (1.5,)]),
        ((0.25,), [(0.0,), (1.0,), (NAN,)]),
        ((0.75,), [(0.5,), (0.9,)]),
        ((1.5,), [(0.5,)]),
    ],
    "logit_grad": [
        ((NAN,), [(0.5, 1.0), (2.0, 1.0)]),
        ((INF,), [(0.5, 1.0), (NAN, 1.0)]),
        ((1.5,), [(0.5, 1.0)]),
        ((1.0,), [(0.5, 1.0), (0.5, -1.0), (NAN, 1.0)]),
        ((0.25,), [(NAN, 1.0), (0.2, 1.0), (0.2, NAN), (0.5, INF), (0.5, NAN), (0.25, 1.0)]),
        ((0.0,), [(0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (-0.5, 1.0)]),
        ((-1.0,), [(0.0, 1.0), (0.0, -1.0), (1.0, 1.0), (-0.5, 1.0), (1.5, 1.0), (NAN, 1.0)]),
    ],
}


def lines() -> Iterator[Line]:
    for op in OPS:
        for given, inputs in CASES.get(op.python, ()):
            attributes = dict(zip((p.python_name for p in op.attributes), given, strict=True))
            for values in inputs:
                yield line(op, attributes, values)


def line(op: Any, attributes: dict[str, Any], values: tuple[float, ...]) -> Line:
    arrays = [np.full(67, value, np.float32) for value in values]
    theirs = TORCH[op.python](attributes, *map(to_torch, arrays)).numpy()
    named = {p.python_name: x for p, x in zip(op.inputs_, arrays, strict=True)}
    ours = getattr(openaclnn, op.python)(**named, **attributes)
    true = np.reshape(evaluate(op, arrays, attributes), ours.shape).astype(np.float32)
    texts = [" or ".join(dict.fromkeys(map(number, y))) for y in (theirs, ours, true)]
    words = [f"{p.python_name} {v:g}" for p, v in zip(op.inputs_, values, strict=True)]
    words += [f"{name} {value:g}" for name, value in attributes.items()]
    same, right = matches(theirs, true, 1e-6), matches(ours, true, 2e-7)
    return Line(f"{op.python}: {', '.join(words)}", *texts, not same, right)


def matches(actual: Any, true: Any, relative: float) -> bool:
    signs = (np.signbit(actual) == np.signbit(true)) | np.isnan(true)
    return bool(np.allclose(actual, true, relative, 0, equal_nan=True) and signs.all())
