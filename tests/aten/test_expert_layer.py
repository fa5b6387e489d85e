# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts: trained through the C functions as in plain torch, and as a C++ program
without Python.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.aten.aten_support import EXAMPLE, STRICT, built, run
from tests.aten.quantised_support import call, random, saturated, torch

Tensor = torch.Tensor
F = torch.nn.functional
TOKENS, WIDTH, INNER, EXPERTS, CHOICES = 48, 16, 24, 6, 2


class Permute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, experts):
        rows, places = call("aclnnMoeTokenPermute", x, experts, 0, False,
                            x.new_empty(experts.numel(), x.shape[1]),
                            torch.empty(experts.numel(), dtype=torch.int32))  # fmt: skip
        ctx.save_for_backward(places)
        ctx.mark_non_differentiable(places)
        return rows, places

    @staticmethod
    def backward(ctx, dy, _):
        (places,) = ctx.saved_tensors
        dx = dy.new_empty(len(dy) // CHOICES, dy.shape[1])
        return call("aclnnMoeTokenPermuteGrad", dy, places, CHOICES, False, dx)[0], None


class Unpermute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, places, probs):
        ctx.save_for_backward(rows, places, probs)
        out = rows.new_empty(len(probs), rows.shape[1])
        return call("aclnnMoeTokenUnpermute", rows, places, probs, False, None, out)[0]

    @staticmethod
    def backward(ctx, dy):
        rows, places, probs = ctx.saved_tensors
        dx, dp = call("aclnnMoeTokenUnpermuteGrad", rows, dy.contiguous(), places, probs, False,
                      None, torch.empty_like(rows), torch.empty_like(probs))  # fmt: skip
        return dx, None, dp


def grouped(x: Tensor, weight: Tensor, ends: Tensor, kind: int, *shape: int) -> Tensor:
    return call("aclnnGroupedMatmulV4", [x], [weight], *[None] * 6, ends, None, None, None, 3, kind,
                0, 0, [x.new_empty(*shape)], None, None)[0]  # fmt: skip


class GroupedMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, ends):
        ctx.save_for_backward(x, weight, ends)
        return grouped(x, weight, ends, 0, len(x), weight.shape[2])

    @staticmethod
    def backward(ctx, dy):
        x, weight, ends = ctx.saved_tensors
        dx = grouped(dy, weight.mT, ends, 0, *x.shape)
        return dx, grouped(x.t(), dy, ends, 2, *weight.shape), None


class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return call("aclnnSwiGlu", x, -1, x.new_empty(len(x), x.shape[1] // 2))[0]

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return call("aclnnSwiGluGrad", dy, x, -1, torch.empty_like(x))[0]


def through_c(x: Tensor, router: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    probs, experts = torch.softmax(x @ router, 1).topk(CHOICES, 1)
    rows, places = Permute.apply(x, experts)
    ends = torch.bincount(experts.flatten(), minlength=EXPERTS).cumsum(0)
    inner = SwiGlu.apply(GroupedMatmul.apply(rows, w_in, ends))
    return Unpermute.apply(GroupedMatmul.apply(inner, w_out, ends), places, probs)


def plain(x: Tensor, router: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    """Expert after expert, on the tokens that chose it."""
    probs, experts = torch.softmax(x @ router, 1).topk(CHOICES, 1)
    y = torch.zeros_like(x)
    for e in range(EXPERTS):
        token, choice = (experts == e).nonzero(as_tuple=True)
        gate, value = (x[token] @ w_in[e]).chunk(2, -1)
        out = (F.silu(gate) * value) @ w_out[e]
        y = y.index_add(0, token, out * probs[token, choice, None])
    return y


def trained(layer) -> tuple[list[float], list[Tensor]]:
    """The losses of 100 steps towards a fixed function of the tokens, and the parameters."""
    x = random(TOKENS, WIDTH)
    target = torch.sin(2 * x) + x.roll(1, 1)
    shapes = (WIDTH, EXPERTS), (EXPERTS, WIDTH, 2 * INNER), (EXPERTS, INNER, WIDTH)
    parameters = [random(*s, low=-0.5, high=0.5).requires_grad_() for s in shapes]
    optimiser = torch.optim.SGD(parameters, lr=0.2)
    losses = []
    for _ in range(100):
        loss = F.mse_loss(layer(x, *parameters), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, [p.detach() for p in parameters]


def test_a_mixture_of_experts_is_trained_as_in_plain_torch():
    losses, parameters = trained(through_c)
    expected, others = trained(plain)
    assert losses[-1] < 0.5 * losses[0]
    assert losses == pytest.approx(expected, rel=1e-4)
    for got, other in zip(parameters, others, strict=True):
        assert torch.allclose(got, other, rtol=1e-3, atol=1e-4)


# ---- the program ----


def numbers(seed: int, *shape: int) -> Tensor:
    """Those of the program."""
    i = torch.arange(torch.tensor(shape).prod().item())
    return ((i * i * 7 + i * 13 + seed * 31) % 129 - 64).reshape(shape).double()


def rows(text: str) -> dict[str, Tensor]:
    lines = (line.split() for line in text.splitlines())
    return {name: torch.tensor([float(v) for v in values]) for name, *values in lines}


@pytest.mark.programs
def test_a_program_without_python_has_the_same_experts(tmp_path: Path):
    program = built(tmp_path, "expert_layer", "-std=c++11", *STRICT, EXAMPLE / "expert_layer.cpp")
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")
    x, router = numbers(1, 6, 16) / 64, numbers(2, 16, 4) / 64
    w_in, w_out, weight = numbers(3, 4, 16, 24), numbers(4, 4, 12, 16) / 64, numbers(5, 16, 16)
    share, experts = torch.softmax((x @ router).half().double(), 1).topk(2, 1)
    scale = x.abs().amax(1, True) / 127
    q = saturated(x / scale).double()
    expected = torch.zeros(6, 16, dtype=torch.float64)
    for t in range(6):
        for k in range(2):
            e = int(experts[t, k])
            gate, value = (q[t] @ w_in[e] / 128 * scale[t]).half().double().chunk(2)
            out = (F.silu(gate) * value).half().double() @ w_out[e]
            expected[t] += share[t, k].half().double() * out.half().double()
    found = rows(done.stdout)
    mixed = found["experts"].view(6, 16).double()
    assert torch.allclose(mixed, expected, rtol=2e-3, atol=2e-3 * expected.abs().max())
    scale = mixed.float().abs().amax(1, True) / 127
    product = saturated(mixed.float() / scale).double() @ weight / 256 * scale
    got = found["product"].view(6, 16).double()
    assert torch.allclose(got, product, rtol=1e-3, atol=1e-3 * product.abs().max())
