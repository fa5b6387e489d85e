# SPDX-License-Identifier: Apache-2.0
"""Rows that draw random numbers, called as C functions. A seed in a tensor must draw what the same
number draws.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.direct_calls import out
from torch.testing import assert_close


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Normal", (1.0, 2.0)),
        ("Uniform", (-1.0, 3.0)),
        ("Random", (2, 9)),
        ("RandomWithoutFromTo", ()),
    ],
)
def test_seeds_in_tensors(call, name, given):
    first, second, other = (out(1000) for _ in range(3))
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call(f"aclnnInplace{name}", first, *given, 5, 10)
    call(f"aclnnInplace{name}Tensor", second, *given, seed, offset, 3)
    call(f"aclnnInplace{name}Tensor", other, *given, seed, offset, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert first.unique().numel() > 6


def test_seeds_in_tensors_of_multinomial(call):
    weights = torch.tensor([0.0, 1.0, 3.0])
    first, second = out(500, dtype=torch.int64), out(500, dtype=torch.int64)
    call("aclnnMultinomial", weights, 500, True, 5, 10, first)
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call("aclnnMultinomialTensor", weights, 500, True, seed, offset, 3, second)
    assert torch.equal(first, second)
    # Three standard deviations of 500 draws with probability 3/4 are 29.
    assert abs((first == 2).sum().item() - 375) < 29
    assert not (first == 0).any()


def test_masks_of_dropout(call):
    masks = [out(128, dtype=torch.uint8) for _ in range(3)]
    call("aclnnDropoutGenMaskV2", (1000,), 0.3, 5, 10, 1, masks[0])
    call("aclnnDropoutGenMask", (1000,), 0.3, 5, 10, masks[1])
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call("aclnnDropoutGenMaskV2Tensor", (1000,), 0.3, seed, offset, 3, 1, masks[2])
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])
    kept = sum(byte.bit_count() for byte in masks[0].tolist())
    assert abs(kept - 700) < 60  # four standard deviations of 14.5


def test_masks_of_dropout_are_read_within_their_size(call):
    x, kept = torch.rand(17) + 1, torch.tensor([0b10101010, 0b1, 0b1], dtype=torch.uint8)
    result = out(17)
    call("aclnnDropoutDoMask", x, kept, 0.5, result)
    bits = torch.tensor([0, 1] * 4 + [1] + [0] * 7 + [1])
    assert_close(result, x * bits * 2)

    def call_and_wait(name, given):  # where the queue runs the call, the stream reports its failure
        call(name, *given)
        torch.npu.synchronize()

    for name, given, text in (
        ("aclnnDropoutDoMask", (x, kept[:2], 0.5, result), "UINT8 with at least 3 elements"),
        (
            "aclnnDropoutDoMask",
            (x, x, 0.5, result),
            "each of 17 elements, but got Float with 17|mask must have dtype UINT8 on",
        ),
        ("aclnnDropoutGenMask", ((1000,), 0.3, 5, 10, kept), "UINT8 with at least 125 elements"),
    ):
        with pytest.raises((AssertionError, RuntimeError), match=text):
            call_and_wait(name, given)


@pytest.mark.parametrize("name", ["aclnnRReluWithNoise", "aclnnInplaceRReluWithNoise"])
@pytest.mark.parametrize("training", [True, False])
def test_rrelu(call, name, training):
    given, noise = torch.linspace(-3, 3, 200), out(200)
    result = given.clone() if "Inplace" in name else out(200)
    behind = () if "Inplace" in name else (result,)
    first = result if "Inplace" in name else given
    call(name, first, noise, 0.1, 0.5, training, 3, 4, *behind)
    if training:
        assert_close(result, given * noise)
        assert (noise[given > 0] == 1).all()
        drawn = noise[given <= 0]
        assert drawn.min() >= 0.1
        assert drawn.max() <= 0.5
        assert drawn.unique().numel() > 50
    else:
        assert_close(result, F.leaky_relu(given, 0.3))
