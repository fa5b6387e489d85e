# SPDX-License-Identifier: Apache-2.0
"""FlashAttentionScore, dense and with sequences of several lengths, against attention with every
score written out, forward and backward: all layouts, modes, biases, dropout, sinks and rope.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.attention_reference import places
from tests.aten.golden import FLOATS, call, grown, miss
from tests.aten.training_problem import SMALL, Problem

Tensor = torch.Tensor


def empty(x: Tensor) -> Tensor:
    return torch.full_like(x, 77)


def packed_statistics(values: list[Tensor], rows_first: bool) -> Tensor:
    """Eight of each: [T, N] or the sequences one after the other."""
    parts = [(v.t() if rows_first else v).reshape(-1) for v in values]
    heads = values[0].shape[0]
    return torch.cat(parts).reshape(-1, heads, 1).expand(-1, -1, 8)


def run_packed(p: Problem, version: int, rows_first: bool = False) -> dict[str, Tensor]:
    """Forward and backward of TND."""
    t = p.tensors
    q_lengths, kv_lengths = p.ends
    rope = version in (3, 5)
    ropes = [t["q_rope"], t["k_rope"]] if p.rope_size else [None, None]
    inputs = [t["q"], ropes[0], t["k"], ropes[1], t["v"]] if rope else [t["q"], t["k"], t["v"]]
    masks = [p.pse, p.drop, None, p.mask]
    sink = [p.sink] if version == 5 else []
    lists = [p.prefix, q_lengths, kv_lengths]
    starts = [[p.starts[0]], [p.starts[1]]] if version in (2, 3, 5) else []
    kind = [p.pse_type] if version in (2, 3, 5) else []
    layout = "same_as_input" if rows_first else ""
    text = [layout] if version in (4, 5) else []
    suffix = "" if version == 1 else f"V{version}"
    shape = (sum(p.rows), p.heads, 8)
    most, total = torch.full(shape, 77.0), torch.full(shape, 77.0)
    out = empty(t["dy"])
    call(f"aclnnFlashAttentionVarLenScore{suffix}", *inputs, *masks, *sink, *lists, *starts,
         *p.attributes("TND"), *kind, *text, most, total, torch.empty(0), out)  # fmt: skip
    grads = {f"d{n}": empty(t[n]) for n in "qkv"}
    dropes = [empty(x) if x is not None else torch.empty(0) for x in ropes]
    dsink = [empty(p.sink) if p.sink is not None else torch.empty(0)] if version == 5 else []
    results = [grads["dq"], grads["dk"], grads["dv"], torch.empty(0)]
    if rope:
        results = [grads["dq"], dropes[0], grads["dk"], dropes[1], grads["dv"], torch.empty(0)]
    statistics = [most, total, None, out]
    before, after = ([], text) if version == 4 else (text, [])
    call(f"aclnnFlashAttentionUnpaddingScoreGrad{suffix}", *inputs, t["dy"], *masks, *statistics,
         *sink, *lists, *starts, *p.attributes("TND"), *kind, *before, *results, *dsink,
         *after)  # fmt: skip
    found = {"out": out, "most": most, "total": total, **grads}
    if p.rope_size:
        found |= {"dq_rope": dropes[0], "dk_rope": dropes[1]}
    return found | ({"dsink": dsink[0]} if p.sink is not None else {})


# Errors of 16-bit results that come from the rounded result of the forward.
LOOSE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}


def compare(found: dict[str, Tensor], expected: dict[str, Any], rows_first: bool = False) -> None:
    for name in ("most", "total"):
        wanted = packed_statistics(expected[name], rows_first)
        assert miss(found[name], wanted, 2e-5) == "", name
    assert miss(found["out"], expected["out"], 3e-6) == ""
    for name, got in found.items():
        if name.startswith("d"):
            assert miss(got, expected[name], LOOSE[found["out"].dtype]) == "", name


LENGTHS = ((5, 0, 7, 3), (6, 4, 7, 9))
ALIBI = torch.rand(1, 4, 1024, 12, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_sequences_of_several_lengths_are_attention_of_each(version, dtype):
    p = Problem(*LENGTHS, dtype=dtype, mode=3, mask=SMALL)
    if version in (3, 5):
        p = replace(p, rope_size=8, tensors={})
    if version == 5:
        p = replace(p, sink=torch.tensor([0.5, -1.0, 2.0, 0.0]))
    rows_first = version == 5
    compare(run_packed(p, version, rows_first), p.expected(), rows_first)


MASK = torch.rand(7, 9, generator=torch.Generator().manual_seed(2)) < 0.3
MODES = {
    "all": {}, "none of a mask": {"mode": 2, "mask": None},
    "mask": {"mode": 1, "mask": MASK}, "mask and band": {"mask": MASK, "before": 2, "after": 3},
    "upper left": {"mode": 2, "mask": SMALL}, "lower right": {"mode": 3, "mask": SMALL},
    "band": {"mode": 4, "mask": SMALL, "before": 3, "after": 1},
    "shifted band": {"mode": 4, "mask": SMALL, "before": 4, "after": -1},
    "prefix": {"mode": 6, "mask": SMALL, "prefix": [2, 1, 0, 9]},
    "last is a band": {"mode": 7, "mask": SMALL, "before": 2, "after": 0},
    "first is a band": {"mode": 8, "mask": SMALL, "before": 2, "after": 1},
    "dropout": {"drop": torch.arange(256, dtype=torch.uint8) * 37, "keep": 0.7},
    "slopes": {"pse": torch.tensor([0.1, 0.2, 0.3, 0.4]), "pse_type": 2, "starts": (3, 1)},
    "roots": {"pse": torch.rand(4, 4), "pse_type": 3},
    "alibi": {"pse": ALIBI, "mode": 2, "mask": SMALL},
    "alibi after scaling": {"pse": ALIBI, "pse_type": 0, "mode": 3, "mask": SMALL},
}  # fmt: skip


@pytest.mark.parametrize("name", MODES)
def test_masks_biases_and_dropout_of_packed_sequences(name):
    p = Problem(*LENGTHS, **MODES[name])
    compare(run_packed(p, 2), p.expected())


# ---- dense ----

LAYOUTS = ("BNSD", "BSND", "BSH", "SBH")


def dense(x: Tensor, batches: int, layout: str) -> Tensor:
    """[B S, N, D] in a layout."""
    x = x.reshape(batches, -1, *x.shape[1:])
    return {
        "BNSD": lambda: x.transpose(1, 2), "BSND": lambda: x, "BSH": lambda: x.flatten(2),
        "SBH": lambda: x.flatten(2).transpose(0, 1),
    }[layout]().contiguous()  # fmt: skip


def run_dense(p: Problem, version: int, layout: str) -> dict[str, Tensor]:
    b = len(p.rows)
    q, k, v, dy = (dense(p.tensors[n], b, layout) for n in ("q", "k", "v", "dy"))
    masks = [p.pse, p.drop, None, p.mask]
    sink = [p.sink] if version == 3 else []
    starts = [[p.starts[0]], [p.starts[1]]] if version > 1 else []
    kind = [p.pse_type] if version > 1 else []
    suffix = "" if version == 1 else f"V{version}"
    shape = (b, p.heads, p.rows[0], 8)
    most, total, out = torch.full(shape, 77.0), torch.full(shape, 77.0), empty(dy)
    words = [p.prefix, *starts, *p.attributes(layout), *kind]
    call(f"aclnnFlashAttentionScore{suffix}", q, k, v, *masks, *sink, *words, most, total,
         torch.empty(0), out)  # fmt: skip
    dsink = [empty(p.sink) if p.sink is not None else torch.empty(0)] if version == 3 else []
    grads = [empty(x) for x in (q, k, v)]
    call(f"aclnnFlashAttentionScoreGrad{suffix}", q, k, v, dy, *masks, most, total, None, out,
         *sink, *words, *grads, torch.empty(0), *dsink)  # fmt: skip
    found = dict(zip(("out", "dq", "dk", "dv"), (out, *grads), strict=True))
    return found | {"most": most, "total": total} | ({"dsink": dsink[0]} if p.sink is not None
                                                     else {})  # fmt: skip


def compare_dense(p: Problem, found: dict[str, Tensor], layout: str) -> None:
    expected, b = p.expected(), len(p.rows)
    for name in ("most", "total"):
        wanted = torch.stack(expected[name])[..., None].expand(-1, -1, -1, 8)
        assert miss(found[name], wanted, 2e-5) == "", name
    for name in ("out", "dq", "dk", "dv"):
        slack = 3e-6 if name == "out" else LOOSE[p.dtype]
        assert miss(found[name], dense(expected[name], b, layout), slack) == "", name
    if p.sink is not None:
        assert miss(found["dsink"], expected["dsink"], LOOSE[p.dtype]) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_attention_in_every_layout(layout, dtype):
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
    p = Problem((6, 6), (9, 9), dtype=dtype, mode=3, mask=SMALL, sink=sink)
    compare_dense(p, run_dense(p, 3, layout), layout)
    plain = replace(p, sink=None)
    compare_dense(plain, run_dense(plain, 1, layout), layout)


MASK4 = torch.rand(2, 4, 6, 9, generator=torch.Generator().manual_seed(2)) < 0.3
MASK4[0, 1, 2] = True  # a row without keys
DENSE = {
    "mask of heads": {"mode": 1, "mask": MASK4}, "mask of batches": {"mask": MASK4[:, :1]},
    "one mask": {"mask": MASK4[0, 0]}, "bytes": {"mask": MASK4[:1, :1].byte(), "before": 3},
    "full prefix": {"mode": 5, "mask": MASK4[:, :1], "prefix": [1, 2]},
    "prefix": {"mode": 6, "mask": SMALL, "prefix": [5, 8]},
    "bias": {"pse": torch.rand(2, 4, 6, 9), "pse_type": 1},
    "bias after scaling": {"pse": torch.rand(1, 4, 6, 9), "pse_type": 0},
    "bias of keys": {"pse": torch.rand(2, 4, 1, 9)},
    "slopes": {"pse": torch.rand(2, 4), "pse_type": 2, "starts": (1, 4)},
    "dropout": {"drop": torch.arange(128, dtype=torch.uint8) * 91, "keep": 0.6},
}  # fmt: skip


@pytest.mark.parametrize("name", DENSE)
def test_masks_biases_and_dropout_of_dense_attention(name):
    p = Problem((6, 6), (9, 9), **DENSE[name])
    compare_dense(p, run_dense(p, 2, "BNSD"), "BNSD")


def test_a_bias_of_the_distance_may_be_given_as_its_last_rows():
    slopes = torch.tensor([0.1, 0.4])
    i, j = places(1100, 1100)
    whole = slopes[:, None, None] * (j - i)
    size = {"heads": 2, "kv_heads": 2, "size": 4, "value_size": 4, "mode": 2, "mask": SMALL}
    p = Problem((1100,), (1100,), pse=whole[None], **size)
    compressed = replace(p, pse=whole[None, :, -1024:].contiguous())
    one, other = run_dense(p, 2, "BNSD"), run_dense(compressed, 2, "BNSD")
    for name in one:
        assert miss(other[name], one[name], 1e-6) == "", name


def test_long_sequences_are_computed_in_blocks():
    """Blocks that end within a head's group, and beside the diagonal of a band."""
    p = Problem((700, 321), (1900, 640), heads=6, kv_heads=3, size=8, value_size=8, mode=4,
                mask=SMALL, before=900, after=5)  # fmt: skip
    compare(run_packed(p, 2), p.expected())


