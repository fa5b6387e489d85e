# SPDX-License-Identifier: Apache-2.0
"""Calls that PyTorch's table of operators lacks: lists of tensors, fused optimisers, mixed
precision, attention, forms with a number or with out=. Each gets a device and returns tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from tests.npu.opinfo.foreach_calls import drawn, foreach
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def trained(optimiser: Any, device: str, **options: Any) -> list[torch.Tensor]:
    """The parameters after three steps."""
    parameters = [drawn(device, *s).requires_grad_() for s in ((4, 3), (3,))]
    steps = optimiser(parameters, lr=0.01, **options)
    for _ in range(3):
        steps.zero_grad()
        sum((p**2).sum() for p in parameters).backward()
        steps.step()
    return parameters


def scaled(device: str) -> list[torch.Tensor]:
    parameter = drawn(device, 4).requires_grad_()
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    steps = torch.optim.SGD([parameter], lr=0.1)
    for factor in (1.0, float("inf"), 1.0):
        steps.zero_grad()
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(steps)
        scaler.update()
    return [parameter, torch.tensor(scaler.get_scale())]


def attention(device: str, dtype: torch.dtype, causal: bool) -> list[torch.Tensor]:
    q, k, v = ((drawn(device, 2, 2, 8, 16 + i)[..., :16]).to(dtype) for i in range(3))
    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return [out, *torch.autograd.grad(out.float().square().sum(), (q, k, v))]


def recurrent(layer: Any, device: str, *shape: int, packed: bool = False) -> list[torch.Tensor]:
    """Results and all gradients of a layer with its own weights."""
    for i, parameter in enumerate(layer.parameters()):
        parameter.data = drawn("cpu", *parameter.shape, low=-0.5, high=0.5, seed=i)
    layer = layer.to(device)
    x = drawn(device, *shape, low=-1, high=1).requires_grad_()
    given = pack_padded_sequence(x, torch.tensor([5, 3, 2])) if packed else x
    results, last = layer(given)
    if packed:
        results = pad_packed_sequence(results)[0]
    found = [results, *(last if isinstance(last, tuple) else [last])]
    total = sum((t * t.detach().cos()).sum() for t in found)
    # torch_npu takes the gradient of packed inputs from the first rows of the padded one.
    inputs = [*layer.parameters()] if packed else [x, *layer.parameters()]
    return [*found, *torch.autograd.grad(total, inputs)]


def embedding_bag(device: str, mode: str, **options: Any) -> list[torch.Tensor]:
    index = torch.tensor([0, 1, 2, 4, 4], device=device)
    offsets = torch.tensor([0, 2, 5], device=device)
    if not options.get("include_last_offset"):
        offsets = offsets[:2]
    if mode == "weighted":
        mode, options["per_sample_weights"] = "sum", drawn(device, 5)
    return gradient(
        lambda w: F.embedding_bag(index, w, offsets, mode=mode, **options), drawn(device, 5, 3)
    )


def gradient(call: Callable[..., Any], *inputs: torch.Tensor) -> list[torch.Tensor]:
    given = [t.detach().requires_grad_() for t in inputs]
    out = call(*given)
    return [out, *torch.autograd.grad(out.square().sum(), given)]


def npu_rms_norm(device: str) -> list[torch.Tensor]:
    def call(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        if device == "cpu":
            return F.rms_norm(x, [5], gamma, 1e-6)
        return torch.ops.npu.npu_rms_norm(x, gamma, 1e-6)[0]

    return gradient(call, drawn(device, 3, 5), drawn(device, 5))


def npu_gelu(device: str, approximate: str) -> list[torch.Tensor]:
    call = F.gelu if device == "cpu" else torch.ops.npu.npu_gelu
    return gradient(lambda x: call(x, approximate=approximate), drawn(device, 9, low=-3, high=3))


def various() -> Iterator[tuple[str, Callable[[str], Any]]]:
    for name in (
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
    ):
        optimiser = getattr(torch.optim, name)
        yield name, lambda d, o=optimiser: trained(o, d)
        yield f"{name} foreach", lambda d, o=optimiser: trained(o, d, foreach=True)
    yield "AdamW fused", lambda d: trained(torch.optim.AdamW, d, fused=d == "npu")
    yield (
        "AdamW fused amsgrad",
        lambda d: trained(torch.optim.AdamW, d, fused=d == "npu", amsgrad=True),
    )
    yield "GradScaler", scaled
    for kind in (torch.nn.LSTM, torch.nn.GRU):
        for options in (
            {},
            {"bias": False},
            {"bidirectional": True, "num_layers": 2, "batch_first": True},
        ):
            yield (
                f"{kind.__name__} {options}",
                lambda d, k=kind, o=options: recurrent(k(3, 4, **o), d, 5, 3, 3),
            )
    for options in ({}, {"bidirectional": True}):
        yield (
            f"LSTM packed {options}",
            lambda d, o=options: recurrent(torch.nn.LSTM(3, 4, **o), d, 5, 3, 3, packed=True),
        )
    yield "LSTMCell", lambda d: recurrent(torch.nn.LSTMCell(3, 4), d, 2, 3)
    for mode in ("sum", "mean", "max", "weighted"):
        for options in ({}, {"padding_idx": 1}, {"include_last_offset": True}):
            yield (
                f"embedding_bag {mode} {options}",
                lambda d, m=mode, o=options: embedding_bag(d, m, **o),
            )
    for p in (float("inf"), -float("inf"), 0.5, 0, 1, 2, 3):
        yield f"norm {p}", lambda d, p=p: torch.linalg.vector_norm(drawn(d, 3, 4), p, 1)
        if p != 0:  # which is a count
            yield (
                f"norm of all {p}",
                lambda d, p=p: gradient(lambda x: torch.linalg.vector_norm(x, p), drawn(d, 3, 4)),
            )
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for causal in (False, True):
            yield f"attention {dtype} {causal}", lambda d, t=dtype, c=causal: attention(d, t, c)
    ints = lambda d: torch.arange(-4, 8, device=d)  # noqa: E731
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder", "sub", "add", "mul"):
        yield f"{name}_ number", lambda d, n=name: getattr(drawn(d, 3, 4), f"{n}_")(0.5)
        yield f"{name} number", lambda d, n=name: getattr(torch, n)(drawn(d, 3, 4), 0.5)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield f"{name} number", lambda d, n=name: getattr(torch, n)(ints(d), 5)
        yield f"{name}_ number", lambda d, n=name: getattr(ints(d), f"{n}_")(5)
    yield "bitwise_or_", lambda d: ints(d).bitwise_or_(ints(d) + 3)
    yield "bitwise_not_", lambda d: ints(d).bitwise_not_()
    for name in ("abs", "neg", "relu", "round", "sign", "trunc"):
        yield f"{name}_", lambda d, n=name: getattr(drawn(d, 9, low=-3, high=3), f"{n}_")()
    yield "hardswish_", lambda d: F.hardswish(drawn(d, 9, low=-3, high=3), inplace=True)
    yield "hardtanh_", lambda d: F.hardtanh_(drawn(d, 9, low=-3, high=3), -0.5, 0.5)
    yield "hardswish", lambda d: gradient(F.hardswish, drawn(d, 9, low=-3, high=3))
    yield "clamp_max", lambda d: torch.clamp_max(drawn(d, 9), 0.5)
    yield "clamp_max_", lambda d: drawn(d, 9).clamp_max_(0.5)
    yield "clamp_min number", lambda d: torch.clamp_min(drawn(d, 9), 0.5)
    yield "div mode", lambda d: torch.div(drawn(d, 9), 0.3, rounding_mode="trunc")
    yield "div_ mode", lambda d: drawn(d, 9).div_(0.3, rounding_mode="floor")
    yield "floor_divide", lambda d: torch.floor_divide(drawn(d, 9), 0.3)
    yield "floor_divide_", lambda d: drawn(d, 9).floor_divide_(0.3)
    yield "remainder base", lambda d: torch.remainder(7, ints(d) + 20)
    yield "xlogy number", lambda d: torch.xlogy(drawn(d, 9), 0.3)
    yield "mask", lambda d: (lambda x: [x[x > 0], x[:, x[0] > 0]])(drawn(d, 5, 6))
    yield "xlogy_ number", lambda d: drawn(d, 9).xlogy_(torch.tensor(0.3))
    yield "xlogy base", lambda d: torch.xlogy(0.3, drawn(d, 9))
    yield "fill_ tensor", lambda d: torch.empty(3, device=d).fill_(drawn(d, 1)[0])
    yield "fill_diagonal_", lambda d: drawn(d, 4, 4).fill_diagonal_(2)
    yield "addbmm_", lambda d: drawn(d, 3, 5).addbmm_(drawn(d, 2, 3, 4), drawn(d, 2, 4, 5))
    yield "baddbmm_", lambda d: drawn(d, 2, 3, 5).baddbmm_(drawn(d, 2, 3, 4), drawn(d, 2, 4, 5))
    yield "scatter_ number", lambda d: drawn(d, 3, 4).scatter_(1, ints(d)[4:7, None], 2.0)
    yield "index_fill_", lambda d: drawn(d, 3, 4).index_fill_(0, ints(d)[4:6], 2.0)
    yield "index_fill", lambda d: torch.index_fill(drawn(d, 3, 4), 0, ints(d)[4:6], 2.0)
    yield "isin", lambda d: torch.isin(ints(d), 3)
    yield "isin number", lambda d: torch.isin(3, ints(d))
    yield "lerp", lambda d: torch.lerp(drawn(d, 4), drawn(d, 4) + 1, drawn(d, 4))
    yield "gelu tanh", lambda d: gradient(lambda x: F.gelu(x, approximate="tanh"), drawn(d, 9))
    yield "outer", lambda d: torch.outer(drawn(d, 3), drawn(d, 4))
    yield "ger", lambda d: torch.ger(drawn(d, 3), drawn(d, 4))
    yield "inverse", lambda d: torch.inverse(drawn(d, 3, 3) + 2 * torch.eye(3, device=d))
    yield "logsigmoid", lambda d: gradient(F.logsigmoid, drawn(d, 9, low=-3, high=3))
    yield "median dim", lambda d: list(torch.median(drawn(d, 3, 5), 1))
    yield "prod dim", lambda d: torch.prod(drawn(d, 3, 5), 1)
    yield (
        "nll_loss2d",
        lambda d: gradient(
            lambda x: F.nll_loss(x, torch.ones(2, 4, 4, dtype=torch.long, device=d)),
            drawn(d, 2, 3, 4, 4),
        ),
    )
    yield "randperm", lambda d: torch.sort(torch.randperm(20, device=d))[0]
    yield "range", lambda d: torch.range(1, 5, 0.5, device=d)
    yield "bucketize", lambda d: torch.bucketize(drawn(d, 9), drawn(d, 4).sort()[0])
    yield "searchsorted number", lambda d: torch.searchsorted(drawn(d, 5).sort()[0], 0.5)
    yield (
        "affine_grid",
        lambda d: F.affine_grid(drawn(d, 2, 2, 3), [2, 1, 3, 4], align_corners=False),
    )
    yield "argsort", lambda d: torch.argsort(drawn(d, 3, 5), dim=1)
    yield "repeat_interleave", lambda d: torch.repeat_interleave(drawn(d, 3, 2), ints(d)[5:8], 0)
    yield "repeat_interleave number", lambda d: torch.repeat_interleave(drawn(d, 3, 2), 3, 1)
    yield "repeat_interleave all", lambda d: torch.repeat_interleave(drawn(d, 3), ints(d)[5:8])
    yield "var", lambda d: torch.var(drawn(d, 3, 5), 1, unbiased=False)
    yield "normal", lambda d: torch.normal(0.0, drawn(d, 5)).shape[0] * torch.ones(1)
    yield "bernoulli_", lambda d: torch.empty(50, device=d).bernoulli_(1.0)
    yield "dropout", lambda d: F.dropout(drawn(d, 50), 0.0, True)
    yield "unfold", lambda d: gradient(lambda x: x.unfold(0, 3, 2), drawn(d, 9))
    yield "_chunk_cat", lambda d: torch._chunk_cat([drawn(d, 3, 2), drawn(d, 5, 2)], 0, 2)
    yield "rms_norm", lambda d: gradient(lambda x: F.rms_norm(x, [5]), drawn(d, 3, 5))
    yield "npu_rms_norm", npu_rms_norm
    for approximate in ("none", "tanh"):
        yield f"npu_gelu {approximate}", lambda d, a=approximate: npu_gelu(d, a)
    yield "real", lambda d: torch.real(torch.complex(drawn(d, 3), drawn(d, 3))).clone()
    for size, pad in ((2, (1, 2, 1, 1)), (3, (1, 1, 1, 1, 1, 1))):
        shape = (1, 2, *((4,) * size))
        for mode in ("reflect", "replicate"):
            yield (
                f"pad {mode} {size}",
                lambda d, s=shape, p=pad, m=mode: gradient(
                    lambda x: F.pad(x, p, mode=m), drawn(d, *s)
                ),
            )
    modes = {
        1: ("nearest", "linear", "nearest-exact"),
        2: ("nearest", "bilinear", "bicubic", "nearest-exact"),
        3: ("nearest", "trilinear", "nearest-exact"),
    }
    for size, mode in ((size, mode) for size, several in modes.items() for mode in several):
        shape = (1, 2, *((4,) * size))
        for options in ({"size": (7,) * size}, {"scale_factor": 1.7}):
            yield (
                f"interpolate {mode} {size} {options}",
                lambda d, s=shape, m=mode, o=options: gradient(
                    lambda x: F.interpolate(x, mode=m, **o), drawn(d, *s)
                ),
            )


def calls() -> dict[str, Callable[[str], Any]]:
    found: dict[str, Callable[[str], Any]] = {}
    for name, call in (*foreach(), *various()):
        key = name
        while key in found:
            key += "'"
        found[key] = call
    return found
