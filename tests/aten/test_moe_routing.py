# SPDX-License-Identifier: Apache-2.0
"""Which experts a token has (gating), and its way to them (InitRouting), by loops over tokens."""

from __future__ import annotations

from itertools import product

import pytest
from tests.aten.quantised_support import (
    FLOATS,
    Int4,
    call,
    miss,
    random,
    saturated,
    torch,
    unpacked,
)

Tensor = torch.Tensor
TOKENS, CHOICES, HIDDEN, EXPERTS = 9, 3, 8, 5
SLOTS = TOKENS * CHOICES


def experts_of_tokens() -> Tensor:
    return random(TOKENS, CHOICES, low=0, high=EXPERTS - 1, dtype=torch.int32)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, 77).to(dtype)


def ints(*shape: int) -> Tensor:
    return empty(*shape, dtype=torch.int32)


def sorted_slots(low: int = 0, high: int = EXPERTS) -> list[tuple[int, int]]:
    """(expert, slot) of the experts of a range, by expert."""
    flat = experts_of_tokens().flatten().tolist()
    return [(e, i) for e in range(low, high) for i, own in enumerate(flat) if own == e]


# ---- InitRouting ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("active", [99, 4])
def test_rows_follow_the_numbers_of_slots(dtype, active):
    x = random(TOKENS, HIDDEN, dtype=dtype)
    rows = (torch.arange(CHOICES) * TOKENS + torch.arange(TOKENS)[:, None]).int()
    order = [i for _, i in sorted_slots()]
    source = [int(rows.flatten()[i]) for i in order]
    n = min(active, TOKENS) * CHOICES
    given = (x, rows, experts_of_tokens(), active)
    tail = (ints(SLOTS), ints(SLOTS))
    got = call("aclnnMoeInitRouting", *given, empty(n, HIDDEN, dtype=dtype), *tail)
    expected = torch.stack([x[s % TOKENS] for s in source[:n]])
    assert torch.equal(got[0], expected)
    assert got[1].tolist() == [source.index(i) for i in range(SLOTS)]
    assert got[2].tolist() == [e for e, _ in sorted_slots()]
    got = call("aclnnMoeInitRoutingQuant", *given, 20.0, 3.0, empty(n, HIDDEN, dtype=torch.int8),
               *tail)  # fmt: skip
    assert torch.equal(got[0], saturated(expected.float() * 20 + 3))


