# SPDX-License-Identifier: Apache-2.0
"""Triton kernels on tensors of the device, in Triton's interpreter, against ATen."""

from __future__ import annotations

import os
import re

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: pip install --no-deps triton==3.9.0")

import triton
import triton.language as tl
import triton.language.extra.cann.extension as al
from tests.npu.device.marks import after_failures
from triton.language.extra.cann import libdevice


@triton.jit
def softmax_kernel(x, y, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * stride, tl.arange(0, BLOCK)
    values = tl.load(x + row + i, i < n, -float("inf"))
    grown = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + i, grown / tl.sum(grown, 0), i < n)


@triton.jit
def layer_norm_kernel(x, weight, bias, y, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, BLOCK)
    values = tl.load(x + row + i, i < n, 0).to(tl.float32)
    mean = tl.sum(values, 0) / n
    centred = tl.where(i < n, values - mean, 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    result = centred * scale * tl.load(weight + i, i < n) + tl.load(bias + i, i < n)
    tl.store(y + row + i, result.to(y.dtype.element_ty), i < n)


@triton.jit
def rotary_kernel(x, cosine, sine, y, HALF: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, HALF)
    c, s = tl.load(cosine + row * HALF + i), tl.load(sine + row * HALF + i)
    a, b = tl.load(x + row * 2 * HALF + i), tl.load(x + row * 2 * HALF + HALF + i)
    tl.store(y + row * 2 * HALF + i, a * c - b * s)
    tl.store(y + row * 2 * HALF + HALF + i, b * c + a * s)


@triton.autotune([triton.Config({"M": 16, "N": 32}), triton.Config({"M": 32, "N": 16})], ["k"])
@triton.heuristics({"K": lambda given: min(32, triton.next_power_of_2(given["k"]))})
@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        i = first + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + i, (rows[:, None] < m) & (i < k), 0)
        right = tl.load(b + i[:, None] * n + columns, (i[:, None] < k) & (columns < n), 0)
        total += tl.dot(left, right)
    inside = (rows[:, None] < m) & (columns < n)
    tl.store(c + rows[:, None] * n + columns, total, inside)


@triton.jit
def histogram_kernel(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i, i < n, 0), 1, i < n)


