# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` on the device: modes, shapes, training, operators of torch_npu."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
import torch._dynamo
from tests.npu.device.test_training import Transformer
from torch import nn

from openaclnn.torch_npu import compiling, metas, notices


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()


def losses(model, call, steps=5):
    torch.manual_seed(5)
    x, labels = torch.randint(0, 31, (4, 16)).npu(), torch.randint(0, 31, (64,)).npu()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    found = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(call(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


def test_a_gpt_trains_as_without():
    torch.manual_seed(3)
    plain = Transformer().npu()
    model = copy.deepcopy(plain)
    want, got = losses(plain, plain), losses(model, torch.compile(model))
    assert want[-1] < want[0]
    assert got == pytest.approx(want, rel=1e-5)


OPTIONS = [
    {"fullgraph": True},
    {"dynamic": True, "fullgraph": True},
    {"mode": "reduce-overhead"},
    {"mode": "max-autotune"},
    {"options": {"npu_backend": "mlir"}},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
@torch.no_grad()
def test_modes_and_shapes(options):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)).npu()
    compiled = torch.compile(model, **options)
    for rows in (2, 5, 7):
        x = torch.randn(rows, 6).npu()
        assert torch.equal(compiled(x), model(x))


def test_a_graph_without_inputs_is_on_the_device():
    made = torch.compile(lambda n: torch.arange(n, device="npu") * 2)(4)
    assert made.tolist() == [0, 2, 4, 6]


def test_other_devices_have_inductor():
    compile_fx = compiling._falling_back(lambda model, inputs: "inductor")
    module = torch.fx.symbolic_trace(nn.Linear(2, 2))
    assert compile_fx(module, [torch.ones(2)]) == "inductor"


def test_it_says_so_once(monkeypatch):
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv("OPENACLNN_NPU_NOTICE", raising=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for number in (1, 2):
            torch.compile(lambda x, n=number: x + n)(torch.ones(2).npu())
    said = [str(w.message) for w in found if "operator by operator" in str(w.message)]
    assert said == [compiling.NOTICE]


def test_ahead_of_time_is_refused():
    program = torch.export.export(nn.Linear(2, 2).npu(), (torch.ones(1, 2).npu(),))
    with pytest.raises(Exception, match="AOTInductor cannot compile for device npu here"):
        torch._inductor.aoti_compile_and_package(program)


def test_our_gradient_is_traced():
    import torch_npu

    torch.manual_seed(1)
    x = torch.randn(2, 4, 5).npu()
    weight, bias = torch.randn(4).npu(), torch.randn(4).npu()

    def gradient(call):
        own = x.clone().requires_grad_()
        call(own).square().sum().backward()
        return own.grad

    def function(x):
        return torch_npu.npu_group_norm_swish(x, 2, weight, bias)[0]

    assert torch.equal(gradient(torch.compile(function, fullgraph=True)), gradient(function))


def numbers(*shape):
    return torch.randn(*shape).npu()


def whole(*shape):
    return torch.randint(0, 3, shape, dtype=torch.int32).npu()


def calls():
    """Arguments for each operator of METAS that returns something the device computes."""
    x = numbers(4, 8)
    return {
        "npu_mish": (x,),
        "npu_format_cast": (x, 2),
        "npu_format_cast.Tensor": (x, x),
        "npu_renorm_backward": (x, x, 2, 0, 1.0),
        "npu_binary_cross_entropy_with_logits_backward": (x, x, x, None, None, 1),
        "kl_div_target_backward": (x, x, x.abs()),
        "repeat_interleave_backward_tensor": (
            numbers(6, 8), numbers(3, 8), torch.tensor([1, 2, 3]).npu(), 0,
        ),
        "npu_group_norm_swish_grad": (
            *(numbers(2, 4, 3) for _ in range(2)), 2, *(numbers(4) for _ in range(4)), [True] * 3,
        ),
        "npu_silu_": (x.clone(),),
        "npu_format_cast_": (x, x),
        "npu_format_cast_.acl_format": (x, 2),
        "npu_dtype_cast_": (x, x),
        "npu_attn_softmax_": (x.clone(),),
        "one_": (x.clone(),),
        "npu_broadcast": (x, [2, 4, 8]),
        "npu_slice": (x, [0, 0], [2, 3]),
        "npu_gather_sparse_index_backward": (numbers(3, 8), [5, 8], whole(3).long()),
        "npu_pad": (x, [1, 1, 0, 2]),
        "npu_max.dim": (x, 1),
        "npu_min.dim": (x, 1),
        "npu_convert_weight_to_int4pack": (whole(8, 16),),
        "npu_top_k_top_p_sample": (x, whole(4) + 1, torch.full((4,), 0.5).npu()),
    }  # fmt: skip


WRITE_ONLY = {"npu_gather_pa_kv_cache", "npu_advance_step_flashattn", "npu_scatter_pa_cache.value"}


def test_meta_functions_know_the_results():
    def kinds(results):
        results = results if isinstance(results, (tuple, list)) else [results]
        return [(x.shape, x.dtype, x.stride()) for x in results]

    given = calls()
    assert given.keys() == metas.METAS.keys() - WRITE_ONLY
    for name, arguments in given.items():
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.npu, base), overload or "default")
        on_meta = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in arguments]
        assert kinds(operator(*on_meta)) == kinds(operator(*arguments)), name
