# SPDX-License-Identifier: Apache-2.0
"""Attention for inference against attention with every score written out: layouts, masks, lengths,
biases, sinks, rope.
"""

from __future__ import annotations

import ctypes
import subprocess
from typing import Any

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import arguments, samples, torch
from tests.aten.attention_reference import visible
from tests.aten.golden import call, grown, library
from tests.aten.inference_calls import (
    KV,
    SMALL,
    B,
    D,
    K,
    L,
    N,
    Q,
    S,
    V,
    agree,
    both,
    drawn,
    empty,
    expected,
    infer,
)
from tests.aten.refusals import home

from openaclnn.aten.prototypes import WITH_MAXIMUM

Tensor = torch.Tensor

# ---- layouts ----

TO = {
    "BNSD": lambda x: x, "BSND": lambda x: x.transpose(1, 2),
    "BSH": lambda x: x.transpose(1, 2).flatten(2), "NBSD": lambda x: x.transpose(0, 1),
}  # fmt: skip


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "layout", ["BNSD", "BSND", "BSH", "BNSD_BSND", "BSH_BNSD", "BSND_BNSD", "BSH_NBSD",
               "BSND_NBSD", "BNSD_NBSD"],
)  # fmt: skip
def test_every_layout_of_query_and_result(layout, version):
    before, _, after = layout.partition("_")
    inputs = [TO[before](x).contiguous() for x in (Q, K, V)]
    wanted = both([expected(Q[b], K[b], V[b]) for b in range(B)])
    out = empty(*TO[after or before](wanted[0]).shape)
    got = infer(version, query=inputs[0], key=[inputs[1]], value=[inputs[2]], inputLayout=layout,
                out=out, lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, (TO[after or before](wanted[0]), wanted[1]))


@pytest.mark.parametrize("layout", ["TND", "NTD", "TND_NTD", "NTD_TND"])
def test_sequences_of_several_lengths_in_one_tensor(layout):
    q_ends, k_ends = [3, 3, 7], [4, 6, 15]
    q, k, v = drawn(7, N, D), drawn(15, KV, D, seed=2), drawn(15, KV, 8, seed=3)
    results, first = [], (0, 0)
    for ends in zip(q_ends, k_ends, strict=True):
        part = [
            x[a:b].transpose(0, 1)
            for x, a, b in ((q, first[0], ends[0]), (k, first[1], ends[1]), (v, first[1], ends[1]))
        ]
        rows, keys = part[0].shape[1], part[1].shape[1]
        results.append(expected(*part, seen=visible(3, rows, keys)))
        first = ends
    wanted = torch.cat([r[0] for r in results], 1), torch.cat([r[1] for r in results], 1).t()
    before, _, after = layout.partition("_")
    inputs = [x if before == "TND" else x.transpose(0, 1).contiguous() for x in (q, k, v)]
    out = wanted[0] if (after or before) == "NTD" else wanted[0].transpose(0, 1)
    got = infer(3, query=inputs[0], key=[inputs[1]], value=[inputs[2]], attenMask=SMALL,
                sparseMode=3, actualSeqLengths=q_ends, actualSeqLengthsKv=k_ends,
                inputLayout=layout, out=empty(*out.shape),
                lse=empty(7, N, 1, dtype=torch.float32))  # fmt: skip
    agree(got, (out, wanted[1][..., None]))


def test_one_sequence_without_a_dim_of_batches():
    got = infer(3, query=Q[0], key=[K[0]], value=[V[0]], inputLayout="NSD", out=empty(N, S, 8),
                lse=empty(1, N, S, 1, dtype=torch.float32))  # fmt: skip
    out, lse = expected(Q[0], K[0], V[0])
    agree(got, (out, lse[None, ..., None]))


# ---- masks and lengths ----

