# SPDX-License-Identifier: Apache-2.0
"""How torch and NumPy do what the element-wise rows do: the fastest way that Python has into
torch's CPU kernels, and the ufuncs of NumPy."""

from __future__ import annotations

from functools import partial
from types import ModuleType

import numpy as np

from .baseline import Attributes, Baseline, Call, Tensors


def torch_leaky_relu(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch._C._nn.leaky_relu, t["x"], a["negative_slope"], out=t["out"])


def torch_leaky_relu_(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch._C._nn.leaky_relu_, t["x"], a["negative_slope"])


def torch_leaky_relu_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.leaky_relu_backward.grad_input
    slope, is_result = a["negative_slope"], a["self_is_result"]
    return partial(backward, t["grad_output"], t["x"], slope, is_result, grad_input=t["out"])


def numpy_leaky_relu(t: Tensors, a: Attributes) -> Call:
    x, out, slope = t["x"], t["out"], a["negative_slope"]

    def call() -> None:  # for slopes up to 1
        np.multiply(x, slope, out=out)
        np.maximum(x, out, out=out)

    return call


def numpy_leaky_relu_(t: Tensors, a: Attributes) -> Call:
    x, slope, scaled = t["x"], a["negative_slope"], np.empty_like(t["x"])

    def call() -> None:
        np.multiply(x, slope, out=scaled)
        np.maximum(x, scaled, out=x)

    return call


def numpy_leaky_relu_backward(t: Tensors, a: Attributes) -> Call:
    g, x, out, slope = t["grad_output"], t["x"], t["out"], a["negative_slope"]
    positive = np.empty(x.shape, bool)

    def call() -> None:
        np.greater(x, 0, out=positive)
        np.multiply(g, slope, out=out)
        np.copyto(out, g, where=positive)

    return call


def torch_elu(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    rates = a["alpha"], a["scale"], a["input_scale"]
    return partial(torch.ops.aten.elu.out, t["x"], *rates, out=t["out"])


def torch_elu_(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch.ops.aten.elu_, t["x"], a["alpha"], a["scale"], a["input_scale"])


def torch_elu_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.elu_backward.grad_input
    rates = a["alpha"], a["scale"], a["input_scale"], a["is_result"]
    return partial(backward, t["grad_output"], *rates, t["self_or_result"], grad_input=t["out"])


def numpy_elu(t: Tensors, a: Attributes) -> Call:
    x, out = t["x"], t.get("out", t["x"])
    alpha, scale, rate = a["alpha"], a["scale"], a["input_scale"]
    negative, positive = np.empty_like(x), np.empty(x.shape, bool)

    def call() -> None:
        np.greater(x, 0, out=positive)
        np.multiply(x, rate, out=negative)
        np.minimum(negative, 0, out=negative)
        np.expm1(negative, out=negative)
        np.multiply(negative, scale * alpha, out=negative)
        np.multiply(x, scale, out=out)
        np.copyto(out, negative, where=~positive)

    return call


def numpy_elu_backward(t: Tensors, a: Attributes) -> Call:
    g, x, out = t["grad_output"], t["self_or_result"], t["out"]
    alpha, scale, rate = a["alpha"], a["scale"], a["input_scale"]
    factor = np.empty_like(x)

    def call() -> None:
        np.minimum(x, 0, out=factor)
        np.multiply(factor, rate, out=factor)
        np.exp(factor, out=factor)
        np.multiply(factor, alpha * scale * rate, out=factor)
        np.copyto(factor, scale, where=x > 0)
        np.multiply(g, factor, out=out)

    return call


def torch_hardshrink(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    return partial(torch.ops.aten.hardshrink.out, t["x"], a["lambd"], out=t["out"])


def torch_hardshrink_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    backward = torch.ops.aten.hardshrink_backward.grad_input
    return partial(backward, t["grad_output"], t["x"], a["lambd"], grad_input=t["out"])


def numpy_hardshrink(t: Tensors, a: Attributes) -> Call:
    source, x, out, lambd = t.get("grad_output", t["x"]), t["x"], t["out"], a["lambd"]
    size, large = np.empty_like(x), np.empty(x.shape, bool)

    def call() -> None:
        np.abs(x, out=size)
        np.greater(size, lambd, out=large)
        np.multiply(source, large, out=out)

    return call


def torch_logit(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    eps = None if a["eps"] < 0 else a["eps"]
    return partial(torch.ops.aten.logit.out, t["input"], eps, out=t["out"])


def torch_logit_grad(torch: ModuleType, t: Tensors, a: Attributes) -> Call:
    eps = None if a["eps"] < 0 else a["eps"]
    backward = torch.ops.aten.logit_backward.grad_input
    return partial(backward, t["dy"], t["x"], eps, grad_input=t["out"])


def numpy_logit(t: Tensors, a: Attributes) -> Call:
    x, out, eps = t["input"], t["out"], a["eps"]
    rest = np.empty_like(x)

    def call() -> None:  # for eps >= 0
        np.clip(x, eps, 1 - eps, out=out)
        np.subtract(1, out, out=rest)
        np.divide(out, rest, out=out)
        np.log(out, out=out)

    return call


def numpy_logit_grad(t: Tensors, a: Attributes) -> Call:
    x, dy, out, eps = t["x"], t["dy"], t["out"], a["eps"]
    odds = np.empty_like(x)

    def call() -> None:  # for eps > 0
        np.subtract(1, x, out=odds)
        np.multiply(x, odds, out=odds)
        np.divide(dy, odds, out=out)
        np.copyto(out, 0, where=(x < eps) | (x > 1 - eps))

    return call


BASELINES: dict[str, Baseline] = {
    "leaky_relu": Baseline(torch_leaky_relu, numpy_leaky_relu),
    "leaky_relu_": Baseline(torch_leaky_relu_, numpy_leaky_relu_, timed={"negative_slope": 1.0}),
    "leaky_relu_backward": Baseline(torch_leaky_relu_backward, numpy_leaky_relu_backward),
    "elu": Baseline(torch_elu, numpy_elu),
    "elu_": Baseline(torch_elu_, numpy_elu),
    "elu_backward": Baseline(torch_elu_backward, numpy_elu_backward),
    "hardshrink": Baseline(torch_hardshrink, numpy_hardshrink),
    "hardshrink_backward": Baseline(torch_hardshrink_backward, numpy_hardshrink),
    "logit": Baseline(torch_logit, numpy_logit, cancels_below=1.0),
    "logit_grad": Baseline(torch_logit_grad, numpy_logit_grad),
}
