# SPDX-License-Identifier: Apache-2.0
"""The element-wise rows in torch: the fastest way from Python into its CPU kernels."""

from __future__ import annotations

from functools import partial
from types import ModuleType

from .baseline import Attributes, Baseline, Call, Tensors


def torch_leaky_relu(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch._C._nn.leaky_relu, t["x"], a["negative_slope"], out=t["out"])


def torch_leaky_relu_(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch._C._nn.leaky_relu_, t["x"], a["negative_slope"])


def torch_leaky_relu_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.leaky_relu_backward.grad_input
    slope, is_result = a["negative_slope"], a["self_is_result"]
    return partial(backward, t["grad_output"], t["x"], slope, is_result, grad_input=t["out"])


def torch_elu(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    rates = a["alpha"], a["scale"], a["input_scale"]
    return partial(torch.ops.aten.elu.out, t["x"], *rates, out=t["out"])


def torch_elu_(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch.ops.aten.elu_, t["x"], a["alpha"], a["scale"], a["input_scale"])


def torch_elu_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.elu_backward.grad_input
    rates = a["alpha"], a["scale"], a["input_scale"], a["is_result"]
    return partial(backward, t["grad_output"], *rates, t["self_or_result"], grad_input=t["out"])


def torch_hardshrink(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch.ops.aten.hardshrink.out, t["x"], a["lambd"], out=t["out"])


def torch_hardshrink_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.hardshrink_backward.grad_input
    return partial(backward, t["grad_output"], t["x"], a["lambd"], grad_input=t["out"])


def torch_logit(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    eps = None if a["eps"] < 0 else a["eps"]
    return partial(torch.ops.aten.logit.out, t["input"], eps, out=t["out"])


def torch_logit_grad(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    eps = None if a["eps"] < 0 else a["eps"]
    backward = torch.ops.aten.logit_backward.grad_input
    return partial(backward, t["dy"], t["x"], eps, grad_input=t["out"])


BASELINES: dict[str, Baseline] = {
    "leaky_relu": Baseline(torch_leaky_relu),
    "leaky_relu_": Baseline(torch_leaky_relu_, timed={"negative_slope": 1.0}),
    "leaky_relu_backward": Baseline(torch_leaky_relu_backward),
    "elu": Baseline(torch_elu),
    "elu_": Baseline(torch_elu_),
    "elu_backward": Baseline(torch_elu_backward),
    "hardshrink": Baseline(torch_hardshrink),
    "hardshrink_backward": Baseline(torch_hardshrink_backward),
    "logit": Baseline(torch_logit, cancels_below=1.0),
    "logit_grad": Baseline(torch_logit_grad),
}
