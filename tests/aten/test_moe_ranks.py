# SPDX-License-Identifier: Apache-2.0
"""Rows of several ranks and copies of experts, by loops."""

from __future__ import annotations

import pytest
from tests.aten.quantised_support import call, random, torch
from tests.aten.test_moe import HIDDEN, empty, inverse


def test_rows_of_ranks_are_reordered_by_expert():
    counts = torch.tensor([[2, 3, 0], [1, 0, 4]])
    tokens, scales = random(12, HIDDEN), random(12)  # two rows belong to nobody
    order = [0, 1, 5, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    for kind, totals in ((1, [3, 3, 4]), (0, [3, 6, 10])):
        for of, index in ((0, order), (1, inverse(order))):
            out = (empty(12, HIDDEN), empty(12), empty(12, dtype=torch.int32))
            last = empty(3, dtype=torch.int64)
            got = call("aclnnMoeReRouting", tokens, counts, scales, kind, of, *out, last)
            assert torch.equal(got[0], tokens[order])
            assert torch.equal(got[1], scales[order])
            assert (got[2].tolist(), got[3].tolist()) == (index, totals)


def test_counts_of_more_rows_than_there_are_end_at_the_last():
    counts, tokens = torch.tensor([[2, 3], [9, 9]]), random(7, HIDDEN)
    got = call("aclnnMoeReRouting", tokens, counts, None, 1, 0, empty(7, HIDDEN), empty(7),
               empty(7, dtype=torch.int32), empty(2, dtype=torch.int64))  # fmt: skip
    assert got[2].tolist() == [0, 1, 5, 6, 2, 3, 4]
    assert torch.equal(got[1], torch.ones(7))


def test_tokens_of_experts_are_counted_in_sorted_ids():
    (got,) = call("aclnnMoeComputeExpertTokens", torch.tensor([0, 0, 2, 2, 2, 3]).int(), 5,
                  empty(5, dtype=torch.int32))  # fmt: skip
    assert got.tolist() == [2, 2, 5, 6, 6]


@pytest.mark.parametrize("mode", [0, 1])
def test_experts_are_spread_over_their_copies(mode):
    table = torch.tensor([[1, 7, 0, 0], [2, 3, 9, 0], [3, 1, 4, 8]]).int()
    ids = torch.tensor([[0, 1], [2, 1], [2, 5], [1, -1]])  # 5 and -1 are in no table
    rank, world = 5, 8
    expected = ids.clone()
    for i in range(len(ids)):
        for k in range(2):
            if 0 <= (e := int(ids[i, k])) < 3:
                copies = int(table[e, 0])
                copy = rank // -(-world // copies) if mode == 0 else i % copies
                expected[i, k] = table[e, copy + 1]
    scales = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]])
    threshold, active = torch.tensor([0.3, 0.3]), torch.tensor([True, True, False, True])
    got, kept = call("aclnnMoeUpdateExpert", ids, table, scales, threshold, active, rank, world,
                     mode, ids.clone(), torch.zeros(4, 2, dtype=torch.bool))  # fmt: skip
    assert torch.equal(got, expected)
    assert kept.tolist() == [[True, False], [True, True], [False, False], [True, True]]
