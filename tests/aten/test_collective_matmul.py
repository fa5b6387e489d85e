# SPDX-License-Identifier: Apache-2.0
"""Products joined with collectives, on two ranks, against what one process computes from the
arguments of both.
"""

from __future__ import annotations

import os
import time

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.quantised_support import HALVES, Refused, miss, random
from tests.aten.rank_threads import RANKS, on_ranks, start

M, K, N = 6, 40, 8


def operands(dtype, *shapes):
    """Of each rank."""
    return [[random(*shape, seed=7 * r + i, dtype=dtype) for i, shape in enumerate(shapes)]
            for r in range(RANKS)]  # fmt: skip


def product(x, w, bias=0):
    return x.double() @ w.double() + bias


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("version", ["", "V2"])
def test_all_gather(dtype, version):
    given = operands(dtype, (M, K), (K, N), (N,))
    gathered = torch.cat([x for x, _, _ in given])

    def run(rank):
        x, w, b = given[rank.rank]
        out = torch.empty(RANKS * M, N, dtype=dtype), torch.empty(RANKS * M, K, dtype=dtype)
        if version:
            return rank.call("aclnnAllGatherMatmulV2", x, w, b, None, None, None, 0, "group", 0, 0,
                             1, 0, "", *out, None)  # fmt: skip
        return rank.call("aclnnAllGatherMatmul", x, w, b, "group", 0, 0, 1, *out)

    for (out, all_x), (_, w, b) in zip(on_ranks(run), given, strict=True):
        assert miss(out, product(gathered, w, b.double())) == ""
        assert torch.equal(all_x, gathered)


