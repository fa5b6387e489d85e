# SPDX-License-Identifier: Apache-2.0
"""Tokens to their experts and back: the order by loops over tokens, gradients by autograd of the
same formulas in float64.
"""

from __future__ import annotations

import pytest
from tests.aten.quantised_support import FLOATS, call, miss, random, torch

Tensor = torch.Tensor
TOKENS, CHOICES, HIDDEN, EXPERTS = 9, 3, 8, 5
SLOTS = TOKENS * CHOICES
# torch_npu 2.9 sends memory that it did not initialise as restoreShape, which is ignored there.
UNSET = [140701249816672, -(2**62) - 1]


def experts_of_tokens(dtype: torch.dtype = torch.int32) -> Tensor:
    return random(TOKENS, CHOICES, low=0, high=EXPERTS - 1, dtype=dtype)


def order_of(experts: Tensor) -> list[int]:
    """Slots by expert; those of one expert stay in their order."""
    flat = experts.flatten().tolist()
    return [i for e in range(max(flat) + 1) for i, own in enumerate(flat) if own == e]


def inverse(order: list[int]) -> list[int]:
    return [order.index(i) for i in range(len(order))]


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, 77).to(dtype)


def slots_out() -> Tensor:
    return empty(SLOTS, dtype=torch.int32)


# ---- by the indices of experts ----


