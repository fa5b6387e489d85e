# SPDX-License-Identifier: Apache-2.0
"""What the examples print: text, or names and numbers that are computed here."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

Lines = list[tuple[str, list[float]]]  # a title and the numbers behind it

LEAKY_RELU = """\
result[0] = -0.3
result[1] = -0.2
result[2] = -0.1
result[3] = 0
result[4] = 1
result[5] = 2
result[6] = 3
result[7] = 4
"""
LEAKY_RELU_C = (
    "-1 1\n-0.5 2\n0 3\n"
    "refused with 161002: [PID:_] _ AclNN_Parameter_Error(EZ1001): "
    "aclnnLeakyRelu: out must have the shape of self [3, 2], but got [2, 3]\n"
)


def line(name: str, values: Iterable[float]) -> tuple[str, list[float]]:
    return name, [float(value) for value in values]


def inplace_leaky_relu() -> Lines:
    """Half precision: the product of a float slope is rounded once more."""
    slope = np.float32(0.1)
    return [line("self", [np.float16(x if x > 0 else np.float32(x) * slope) for x in range(-3, 4)])]


def elu_backward() -> Lines:
    alpha, scale = 1.5, 2.0
    pairs = zip((1, 2, 3, 4, 5, 6), (-2, -0.5, -0.125, 0, 0.5, 3), strict=True)
    gradient = [g * scale * (1 if x > 0 else alpha * math.exp(x)) for g, x in pairs]
    return [line("from the input", gradient), line("from the result", gradient)]


def logit_grad() -> Lines:
    x = [0.001, 0.1, 0.25, 0.5, 0.75, 0.999]
    dy = [1, 1, -2, 4, 3, 1]
    plain = [g / (v * (1 - v)) for g, v in zip(dy, map(np.float32, x), strict=True)]
    limited = [g if 0.05 <= v <= 0.95 else 0 for g, v in zip(plain, x, strict=True)]
    return [line("eps 0.05", limited), line("without eps", plain)]


def hardshrink_backward() -> Lines:
    x = [-2, 0.5, 0.25, 0.75]
    return [line("gradInput", [g if abs(x[(g - 1) % 4]) > 0.5 else 0 for g in range(1, 9)])]


def group_norm_swish_grad() -> Lines:
    """Finite differences: the forward pass in float64, with each input moved a little."""
    x = np.array([1, 2, 3, 4, -1, 0, 1, 4], float)
    dy = np.array([1, -1, 0.5, 2, 1, 1, -2, 0.25])
    gamma, beta = np.array([1, 0.5, 2, -1]), np.array([0, 1, -1, 0.5])

    def loss(*given: np.ndarray) -> float:
        values, scale, shift = given
        groups = values.reshape(2, 4)
        centred = groups - groups.mean(axis=1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True))
        v = normal.reshape(4, 2) * scale[:, None] + shift[:, None]
        return float((dy.reshape(4, 2) * v / (1 + np.exp(-v))).sum())

    def slope(which: int, step: float = 1e-5) -> list[float]:
        inputs = [x, gamma, beta]
        result = []
        for i in range(len(inputs[which])):
            ends = []
            for sign in (1, -1):
                moved = [value.copy() for value in inputs]
                moved[which][i] += sign * step
                ends.append(loss(*moved))
            result.append((ends[0] - ends[1]) / (2 * step))
        return result

    return [line(name, slope(i)) for i, name in enumerate(("dx", "dgamma", "dbeta"))]


def two_streams() -> Lines:
    """Hardshrink with 0.25 of leaky_relu with 0.5, at every quarter from -1 to 0.75."""
    result: Lines = []
    for x in (quarter / 4 for quarter in range(-4, 4)):
        y = x if x > 0 else x / 2
        result.append(line(f"z({x:g}) =", [y if abs(y) > 0.25 else 0]))
    return [("time is taken: yes", []), *result]


def memory_pool() -> Lines:
    """Views of 3 by 6 without the columns 0 and 5, which stay 0."""
    x = (np.arange(18, dtype=np.float32) - 9) / 4
    inside = (np.arange(18) % 6 > 0) & (np.arange(18) % 6 < 5)
    results = {
        "leaky_relu": np.where(x > 0, x, x * np.float32(0.1)),
        "elu": np.where(x > 0, x, np.expm1(x.astype(np.float64))),
    }
    lines = [
        line(f"{pool} {op} {dtype}:", np.where(inside, result, 0).astype(dtype))
        for pool in ("virtual", "buffers")
        for dtype in ("float32", "float16")
        for op, result in results.items()
    ]
    return [*lines, ("another device: no", [])]


# What the examples print, as names and numbers that were computed here.
RESULTS = {
    "inplace_leaky_relu": inplace_leaky_relu,
    "elu_backward": elu_backward,
    "logit_grad": logit_grad,
    "hardshrink_backward": hardshrink_backward,
    "group_norm_swish_grad": group_norm_swish_grad,
    "two_streams": two_streams,
    "memory_pool": memory_pool,
}
