# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` on the device: modes, shapes, training, operators of torch_npu."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
import torch._dynamo
from tests.npu.device.marks import not_on_2_8
from tests.npu.device.small_models import Transformer, train
from torch import nn

from openaclnn.torch_npu import compiling, metas, notices


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()


def losses(model, forward):
    torch.manual_seed(5)
    x, labels = torch.randint(0, 31, (4, 16)).npu(), torch.randint(0, 31, (64,)).npu()
    return train(model, x, labels, torch.optim.AdamW(model.parameters(), lr=3e-3), 5, forward)


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
    pytest.param(
        {"options": {"npu_backend": "mlir"}}, marks=not_on_2_8("has no option npu_backend")
    ),
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


def test_the_backend_of_the_graph_engine_says_what_works():
    with pytest.raises(Exception, match=r"torchair.* does not have; torch.compile works without"):
        torch.compile(lambda x: x + 1, backend="npu")(torch.ones(2).npu())
    import torchair

    with pytest.raises(AttributeError, match=r"torchair\.CompilerConfig: .*compile works"):
        torchair.CompilerConfig()


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
        "npu_broadcast": (x, [2, 4, 8]),
        "npu_slice": (x, [0, 0], [2, 3]),
        "npu_gather_sparse_index_backward": (numbers(3, 8), [5, 8], whole(3).long()),
        "npu_pad": (x, [1, 1, 0, 2]),
        "npu_max.dim": (x, 1),
        "npu_min.dim": (x, 1),
        "npu_convert_weight_to_int4pack": (whole(8, 16),),
        "npu_top_k_top_p_sample": (x.half(), whole(4) + 1, x.new_full((4,), 0.5).half()),
    }  # fmt: skip


def derived_calls():
    """The same for some of the others: a written argument, new tensors, both."""
    x = numbers(4, 8)
    return {
        "npu_silu_": (x.clone(),),
        "npu_format_cast_.acl_format": (x, 2),
        "npu_dtype_cast_": (x, x),
        "npu_broadcast.out": (x, [2, 4, 8], numbers(2, 4, 8)),
        "npu_indexing": (x, [0, 0], [2, 8], [1, 2]),
        "npu_stride_copy": (x, [2, 2], [1, 3], 1),
        "npu_moe_gating_top_k_backward": (x.sigmoid(), numbers(4, 2).abs(), whole(4, 2)),
    }  # fmt: skip


def operator_of(name):
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.npu, base), overload or "default")


@pytest.mark.parametrize("arguments_of", [calls, derived_calls])
def test_meta_functions_know_the_results(arguments_of):
    def kinds(results):
        results = results if isinstance(results, (tuple, list)) else [results]
        return [(x.shape, x.dtype, x.stride()) for x in results]

    given = arguments_of()
    assert arguments_of is not calls or given.keys() == metas.METAS.keys()
    has = torch._C._dispatch_has_kernel
    there = {name: arguments for name, arguments in given.items() if has(f"npu::{name}")}
    assert len(there) >= len(given) - 2  # torch_npu 2.9 lacks one of each, 2.8.0.post2 two
    for name, arguments in there.items():
        operator = operator_of(name)
        named = {}
        if name.endswith(".out"):
            *arguments, out = arguments
            named = {"out": out}

        def on_meta(x):
            return x.to("meta") if isinstance(x, torch.Tensor) else x

        found = operator(*map(on_meta, arguments), **{k: on_meta(x) for k, x in named.items()})
        assert kinds(found) == kinds(operator(*arguments, **named)), name


def test_every_operator_has_a_meta_function():
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("npu::")]
    known = [
        name
        for name in names
        if any(
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
            for key in ("Meta", "CompositeImplicitAutograd")
        )
    ]
    assert known == names
    assert len(names) > 300


def test_a_derived_meta_function_compiles_and_leaves_the_seed_alone():
    torch.npu.manual_seed(7)
    want = torch.rand(3, device="npu")

    def function(x):
        return torch.ops.npu.npu_indexing(x * 2, [0, 0], [2, 8], [1, 2]) + 1

    torch.npu.manual_seed(7)
    compiled = torch.compile(function, fullgraph=True)
    for rows in (4, 5):
        x = numbers(rows, 8)
        assert torch.equal(compiled(x), function(x))
    assert torch.equal(torch.rand(3, device="npu"), want)


def test_an_operator_that_does_not_run_is_named():
    x = numbers(1, 16, 4, 4)
    refused = r"npu\.npu_stride_add\.default cannot be traced: .*StrideAdd"
    with pytest.raises(Exception, match=refused):
        torch.compile(operator_of("npu_stride_add"), fullgraph=True)(x, x, 0, 0, 1)