MASK = torch.rand(B, 1, S + 2, L + 3, generator=torch.Generator().manual_seed(4)) < 0.4
MODES: dict[str, dict[str, Any]] = {
    "without": {"preTokens": 0, "nextTokens": 0},
    "mask of batches": {"attenMask": MASK}, "three dims": {"attenMask": MASK[:, 0]},
    "bytes": {"attenMask": MASK[0, 0].byte()}, "int8": {"attenMask": MASK[:1].char()},
    "mask and band": {"attenMask": MASK, "preTokens": 2, "nextTokens": 4},
    "mask alone": {"attenMask": MASK, "preTokens": 2, "nextTokens": 4, "sparseMode": 1},
    "upper left": {"attenMask": SMALL, "sparseMode": 2},
    "lower right": {"attenMask": SMALL, "sparseMode": 3},
    "window": {"attenMask": SMALL, "sparseMode": 4, "preTokens": 2, "nextTokens": 0},
}  # fmt: skip


@pytest.mark.parametrize("lengths", [(None, None), ([4], [8]), ([3, 5], [9, 2]), ([5, 0], [0, 9])])
@pytest.mark.parametrize("name", MODES)
def test_masks_are_those_of_the_actual_lengths(name, lengths):
    options = MODES[name]
    results = []
    for b in range(B):
        rows, keys = (
            n if x is None else x[b if len(x) > 1 else 0]
            for x, n in zip(lengths, (S, L), strict=True)
        )
        mask = options.get("attenMask")
        seen = None
        if mask is not None:
            own = mask
            while own.dim() > 2:
                own = own[b if own.shape[0] > 1 else 0]
            seen = visible(
                options.get("sparseMode", 0),
                rows,
                keys,
                before=options.get("preTokens", 1 << 31),
                after=options.get("nextTokens", 1 << 31),
                mask=own[:rows, :keys],
            )
        results.append(expected(Q[b], K[b], V[b], rows=rows, keys=keys, seen=seen))
    got = infer(3, query=Q, key=[K], value=[V], actualSeqLengths=lengths[0],
                actualSeqLengthsKv=lengths[1], **options, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, both(results))


