# SPDX-License-Identifier: Apache-2.0
"""One operator, or one call, on npu and on the CPU: why the results differ, or what was raised."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch.testing._internal.common_utils import SEED
from torch.utils._pytree import tree_flatten, tree_map

DRAWN = re.compile(
    r"^(cauchy|exponential|geometric|log_normal|normal|uniform|multinomial|bernoulli"
    r"|rand(n|int)?(_like)?|(svd|pca)_lowrank"
    r"|nn\.functional\.(rrelu|fractional_max_pool.d|(feature_)?(alpha_)?dropout[23d]*))"
    r"(\.(?!without_train)|$)"
)
# Where a sample says how much is dropped, nothing is: then values can be compared.
DROPPED = {
    "nn.functional.scaled_dot_product_attention": lambda s: s.kwargs.update(dropout_p=0.0),
    "nn.functional.multi_head_attention_forward": lambda s: s.kwargs.update(training=False),
}
MEMORY = re.compile(r"^(new_)?empty|empty_like|^uninitialized|empty_strided|empty_permuted|resize")
ATTENTION = "attention"
# PyTorch's samples make the tensors of indices on the CPU for every device, where ATen wants them.
ARGUMENTS_ON_CPU = {"tensor_split"}


def moved(value: Any, device: str) -> Any:
    def move(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.detach().to(device).requires_grad_(x.requires_grad)
        if isinstance(x, torch.device) or x == "cpu":
            return torch.device(device)
        return x

    return tree_map(move, value)


def tensors(value: Any) -> list[torch.Tensor]:
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def gradients(results: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Gradients of a weighted sum; after a normalisation those of a plain sum are only rounding."""
    total = 0
    for root in (r for r in results if r.requires_grad):
        weights = torch.linspace(0.5, 1.5, root.numel()).reshape(root.shape).to(root.device)
        total = total + ((root.abs() if root.is_complex() else root) * weights).sum()
    found = torch.autograd.grad(total, inputs, allow_unused=True)
    return [g for g in found if g is not None]


def only_shapes(name: str) -> bool:
    return bool(DRAWN.search(name) or MEMORY.search(name))


def compare(name: str, got: list[torch.Tensor], want: list[torch.Tensor]) -> None:
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} results, not {len(want)}")
    for g, w in zip(got, want, strict=True):
        g = g.detach().cpu()
        if g.shape != w.shape or g.dtype != w.dtype:
            raise AssertionError(f"{g.dtype} {list(g.shape)}, not {w.dtype} {list(w.shape)}")
        if not only_shapes(name):
            # 16-bit results of sums that cancel differ by what their terms are rounded to.
            sixteen = w.dtype in (torch.float16, torch.bfloat16) and name == ATTENTION
            bounds = {"rtol": 1e-2, "atol": 4e-3} if sixteen else {}
            torch.testing.assert_close(g, w.detach(), equal_nan=True, **bounds)


def arguments_of(op: Any, sample: Any, device: str) -> tuple[Any, Any, Any]:
    of_rest = "cpu" if op.name in ARGUMENTS_ON_CPU else device
    return moved(sample.input, device), moved(sample.args, of_rest), moved(sample.kwargs, of_rest)


NARROW = (torch.float32, torch.float16, torch.bfloat16)