@pytest.mark.parametrize("dtype", HALVES)
def test_reduce_scatter(dtype):
    given = operands(dtype, (M, K), (K, N), (N,))
    total = sum(product(x, w, b.double()) for x, w, b in given)

    def run(rank):
        x, w, b = given[rank.rank]
        return rank.call("aclnnMatmulReduceScatter", x, w, b, "group", "sum", 0, 1,
                         torch.empty(M // RANKS, N, dtype=dtype))  # fmt: skip

    for part, (out,) in zip(total.chunk(RANKS), on_ranks(run), strict=True):
        assert miss(out, part) == ""


@pytest.mark.parametrize("dtype", HALVES)
def test_all_reduce_adds_bias_and_x3_of_every_rank(dtype):
    given = operands(dtype, (2, M, K), (K, N), (N,), (2, M, N))
    total = sum(product(x, w, b.double()) + x3.double() for x, w, b, x3 in given)

    def run(rank):
        x, w, b, x3 = given[rank.rank]
        words = ("group", "sum", "", 0, 1)
        return rank.call("aclnnMatmulAllReduceV3", x, w, b, x3, *words, torch.empty_like(x3))

    for (out,) in on_ranks(run):
        assert miss(out, total) == ""


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("kind", ["", "Quant", "WeightQuant"])
def test_all_reduce_and_norm(kind, inplace):
    dtype = torch.bfloat16
    residual, gamma = random(1, M, N, seed=3, dtype=dtype), random(N, seed=4, dtype=dtype)
    given = operands(dtype, (M, K), (K, N))
    scale = random(N, seed=5, low=0.01, high=0.02, dtype=dtype)
    for rank in given:
        if kind:
            rank[1] = random(K, N, seed=int(rank[0][0, 0] > 0), low=-99, high=99,
                             dtype=torch.int8)  # fmt: skip
        if kind == "Quant":
            rank[0] = random(M, K, seed=1, low=-9, high=9, dtype=torch.int8)
    total = sum(product(x, w) for x, w in given) * (scale.double() if kind else 1)
    y = residual.double() + total
    norm = y / (y.square().mean(-1, True) + 1e-5).sqrt() * gamma.double()

    def run(rank):
        x, w = given[rank.rank]
        scales = {"": [], "Quant": [scale], "WeightQuant": [scale, None]}[kind]
        size = [0] if kind == "WeightQuant" else []
        own = residual.clone()
        out = [torch.empty_like(own)] if inplace else [torch.empty_like(own), torch.empty_like(own)]
        form = "Inplace" if inplace else ""
        return rank.call(f"aclnn{form}{kind}MatmulAllReduceAddRmsNorm", x, w, None, *scales, own,
                         gamma, 1e-5, "group", "sum", 0, 1, *size, *out)  # fmt: skip

    for got, normalised in on_ranks(run):
        assert miss(got, y, slack=1e-5) == ""
        assert miss(normalised, norm, slack=1e-5) == ""


def test_quantised_all_reduce():
    x = [random(M, K, seed=r, low=-99, high=99, dtype=torch.int8) for r in range(RANKS)]
    w = [random(K, N, seed=9 + r, low=-99, high=99, dtype=torch.int8) for r in range(RANKS)]
    token, scale = random(M, low=0.001, high=0.01), random(N, low=0.01, high=0.1)
    total = sum(product(a, b) for a, b in zip(x, w, strict=True)) * scale * token[:, None].double()

    def run(rank):
        r, out = rank.rank, torch.empty(M, N, dtype=torch.float16)
        words = (None, None, "group", "sum")
        v4 = rank.call("aclnnQuantMatmulAllReduceV4", x[r], w[r], None, None, token, scale, *words,
                       0, 1, 0, 0, out)  # fmt: skip
        v3 = rank.call("aclnnQuantMatmulAllReduceV3", x[r], w[r], None, None, scale, token, *words,
                       0, 1, out.clone())  # fmt: skip
        return v4 + v3

    for v4, v3 in on_ranks(run):
        assert miss(v4, total) == ""
        assert torch.equal(v3, v4)


@pytest.mark.parametrize("dtype", HALVES)
def test_rows_and_columns_to_all(dtype):
    h = K // RANKS
    given = operands(dtype, (M, h), (K, N))
    left = [torch.cat([x.chunk(RANKS)[d] for x, _ in given], 1) for d in range(RANKS)]
    columns = [product(x, w[:h]).to(dtype) for x, w in given]

    def run(rank):
        x, w = given[rank.rank]
        out = torch.empty(M // RANKS, N, dtype=dtype), torch.empty(M // RANKS, K, dtype=dtype)
        first = rank.call("aclnnAlltoAllMatmul", x, w.t().contiguous(), None, [-2, -1], "group",
                          False, True, *out)  # fmt: skip
        return first + rank.call("aclnnMatmulAlltoAll", x, w[:h], None, None, "group", False, False,
                                 torch.empty(RANKS * M, N // RANKS, dtype=dtype))  # fmt: skip

    for d, (out, received, blocks) in enumerate(on_ranks(run)):
        assert torch.equal(received, left[d])
        assert miss(out, product(left[d], given[d][1])) == ""
        expected = torch.cat([y.chunk(RANKS, 1)[d] for y in columns])
        assert miss(blocks, expected.double(), slack=1e-3) == ""


EXPERTS = 3
SENT = [[2, 0, 1, 3, 1, 0], [1, 1, 0, 0, 2, 2]]  # number rank * EXPERTS + expert
RECEIVED = [SENT[0][:3] + SENT[1][:3], SENT[0][3:] + SENT[1][3:]]


def test_rows_of_experts_there_and_back():
    dtype = torch.bfloat16
    x = [random(sum(SENT[r]), K, seed=r, dtype=dtype) for r in range(RANKS)]
    w = [random(EXPERTS, K, N, seed=5 + r, dtype=dtype) for r in range(RANKS)]
    blocks = [x[r].split(SENT[r]) for r in range(RANKS)]
    rows = [torch.cat([blocks[s][r * EXPERTS + e] for e in range(EXPERTS) for s in range(RANKS)])
            for r in range(RANKS)]  # fmt: skip
    expert = [[e for e in range(EXPERTS) for s in range(RANKS)
               for _ in range(SENT[s][r * EXPERTS + e])] for r in range(RANKS)]  # fmt: skip

    def run(rank):
        r = rank.rank
        many = sum(RECEIVED[r])
        y, back = torch.empty(many, N, dtype=dtype), torch.empty_like(rows[r])
        shared = torch.empty(len(x[r]), N, dtype=dtype)
        there = rank.call("aclnnAlltoAllvGroupedMatMul", x[r], w[r], None, None, x[r], w[r][0],
                          "group", RANKS, SENT[r], RECEIVED[r], False, False, True, y, shared,
                          back)  # fmt: skip
        same = torch.eye(K, dtype=dtype).expand(EXPERTS, K, K).contiguous()
        return there + rank.call(
            "aclnnGroupedMatMulAlltoAllv", there[2], same, None, None, None, None, "group", RANKS,
            RECEIVED[r], SENT[r], True, False, torch.empty_like(x[r]), None)  # fmt: skip

    for r, (y, shared, permuted, home) in enumerate(on_ranks(run)):
        assert torch.equal(permuted, rows[r])
        assert miss(y, torch.einsum("rk,rkn->rn", rows[r].double(), w[r].double()[expert[r]])) == ""
        assert miss(shared, product(x[r], w[r][0])) == ""
        assert torch.equal(home, x[r])


def refused_with(name, *values):
    def run(rank):
        with pytest.raises(Refused) as refusal:
            rank.call(name, *(v(rank.rank) if callable(v) else v for v in values))
        return str(refusal.value)

    return on_ranks(run)


def test_refusals():
    x, w, out = torch.zeros(4, 3), torch.zeros(3, 2), torch.zeros(4, 2)
    words = ("group", "sum", 0, 1, out)
    for change, sentence in [
        (("nobody", *words[1:]), "group must be the name of a communicator of this process"),
        ((words[0], "max", *words[2:]), "reduceOp must be sum, but got max"),
    ]:
        said = refused_with("aclnnMatmulAllReduce", x, w, None, *change)
        assert all(sentence in s for s in said)
    said = refused_with("aclnnMatmulAllReduce", x, w.half(), None, *words)
    assert all("x1 and x2 must have one dtype" in s for s in said)
    said = refused_with("aclnnAllGatherMatmul", x, w, None, "group", 1, 0, 1, torch.zeros(8, 2),
                        None)  # fmt: skip
    assert all("gatherIndex must be 0" in s for s in said)
    odd = torch.zeros(3, 3)
    said = refused_with("aclnnMatmulReduceScatter", odd, w, None, *words)
    assert all("divisible by the 2 ranks" in s for s in said)
    # Ranks that disagree are refused on both, and work afterwards.
    said = refused_with("aclnnMatmulAllReduce", lambda r: torch.zeros(4 + r, 3), w, None,
                        *words[:4], lambda r: torch.zeros(4 + r, 2))  # fmt: skip
    assert all("ranks must pass the same operator, sizes and dtype" in s for s in said)
    counts = ([2, 2], [2, 2])
    said = refused_with("aclnnAlltoAllvGroupedMatMul", x, torch.zeros(1, 3, 2), None, None, None,
                        None, "group", 2, counts[0], lambda r: [2, 2 - r], False, False, True,
                        lambda r: torch.zeros(4 - r, 2), None, None)  # fmt: skip
    assert all("recvCounts of each rank must be the sendCounts" in s for s in said)
    assert [len(got) for got in on_ranks(lambda r: r.call("aclnnMatmulAllReduce", x, w, None,
                                                          *words))] == [1, 1]  # fmt: skip


@pytest.mark.parametrize("place", [8, 9])
def test_counts_beyond_the_rows(place):
    counts = [[1, 1, 1, 1], [1, 1, 1, 1]]
    counts[place - 8] = [2**40, 2**40, 2**40, 4]
    name = ["sendCounts", "recvCounts"][place - 8]
    said = refused_with("aclnnAlltoAllvGroupedMatMul", torch.zeros(4, 3), torch.zeros(2, 3, 2),
                        None, None, None, None, "group", 2, *counts, False, False, True,
                        torch.zeros(4, 2), None, None)  # fmt: skip
    assert all(f"{name} must be at least 0 and sum to the 4 rows of" in s for s in said)


def test_ranks_with_different_operators_or_dtypes():
    x, w, out = torch.zeros(4, 3), torch.zeros(1, 3, 2), torch.zeros(4, 2)
    given = x, w, None, None, None, None, "group", 2, [2, 2], [2, 2], False, False

    def run(rank):
        name, *last = [("aclnnAlltoAllvGroupedMatMul", False, out, None, None),
                       ("aclnnGroupedMatMulAlltoAllv", out, None)][rank.rank]  # fmt: skip
        with pytest.raises(Refused) as refusal:
            rank.call(name, *given, *last)
        return str(refusal.value)

    assert all("ranks must pass the same operator" in said for said in on_ranks(run))
    said = refused_with(
        "aclnnAlltoAllMatmul", lambda r: x.to(HALVES[r]), lambda r: torch.zeros(6, 2).to(HALVES[r]),
        None, None, "group", False, False, lambda r: torch.zeros(2, 2).to(HALVES[r]),
        None)  # fmt: skip
    assert all("ranks must pass the same operator, sizes and dtype" in s for s in said)


def test_connections_of_operators_close_with_their_communicator():
    def sockets():
        found = 0
        for number in os.listdir("/proc/self/fd"):
            try:
                found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
            except FileNotFoundError:  # closed meanwhile
                continue
        return found

    x, w, out = torch.zeros(4, 3), torch.zeros(3, 2), torch.zeros(4, 2)

    def run(rank):
        rank.call("aclnnMatmulAllReduce", x, w, None, "group", "sum", 0, 1, out)

    on_ranks(run)  # what all communicators share stays open
    before = sockets()
    threads, ranks = start()
    for step in (run, lambda rank: rank.destroy()):
        for future in [t.submit(step, r) for t, r in zip(threads, ranks, strict=True)]:
            future.result(60)
    end = time.monotonic() + 10
    while sockets() > before and time.monotonic() < end:  # the other side closes on its thread
        time.sleep(0.01)
    assert sockets() == before
    on_ranks(run)