def permuted(tokens: Tensor, order: list[int]) -> Tensor:
    return torch.stack([tokens[slot // CHOICES] for slot in order])


def unpermuted(rows: Tensor, places: list[int], probs: Tensor) -> Tensor:
    """Places outside the rows are dropped."""
    zero = torch.zeros(rows.shape[1], dtype=rows.dtype)
    found = [rows[p] if 0 <= p < len(rows) else zero for p in places]
    return (torch.stack(found).view(TOKENS, CHOICES, -1) * probs.unsqueeze(-1)).sum(1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kept", [SLOTS, 20])
def test_permute_and_unpermute_with_their_gradients(dtype, kept):
    tokens, experts = random(TOKENS, HIDDEN, dtype=dtype), experts_of_tokens()
    probs = random(TOKENS, CHOICES, low=0, high=1)
    order = order_of(experts)
    given = kept if kept < SLOTS else 0
    rows, places = call("aclnnMoeTokenPermute", tokens, experts, given, False,
                        empty(kept, HIDDEN, dtype=dtype), slots_out())  # fmt: skip
    assert torch.equal(rows, permuted(tokens, order[:kept]))
    assert places.tolist() == inverse(order)
    (back,) = call("aclnnMoeTokenUnpermute", rows, places, probs, False, UNSET,
                   empty(TOKENS, HIDDEN, dtype=dtype))  # fmt: skip
    x, r, p = (t.double().requires_grad_() for t in (tokens, rows, probs))
    assert miss(back, unpermuted(r, places.tolist(), p)) == ""

    dy = random(kept, HIDDEN, dtype=dtype)
    (permuted(x, order[:kept]) * dy.double()).sum().backward()
    (got,) = call("aclnnMoeTokenPermuteGrad", dy, places, CHOICES, False,
                  empty(TOKENS, HIDDEN, dtype=dtype))  # fmt: skip
    assert miss(got, x.grad) == ""
    dy = random(TOKENS, HIDDEN, dtype=dtype)
    (unpermuted(r, places.tolist(), p) * dy.double()).sum().backward()
    got = call("aclnnMoeTokenUnpermuteGrad", rows, dy, places, probs, False, UNSET,
               empty(kept, HIDDEN, dtype=dtype), empty(TOKENS, CHOICES))  # fmt: skip
    assert [miss(a, b) for a, b in zip(got, (r.grad, p.grad), strict=True)] == ["", ""]


def test_tokens_come_back_where_the_weights_have_sum_1():
    tokens, experts = random(TOKENS, HIDDEN), experts_of_tokens(torch.int64)
    rows, places = call("aclnnMoeTokenPermute", tokens, experts, 0, False, empty(SLOTS, HIDDEN),
                        slots_out())  # fmt: skip
    probs = torch.softmax(random(TOKENS, CHOICES), -1)
    (back,) = call("aclnnMoeTokenUnpermute", rows, places, probs, False, None, tokens.clone())
    assert miss(back, tokens) == ""
    (one,) = call("aclnnMoeTokenUnpermute", rows, places, None, False, None, empty(SLOTS, HIDDEN))
    assert torch.equal(one, tokens.repeat_interleave(CHOICES, 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_slices_of_ranks_make_the_whole(dtype):
    tokens, experts = random(TOKENS, HIDDEN, dtype=dtype), experts_of_tokens()
    probs, dy = random(TOKENS, CHOICES, low=0, high=1), random(TOKENS, HIDDEN, dtype=dtype)
    order = order_of(experts)
    p = probs.double().requires_grad_()
    r = permuted(tokens, order).double().requires_grad_()
    whole = unpermuted(r, inverse(order), p)
    (whole * dy.double()).sum().backward()
    sums = [torch.zeros(TOKENS, HIDDEN), torch.zeros(TOKENS, CHOICES)]
    for low, high in ((0, 11), (11, SLOTS)):
        mine, n = [low, high], high - low
        rows, places, weights = call(
            "aclnnMoeTokenPermuteWithEp", tokens, experts, probs, mine, 0, False,
            empty(n, HIDDEN, dtype=dtype), slots_out(), empty(n),
        )  # fmt: skip
        assert torch.equal(rows, permuted(tokens, order)[low:high])
        assert torch.equal(weights, probs.flatten()[order[low:high]])
        (part,) = call("aclnnMoeTokenUnpermuteWithEp", rows.float(), places, probs, CHOICES, mine,
                       False, UNSET, empty(TOKENS, HIDDEN))  # fmt: skip
        sums[0] += part
        got, of_probs = call(
            "aclnnMoeTokenUnpermuteWithEpGrad", dy, places, rows, probs, False, UNSET, mine,
            CHOICES, empty(n, HIDDEN, dtype=dtype), empty(TOKENS, CHOICES),
        )  # fmt: skip
        assert miss(got, r.grad[low:high]) == ""
        sums[1] += of_probs
        slots = inverse(order)
        inside = torch.tensor([low <= s < high for s in slots]).view(TOKENS, CHOICES)
        got, of_probs = call(
            "aclnnMoeTokenPermuteWithEpGrad", rows, places, weights, CHOICES, mine, False,
            empty(TOKENS, HIDDEN, dtype=dtype), empty(TOKENS, CHOICES),
        )  # fmt: skip
        assert miss(got, tokens.double() * inside.sum(1, True)) == ""
        assert torch.equal(of_probs, probs * inside)
    assert miss(sums[0], whole) == ""
    assert miss(sums[1], p.grad) == ""


# ---- by a map of flags ----


def flags() -> Tensor:
    """Two experts for each token."""
    chosen = random(TOKENS, EXPERTS).argsort(1)[:, :2]
    return torch.zeros(TOKENS, EXPERTS, dtype=torch.bool).scatter_(1, chosen, True)


def pairs_of(routing: Tensor, capacity: int | None) -> list[tuple[int, int]]:
    """(token, expert) of each row; an expert without enough tokens takes others."""
    found = []
    for e in range(EXPERTS):
        own = [t for t in range(TOKENS) if routing[t, e]]
        if capacity is not None:
            own = (own + [t for t in range(TOKENS) if not routing[t, e]])[:capacity]
        found += [(t, e) for t in own]
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("capacity", [None, 2, 6])
def test_a_map_of_flags_routes_tokens_and_their_gradients(dtype, capacity):
    tokens, routing = random(TOKENS, HIDDEN, dtype=dtype), flags()
    probs, padded = random(TOKENS, EXPERTS, low=0, high=1), capacity is not None
    pairs = pairs_of(routing, capacity)
    n, ids = len(pairs), [t for t, _ in pairs]
    x, p = (t.double().requires_grad_() for t in (tokens, probs))
    rows, weights, places = call(
        "aclnnMoeTokenPermuteWithRoutingMap", tokens, routing, probs, n, padded,
        empty(n, HIDDEN, dtype=dtype), empty(n), empty(n, dtype=torch.int32),
    )  # fmt: skip
    expected = torch.stack([x[t] for t in ids]), torch.stack([p[t, e] for t, e in pairs])
    assert torch.equal(rows, expected[0].detach().to(dtype))
    assert torch.equal(weights, expected[1].detach().float())
    by_token = sorted(range(n), key=lambda i: ids[i])
    assert places.tolist() == (ids if padded else by_token)

    dy, dp = random(n, HIDDEN, dtype=dtype), random(n)
    ((expected[0] * dy.double()).sum() + (expected[1] * dp.double()).sum()).backward()
    got = call("aclnnMoeTokenPermuteWithRoutingMapGrad", dy, dp, places, routing, EXPERTS, TOKENS,
               padded, empty(TOKENS, HIDDEN, dtype=dtype), empty(TOKENS, EXPERTS))  # fmt: skip
    assert [miss(a, b) for a, b in zip(got, (x.grad, p.grad), strict=True)] == ["", ""]

    r = random(n, HIDDEN, dtype=dtype)
    wide, p = r.double().requires_grad_(), probs.double().requires_grad_()
    back = torch.zeros(TOKENS, HIDDEN, dtype=torch.float64)
    for i, (t, e) in enumerate(pairs):
        back = back.index_add(0, torch.tensor([t]), (wide[i] * p[t, e]).unsqueeze(0))
    made, index, of_token, weights = call(
        "aclnnMoeTokenUnpermuteWithRoutingMap", r, places, routing, probs, padded,
        [TOKENS, HIDDEN], empty(TOKENS, HIDDEN, dtype=dtype), empty(n, dtype=torch.int32),
        empty(n, dtype=torch.int32), empty(n),
    )  # fmt: skip
    assert miss(made, back) == ""
    order = range(n) if padded else by_token
    assert torch.equal(weights, torch.stack([probs[pairs[i]] for i in order]))
    if padded:
        assert index.tolist() == by_token
        assert of_token.tolist() == sorted(ids)
    else:
        index = of_token = places
    dy = random(TOKENS, HIDDEN, dtype=dtype)
    (back * dy.double()).sum().backward()
    got = call("aclnnMoeTokenUnpermuteWithRoutingMapGrad", dy, index, of_token, routing, r, probs,
               padded, UNSET, empty(n, HIDDEN, dtype=dtype), empty(TOKENS, EXPERTS))  # fmt: skip
    assert [miss(a, b) for a, b in zip(got, (wide.grad, p.grad), strict=True)] == ["", ""]


# ---- the sum of the experts' rows ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_rows_of_experts_are_weighted_and_added(dtype, mode):
    shape = (EXPERTS, 4, HIDDEN) if mode in (1, 3) else (SLOTS, HIDDEN)
    rows, places = random(*shape, dtype=dtype), random(SLOTS, low=-1, high=29, dtype=torch.int32)
    experts, scales = experts_of_tokens(), random(TOKENS, CHOICES, low=0, high=1)
    bias, skip = random(EXPERTS, HIDDEN, dtype=dtype), random(TOKENS, HIDDEN, dtype=dtype)
    flat = rows.double().reshape(-1, HIDDEN)
    expected = 2 * skip.double()
    plain = torch.zeros(TOKENS, HIDDEN, dtype=torch.float64)
    for t in range(TOKENS):
        for k in range(CHOICES):
            place = int(places[k * TOKENS + t if mode in (0, 1) else t * CHOICES + k])
            row = flat[place] if 0 <= place < len(flat) else torch.zeros(HIDDEN)
            expected[t] += scales[t, k] * (row + bias[experts[t, k]])
            plain[t] += row

    def out() -> Tensor:
        return empty(TOKENS, HIDDEN, dtype=dtype)

    (y,) = call("aclnnMoeFinalizeRoutingV2", rows, places, skip, skip, bias, scales, experts, mode,
                out())  # fmt: skip
    assert miss(y, expected) == ""
    (y,) = call("aclnnMoeFinalizeRoutingV4", rows, places, *[None] * 9, mode, None, None, None,
                CHOICES, out())  # fmt: skip
    assert miss(y, plain) == ""
    if mode == 0:
        (y,) = call("aclnnMoeFinalizeRouting", rows, skip, skip, bias, scales, places, experts,
                    out())  # fmt: skip
        assert miss(y, expected) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padded", [False, True])
def test_gradients_of_the_sum_of_rows(dtype, padded):
    shape = (EXPERTS, 6, HIDDEN) if padded else (SLOTS, HIDDEN)
    rows, experts = random(*shape, dtype=dtype), experts_of_tokens()
    scales, dy = random(TOKENS, CHOICES, low=0, high=1), random(TOKENS, HIDDEN, dtype=dtype)
    bias, count = random(EXPERTS, HIDDEN, dtype=dtype), rows.numel() // HIDDEN
    places = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:SLOTS].int()
    places[4] = -1
    r, s = (t.double().requires_grad_() for t in (rows, scales))
    flat = torch.cat([r.reshape(-1, HIDDEN), torch.zeros(1, HIDDEN)])
    y = flat[places.long()] + bias.double()[experts.flatten().long()]
    y = (y.view(TOKENS, CHOICES, HIDDEN) * s.unsqueeze(-1)).sum(1)
    (y * dy.double()).sum().backward()
    got = call(
        "aclnnMoeFinalizeRoutingV2Grad",
        dy,
        places,
        rows,
        scales,
        experts,
        bias,
        1 if padded else 0,
        0,
        EXPERTS,
        6,
        torch.zeros_like(rows),
        empty(TOKENS, CHOICES),
    )
    assert [miss(a, b) for a, b in zip(got, (r.grad, s.grad), strict=True)] == ["", ""]
    (got,) = call("aclnnMoeInitRoutingV2Grad", rows, places, CHOICES, int(padded), 0,
                  empty(TOKENS, HIDDEN, dtype=dtype))  # fmt: skip
    sums = flat.detach()[places.long()].view(TOKENS, CHOICES, HIDDEN).sum(1)
    assert miss(got, sums) == ""