def in_double(sample: Any) -> Any:
    def widened(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dtype not in NARROW:
            return x
        return x.detach().double().requires_grad_(x.requires_grad)

    return sample.transform(widened)


def as_near(got: list[Any], want: list[Any], exact: list[Any]) -> bool:
    """Whether no error on npu is more than twice the CPU's, both against float64: the sums of both
    devices are rounded, each in its own order.
    """
    for g, w, e in zip(got, want, exact, strict=True):
        if g.shape != w.shape or g.dtype != w.dtype:
            return False
        if not w.numel() or not w.is_floating_point():
            if not torch.equal(g.detach().cpu(), w):
                return False
            continue
        errors = [(t.detach().cpu().double() - e).abs().max() for t in (g, w)]
        if not errors[0] <= 2 * errors[1]:
            return False
    return True


def run(op: Any, sample: Any, device: str, backward: bool) -> tuple[list[Any], list[Any]]:
    given, args, kwargs = arguments_of(op, sample, device)
    result = op.op(given, *args, **kwargs)
    results = tensors(result)
    if not backward:
        return results, []
    inputs = [t for t in tensors((given, args, kwargs)) if t.requires_grad]
    return results, gradients(results, inputs)


def run_inplace(op: Any, sample: Any, device: str) -> tuple[list[Any], list[Any]]:
    given, args, kwargs = arguments_of(op, sample, device)
    given = given.clone()
    op.inplace_variant(given, *args, **kwargs)
    return [given], []


def seed(number: int = 0) -> None:
    """torch.manual_seed would format the stack for each kind of device that is not there."""
    generators = (random.seed, numpy.random.seed, torch.default_generator.manual_seed)
    for start in (*generators, torch.npu.manual_seed):
        start(number)


def samples_of(op: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
    """The samples of op.sample_inputs, which searches the stack for a test: 0.1 s each time where
    Python was started with -m.
    """
    seed()  # what makes all samples at once does not depend on what ran before
    samples = iter(op.sample_inputs_func(op, "cpu", dtype, requires_grad))
    while True:
        seed(SEED)
        try:
            sample = next(samples)
        except StopIteration:
            return
        yield sample


def attempt(op: Any, dtype: torch.dtype, samples: int, direction: str) -> str | None:
    """Why the operator fails on npu; None when it does not. Unusable when the CPU fails."""
    name = f"{op.name}.{op.variant_test_name}"
    used = 0
    backward = direction == "backward"

    def called(sample: Any, device: str) -> tuple[list[Any], list[Any]]:
        seed()
        if direction == "inplace":
            return run_inplace(op, sample, device)
        return run(op, sample, device, backward)

    for sample in samples_of(op, dtype, backward):
        if used == samples:
            break
        DROPPED.get(op.name, lambda _: None)(sample)
        try:
            want = called(sample, "cpu")
            if backward and not want[1]:
                continue
        except Exception:
            continue  # the CPU does not have it either
        used += 1
        try:
            got = called(sample, "npu")
            try:
                compare(name, got[0], want[0])
                compare(name, got[1], want[1])
            except AssertionError:
                if dtype not in NARROW:
                    raise
                exact = called(in_double(sample), "cpu")
                if not as_near(got[0] + got[1], want[0] + want[1], exact[0] + exact[1]):
                    raise
        except Exception as error:
            return reason(str(error) or type(error).__name__)
    if used == 0:
        raise LookupError
    return None


# A refusal of core/torch/aten/products.cpp, without what would be accepted.
REFUSED = re.compile(
    r"(aclnn\w+: \S+) must have (dtype|the dtype of \w+|[\d, or t]+ dims)\b.* (?:got|shape) "
    r"(\w+|\[[^]]*\]); OPENACLNN_PRODUCT=any"
)


def reason(text: str) -> str:
    if refused := REFUSED.search(text):
        subject, what, found = refused.groups()
        if "dims" in what:
            return f"{subject} has {found.count(',') + (found != '[]')} dims, not {what}"
        return f"{subject} is {found}" + (f", not {what}" if what != "dtype" else "")
    for pattern in (
        r"opType \w+ is not supported",
        r"aclnn\w+: .*",
        r"aclnn\w+ not in .*?[,\n]",
        r"Mismatched elements.*",
        r"NotImplementedError.*",
    ):
        if found := re.search(pattern, text):
            return found[0][:160]
    return " ".join(text.split())[:160]


def attempt_call(name: str, call: Callable[[str], Any]) -> str | None:
    """The same of a call of calls.py."""
    seed()
    want = tensors(call("cpu"))
    try:
        compare(ATTENTION if name.startswith(ATTENTION) else "", tensors(call("npu")), want)
    except Exception as error:
        return reason(str(error) or type(error).__name__)
    return None
