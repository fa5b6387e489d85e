# SPDX-License-Identifier: Apache-2.0
"""Figures of errors, over all elements."""

from __future__ import annotations

import numpy as np

from .evaluation import Array


def mean(values: Array) -> float:
    return float(values.mean()) if values.size else 0.0


def errors_over(got: Array, golden: Array) -> dict[str, float]:
    error = np.abs(got - golden)
    relative = error / (np.abs(golden) + 1e-7)
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