def test_scores_of_a_long_sequence_and_their_gradients_stay_in_blocks():
    """3500 x 3500 scores of 2 heads would be 98 MB, with their gradients 196."""
    size = {"heads": 2, "kv_heads": 2, "size": 8, "value_size": 8}
    long, short = Problem((3500,), (3500,), **size), Problem((64,), (64,), **size)
    run_dense(short, 1, "BNSD")
    assert long.tensors
    assert grown(lambda: run_dense(long, 1, "BNSD")) < 60_000


def test_gradients_of_some_of_the_keys_take_statistics_of_all():
    """As context parallelism does: both halves of the keys with the whole maxima and sums."""
    p = Problem((6,), (10,), heads=2)
    whole = run_dense(p, 1, "BNSD")
    t = {n: dense(p.tensors[n], 1, "BNSD") for n in ("q", "k", "v", "dy")}
    halves = []
    for first in (0, 5):
        k, v = (t[n][:, :, first : first + 5].contiguous() for n in "kv")
        results = [empty(x) for x in (t["q"], k, v)]
        call("aclnnFlashAttentionScoreGrad", t["q"], k, v, t["dy"], *[None] * 4, whole["most"],
             whole["total"], None, whole["out"], None, *p.attributes("BNSD"), *results,
             torch.empty(0))  # fmt: skip
        halves.append(results)
    assert miss(halves[0][0] + halves[1][0], whole["dq"].double(), 1e-5) == ""
    for i, name in ((1, "dk"), (2, "dv")):
        assert miss(torch.cat([h[i] for h in halves], 2), whole[name].double(), 1e-5) == ""
