# SPDX-License-Identifier: Apache-2.0
"""Kernels as one writes them, computed in FLOAT."""

import numpy as np

F = np.float32
np.seterr(all="ignore")


def elu_backward(grad_output, alpha, scale, input_scale, is_result, x):
    g, x = grad_output.astype(F), x.astype(F)
    coefficient = F(alpha) * F(scale)
    if is_result:
        low = g * F(input_scale) * (x + coefficient)
    else:
        low = g * F(input_scale) * coefficient * np.exp(x * F(input_scale))
    return np.where(x > 0, g * F(scale), low).astype(grad_output.dtype)


def logit(x, eps):
    wide, eps = x.astype(F), F(eps)
    if not eps < 0:
        wide = np.maximum(eps, np.minimum(wide, F(1) - eps))
    return np.log(wide / (F(1) - wide)).astype(x.dtype)


def logit_grad(x, dy, eps):
    wide, g, low = x.astype(F), dy.astype(F), F(max(eps, 0))
    if not eps < 1:
        special = {1.0: np.copysign(np.full_like(g, np.inf), g), np.inf: np.zeros_like(g)}
        return special.get(eps, np.full_like(g, np.nan)).astype(x.dtype)
    outside = (wide < low) | (wide > F(1) - low)
    return np.where(outside, F(np.nan if eps < 0 else 0), g / (wide * (F(1) - wide))).astype(
        x.dtype
    )


def group_norm_swish(x, gamma, beta, num_groups, eps, activate_swish, swish_scale):
    """Terms are added one after the other."""
    wide, channels = x.astype(F), (1, -1, *[1] * (x.ndim - 2))
    groups = wide.reshape(len(x), num_groups, -1)

    def mean_of(terms):
        return np.cumsum(terms, axis=-1, dtype=F)[..., -1] / F(terms.shape[-1])

    mean = mean_of(groups)
    centred = groups - mean[..., None]
    rstd = F(1) / np.sqrt(mean_of(centred * centred) + F(eps))
    y = (centred * rstd[..., None]).reshape(x.shape) * gamma.astype(F).reshape(channels)
    y += beta.astype(F).reshape(channels)
    if activate_swish:
        y = y / (F(1) + np.exp(-F(swish_scale) * y))
    return y.astype(x.dtype), mean.astype(gamma.dtype), rstd.astype(gamma.dtype)
