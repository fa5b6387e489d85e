# SPDX-License-Identifier: Apache-2.0
"""Tokens that go to experts of two ranks and back, against loops over the tokens of both."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.quantised_support import HALVES, Refused, miss, random
from tests.aten.rank_threads import RANKS, on_ranks

TOKENS, CHOICES, HIDDEN = 5, 2, 12


class Layer:
    def __init__(self, dtype, experts=4, shared=0, seed=0):
        self.experts, self.shared, self.dtype = experts, shared, dtype
        self.local = experts // (RANKS - shared)
        self.x = [random(TOKENS, HIDDEN, seed=seed + r, dtype=dtype) for r in range(RANKS)]
        self.ids = [random(TOKENS, CHOICES, seed=seed + 5 + r, low=0, high=experts - 1,
                           dtype=torch.int32) for r in range(RANKS)]  # fmt: skip
        self.gates = [random(TOKENS, CHOICES, seed=seed + 9 + r, low=0, high=1)
                      for r in range(RANKS)]  # fmt: skip
        self.active = [torch.arange(TOKENS) < TOKENS - r for r in range(RANKS)]

    def words(self, rank):
        shared = (1, self.shared) if self.shared else (0, 0)
        return "group", RANKS, rank, self.experts, "", 1, 0, 0, *shared

    def rows(self, rank):
        """(local expert, source, token, choice) of each row that arrives; -1 is a shared expert."""
        found = []
        for s in range(RANKS):
            for t in range(TOKENS):
                if not self.active[s][t]:
                    continue
                if rank < self.shared:
                    found.append((0, s, t, -1))
                for k in range(CHOICES):
                    e = int(self.ids[s][t, k])
                    if 0 <= e < self.experts and self.shared + e // self.local == rank:
                        found.append((e % self.local, s, t, k))
        return sorted(found, key=lambda row: row[0])

    def dispatch(self, rank, scales=None, quant=0, kind=1):
        r, many = rank.rank, RANKS * TOKENS * CHOICES
        own = 1 if r < self.shared else self.local
        number = dict(dtype=torch.int32)
        out = [
            torch.empty(many, HIDDEN, dtype=torch.int8 if quant else self.dtype),
            torch.empty(many), torch.empty(many * 128, **number),
            torch.empty(own, dtype=torch.int64), torch.empty(RANKS * own, **number),
            torch.empty(1, **number), torch.empty(many),
        ]  # fmt: skip
        return rank.call("aclnnMoeDistributeDispatchV2", self.x[r], self.ids[r], scales,
                         self.active[r], self.gates[r], *self.words(r), quant, 0, kind, "",
                         *out)  # fmt: skip

    def combine(self, rank, rows, sent, shared_x=None):
        r = rank.rank
        return rank.call("aclnnMoeDistributeCombineV2", rows, self.ids[r], torch.zeros(9).int(),
                         sent[4], self.gates[r], None, self.active[r], None, None, None, sent[6],
                         shared_x, *self.words(r), 0, 0, 0, 0, "",
                         torch.empty_like(self.x[r]))[0]  # fmt: skip


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("dtype", HALVES)
def test_dispatch_and_combine(dtype, shared):
    layer = Layer(dtype, shared=shared)
    added = random(TOKENS, HIDDEN, seed=40, dtype=dtype)

    def run(rank):
        sent = layer.dispatch(rank)
        ends = layer.dispatch(rank, kind=0)[3]
        scaled = (sent[0].float() * (2 + rank.rank)).to(dtype)  # the experts
        return sent, ends, layer.combine(rank, scaled, sent, added)

    found = on_ranks(run)
    for r, (sent, ends, out) in enumerate(found):
        rows = layer.rows(r)
        assert torch.equal(sent[0][: len(rows)],
                           torch.stack([layer.x[s][t] for _, s, t, _ in rows]))  # fmt: skip
        assert not sent[0][len(rows) :].any()
        counts = [sum(row[0] == e for row in rows) for e in range(len(sent[3]))]
        assert sent[3].tolist() == counts
        assert ends.tolist() == torch.tensor(counts).cumsum(0).tolist()
        places = [(e, s) for e in range(len(counts)) for s in range(RANKS)]
        assert sent[4].tolist() == [sum(row[:2] <= place for row in rows) for place in places]
        gates = [1 if k < 0 else float(layer.gates[s][t, k]) for _, s, t, k in rows]
        assert sent[6][: len(rows)].tolist() == gates
        expected = torch.zeros(TOKENS, HIDDEN, dtype=torch.float64)
        for owner in range(RANKS):
            for _, s, t, k in layer.rows(owner):
                if s == r:
                    gate = 1 if k < 0 else float(layer.gates[s][t, k])
                    scaled = (layer.x[s][t].float() * (2 + owner)).to(dtype)
                    expected[t] += gate * scaled.double()
        expected += added.double()
        expected[~layer.active[r]] = 0
        assert miss(out, expected) == ""


def test_rows_are_quantised_with_the_scales_of_their_experts():
    layer = Layer(torch.float16)
    scales = random(layer.experts, HIDDEN, low=0.5, high=2)

    for r, sent in enumerate(on_ranks(lambda rank: layer.dispatch(rank, scales, 2))):
        for i, (e, s, t, _) in enumerate(layer.rows(r)):
            row = layer.x[s][t].float() * scales[r * layer.local + e]
            scale = row.abs().max() / 127
            assert sent[1][i] == scale
            assert torch.equal(sent[0][i], torch.round(row / scale).to(torch.int8))


@pytest.mark.parametrize("quant", [0, 2])
def test_a_rank_receives_no_rows(quant):
    layer = Layer(torch.float16)
    layer.ids = [torch.zeros(TOKENS, CHOICES, dtype=torch.int32)] * RANKS

    def run(rank):
        sent = layer.dispatch(rank, quant=quant)
        return sent, None if quant else layer.combine(rank, sent[0], sent)

    found = on_ranks(run)
    assert found[0][0][3].tolist() == [len(layer.rows(0)), 0]
    written = [0, *([1] if quant else []), 2, 3, 4, 5, 6]
    assert not any(found[1][0][i].any() for i in written)
    for r, (_, out) in enumerate(found):
        expected = layer.gates[r].double().sum(1, keepdim=True) * layer.x[r].double()
        expected[~layer.active[r]] = 0
        assert quant or miss(out, expected) == ""


def test_a_rank_has_no_tokens():
    layer = Layer(torch.float16)
    for each in (layer.x, layer.ids, layer.gates, layer.active):
        each[1] = each[1][:0]

    def run(rank):
        sent = layer.dispatch(rank)
        return layer.combine(rank, sent[0], sent)

    out, none = on_ranks(run)
    expected = layer.gates[0].double().sum(1, keepdim=True) * layer.x[0].double()
    assert miss(out, expected) == ""
    assert none.shape == (0, HIDDEN)


def test_experts_without_a_rank_and_a_norm():
    """Number 4 adds nothing, 5 the token, 6 and 7 constants."""
    dtype = torch.bfloat16
    layer = Layer(dtype)
    layer.ids = [torch.tensor([[4, 0], [5, 1], [6, 2], [7, 3], [5, 5]]).int() for _ in range(RANKS)]
    layer.active = [torch.ones(TOKENS, dtype=torch.bool)] * RANKS
    a1, a2, v = random(2), random(2, seed=1), random(2, HIDDEN)
    residual = random(TOKENS, 1, HIDDEN, seed=3, dtype=dtype)
    gamma = random(HIDDEN, seed=4, dtype=dtype)

    def run(rank):
        r, sent = rank.rank, layer.dispatch(rank)
        y, x = torch.empty_like(residual), torch.empty_like(residual)
        return rank.call(
            "aclnnMoeDistributeCombineAddRmsNormV2", sent[0], layer.ids[r], sent[2], sent[4],
            layer.gates[r], residual, gamma, None, None, None, None, None, None, None, None,
            layer.x[r], a1, a2, v, *layer.words(r), 0, 0, 0, 0, "", 1e-5, 1, 1, 2, y,
            torch.empty(TOKENS, 1, 1), x)  # fmt: skip

    for r, (y, rstd, x) in enumerate(on_ranks(run)):
        total = residual.double()[:, 0].clone()
        for t in range(TOKENS):
            own = layer.x[r][t].double()
            for k in range(CHOICES):
                e, c = int(layer.ids[r][t, k]), int(layer.ids[r][t, k]) - 6
                value = own if e != 4 else 0 * own
                if c >= 0:
                    value = a1[c].double() * own + a2[c].double() * v[c].double()
                total[t] += layer.gates[r][t, k].double() * value
        scale = 1 / (total.square().mean(-1, True) + 1e-5).sqrt()
        assert miss(x[:, 0], total) == ""
        assert miss(rstd[:, 0], scale) == ""
        assert miss(y[:, 0], total * scale * gamma.double()) == ""


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (5, "nobody", 'groupEp must be the name of a communicator of this process'),
        (6, 3, "epWorldSize and epRankId must be those of the communicator"),
        (8, 3, "moeExpertNum must be divisible by 2"),
        (8, 10**9, "moeExpertNum and sharedExpertNum must be at most 65536"),
        (13, -1, "at most 65536 and not negative, but are 4 and -1"),
        (10, 2, "tpWorldSize must be 0 or 1, but got 2"),
        (15, 3, "quantMode must be 0, none, or 2, dynamic INT8, but got 3"),
        (2, torch.zeros(3, HIDDEN), "scales must have shape"),
        (3, torch.zeros(3, dtype=torch.bool), "xActiveMask must have shape"),
    ],
)  # fmt: skip
def test_refusals(place, value, sentence):
    layer = Layer(torch.float16)

    def run(rank):
        plain = rank.call

        def changed(name, *words):
            return plain(name, *words[:place], value, *words[place + 1 :])

        rank.call = changed
        try:
            layer.dispatch(rank)
        except Refused as refusal:
            return str(refusal)
        finally:
            del rank.call

    assert all(sentence in said for said in on_ranks(run))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_experts_without_a_rank_are_bounded(place):
    numbers = [0, 0, 0]
    numbers[place] = 2**31
    layer = Layer(torch.float16)

    def run(rank):
        plain = rank.call

        def newer(name, *words):
            return plain("aclnnMoeDistributeDispatchV3", *words[:5], None, *words[5:19], *numbers,
                         *words[19:])  # fmt: skip

        rank.call = newer
        try:
            with pytest.raises(Refused) as refusal:
                layer.dispatch(rank)
        finally:
            del rank.call
        return str(refusal.value)

    for said in on_ranks(run):
        assert "constExpertNum must be at least 0 and at most 2147483647, but one is" in said


def test_ranks_in_different_operators_are_refused_on_both():
    layer = Layer(torch.float16)
    rows = torch.zeros(RANKS * TOKENS * CHOICES, HIDDEN, dtype=torch.float16)
    counts = torch.zeros(RANKS * layer.local, dtype=torch.int32)

    def run(rank):
        sent = [None] * 4 + [counts, None, rows[:, 0].float()]
        with pytest.raises(Refused) as refusal:
            layer.combine(rank, rows, sent) if rank.rank else layer.dispatch(rank)
        return str(refusal.value)

    assert all("ranks must pass the same operator" in said for said in on_ranks(run))
    assert len(on_ranks(layer.dispatch)) == RANKS  # and work afterwards