def test_softmax():
    x = torch.randn(4, 37).npu()
    y = torch.empty_like(x)
    softmax_kernel[(4,)](x, y, x.stride(0), 37, BLOCK=64)
    torch.testing.assert_close(y, x.softmax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_norm(dtype):
    x, weight, bias = (torch.randn(*n).to(dtype).npu() for n in ((5, 24), (24,), (24,)))
    y = torch.empty_like(x)
    layer_norm_kernel[(5,)](x, weight, bias, y, 24, 1e-5, BLOCK=32)
    want = torch.nn.functional.layer_norm(x, (24,), weight, bias)
    torch.testing.assert_close(y, want)


def test_rotary_positions():
    x, angle = torch.randn(6, 32).npu(), torch.rand(6, 16).npu()
    y = torch.empty_like(x)
    rotary_kernel[(6,)](x, angle.cos(), angle.sin(), y, HALF=16)
    cosine, sine = (torch.cat([f(angle)] * 2, 1) for f in (torch.cos, torch.sin))
    turned = torch.cat([-x[:, 16:], x[:, :16]], 1)
    torch.testing.assert_close(y, x * cosine + turned * sine)


def test_matmul_autotuned():
    a, b = torch.randn(40, 50).npu(), torch.randn(50, 33).npu()
    c = torch.empty(40, 33).npu()
    matmul_kernel[lambda meta: (triton.cdiv(40, meta["M"]), triton.cdiv(33, meta["N"]))](
        a, b, c, 40, 33, 50
    )
    torch.testing.assert_close(c, a @ b)
    assert matmul_kernel.best_config.kwargs == {"M": 16, "N": 32}


def test_atomic_histogram():
    x = torch.randint(0, 10, (100,)).npu()
    counts = torch.zeros(10, dtype=torch.int32).npu()
    histogram_kernel[(4,)](x, counts, 100, BLOCK=32)
    assert counts.tolist() == torch.bincount(x, minlength=10).tolist()


def test_a_kernel_writes_a_view_and_nothing_else():
    """On the same memory: what lies around the view is not copied."""
    x = torch.full((4, 8), 7.0).npu()
    softmax_kernel[(2,)](x[1:3], x[1:3], 8, 8, BLOCK=8)
    assert x[:, 0].tolist() == [7, 0.125, 0.125, 7]


@triton.jit
def extension_kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    with al.scope(core_mode="vector"):
        values = tl.load(x + i)
    al.compile_hint(values, "multi_buffer", 2)
    half = al.extract_slice(values, (0,), (BLOCK // 2,), (2,))
    for _ in al.parallel(0, 1):
        values = al.insert_slice(values, -half, (0,), (BLOCK // 2,), (1,))
    values = al.sort(values, 0, True) + al.get_element(values, (BLOCK - 1,))
    tl.store(y + i, libdevice.tanh(al.flip(values, 0)))
    tl.store(y + BLOCK + i, al.cast(values * 1e3, tl.int8, overflow_mode="saturate").to(tl.float32))


def test_extensions_of_triton_ascend():
    x, y = torch.randn(16), torch.empty(32).npu()
    extension_kernel[(1,)](x.npu(), y, BLOCK=16)
    values = torch.cat([-x[::2], x[8:]])
    values = values.sort(descending=True).values + x[15]
    torch.testing.assert_close(y[:16].cpu(), values.flip(0).tanh())
    torch.testing.assert_close(y[16:].cpu(), (values * 1e3).clamp(-128, 127).trunc())


@triton.jit
def maths_kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.store(y + i, libdevice.fma(libdevice.cbrt(values), values, libdevice.ldexp(values, i)))
    tl.store(y + BLOCK + i, libdevice.exp10(libdevice.fdiv(libdevice.flip(values), values)))


def test_functions_of_libdevice():
    x, y = torch.rand(8) + 1, torch.empty(16).npu()
    maths_kernel[(1,)](x.npu(), y, BLOCK=8)
    torch.testing.assert_close(y[:8].cpu(), x ** (1 / 3) * x + torch.ldexp(x, torch.arange(8)))
    torch.testing.assert_close(y[8:].cpu(), 10 ** (x.flip(0) / x))


@triton.jit
def foreign_kernel(x):
    al.fixpipe(x, x)


def test_what_has_no_meaning_here_is_refused_by_name():
    import triton.extension.buffer.language as bl

    with pytest.raises(Exception, match="fixpipe of triton-ascend is not supported"):
        foreign_kernel[(1,)](torch.ones(1).npu())
    with pytest.raises(NotImplementedError, match="alloc of triton-ascend is not supported"):
        bl.alloc(tl.float32, [16], al.ascend_address_space.UB)
    with pytest.raises(AttributeError, match=r"cann\.libdevice\.cyl_bessel_i0 is not supported"):
        libdevice.cyl_bessel_i0(1)


@after_failures
@pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures in modes 0 and 1 only"
)
def test_a_launch_in_a_capture_is_refused():
    x = torch.ones(2, 8).npu()
    torch.npu.synchronize()
    with (
        pytest.raises(NotImplementedError, match=r"softmax_kernel cannot be captured.*outside"),
        torch.npu.graph(torch.npu.NPUGraph()),
    ):
        softmax_kernel[(2,)](x, x, 8, 8, BLOCK=8)
    assert x.tolist() == [[1] * 8] * 2


def test_the_driver_knows_the_cores():
    driver = triton.runtime.driver.active
    found = driver.utils.get_device_properties(torch.npu.current_device())
    have = torch.npu.get_device_properties()
    assert found["num_aicore"] == have.cube_core_num > 0
    assert found["num_vectorcore"] == have.vector_core_num > 0
    assert driver.get_active_torch_device() == torch.device("npu:0")


def test_a_compiled_function_launches_a_kernel_between_graphs():
    @torch.compile
    def function(x):
        y = torch.empty_like(x)
        softmax_kernel[(4,)](x, y, 8, 8, BLOCK=8)
        return y * 2

    x = torch.randn(4, 8).npu()
    torch._dynamo.utils.counters.clear()
    torch.testing.assert_close(function(x), x.softmax(1) * 2)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs == 2  # before and after the launch, none of what it calls


def test_the_key_of_caches_is_where_torch_npu_2_12_looks():
    from triton.compiler.compiler import triton_key

    assert re.fullmatch(r"\S*[0-9a-f]{64}\S*", triton_key())


@torch.library.custom_op("openaclnn_tests::softmax", mutates_args=())
def softmax_operator(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=64)
    return y


softmax_operator.register_fake(torch.empty_like)


def test_a_whole_graph_launches_a_kernel_as_an_operator():
    """Dynamo does not trace the interpreter, so the launch is an operator of the program."""
    compiled = torch.compile(lambda x: softmax_operator(x + 1) * 2, fullgraph=True)
    for columns in (8, 12):
        x = torch.randn(4, columns).npu()
        torch.testing.assert_close(compiled(x), (x + 1).softmax(1) * 2)
