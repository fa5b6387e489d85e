# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch_npu: what a replay computes, and what a capture refuses."""

from __future__ import annotations

import copy
import json
import os

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from tests.npu.device.marks import after_failures, mask_of_one_row, not_on_2_8

pytestmark = pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures in modes 0 and 1 only"
)

NEW = {"dtype": torch.float32, "device": "npu"}


def captured(run, **settings):
    """A graph of run(), after one call on a side stream as the documentation asks."""
    side = torch.npu.Stream()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        run()
    torch.npu.current_stream().wait_stream(side)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, **settings):
        out = run()
    return graph, out


@mask_of_one_row
@pytest.mark.filterwarnings("ignore:.past_key_values:FutureWarning")
def test_a_decode_step_is_that_of_eager():
    """Static inputs and a static cache, as inference engines have them."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config).npu().eval()
    tokens = torch.zeros(1, 1, dtype=torch.long, device="npu")
    position = torch.zeros(1, dtype=torch.long, device="npu")
    mask = torch.zeros(1, 1, 1, 16, device="npu")
    cache = transformers.StaticCache(config=config, max_cache_len=16)

    @torch.no_grad()
    def step(past):
        return model(
            input_ids=tokens,
            attention_mask=mask,
            past_key_values=past,
            position_ids=position[None],
            cache_position=position,
        ).logits

    graph, logits = captured(lambda: step(cache))
    eager = transformers.StaticCache(config=config, max_cache_len=16)
    cache.reset()
    for number in range(6):
        tokens.fill_(7 * number + 3)
        position.fill_(number)
        mask.fill_(torch.finfo(torch.float32).min)
        mask[..., : number + 1] = 0
        want = step(eager)
        graph.replay()
        torch.testing.assert_close(logits, want, rtol=0, atol=0)


@not_on_2_8("captures no convolution by default, and no attention: its second stream is not joined")
def test_a_unet_step_is_that_of_eager():
    pytest.importorskip("diffusers")
    from tests.npu.device.unets import small_unet

    torch.manual_seed(0)
    model = small_unet(size=8, channels=(16, 32)).npu().eval()
    x, time = torch.randn(1, 3, 8, 8, device="npu"), torch.tensor([3], device="npu")

    @torch.no_grad()
    def step():
        return model(x, time).sample

    graph, sample = captured(step)
    for number in (5, 400):
        x.copy_(torch.randn(x.shape))
        time.fill_(number)
        graph.replay()
        torch.testing.assert_close(sample, step(), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node:UserWarning")
def test_a_graph_trains():
    """make_graphed_callables: forward and backward are one graph each."""
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)).npu()
    x = torch.randn(5, 4, device="npu")
    want = torch.autograd.grad(plain(x).square().mean(), plain.parameters())
    graphed = torch.npu.make_graphed_callables(copy.deepcopy(plain), (torch.zeros_like(x),))
    got = torch.autograd.grad(graphed(x).square().mean(), graphed.parameters())
    torch.testing.assert_close(got, want)


def test_a_thousand_replays_on_two_streams(tmp_path):
    x, y = torch.zeros(8, **NEW), torch.ones(8, **NEW)
    side = torch.npu.Stream()

    def run():
        x.add_(1)
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            out = x * 2
        torch.npu.current_stream().wait_stream(side)
        y.copy_(out)

    graph, _ = captured(run)
    x.zero_()
    for _ in range(1000):
        graph.replay()
    torch.npu.synchronize()
    assert x.tolist() == [1000] * 8
    assert y.tolist() == [2000] * 8
    path = tmp_path / "graph.json"
    with pytest.warns(UserWarning, match="debug_dump"):
        graph.debug_dump(str(path))
    names = [event["name"] for event in json.loads(path.read_text())]
    assert "aclnnInplaceAdds" in names or "aclnnInplaceAdd" in names
    assert {event["args"]["stream"] for event in json.loads(path.read_text())} == {0, 1}


def test_random_numbers_advance():
    x = torch.ones(64, **NEW)

    def run():
        return torch.empty_like(x).normal_(), F.dropout(x, 0.5), torch.rand(64, **NEW)

    graph, outs = captured(run)
    seen = []
    for _ in range(2):
        torch.npu.manual_seed(7)
        for _ in range(3):
            graph.replay()
            seen.append([out.tolist() for out in outs])
    assert seen[:3] == seen[3:]
    for kind in range(3):
        assert seen[0][kind] != seen[1][kind] != seen[2][kind]


def test_update_of_a_task():
    x, y = torch.full((4,), -8.0, **NEW), torch.zeros(4, **NEW)
    stream, update = torch.npu.Stream(), torch.npu.Stream()
    ready = torch.npu.ExternalEvent()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=stream):
        ready.wait(stream)
        ready.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        torch.mul(x, 1.0, out=y)
        handle = torch.npu.graph_task_group_end(stream)
    for factor in (2.0, 3.0):
        graph.replay()
        with torch.npu.stream(update):
            torch.npu.graph_task_update_begin(update, handle)
            torch.mul(x, factor, out=y)
            torch.npu.graph_task_update_end(update)
            ready.record(update)
        torch.npu.synchronize()
        assert y.tolist() == [-8 * factor] * 4


def test_pools_keep_addresses():
    x = torch.zeros(1 << 16, **NEW)
    first, one = captured(lambda: x + 1)
    second, two = captured(lambda: x + 2, pool=first.pool())
    keep = [torch.full((1 << 16,), 9.0, **NEW) for _ in range(4)]
    first.replay()
    second.replay()
    assert one[-1] == 1
    assert two[-1] == 2
    assert all(t[-1] == 9 for t in keep)


@after_failures
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("name", ["synchronize", "item", "pageable"])
def test_refused_in_a_capture(name, mode):
    x = torch.ones(4, **NEW)
    torch.npu.synchronize()
    calls = {
        "synchronize": torch.npu.synchronize,
        "item": lambda: x.sum().item(),
        "pageable": lambda: x.copy_(torch.zeros(4)),
    }
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError), torch.npu.graph(graph, capture_error_mode=mode):
        calls[name]()
    torch.npu.synchronize()
    copied = (name, mode) == ("pageable", "relaxed")  # aclrtMemcpy is allowed, the wait is not
    assert x.tolist() == [0 if copied else 1] * 4
    assert not torch_npu.npu.is_current_stream_capturing()


@after_failures
def test_shapes_that_only_a_run_shows_are_refused_in_a_capture():
    import torch._dynamo  # registers them

    x = torch.ones(4, 8, device="meta")
    torch.npu.synchronize()
    with (
        pytest.raises(NotImplementedError, match=r"npu_stride_copy.*before the capture"),
        torch.npu.graph(torch.npu.NPUGraph()),
    ):
        torch.ops.npu.npu_stride_copy(x, [2, 2], [1, 3], 1)


@after_failures
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_numbers_of_a_host_seed_are_refused(call, mode):
    if os.environ.get("TASK_QUEUE_ENABLE") != "0":
        pytest.skip("the queue leaves refusals to the next synchronisation")
    x = torch.ones(4, **NEW)
    graph = torch.npu.NPUGraph()
    with (
        pytest.raises(AssertionError, match="every replay would draw the same numbers"),
        torch.npu.graph(graph, capture_error_mode=mode),
    ):
        call("aclnnInplaceNormal", x, 0.0, 1.0, 7, 0)
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize(
    "backend",
    [
        "npugraphs",
        pytest.param("npugraph_ex", marks=not_on_2_8("takes torchair for npugraph_ex")),
    ],
)
@torch.no_grad()
def test_backends_of_compile_that_capture(backend):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).npu()
    compiled = torch.compile(model, backend=backend)
    for rows in (2, 2, 5):
        x = torch.randn(rows, 6).npu()
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
