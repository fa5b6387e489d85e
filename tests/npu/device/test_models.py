# SPDX-License-Identifier: Apache-2.0
"""What inference engines and training frameworks call of torch_npu: attention over sequences of
several lengths, pages, caches, sampling. The C functions are compared with formulas in tests/aten.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from tests.npu.device.marks import not_on_2_8
from torch import Tensor

HEADS, KV, SIZE = 4, 2, 16
TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float = 0.25) -> Tensor:
    """[S, N, D], up to the diagonal from the lower right."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(HEADS // KV, 0) for x in (k, v))
    rows, keys = q.shape[1], k.shape[1]
    hidden = torch.arange(keys) > torch.arange(rows)[:, None] + keys - rows
    scores = (q @ k.mT * scale).masked_fill(hidden, -torch.inf)
    return (torch.softmax(scores, -1) @ v).transpose(0, 1)


@pytest.mark.parametrize("layout", ["", "TND"])
def test_sequences_of_several_lengths_train(layout):
    torch.manual_seed(1)
    rows, keys = [3, 4], [4, 6]
    here = [torch.randn(sum(n), h, SIZE) for n, h in ((rows, HEADS), (keys, KV), (keys, KV))]
    there = [x.npu().requires_grad_() for x in here]
    here = [x.double().requires_grad_() for x in here]
    parts = zip(here[0].split(rows), here[1].split(keys), here[2].split(keys), strict=True)
    want = torch.cat([attention(*part) for part in parts])
    got = torch_npu.npu_fusion_attention(
        *there, HEADS, "TND", atten_mask=TRIANGLE.npu(), scale=0.25, sparse_mode=3,
        actual_seq_qlen=[3, 7], actual_seq_kvlen=[4, 10], softmax_layout=layout,
    )[0]  # fmt: skip
    dy = torch.randn_like(want)
    want.backward(dy)
    got.backward(dy.float().npu())
    pairs = [(got, want), *((a.grad, b.grad) for a, b in zip(there, here, strict=True))]
    for a, b in pairs:
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=1e-4, atol=1e-5)


@not_on_2_8("has no cache_mode in npu_scatter_pa_kv_cache")
@pytest.mark.parametrize("mode", ["Norm", "PA_NZ"])
def test_a_cache_of_pages_is_written_read_and_gathered(mode):
    torch.manual_seed(2)
    size, blocks, lengths = 4, 6, [9, 6]
    table = torch.tensor([[5, 0, 2], [1, 4, 3]], dtype=torch.int32)
    plain = [torch.randn(n, KV, SIZE, dtype=torch.float16) for n in lengths]
    slots = [table[b, j // size].item() * size + j % size for b, n in enumerate(lengths)
             for j in range(n)]  # fmt: skip
    shape = (blocks, size, KV, SIZE) if mode == "Norm" else (blocks, KV * SIZE // 16, size, 16)
    caches = [torch.zeros(shape, dtype=torch.float16).npu() for _ in range(2)]
    rows = torch.cat(plain).npu()
    torch_npu.npu_scatter_pa_kv_cache(
        rows, rows, *caches, torch.tensor(slots, dtype=torch.int32).npu(), cache_mode=mode
    )
    if mode == "PA_NZ":
        assert caches[0].count_nonzero() == rows.count_nonzero()
        return
    back = [torch.zeros_like(rows) for _ in range(2)]
    torch_npu.npu_gather_pa_kv_cache(
        *caches, table.npu(), torch.tensor(lengths, dtype=torch.int32).npu(), *back
    )
    assert torch.equal(back[0].cpu(), rows.cpu())
    q = torch.randn(2, HEADS, SIZE, dtype=torch.float16)
    got, _ = torch_npu.npu_fused_infer_attention_score(
        q.npu(), *(c.flatten(2) for c in caches), num_heads=HEADS, num_key_value_heads=KV,
        scale=0.25, input_layout="TND", block_table=table.npu(), block_size=size,
        atten_mask=TRIANGLE.npu(), sparse_mode=3, actual_seq_lengths=[1, 2],
        actual_seq_lengths_kv=lengths,
    )  # fmt: skip
    want = torch.cat([attention(q[b : b + 1], plain[b], plain[b]) for b in range(2)])
    torch.testing.assert_close(got.cpu().double(), want, rtol=1e-3, atol=1e-3)


def test_logits_are_kept():
    torch.manual_seed(3)
    logits, k = torch.randn(3, 40), torch.tensor([1, 5, 9], dtype=torch.int32)
    kept = torch_npu.npu_top_k_top_p(logits.npu(), torch.ones(3).npu(), k.npu()).cpu()
    assert torch.isfinite(kept).sum(1).tolist() == k.tolist()


@not_on_2_8("sends FLOAT logits to aclnnTopKTopPSample, which A2 refuses")
def test_tokens_are_chosen():
    torch.manual_seed(3)
    logits, k = torch.randn(3, 40), torch.tensor([1, 5, 9], dtype=torch.int32)
    chosen, _ = torch_npu.npu_top_k_top_p_sample(logits.npu(), k.npu(), torch.full((3,), 0.1).npu())
    assert chosen.cpu().tolist() == logits.argmax(1).tolist()


def test_exponential_numbers_are_drawn():
    x = torch.empty(1000).npu().exponential_(2.0).cpu()
    assert (x > 0).all()
    assert x.mean() == pytest.approx(0.5, abs=0.1)
