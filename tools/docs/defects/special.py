# SPDX-License-Identifier: Apache-2.0
"""The special values of every row: the results of torch, of openaclnn and of the formula.

A tensor holds the value 67 times, so that torch's vector loop and its tail both show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import openaclnn
from openaclnn.bench.baseline_table import BASELINES
from openaclnn.reference.evaluation import evaluate
from openaclnn.rows.table import OPS

from .defect import Line, number, to_torch

INF, NAN = math.inf, math.nan


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
    named = {p.python_name: x for p, x in zip(op.input_tensors, arrays, strict=True)}
    theirs = np.empty_like(arrays[0])
    given = {name: to_torch(x) for name, x in {**named, "out": theirs}.items()}
    BASELINES[op.python].torch(torch, given, attributes)()
    ours = getattr(openaclnn, op.python)(**named, **attributes)
    true = np.reshape(evaluate(op, arrays, attributes), ours.shape).astype(np.float32)
    texts = [" or ".join(dict.fromkeys(map(number, y))) for y in (theirs, ours, true)]
    words = [f"{p.python_name} {v:g}" for p, v in zip(op.input_tensors, values, strict=True)]
    words += [f"{name} {value:g}" for name, value in attributes.items()]
    same, right = matches(theirs, true, 1e-6), matches(ours, true, 2e-7)
    return Line(f"{op.python}: {', '.join(words)}", *texts, not same, right)


def matches(actual: Any, true: Any, relative: float) -> bool:
    signs = (np.signbit(actual) == np.signbit(true)) | np.isnan(true)
    return bool(np.allclose(actual, true, relative, 0, equal_nan=True) and signs.all())
