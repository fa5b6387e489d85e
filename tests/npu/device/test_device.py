# SPDX-License-Identifier: Apache-2.0
"""The device itself: copies, memory, streams, events, files, what it says about itself."""

from __future__ import annotations

import io
import re

import pytest
import torch


def test_it_is_there():
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 1
    assert torch.npu.current_device() == 0
    assert torch.accelerator.current_accelerator().type == "npu"


def test_properties_are_those_of_this_machine():
    properties = torch.npu.get_device_properties()
    assert properties.name == torch.npu.get_device_name() == "Ascend910B1"
    assert properties.total_memory > 1 << 28
    assert properties.cube_core_num == properties.vector_core_num > 0
    assert bytes.fromhex(str(properties.uuid).replace("-", "")) == b"openaclnn CPU 00"
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total


def test_the_version_of_cann():
    version, newer = torch.npu.utils.get_cann_version, torch.npu.utils._is_gte_cann_version
    assert (version(), version("HCCL"), version("DRIVER")) == ("8.5.0", "8.5.0", "")
    assert newer("8.3.0")
    assert not newer("9.0.0")


def test_print():
    text = repr(torch.tensor([[1.5, -2.0], [float("inf"), 0.25]], device="npu"))
    assert re.sub(r"\s+", " ", text) == (
        "tensor([[ 1.5000, -2.0000], [ inf, 0.2500]], device='npu:0')"
    )


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool]
)
def test_copies(dtype):
    x = torch.arange(24).reshape(4, 6).to(dtype)
    assert torch.equal(x.npu().cpu(), x)
    assert torch.equal(x.npu()[1:, ::2].cpu(), x[1:, ::2])
    assert torch.equal(x.npu().t().contiguous().cpu(), x.t())
    assert torch.equal(x.npu().float().cpu(), x.float())
    pinned = x.pin_memory()
    there = pinned.to("npu", non_blocking=True)
    back = torch.empty_like(x).pin_memory()
    back.copy_(there, non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(back, x)


def test_streams_and_events():
    one, two = torch.npu.Stream(), torch.npu.Stream()
    begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    x = torch.arange(1 << 16, dtype=torch.float32, device="npu")
    torch.npu.synchronize()
    with torch.npu.stream(one):
        begin.record()
        y = torch.nn.functional.leaky_relu(x - 30000, 0.5)
        ready = torch.npu.Event()
        ready.record()
    with torch.npu.stream(two):
        two.wait_event(ready)
        z = y * 2
        end.record()
    end.synchronize()
    assert end.query()
    assert begin.elapsed_time(end) >= 0
    want = torch.nn.functional.leaky_relu(torch.arange(1 << 16).float() - 30000, 0.5) * 2
    assert torch.equal(z.cpu(), want)


def test_memory_is_counted_and_given_back():
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    x = torch.empty(1 << 20, device="npu")
    assert torch.npu.memory_allocated() - before >= 4 << 20
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated()
    del x
    assert torch.npu.memory_allocated() == before
    torch.npu.empty_cache()


def test_files():
    model = torch.nn.Linear(3, 2).npu()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    there = torch.load(file)
    assert there["weight"].device.type == "npu"
    assert torch.equal(there["weight"].cpu(), model.weight.detach().cpu())
    file.seek(0)
    here = torch.load(file, map_location="cpu")
    assert torch.equal(here["bias"], model.bias.detach().cpu())


def test_random_numbers_follow_the_seed():
    def draw():
        torch.npu.manual_seed(7)
        return torch.randn(1000, device="npu").cpu(), torch.rand(1000, device="npu").cpu()

    (normal, uniform), again = draw(), draw()
    assert torch.equal(normal, again[0])
    assert torch.equal(uniform, again[1])
    assert not torch.equal(torch.randn(1000, device="npu").cpu(), normal)
    # Five standard errors of the means: 1 / sqrt(1000), and 1 / sqrt(12000).
    assert abs(normal.mean()) < 5 / 1000**0.5
    assert abs(uniform.mean() - 0.5) < 5 / 12000**0.5
    assert uniform.min() >= 0
    assert uniform.max() < 1
