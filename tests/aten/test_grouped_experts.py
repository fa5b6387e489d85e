# SPDX-License-Identifier: Apache-2.0
"""Grouped quantised products joined with what follows them in a mixture of experts."""

from __future__ import annotations

import pytest
from tests.aten.quantised_support import (
    bits64,
    call,
    miss,
    neighbours,
    random,
    saturated,
    torch,
    words,
)
from tests.aten.test_grouped_matmul import (
    COUNTS,
    ENDS,
    GROUPS,
    ROWS,
    K,
    N,
    dequantised,
    grouped,
    groups,
    int4,
    int8,
)


def test_swiglu_of_the_products_is_quantised_by_row():
    x, weight = int8(ROWS, K), int8(GROUPS, K, N)
    scale, per_token = random(GROUPS, N, low=1e-4, high=1e-3), random(ROWS, low=0.1, high=1)
    y = torch.zeros(ROWS, N, dtype=torch.float64)
    for g, rows in groups():
        y[rows] = x[rows].double() @ weight[g].double() * scale[g] * per_token[rows, None]
    gate, value = y.chunk(2, -1)
    swiglu = torch.nn.functional.silu(gate) * value
    expected = swiglu.abs().amax(1) / 127
    out = [torch.full((ROWS, N // 2), 77, dtype=torch.int8), torch.full((ROWS,), 77.0)]
    old = call("aclnnGroupedMatmulSwigluQuant", x, weight, None, None, scale, per_token,
               torch.tensor(ENDS), *out, None)  # fmt: skip
    for name in ("V2", "WeightNzV2"):
        new = call(f"aclnnGroupedMatmulSwigluQuant{name}", x, [weight], [scale], None, None,
                   per_token, None, torch.tensor(COUNTS), 0, 0, 0, 1, None,
                   *[t.clone() for t in out])  # fmt: skip
        assert all(map(torch.equal, new, old))
    numbers, found = old
    assert miss(found, expected) == ""
    assert neighbours(numbers[:10], saturated(swiglu[:10] / expected[:10, None]))
    assert not numbers[10:].any()
    smooth = random(GROUPS, N // 2, low=0.5, high=1)
    four = random(GROUPS, K, N, low=-8, high=7, dtype=torch.int8)
    numbers, found = call(
        "aclnnGroupedMatmulSwigluQuantV2", words(int4(ROWS, K)), [words(four)],
        [bits64(scale * 100)], None, None, per_token, smooth, torch.tensor(ENDS), 0, 0, 0, 0, None,
        *out,
    )  # fmt: skip
    y = grouped(int4(ROWS, K), dequantised(four, scale * 100)) * per_token[:, None]
    gate, value = y.chunk(2, -1)
    swiglu = torch.nn.functional.silu(gate) * value
    for g, rows in groups():
        swiglu[rows] *= smooth[g]
    assert miss(found, swiglu.abs().amax(1) / 127, slack=1e-5) == ""
    assert neighbours(numbers[:10], saturated(swiglu[:10] / found[:10, None]))


def test_products_are_added_to_the_rows_of_their_tokens():
    x, weight = int8(ROWS, K), int8(GROUPS, K, N)
    scale, per_token = random(GROUPS, N, low=1e-4, high=1e-3), random(ROWS, low=0.1, high=1)
    gate, shared = random(ROWS, low=0, high=1), random(2, N, dtype=torch.bfloat16)
    index = torch.tensor([0, 3, 1, 2, 4, 0, -1, 3, 5, 4, 0, 1])  # -1 and 5 are no tokens
    y = torch.zeros(ROWS, N, dtype=torch.float64)
    for g, rows in groups():
        y[rows] = x[rows].double() @ weight[g].double() * scale[g]
    y *= (per_token * gate)[:, None].double()
    expected = torch.zeros(5, N, dtype=torch.float64)
    for row, place in enumerate(index.tolist()):
        if 0 <= place < 5:
            expected[place] += y[row]
    expected[1:3] += 0.5 * shared.double()
    ends = torch.tensor(ENDS)
    tail = (shared, gate, index, 0, 0.5, 1, False, False, 0)
    for name in ("", "WeightNz"):
        (got,) = call(f"aclnnGroupedMatmulFinalizeRouting{name}", x, weight, scale, None, per_token,
                      ends, *tail, torch.zeros(5, N))  # fmt: skip
        assert miss(got, expected) == ""
    more = (None, None, None)
    for name, last in (("V2", ()), ("V3", (None,)), ("WeightNzV2", (None,))):
        (got,) = call(f"aclnnGroupedMatmulFinalizeRouting{name}", x, weight, scale, None, *more,
                      per_token, ends, *tail, *last, torch.zeros(5, N))  # fmt: skip
        assert miss(got, expected) == ""


@pytest.mark.parametrize("mode", ["pertoken", "pertensor"])
def test_x_is_quantised_multiplied_and_scaled_back(mode):
    x, weight = random(ROWS, K, dtype=torch.float16), int8(GROUPS, N, K)
    scale, smooth = random(GROUPS, N, low=1e-3, high=1e-2), random(K, dtype=torch.float16)
    given = torch.tensor([0.02]) if mode == "pertensor" else None
    v = x.float() * smooth.float()
    of_row = v.abs().amax(1, True) / 127 if given is None else given.expand(ROWS, 1)
    numbers = saturated(v / of_row)
    y = grouped(numbers, weight.mT) * of_row.double()
    for g, rows in groups():
        y[rows] *= scale[g].double()

    def out() -> torch.Tensor:
        return torch.zeros(ROWS, N, dtype=torch.float16)

    for name in ("", "WeightNZ"):
        (got,) = call(f"aclnnQuantGroupedMatmulDequant{name}", x, weight, scale, torch.tensor(ENDS),
                      None, given, None, smooth, mode, True, out())  # fmt: skip
        assert miss(got, y) == ""
        (got,) = call(f"aclnnQuantMatmulDequant{name}", x, weight[0], scale[0], None, given, None,
                      smooth, mode, True, out())  # fmt: skip
        whole = numbers.double() @ weight[0].t().double() * of_row * scale[0]
        assert miss(got, whole) == ""
    if given is not None:  # scales of 64 bits have that of x in them
        (got,) = call("aclnnQuantMatmulDequant", x, weight[0], bits64(scale[0] * given), None,
                      given, None, smooth, mode, True, out())  # fmt: skip
        assert miss(got, whole) == ""
