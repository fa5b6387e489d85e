# SPDX-License-Identifier: Apache-2.0
"""Choosing tokens by their logits, and steps of a batch of requests, against loops over rows."""

from __future__ import annotations

import itertools

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.golden import FLOATS, call

Tensor = torch.Tensor
B, V = 3, 40


def logits_of(dtype: torch.dtype, seed: int = 1) -> Tensor:
    """With ties."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand((B, V), generator=random) * 8 - 4
    x[1, 5:9] = x[1, 20]
    return x.to(dtype)


# ---- logits that are not kept ----


def kept(row: Tensor, k: int | None, p: float | None) -> Tensor:
    x = row.float().tolist()
    order = sorted(range(V), key=lambda i: x[i])  # stable
    keep = [True] * V
    if k is not None:
        least = x[order[V - k]]
        keep = [value >= least for value in x]
    if p is not None:
        left = torch.tensor([x[i] if keep[i] else -torch.inf for i in order])
        sums = torch.softmax(left, 0).cumsum(0)
        for rank in range(V - 1):
            if sums[rank] <= 1 - p:
                keep[order[rank]] = False
    return torch.tensor(keep)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("given", ["k", "p", "k and p"])
def test_logits_are_kept_by_number_and_by_probability(given, dtype):
    logits = logits_of(dtype)
    k = torch.tensor([5, V, 1], dtype=torch.int32) if "k" in given else None
    p = torch.tensor([0.5, 0.9, 0.0]).to(dtype) if "p" in given else None
    got = call("aclnnApplyTopKTopP", logits, p, k, torch.full_like(logits, 77))[0]
    for b in range(B):
        keep = kept(logits[b], None if k is None else int(k[b]), None if p is None else float(p[b]))
        assert torch.equal(got[b], torch.where(keep, logits[b], -torch.inf))


# ---- a token of each row ----


def sampled(row, k, p, q, min_p, eps, most, is_logits):
    """The chosen place, the places and their probabilities, in order."""
    x = row.float()
    use_k = 1 <= k <= most
    if not use_k and p >= 1 and min_p < 1:
        places = list(range(V))
        pr = torch.softmax(x, 0) if is_logits else x
    else:
        places = sorted(range(V), key=lambda i: -x[i].item())
        if use_k:
            places = places[:k]
        pr = torch.softmax(x[places], 0) if is_logits else x[places]
        count = len(places)
        if p <= 0:
            count, pr = 1, torch.ones(1) if is_logits else pr
        elif p < 1:
            before = pr.cumsum(0) - pr
            count = max(1, sum(bool(value < p) for value in before))
        if min_p >= 1:
            count = 1
        places, pr = places[:count], pr[:count]
    if 0 < min_p < 1:
        stay = [i for i in range(len(places)) if pr[i] >= pr.max() * min_p]
        places, pr = [places[i] for i in stay], pr[stay]
    rank = pr if q is None else pr / (q[: len(places)].abs() + eps)
    return places[int(rank.argmax())], places, pr


CASES = [
    *itertools.product(
        (torch.float32, torch.float16), (True, False), (True, False), (0.0, 0.1, 1.0), (8, 64)
    )
]


@pytest.mark.parametrize(("dtype", "is_logits", "has_q", "min_p", "most"), CASES)
def test_tokens_are_chosen_among_the_most_probable(dtype, is_logits, has_q, min_p, most):
    logits = logits_of(dtype) if is_logits else torch.softmax(logits_of(dtype).float(), 1).to(dtype)
    top_k = torch.tensor([5, 0, 20], dtype=torch.int32)
    q = torch.rand(B, V, generator=torch.Generator().manual_seed(3)) if has_q else None
    mins = torch.full((B,), min_p, dtype=dtype)
    for p in (0.0, 0.6, 1.0):
        top_p = torch.full((B,), p, dtype=dtype)
        outs = [torch.zeros(B, dtype=torch.int64), torch.zeros(B, V),
                torch.zeros(B, V, dtype=torch.int64), torch.zeros(B, V)]  # fmt: skip
        call("aclnnTopKTopPSampleV2", logits, top_k, top_p, q, mins, 1e-8, True, 32, most,
             is_logits, True, *outs)  # fmt: skip
        for b in range(B):
            chosen, places, pr = sampled(
                logits[b], int(top_k[b]), float(top_p[b]), None if q is None else q[b],
                float(mins[b]), 1e-8, most, is_logits)  # fmt: skip
            count = len(places)
            assert outs[0][b] == chosen
            assert outs[2][b, :count].tolist() == places
            assert torch.allclose(outs[3][b, :count], pr, 1e-6, 1e-7)
            assert (outs[2][b, count:] == 0).all()
            assert (outs[3][b, count:] == 0).all()
            expected = torch.full((V,), -torch.inf if is_logits else 0.0)
            expected[places] = logits[b].float()[places]
            assert torch.equal(outs[1][b], expected)


def test_the_first_version_has_no_least_probability_and_no_results():
    logits, q = logits_of(torch.bfloat16), torch.rand(B, V) + 0.1
    top_k, top_p = torch.tensor([5, 2, 0], dtype=torch.int32), torch.tensor([0.9, 0.5, 0.3])
    top_p = top_p.bfloat16()
    index, rest = torch.zeros(B, dtype=torch.int64), torch.empty(0)
    call("aclnnTopKTopPSample", logits, top_k, top_p, q, 1e-8, False, 32, index, rest)
    for b in range(B):
        wanted = sampled(logits[b], int(top_k[b]), float(top_p[b]), q[b], 0.0, 1e-8, V, True)
        assert index[b] == wanted[0]


# ---- steps ----


def test_a_step_takes_the_sampled_tokens_and_the_next_slots():
    tokens, positions, slots = (torch.tensor([9, 9, 9, 9]) for _ in range(3))
    lengths = torch.tensor([5, 2, 8, 3])
    tables = torch.tensor([[4, 1, 7], [2, 0, 5], [3, 6, 8], [9, 9, 9]], dtype=torch.int32)
    call("aclnnAdvanceStep", tokens, torch.tensor([[11], [12], [13]]), positions, lengths, slots,
         tables, 4, 3, 4)  # fmt: skip
    assert tokens.tolist() == [11, 12, 13, 0]
    assert positions.tolist() == [5, 2, 8, 0]
    assert lengths.tolist() == [6, 3, 9, 3]
    assert slots.tolist() == [1 * 4 + 1, 2 * 4 + 2, 8 * 4 + 0, -1]


def test_a_step_with_proposed_tokens_moves_by_the_accepted_ones():
    tokens, lengths, slots = (torch.zeros(6, dtype=torch.int64) for _ in range(3))
    positions = torch.tensor([4, 5, 6, 1, 2, 3])
    sampled_ids = torch.tensor([[21, 22, -1], [31, 32, 33]])
    proposed = torch.tensor([[41, 42], [51, 52]])
    tables = torch.tensor([[4, 1, 7], [2, 0, 5]], dtype=torch.int32)
    call("aclnnAdvanceStepV2", tokens, sampled_ids, positions, lengths, slots, tables, proposed,
         torch.tensor([1, 2]), 6, 2, 4)  # fmt: skip
    assert tokens.tolist() == [22, 41, 42, 33, 51, 52]
    assert positions.tolist() == [6, 7, 8, 4, 5, 6]
    assert lengths.tolist() == [7, 8, 9, 5, 6, 7]
    assert slots.tolist() == [6, 7, 28, 0, 1, 2]