def dynamic(v: Tensor, bits: int = 8) -> tuple[Tensor, Tensor]:
    scale = v.abs().amax(-1) / (2 ** (bits - 1) - 1)
    return saturated(v / scale.unsqueeze(-1), bits), scale


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(0, EXPERTS), (1, 4)])
@pytest.mark.parametrize("active", [0, 7])
def test_tokens_of_a_range_of_experts_are_sorted_and_quantised(dtype, low, high, active):
    x, experts = random(TOKENS, HIDDEN, dtype=dtype), experts_of_tokens()
    slots = sorted_slots(low, high)
    rows = min(active, SLOTS) or SLOTS
    taken = slots[: min(rows, len(slots))]
    plain = torch.stack([x[i // CHOICES] for _, i in taken])
    mine = [low, high] if high - low < EXPERTS else None
    smooth = random(high - low, HIDDEN, low=0.5, high=1)
    weights, factor, shift = random(TOKENS), torch.tensor([20.3]), torch.tensor([3.7])
    smoothed = plain.float() * torch.stack([smooth[e - low] for e, _ in taken])
    in_half = (plain.half() * factor.half() + shift.half()).float()
    of_slot = [-1] * SLOTS
    for row, (_, i) in enumerate(slots):
        of_slot[i] = row
    for mode, scale, offset, numbers, scales in (
        (-1, None, None, plain, None),
        (-1, weights, None, plain, torch.stack([weights[i // CHOICES] for _, i in taken])),
        (0, factor, shift, saturated(in_half), None),
        (1, None, None, *dynamic(plain.float())),
        (1, smooth, None, *dynamic(smoothed)),
        (1, smooth[:1], None, *dynamic(plain.float() * smooth[0])),
    ):
        out = empty(rows, HIDDEN, dtype=dtype if mode < 0 else torch.int8)
        got = call(
            "aclnnMoeInitRoutingV3", x, experts, scale, offset, active, 0, EXPERTS, 0, 1, True,
            mode, mine, 0, out, ints(SLOTS), empty(high - low, dtype=torch.int64), empty(rows),
        )  # fmt: skip
        assert torch.equal(got[0][: len(taken)], numbers)
        assert not got[0][len(taken) :].any()
        assert got[1].tolist() == of_slot
        assert got[2].tolist() == [sum(e == own for own, _ in slots) for e in range(low, high)]
        if scales is not None:
            assert torch.equal(got[3][: len(taken)], scales)


def test_lists_of_counts_and_of_rows():
    x, experts = random(TOKENS, HIDDEN), experts_of_tokens()
    low, high = 1, 4
    slots = sorted_slots(low, high)
    counts = [sum(e == own for own, _ in slots) for e in range(low, high)]
    ends = [sum(counts[: i + 1]) for i in range(3)]
    pairs = [[e, n] for e, n in zip(range(low, high), counts, strict=True) if n]
    pairs += [[0, 0]] * (EXPERTS - len(pairs))
    for kind, expected in ((0, ends), (1, counts), (2, pairs)):
        got = call(
            "aclnnMoeInitRoutingV3", x, experts, None, None, 0, 0, EXPERTS, 0, kind, True, -1,
            [low, high], 1, empty(SLOTS, HIDDEN), ints(SLOTS),
            torch.full((EXPERTS, 2) if kind == 2 else (3,), 77), empty(SLOTS),
        )  # fmt: skip
        assert got[2].tolist() == expected
        assert got[1].tolist()[: len(slots)] == [i for _, i in slots]


def test_a_busy_list_of_experts_has_no_gap():
    experts = torch.tensor([[0, 4], [4, 2]]).int()
    got = call(
        "aclnnMoeInitRoutingV3", random(2, HIDDEN), experts, None, None, 0, 0, 5, 0, 2, True, -1,
        None, 0, empty(4, HIDDEN), ints(4), torch.full((5, 2), 77), empty(4),
    )  # fmt: skip
    assert got[2].tolist() == [[0, 1], [2, 1], [4, 2], [0, 0], [0, 0]]


@pytest.mark.parametrize("capacity", [2, 9])
def test_experts_have_a_capacity(capacity):
    x, experts = random(TOKENS, HIDDEN), experts_of_tokens()
    expected, places = torch.zeros(EXPERTS, capacity, HIDDEN), [-1] * SLOTS
    counts = [0] * EXPERTS
    for e, i in sorted_slots():
        if counts[e] < capacity:
            expected[e, counts[e]] = x[i // CHOICES]
            places[i] = e * capacity + counts[e]
        counts[e] += 1
    out = (empty(EXPERTS, capacity, HIDDEN), ints(SLOTS))
    got = call("aclnnMoeInitRoutingV2", x, experts, 0, capacity, EXPERTS, 1, 0, True, *out, None,
               ints(EXPERTS))  # fmt: skip
    assert torch.equal(got[0], expected)
    assert (got[1].tolist(), got[2].tolist()) == (places, counts)
    got = call(
        "aclnnMoeInitRoutingQuantV2", x, experts, None, None, 0, capacity, EXPERTS, 1, 2, False, 1,
        empty(EXPERTS, capacity, HIDDEN, dtype=torch.int8), ints(SLOTS), ints(EXPERTS), None,
        empty(EXPERTS * capacity),
    )  # fmt: skip
    numbers, scales = dynamic(expected)
    assert torch.equal(got[0], numbers)
    assert got[2].tolist() == counts
    assert torch.equal(got[3], scales.flatten())


def test_rows_of_4_bits_have_two_numbers_in_a_byte():
    x, experts = random(TOKENS, HIDDEN), experts_of_tokens()
    plain = torch.stack([x[i // CHOICES] for _, i in sorted_slots()])
    out = Int4(torch.zeros(SLOTS, HIDDEN // 2, dtype=torch.uint8), (SLOTS, HIDDEN // 2))
    got = call(
        "aclnnMoeInitRoutingV3", x, experts, None, None, 0, 0, EXPERTS, 0, 1, False, 13, None, 0,
        out, ints(SLOTS), empty(EXPERTS, dtype=torch.int64), empty(SLOTS),
    )  # fmt: skip
    numbers, scales = dynamic(plain, bits=4)
    assert torch.equal(unpacked(out.data), numbers)
    assert torch.equal(got[3], scales)


def test_no_tokens_are_nothing_to_route():
    got = call(
        "aclnnMoeInitRoutingV3", empty(0, HIDDEN), ints(0, CHOICES), None, None, 0, 0, EXPERTS, 0,
        1, True, 1, None, 0, empty(0, HIDDEN, dtype=torch.int8), ints(0),
        empty(EXPERTS, dtype=torch.int64), empty(0),
    )  # fmt: skip
    assert got[2].tolist() == [0] * EXPERTS


# ---- gating ----


def best(row: Tensor, k: int) -> list[int]:
    """Of equal values the lower index first."""
    return sorted(range(len(row)), key=lambda i: (-float(row[i]), i))[:k]


@pytest.mark.parametrize("dtype", FLOATS)
def test_experts_of_the_best_groups(dtype):
    x, bias = random(TOKENS, 16, low=-3, high=3, dtype=dtype), random(16, dtype=dtype)
    x[0] = 1  # all equal
    for norm_type, renorm, (groups, kept, by_two) in product(
        (0, 1), (0, 1), ((1, 1, 0), (4, 2, 0), (4, 2, 1))
    ):
        wide = x.double().requires_grad_()
        norm = torch.softmax(wide, 1) if norm_type == 0 else torch.sigmoid(wide)
        chosen = []
        for row in torch.softmax(x.float(), 1) if norm_type == 0 else torch.sigmoid(x.float()):
            by = row + bias.float()
            if groups > 1:
                parts = by.view(groups, -1).sort(1, descending=True).values
                rank = parts[:, :2].sum(1) if by_two else parts[:, 0]
                left = set(range(groups)) - set(best(rank, kept))
                for g in left:
                    by[4 * g : 4 * g + 4] = -torch.inf
            chosen.append(best(by, 4))
        index = torch.tensor(chosen)
        y = norm.gather(1, index)
        if norm_type == 1 or renorm == 1:
            y = y / y.sum(1, True)
        y = 2.5 * y
        out = (empty(TOKENS, 4, dtype=dtype), ints(TOKENS, 4), empty(TOKENS, 16))
        got = call("aclnnMoeGatingTopK", x, bias, 4, kept, groups, by_two, renorm, norm_type, True,
                   2.5, 1e-20, *out)  # fmt: skip
        assert got[1].tolist() == chosen
        assert [miss(got[0], y.detach()), miss(got[2], norm.detach())] == ["", ""]
        dy = random(TOKENS, 4, dtype=dtype)
        (y * dy.double()).sum().backward()
        (back,) = call("aclnnMoeGatingTopKBackward", got[2], dy, got[1], renorm, norm_type, 2.5,
                       1e-20, empty(TOKENS, 16, dtype=dtype))  # fmt: skip
        assert miss(back, wide.grad, slack=1e-5) == ""


def test_experts_of_a_table_of_ids():
    x = random(TOKENS, 16)
    ids = random(TOKENS, low=0, high=3, dtype=torch.int64)
    table = torch.tensor([[3, 1, 5], [2, 9, 15], [0, 7, 4], [8, 11, 6]]).int()
    index = table[ids, :2].long()
    norm = torch.nn.functional.softplus(x.double()).sqrt()
    got = call("aclnnMoeGatingTopKV2", x, None, ids, table, 2, 1, 1, 0, 0, 2, True, 1.5, 1e-20,
               empty(TOKENS, 2), ints(TOKENS, 2), empty(TOKENS, 16))  # fmt: skip
    assert torch.equal(got[1], index.int())
    assert [miss(got[0], 1.5 * norm.gather(1, index)), miss(got[2], norm)] == ["", ""]


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_all_experts_or_of_the_best(dtype):
    x, finished = random(2, 4, 16, dtype=dtype), torch.arange(8).view(2, 4) % 3 == 0
    soft = torch.softmax(x.double(), -1)
    index = torch.tensor([best(row, 3) for row in x.view(8, 16)]).view(2, 4, 3)
    expected = soft.gather(-1, index)
    marked = index.masked_fill(finished.unsqueeze(-1), 16)
    got = call("aclnnMoeGatingTopKSoftmax", x, finished, 3, empty(2, 4, 3, dtype=dtype),
               ints(2, 4, 3), ints(2, 4, 3))  # fmt: skip
    assert miss(got[0], expected) == ""
    assert torch.equal(got[1], marked.int())
    rows = torch.arange(3) * 8 + torch.arange(8)[:, None]
    assert torch.equal(got[2], rows.view(2, 4, 3).int())
    for renorm in (0, 1):
        got = call("aclnnMoeGatingTopKSoftmaxV2", x, finished, 3, renorm, True,
                   empty(2, 4, 3, dtype=dtype), ints(2, 4, 3), empty(2, 4, 16))  # fmt: skip
        chosen = torch.softmax(x.double().gather(-1, index), -1)
        assert miss(got[0], chosen if renorm else expected) == ""
        assert torch.equal(got[1], marked.int())
        if not renorm:
            assert miss(got[2], soft) == ""
