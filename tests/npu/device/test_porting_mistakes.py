# SPDX-License-Identifier: Apache-2.0
"""Common mistakes in porting, on device npu: each is refused as product A2 (910 for BFLOAT16) with
the sentence of the C function, and computed as product any. tests/aten/test_products.py has them
in C.
"""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
import torch_npu

import openaclnn


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device="npu")


def attention(contiguous: bool) -> torch.Tensor:
    """Of a joint projection, whose parts are strided."""
    q, k, v = x(1, 8, 96, dtype=torch.half).split(32, -1)
    v = v.contiguous() if contiguous else v
    return torch_npu.npu_prompt_flash_attention(
        q.contiguous(), k.contiguous(), v, num_heads=1, input_layout="BSH"
    )


HALVES = "must have dtype FLOAT, FLOAT16 or BFLOAT16 on"
MISTAKES = {
    "float64 matmul": (lambda: x(2, 2, dtype=torch.double) @ x(2, 2, dtype=torch.double),
                       f"aclnn(Matmul|Mm): self {HALVES} .*, but got DOUBLE"),
    "float64 linear layer": (lambda: torch.nn.Linear(3, 2, device="npu").double()(
        x(2, 3, dtype=torch.double)), f"{HALVES} .*, but got DOUBLE"),
    "int64 convolution": (lambda: F.conv2d(
        x(1, 1, 3, 3, dtype=torch.int64), x(1, 1, 2, 2, dtype=torch.int64)),
        f"input {HALVES} .*, but got INT64"),
    "integer batched matmul": (lambda: torch.bmm(
        x(1, 1, 2, dtype=torch.int32), x(1, 2, 1, dtype=torch.int32)),
        f"self {HALVES} .*, but got INT32"),
    "rank 9": (lambda: torch.abs(x(*[1] * 9)), "must have 0 to 8 dims on"),
    "float64 GELU": (lambda: F.gelu(x(2, dtype=torch.double)), f"{HALVES} .*, but got DOUBLE"),
    "float64 layer norm": (lambda: F.layer_norm(x(2, 3, dtype=torch.double), [3]),
                           f"{HALVES} .*, but got DOUBLE"),
    "cumsum of a mask": (lambda: x(3, dtype=torch.bool).cumsum(0), "aclnnCumsum: .* got BOOL"),
    "nonzero of complex": (lambda: x(3, dtype=torch.complex64).nonzero(), "got COMPLEX64"),
    "complex softmax": (lambda: x(3, dtype=torch.complex64).softmax(0), "got COMPLEX64"),
    "strided attention": (lambda: attention(contiguous=False), "value must be contiguous on"),
    "bfloat16 on 910": (lambda: x(2, dtype=torch.bfloat16) + x(2, dtype=torch.bfloat16),
                        r"must have dtype .*, but got BFLOAT16"),
}  # fmt: skip


@pytest.fixture(params=MISTAKES)
def mistake(request):
    yield request.param
    openaclnn.set_product(None)


def test_a_mistake_is_refused_where_the_device_refuses_it(mistake):
    call, sentence = MISTAKES[mistake]

    def called():
        call()
        torch.npu.synchronize()

    openaclnn.set_product("910" if "910" in mistake else "A2")
    with pytest.raises(RuntimeError) as caught:
        called()
    assert re.search(sentence, str(caught.value)), caught.value
    openaclnn.set_product("any")
    if mistake != "complex softmax":  # which PyTorch computes on no device
        called()


def test_what_is_easily_taken_for_a_mistake_is_none():
    openaclnn.set_product("A2")
    assert attention(contiguous=True).cpu().eq(1).all()
    weight = x(4, 3, dtype=torch.int8).t()
    found = torch_npu.npu_quant_matmul(
        x(2, 3, dtype=torch.int8), weight, x(4), output_dtype=torch.float16
    )
    assert found.cpu().tolist() == [[3.0] * 4] * 2
