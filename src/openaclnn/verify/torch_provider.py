# SPDX-License-Identifier: Apache-2.0
"""Eager PyTorch on the CPU: the ATen operators that a row stands for.

torch has no fused GroupNormSwish: its forward is native_group_norm and a swish of small operators,
its gradient those of the two in turn.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import numpy_dtype
from ..reference.layouts import CASE_LAYOUTS
from .cases import Case
from .provider import BadProvider, Outcome

Tensors = Sequence[Any]
Attributes = Mapping[str, Any]


def _elu(aten: Any, t: Tensors, a: Attributes) -> Any:
    return aten.elu(t[0], a["alpha"], a["scale"], a["input_scale"])


def _elu_backward(aten: Any, t: Tensors, a: Attributes) -> Any:
    rates = (a["alpha"], a["scale"], a["input_scale"], a["is_result"])
    return aten.elu_backward(t[0], *rates, t[1])


def _sizes(x: Any) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def _dense(x: Any) -> Any:
    """In one of the two layouts that native_group_norm takes."""
    if x.dim() != 4:
        return x.contiguous()
    last = importlib.import_module("torch").channels_last
    return x if x.is_contiguous(memory_format=last) else x.contiguous()


def _swish(v: Any, scale: float) -> Any:
    return v * (v * scale).sigmoid()


def _group_norm(aten: Any, t: Tensors, a: Attributes) -> Any:
    x, gamma, beta = _dense(t[0]), t[1].contiguous(), t[2].contiguous()
    y, mean, rstd = aten.native_group_norm(x, gamma, beta, *_sizes(x), a["num_groups"], a["eps"])
    return (_swish(y, a["swish_scale"]) if a["activate_swish"] else y), mean, rstd


def _group_norm_grad(aten: Any, t: Tensors, a: Attributes) -> Any:
    x, dy = _dense(t[3]), t[0].contiguous()
    mean, rstd, gamma, beta = (t[i].contiguous() for i in (1, 2, 4, 5))
    groups, (n, c, hw) = a["num_groups"], _sizes(x)
    by_group = (n, groups, 1, 1)
    by_channel = (1, groups, c // groups, 1)
    h = (x.reshape(n, groups, c // groups, hw) - mean.reshape(by_group)) * rstd.reshape(by_group)
    v = h * gamma.reshape(by_channel) + beta.reshape(by_channel)
    s = (v * a["swish_scale"]).sigmoid()
    du = dy.reshape(v.shape) * s * (1 + a["swish_scale"] * v * (1 - s))
    du = du.reshape(x.shape)
    if not x.is_contiguous():
        du = du.contiguous(memory_format=importlib.import_module("torch").channels_last)
    backward = aten.native_group_norm_backward
    return backward(du, x, mean, rstd, gamma, n, c, hw, groups, [True] * 3)


CALLS: dict[str, Callable[[Any, Tensors, Attributes], Any]] = {
    "leaky_relu": lambda aten, t, a: aten.leaky_relu(t[0], a["negative_slope"]),
    "leaky_relu_backward": lambda aten, t, a: aten.leaky_relu_backward(
        t[0], t[1], a["negative_slope"], a["self_is_result"]
    ),
    "elu": _elu,
    "elu_backward": _elu_backward,
    "hardshrink": lambda aten, t, a: aten.hardshrink(t[0], a["lambd"]),
    "hardshrink_backward": lambda aten, t, a: aten.hardshrink_backward(t[0], t[1], a["lambd"]),
    "logit": lambda aten, t, a: aten.logit(t[0], None if a["eps"] < 0 else a["eps"]),
    "logit_grad": lambda aten, t, a: aten.logit_backward(
        t[1], t[0], None if a["eps"] < 0 else a["eps"]
    ),
    "group_norm_swish": _group_norm,
    "group_norm_swish_grad": _group_norm_grad,
}


class TorchProvider:
    """In this process; `torch` is imported here and nowhere else."""

    name = "torch"
    alone_too = True  # each call again with one thread

    def __init__(self) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
        except ModuleNotFoundError:
            raise BadProvider("torch must be installed to be verified: pip install torch") from None

    def missing(self, case: Case) -> str:
        if case.op.kernel not in CALLS:
            return f"torch has no {case.op.kernel}"
        if case.mistake:
            return "torch has no status codes"
        if case.alias:
            return "torch's operators make their outputs"
        if case.out or case.companion:
            return "torch's operators keep one dtype"
        return ""

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome:
        """With all threads, then with one (`alone_too`): the bits must be the same."""
        threads = self._torch.get_num_threads()
        try:
            results = self._results(case, inputs)
            if threads > 1 and self.alone_too:
                self._torch.set_num_threads(1)
                alone = self._results(case, inputs)
                if differing := differing_bits(case, results, alone):
                    sentence = f"the bits differ between 1 and {threads} threads: {differing}"
                    return Outcome(None, "unsteady", sentence)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            return Outcome(None, "refused", first_lines(error))
        finally:
            self._torch.set_num_threads(threads)
        return Outcome(results)

    def _results(self, case: Case, inputs: Sequence[Array]) -> tuple[Array, ...]:
        placed = zip(inputs, case.input_layouts, strict=True)
        tensors = [self._tensor(CASE_LAYOUTS[layout](x)) for x, layout in placed]
        with self._torch.no_grad():
            found = self._call(case, tensors)
        several = found if isinstance(found, tuple) else (found,)
        kinds = zip(several, case.output_dtypes, strict=True)
        results = [self._array(y, dtype) for y, dtype in kinds]
        for i, p in enumerate(case.op.outputs):  # statistics may come as (N, groups) of one axis
            if p.companion and case.op.python == "group_norm_swish" and i > 0:
                results[i] = results[i].reshape(inputs[0].shape[0], -1)
        return tuple(results)

    def _call(self, case: Case, tensors: Tensors) -> Any:
        return CALLS[case.op.kernel](self._torch.ops.aten, tensors, case.attributes)

    def close(self) -> None:
        pass

    def _tensor(self, x: Array) -> Any:
        if x.dtype == np.dtype("V2") or x.dtype.name == "bfloat16":
            return self._torch.from_numpy(x.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(x)

    def _array(self, y: Any, dtype: str) -> Array:
        here = y.detach().contiguous()
        found: Array
        if here.dtype == self._torch.bfloat16:
            found = here.view(self._torch.int16).numpy().view(numpy_dtype("BFLOAT16"))
        else:
            found = here.numpy()
        return found if found.dtype == numpy_dtype(dtype) else found.astype(numpy_dtype(dtype))


def first_lines(error: Exception) -> str:
    """The first line, and that in which torch.compile says why."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    why = next((line.strip() for line in lines if line.strip().startswith("Explanation: ")), "")
    return f"{lines[0]} {why}".strip()


def differing_bits(case: Case, one: Sequence[Array], other: Sequence[Array]) -> str:
    """How many elements of which outputs."""
    counts = [np.count_nonzero(bits_of(a) != bits_of(b)) for a, b in zip(one, other, strict=True)]
    named = zip(counts, one, case.op.outputs, strict=True)
    return ", ".join(f"{n:,} of {y.size:,} in {p.result_name}" for n, y, p in named if n)


def bits_of(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
