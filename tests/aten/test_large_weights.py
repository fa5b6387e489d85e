# SPDX-License-Identifier: Apache-2.0
"""Products with large weights of 16 bits, INT8 and INT4, which become float tile by tile: values in
every order of memory, and that no copy of the whole weight is made.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest
from tests.aten.quantised_support import HALVES, Int4, Tensor, call, miss, random, torch

K, N = 704, 256  # two tiles and more in both orders

ROWS_OF_X = (1, 3, 20)


def by_columns(weight: Tensor) -> Tensor:
    """The same matrix, its columns side by side in memory."""
    return weight.t().contiguous().t()


def largest_copy(run: Callable[[], object]) -> int:
    """Elements of the largest tensor that ATen copies or converts meanwhile."""
    with torch.profiler.profile(record_shapes=True) as profile:
        run()
    copies = [e for e in profile.events() if e.name == "aten::copy_"]
    return max((prod(e.input_shapes[0]) for e in copies), default=0)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("order", [by_columns, Tensor.contiguous])
@pytest.mark.parametrize("m", ROWS_OF_X)
def test_floats_with_weights_of_16_bits(dtype, order, m):
    x, weight = random(m, K), order(random(K, N, dtype=dtype))
    wanted = x.double() @ weight.double()
    for name in ("aclnnMatmul", "aclnnMm"):
        (y,) = call(name, x, weight, torch.zeros(m, N), 0)
        assert miss(y, wanted) == ""
    gaps = torch.zeros(m, 2 * N)[:, ::2]
    assert miss(call("aclnnMm", x, weight, gaps, 0)[0], wanted) == ""
    assert largest_copy(lambda: call("aclnnMm", x, weight, torch.zeros(m, N), 0)) < weight.numel()


def test_batches_of_weights_are_broadcast():
    x, weight = random(2, 3, K), random(2, K, N, dtype=torch.float16)
    (y,) = call("aclnnBatchMatMul", x, weight, torch.zeros(2, 3, N), 0)
    assert miss(y, x.double() @ weight.double()) == ""
    (y,) = call("aclnnBatchMatMul", x, weight[:1], torch.zeros(2, 3, N), 0)
    assert miss(y, x.double() @ weight[:1].double()) == ""
    heads = weight.view(1, 2, K, N).expand(3, 2, K, N)
    x = random(3, 1, 2, K)
    (y,) = call("aclnnMatmul", x, heads, torch.zeros(3, 2, 2, N), 0)
    assert miss(y, x.double() @ heads.double()) == ""


@pytest.mark.parametrize("order", ["columns", "rows"])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("m", ROWS_OF_X)
def test_floats_with_quantised_weights(order, bits, m):
    x = random(m, K, dtype=torch.float16)
    top = 2 ** (bits - 1)
    weight = random(K, N, low=-top, high=top - 1, dtype=torch.int8)
    stored: Tensor | Int4 = weight if order == "rows" else by_columns(weight)
    if bits == 4:
        stored = Int4.of(weight) if order == "rows" else Int4.of(weight.t()).transposed()
    # The last group is shorter; groups of 32 are those of a client of this interface.
    for shape, group in (((N,), 0), ((1,), 0), ((22, N), 32), ((15, N), 48), ((235, N), 3)):
        scale, offset = (random(*shape, low=0.01, high=0.1, seed=i) for i in range(2))
        scale = scale.half() if group == 48 or len(shape) == 1 else by_columns(scale.half())
        for given in (None, offset.half()):
            shifted = weight.double() + (0 if given is None else spread(given, group))
            wanted = x.double() @ (shifted * spread(scale, group))
            (y,) = call("aclnnWeightQuantBatchMatmulV2", x, stored, scale, given, None, None, None,
                        group, torch.zeros(m, N, dtype=torch.float16))  # fmt: skip
            assert miss(y, wanted, slack=1e-5) == ""

    def again() -> None:
        call("aclnnWeightQuantBatchMatmulV2", x, stored, scale, None, None, None, None, group,
             torch.zeros(m, N, dtype=torch.float16))  # fmt: skip

    assert largest_copy(again) < weight.numel()


def spread(parameter: Tensor, group: int) -> Tensor:
    """For each row of the weight."""
    rows = parameter.double()
    return rows.repeat_interleave(group, 0)[:K] if group else rows
