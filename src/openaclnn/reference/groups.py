# SPDX-License-Identifier: Apache-2.0
"""Parts of a tensor (N, C, …) that group norm treats alike, and the logistic function."""

from __future__ import annotations

import numpy as np

from .arrays import Array

# Of the forward whose mean and rstd the gradient gets; the gradient row has no eps.
EPS = 1e-5


def grouped(x: Array, groups: int) -> Array:
    """(samples, groups, everything of a group)."""
    return x.reshape(x.shape[0], groups, -1)


def by_channel(x: Array, like: Array) -> Array:
    """One value for each channel, or for each sample and channel, beside `like`."""
    return x.reshape(*x.shape, *(1,) * (like.ndim - 2))


def by_group(x: Array, groups: int, like: Array) -> Array:
    channels = np.repeat(x.reshape(like.shape[0], groups), like.shape[1] // groups, axis=1)
    return by_channel(channels, like)


def logistic(t: Array) -> Array:
    """1 / (1 + exp(-t)), with all digits where it is small too."""
    e = np.exp(-np.abs(t))
    value: Array = np.where(t < 0, e, 1) / (1 + e)
    return value
