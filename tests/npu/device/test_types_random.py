# SPDX-License-Identifier: Apache-2.0
"""Operators by type that draw: the same seed gives the same numbers, another other ones, with the
moments of their distribution. Dropout by value, from its mask.
"""

from __future__ import annotations

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.typed_calls import compiled, execute, ints, numbers

KEY, ALGORITHM = torch.tensor([5], dtype=torch.uint64), torch.tensor(1).int()
SHAPE, COUNT = ints(40, 50), 2000


def counter(offset):
    return torch.tensor([0, offset], dtype=torch.uint64)


def scalar(value):
    return torch.tensor(value)


# What differs between two streams of numbers comes last; attributes; the mean and the deviation.
SHARES = torch.full((40, 50), 0.3)
DRAWN = {
    "StatelessRandomNormalV2": (lambda n: [SHAPE, KEY, counter(n), ALGORITHM], {}, 0, 1),
    "StatelessRandomUniformV2": (lambda n: [SHAPE, KEY, counter(n), ALGORITHM], {}, 0.5, 12**-0.5),
    "StatelessBernoulli": (lambda n: [SHAPE, scalar(0.3), scalar(5), scalar(n)], {"dtype": 0},
                           0.3, 0.21**0.5),
    "StatelessBernoulli of each": (lambda n: [SHAPE, SHARES, scalar(5), scalar(n)], {"dtype": 0},
                                   0.3, 0.21**0.5),
    "MultinomialWithReplacement": (lambda n: [torch.tensor([[1.0, 3.0]]).expand(40, 2), scalar(5),
                                              scalar(n)],
                                   {"numsamples": 50, "replacement": True}, 0.75, 0.1875**0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn(name):
    inputs, form, mean, deviation = DRAWN[name]
    dtype = torch.long if name.startswith("Multi") else torch.float

    def drawn(offset):
        y = torch.full((40, 50), 9, dtype=dtype).npu()
        given = [t.contiguous().npu() for t in inputs(offset)]
        assert execute(name.split()[0], given, [y], **form) == 0, acl.get_recent_err_msg()
        return y.cpu().float()

    first = drawn(3)
    assert torch.equal(first, drawn(3))
    assert not torch.equal(first, drawn(4))
    assert abs(first.mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(first.std() - deviation) < 5 * deviation / COUNT**0.5
    if name == "StatelessRandomUniformV2":
        assert first.min() >= 0
        assert first.max() < 1


def test_a_permutation():
    y = [torch.zeros(9, dtype=torch.long).npu() for _ in range(2)]
    for place, out in enumerate(y):
        given = [scalar(9).npu(), scalar(5).npu(), scalar(place).npu()]
        assert execute("StatelessRandperm", given, [out], layout=1, dtype=9) == 0
    assert [sorted(t.tolist()) for t in y] == [list(range(9))] * 2
    assert not torch.equal(*y)


def test_a_mask_of_bits_and_what_it_keeps():
    x, size = numbers(40, 50).npu(), COUNT
    mask = torch.full((256,), 255, dtype=torch.uint8).npu()  # 128 bits together
    given = [SHAPE, scalar(0.8), scalar(7).int(), scalar(0).int(), ints(0, 12)]
    assert execute("StatelessDropOutGenMask", [t.npu() for t in given], [mask]) == 0
    bits = torch.tensor([b >> i & 1 for b in mask.tolist() for i in range(8)])
    assert abs(bits[:size].float().mean() - 0.8) < 5 * 0.4 / size**0.5
    assert bits[size:].sum() == 0
    y = torch.zeros_like(x)
    assert execute("DropOutDoMask", [x, mask, scalar(0.8).npu()], [y]) == 0
    torch.testing.assert_close(y.cpu(), x.cpu() * bits[:size].reshape(40, 50) / 0.8)


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_dropout_with_compiled_operators(p):
    """The gradient passes where the result does."""
    x = numbers(40, 50).abs() + 1
    y, dx = compiled(lambda x: F.dropout(x, p), x)
    kept = y != 0
    assert abs(kept.float().mean() - (1 - p)) < 5 * (p * (1 - p) / COUNT) ** 0.5
    torch.testing.assert_close(y, torch.where(kept, x / (1 - p), 0))
    torch.testing.assert_close(dx, torch.where(kept, numbers(40, 50, seed=11) / (1 - p), 0))


@pytest.mark.parametrize(
    ("draw", "low", "high", "mean"),
    [
        (lambda: torch.randn(40, 50, device="npu"), -6, 6, 0),
        (lambda: torch.rand(40, 50, device="npu"), 0, 1, 0.5),
        (lambda: torch.randint(3, 9, (40, 50), device="npu").float(), 3, 8, 5.5),
        (lambda: torch.zeros(40, 50, device="npu").bernoulli_(0.25), 0, 1, 0.25),
        (lambda: torch.zeros(40, 50, device="npu").normal_(2, 0.5), -1, 5, 2),
        (lambda: torch.zeros(40, 50, device="npu").uniform_(2, 4), 2, 4, 3),
        (lambda: F.dropout2d(torch.ones(40, 50, 1, 1, device="npu"), 0.5), 0, 2, 1),
    ],
    ids=["randn", "rand", "randint", "bernoulli", "normal", "uniform", "channels"],
)
def test_what_compiled_operators_draw(draw, low, high, mean):
    def drawn():
        torch.npu.manual_seed(5)
        torch.npu.set_compile_mode(jit_compile=True)
        try:
            return draw().cpu()
        finally:
            torch.npu.set_compile_mode(jit_compile=False)

    first = drawn()
    assert torch.equal(first, drawn())
    assert low <= first.min() < first.max() <= high
    assert abs(first.mean() - mean) < 5 * (first.std() + 1e-3) / COUNT**0.5


@pytest.mark.parametrize(
    ("name", "inputs", "values", "shape", "sentence"),
    [
        ("StatelessRandomNormalV2", [SHAPE, KEY, counter(0), ALGORITHM], {}, (40, 51),
         "y must have shape [40, 50]"),
        ("StatelessRandomNormalV2", [ints(4), KEY.int(), counter(0), ALGORITHM], {}, (4,),
         "key must have 1 integers of 64 bits"),
        ("StatelessBernoulli", [ints(4), scalar(1.5), scalar(0), scalar(0)], {}, (4,),
         "prob must be in [0, 1], but is 1.5"),
        ("StatelessRandperm", [scalar(-1), scalar(0), scalar(0)], {}, (0,),
         "y must have shape [-1]"),
        ("DropOutDoMask", [numbers(9), torch.zeros(1, dtype=torch.uint8), scalar(0.5)], {}, (9,),
         "the mask must be UINT8 with at least 2 elements"),
        ("DropOutDoMask", [numbers(9), torch.zeros(2, dtype=torch.uint8), scalar(-1.0)], {}, (9,),
         "keep_prob must be in [0, 1]"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, shape, sentence):
    outputs = [torch.zeros(shape).npu()]
    status = execute(name, [t.contiguous().npu() for t in inputs], outputs, **values)
    assert status == 161002, acl.get_recent_err_msg()
    assert sentence in acl.get_recent_err_msg()


DIRECT = {name.split()[0] for name in DRAWN} | {
    "StatelessRandperm", "StatelessDropOutGenMask", "DropOutDoMask"
}  # fmt: skip
