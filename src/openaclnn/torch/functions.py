# SPDX-License-Identifier: Apache-2.0
"""The functions of torch.nn.functional and torch.special that the operators compute."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .explaining import explained
from .scalars import plain_number

ops = torch.ops.openaclnn


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """torch.nn.functional.leaky_relu."""
    function = ops.leaky_relu_.default if inplace else ops.leaky_relu.default
    try:
        result: Tensor = function(input, plain_number(negative_slope))
    except Exception as error:
        raise explained(error, leaky_relu, input, negative_slope, inplace) from None
    return result


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """torch.nn.functional.elu."""
    function = ops.elu_.default if inplace else ops.elu.default
    try:
        result: Tensor = function(input, plain_number(alpha))
    except Exception as error:
        raise explained(error, elu, input, alpha, inplace) from None
    return result


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """torch.nn.functional.hardshrink."""
    try:
        result: Tensor = ops.hardshrink.default(input, plain_number(lambd))
    except Exception as error:
        raise explained(error, hardshrink, input, lambd) from None
    return result


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """torch.special.logit."""
    try:
        result: Tensor = ops.logit.default(input, -1.0 if eps is None else plain_number(eps))
    except Exception as error:
        raise explained(error, logit, input, eps) from None
    return result


def _wide(x: Tensor, input: Tensor) -> Tensor:
    """In float64 beside a float64 input, else in float32."""
    return x.to(torch.float64 if input.dtype == torch.float64 else torch.float32)


torch.fx.wrap("_wide")  # a leaf of traces, whose proxies have no dtype to ask


def _is_empty(input: Tensor) -> bool:
    """Whether it surely is: traces know no sizes, and torch.compile not those that data give."""
    if torch.compiler.is_compiling():
        from torch.fx.experimental.symbolic_shapes import guard_or_false  # sympy comes with it

        return bool(guard_or_false(input.numel() == 0))
    if torch.jit.is_tracing() or not isinstance(input, Tensor):
        return False
    return bool(input.numel() == 0)


def group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    swish_scale: float = 1.0,
) -> Tensor:
    """silu(group_norm(input, num_groups, weight, bias, eps)) in one pass, and its gradient in one.

    With swish_scale s the activation is v / (1 + exp(-s * v)). The mean and the reciprocal of the
    deviation are kept for the gradient in float32, also where weight and bias are of 16 bits.
    """
    try:
        groups, epsilon, scale = map(plain_number, (num_groups, eps, swish_scale))
        if weight is None:
            weight = input.new_ones(input.shape[1], dtype=torch.float32)
        if bias is None:
            bias = input.new_zeros(input.shape[1], dtype=torch.float32)
        if _is_empty(input):  # aclnnGroupNormSwish refuses it
            weight, bias = weight.to(input.dtype), bias.to(input.dtype)
            return functional.silu(functional.group_norm(input, groups, weight, bias, epsilon))
        weight, bias = _wide(weight, input), _wide(bias, input)
        compute = _recomputed if _is_trained_by_dynamo() else _activated
        return compute(input, weight, bias, groups, epsilon, scale)
    except Exception as error:
        given = input, num_groups, weight, bias, eps, swish_scale
        raise explained(error, group_norm_swish, *given) from None


def _activated(
    input: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float, scale: float
) -> Tensor:
    results: tuple[Tensor, ...] = ops.group_norm_swish.default(
        input, weight, bias, groups, None, eps, True, scale
    )
    return results[0]


def _is_trained_by_dynamo() -> bool:
    """Whether a checkpoint may stand here: torch.func.grad refuses them."""
    compiler = torch.compiler
    if not compiler.is_dynamo_compiling() or compiler.is_exporting():
        return False
    return torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()


def _recomputed(*arguments: Any) -> Tensor:
    """In the backward pass again, as torch.compile does with its own norms: the result, which the
    next layer takes, is not kept. The compiler recomputes a custom operator only in a checkpoint.
    """
    result: Tensor = checkpoint(
        _activated, *arguments, use_reentrant=False, preserve_rng_state=False
    )
    return result