def test_one_query_sees_all_keys_whatever_the_mode():
    q = Q[:, :, :1].contiguous()
    wanted = both([expected(q[b], K[b], V[b], keys=7) for b in range(B)])
    got = infer(3, query=q, key=[K], value=[V], attenMask=SMALL, sparseMode=2, preTokens=0,
                nextTokens=0, actualSeqLengths=[0, 0], actualSeqLengthsKv=[7],
                out=empty(B, N, 1, 8), lse=empty(B, N, 1, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted)
    mask = MASK[:, 0, 0, :L]
    results = [expected(q[b], K[b], V[b], seen=~mask[b][None]) for b in range(B)]
    got = infer(3, query=q, key=[K], value=[V], attenMask=mask.contiguous(), out=empty(B, N, 1, 8),
                lse=empty(B, N, 1, 1, dtype=torch.float32))  # fmt: skip
    agree(got, both(results))


def test_a_tree_of_tokens_sees_its_branch_and_all_keys_before():
    tree = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 1, 0]], dtype=torch.bool).repeat(B, 1, 1)
    q, seen = Q[:, :, :3].contiguous(), torch.ones(3, L, dtype=torch.bool)
    seen[:, L - 3 :] = ~tree[0]
    wanted = both([expected(q[b], K[b], V[b], seen=seen) for b in range(B)])
    got = infer(3, query=q, key=[K], value=[V], attenMask=tree, sparseMode=9,
                out=empty(B, N, 3, 8), lse=empty(B, N, 3, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted)


def test_a_bias_is_added_to_scaled_scores_and_may_be_larger_than_they_are():
    bias = drawn(1, N, 8, 12, seed=9)
    wanted = both([expected(Q[b], K[b], V[b], bias=bias[0, :, :S, :L].double()) for b in range(B)])
    got = infer(3, query=Q, key=[K], value=[V], pseShift=bias, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted)


def test_rope_and_sinks():
    q_rope, k_rope = drawn(B, N, S, 8, seed=5), drawn(B, KV, L, 8, seed=6)
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
    wanted = both([
        expected(torch.cat([Q[b], q_rope[b]], -1), torch.cat([K[b], k_rope[b]], -1), V[b],
                 sink=sink.double()) for b in range(B)
    ])  # fmt: skip
    got = infer(4, query=Q, key=[K], value=[V], queryRope=q_rope, keyRope=k_rope,
                learnableSink=sink, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted)


# ---- the other names ----


def test_prompt_and_incremental_attention_are_special_cases():
    names = ("BNSD", N, 0.25)
    wanted = infer(
        3,
        query=Q,
        key=[K],
        value=[V],
        attenMask=SMALL,
        sparseMode=3,
        actualSeqLengths=[3, 5],
        actualSeqLengthsKv=[9, 6],
        out=empty(B, N, S, 8),
    )[0]
    inputs = [Q, K, V, None, SMALL, [3, 5], [9, 6], *[None] * 5, N, 0.25, 1 << 30, 1 << 30]
    for version, end in ((2, [3]), (3, [3, 1])):
        out = call(f"aclnnPromptFlashAttentionV{version}", *inputs, "BNSD", KV, *end,
                   empty(B, N, S, 8))[0]  # fmt: skip
        assert torch.equal(out, wanted), names
    mask = MASK[:, :, :S, :L].contiguous()
    plain = infer(3, query=Q, key=[K], value=[V], attenMask=mask, out=empty(B, N, S, 8))[0]
    out = call("aclnnPromptFlashAttention", Q, K, V, None, mask, None, N, 0.25, 1 << 30, 1 << 30,
               "BNSD", KV, empty(B, N, S, 8))[0]  # fmt: skip
    assert torch.equal(out, plain)
    q = Q[:, :, :1].contiguous()
    wanted = infer(3, query=q, key=[K], value=[V], actualSeqLengthsKv=[9, 6],
                   out=empty(B, N, 1, 8))[0]  # fmt: skip
    for version, nulls in (("", 0), ("V2", 5)):
        out = call(
            f"aclnnIncreFlashAttention{version}",
            q,
            [*K.split(1)],
            [*V.split(1)],
            None,
            None,
            [9, 6],
            *[None] * nulls,
            N,
            0.25,
            "BNSD",
            KV,
            empty(B, N, 1, 8),
        )[0]
        assert torch.equal(out, wanted)


def test_scores_of_a_long_sequence_stay_in_blocks():
    """3000 x 3000 scores of 4 heads would be 144 MB."""
    q, k = drawn(1, 4, 3000, 16), drawn(1, 4, 3000, 16, seed=2)
    out = empty(1, 4, 3000, 16)
    few, short = q[:, :, :64].contiguous(), empty(1, 4, 64, 16)
    infer(3, query=few, key=[k], value=[k], numKeyValueHeads=4, out=short)
    assert (
        grown(lambda: infer(3, query=q, key=[k], value=[k], numKeyValueHeads=4, out=out)) < 60_000
    )


@pytest.mark.programs
def test_graphs_plan_with_the_largest_workspace_by_another_name():
    name = "aclnnFusedInferAttentionScoreV3"
    sample = next(sample for sample in samples() if sample.row.name == name)
    values = arguments(sample, torch.float16, torch.float16)  # A2 refuses FLOAT
    runner = library()
    runner.made = []
    given = [runner.argument(p.kind, v) for p, v in zip(sample.row.given, values, strict=True)]
    size, executor = ctypes.c_uint64(7), ctypes.c_void_p()
    places = ctypes.byref(size), ctypes.byref(executor)
    assert getattr(runner.rows, f"{name}GetMaxWorkspaceSize")(*given, *places) == 0
    assert size.value == 0
    assert getattr(runner.rows, name)(None, size, executor, runner.stream) == 0
    assert torch.equal(values[-2], call(name, *arguments(sample, torch.float16, torch.float16))[0])
    exported = subprocess.run(["nm", "-D", str(home() / "lib64" / "libopapi.so")],
                              capture_output=True, text=True, check=True).stdout  # fmt: skip
    for known in WITH_MAXIMUM:
        assert f" {known}GetMaxWorkspaceSize" in exported
