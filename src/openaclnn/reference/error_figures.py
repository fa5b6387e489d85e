# SPDX-License-Identifier: Apache-2.0
"""Figures of errors, over all elements."""

from __future__ import annotations

import numpy as np

from .arrays import Array


def mean(values: Array) -> float:
    return float(values.mean()) if values.size else 0.0


def relative_errors(error: Array, golden: Array) -> Array:
    """The shift keeps those of golden values near 0 finite."""
    return error / (np.abs(golden) + 1e-7)


def errors_over(got: Array, golden: Array) -> dict[str, float]:
    error = np.abs(got - golden)
    relative = relative_errors(error, golden)
    return {
        "MARE": float(relative.max(initial=0)),
        "MERE": mean(relative),
        "RMSE": float(np.sqrt(mean(error * error))),
    }


def ratio(mine: float, theirs: float) -> float:
    """0/0 is 1: both are exact."""
    if theirs == 0:
        return 1.0 if mine == 0 else float("inf")
    return mine / theirs
