# SPDX-License-Identifier: Apache-2.0
"""The same work by compilers: torch.compile and JAX, where they are installed.

torch's compiled function writes into "out", as the others do; JAX gives back a new array each time.
A row without an entry has no such column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Tensors = Mapping[str, Any]
Attributes = Mapping[str, Any]
Formula = Callable[..., Any]  # of the inputs, in the order of the row


def rates(a: Attributes) -> tuple[float, float, float]:
    return a["alpha"], a["scale"], a["input_scale"]


# ---- torch: its own operators, which the compiler takes apart ----

TORCH: dict[str, Callable[[Any, Attributes], Formula]] = {
    "leaky_relu": lambda o, a: lambda x: o.leaky_relu(x, a["negative_slope"]),
    "leaky_relu_backward": lambda o, a: (
        lambda g, x: o.leaky_relu_backward(g, x, a["negative_slope"], a["self_is_result"])
    ),
    "elu": lambda o, a: lambda x: o.elu(x, *rates(a)),
    "elu_backward": lambda o, a: lambda g, x: o.elu_backward(g, *rates(a), a["is_result"], x),
    "hardshrink": lambda o, a: lambda x: o.hardshrink(x, a["lambd"]),
    # its own operator is refused: no symbolic shapes (torch 2.13)
    "hardshrink_backward": lambda o, a: lambda g, x: o.where(o.abs(x) <= a["lambd"], 0.0, g),
    "logit": lambda o, a: lambda x: o.logit(x, a["eps"]),
    "logit_grad": lambda o, a: lambda x, dy: o.logit_backward(dy, x, a["eps"]),
}


@functools.cache
def _torch_function(torch: Any, name: str, dtype: Any, attributes: tuple[Any, ...]) -> Formula:
    """For all sizes: compiling takes a second, the first time twenty."""
    torch._dynamo.config.recompile_limit = 256  # counted for the one lambda of all rows and dtypes
    formula = TORCH[name](torch.ops.aten, dict(attributes))
    function: Formula = torch.compile(
        lambda out, *inputs: out.copy_(formula(*inputs)), dynamic=True, fullgraph=True
    )
    return function


def compiled(torch: Any, name: str, t: Tensors, a: Attributes) -> Callable[[], Any]:
    inputs = [x for key, x in t.items() if key != "out"]
    function = _torch_function(torch, name, inputs[0].dtype, tuple(a.items()))
    return partial(function, t["out"], *inputs)


# ---- JAX: the formulas ----


def _elu(n: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    return n.where(x > 0, x * scale, n.expm1(n.minimum(x, 0) * rate) * (alpha * scale))


def _elu_backward(n: Any, g: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    factor = n.exp(n.minimum(x, 0) * rate) * (alpha * scale * rate)
    return g * n.where(x > 0, scale, factor)


def _logit(n: Any, x: Any, eps: float) -> Any:
    z = n.clip(x, eps, 1 - eps)
    return n.log(z / (1 - z))


def _logit_grad(n: Any, x: Any, dy: Any, eps: float) -> Any:
    return n.where((x < eps) | (x > 1 - eps), 0, dy / (x * (1 - x)))


# n is jax.numpy; sets with is_result, or eps < 0, are not timed
JAX: dict[str, Callable[[Any, Attributes], Formula]] = {
    "leaky_relu": lambda n, a: lambda x: n.where(x > 0, x, x * a["negative_slope"]),
    "leaky_relu_backward": lambda n, a: lambda g, x: n.where(x > 0, g, g * a["negative_slope"]),
    "elu": lambda n, a: lambda x: _elu(n, x, *rates(a)),
    "elu_backward": lambda n, a: lambda g, x: _elu_backward(n, g, x, *rates(a)),
    "hardshrink": lambda n, a: lambda x: n.where(abs(x) <= a["lambd"], 0, x),
    "hardshrink_backward": lambda n, a: lambda g, x: n.where(abs(x) <= a["lambd"], 0, g),
    "logit": lambda n, a: lambda x: _logit(n, x, a["eps"]),
    "logit_grad": lambda n, a: lambda x, dy: _logit_grad(n, x, dy, a["eps"]),
}


@functools.cache
def _jax_function(jax: Any, name: str, attributes: tuple[Any, ...]) -> Formula:
    function: Formula = jax.jit(JAX[name](jax.numpy, dict(attributes)))
    return function


def jax_call(jax: Any, name: str, t: Tensors, a: Attributes) -> Callable[[], Any]:
    inputs = [jax.numpy.asarray(x) for key, x in t.items() if key != "out"]
    function = _jax_function(jax, name, tuple(a.items()))
    return lambda: function(*inputs).block_until_ready()
