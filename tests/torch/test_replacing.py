# SPDX-License-Identifier: Apache-2.0
"""replace(model): what it exchanges, what it leaves, and that models compute what they did."""

from __future__ import annotations

import copy
import pickle
import types

import pytest
from tests.torch.replace_support import Residual, check, images
from tests.torch.torch_support import same_bits, torch

import openaclnn
import openaclnn.torch as ot

nn, functional = torch.nn, torch.nn.functional


def test_replace_in_sequences():
    shared = nn.SiLU()
    layers = [nn.GroupNorm(3, 6), shared, nn.ELU(), nn.Conv2d(6, 6, 1), nn.GroupNorm(2, 6), shared]
    model = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.GroupNorm(2, 6), nn.Hardshrink())
    report = check(model, ["0", "2", "4", "6", "8"], {"7": "no SiLU alone"})
    assert report.replaced["0"] == "openaclnn.torch.GroupNormSwish, with 1"
    assert [type(m) for m in model][:3] == [ot.GroupNormSwish, nn.Identity, ot.ELU]
    assert model[0].weight is layers[0].weight


def test_replace_takes_a_module():
    with pytest.raises(
        TypeError, match=r"^replace: model must be a torch.nn.Module, but got Tensor$"
    ):
        ot.replace(torch.ones(3))


def test_replace_in_a_forward():
    model = nn.Sequential(nn.Conv2d(6, 6, 1), Residual(), Residual())
    report = check(model, ["1.norm1", "1.norm2", "2.norm1", "2.norm2"], {})
    assert str(report) == (
        "*.norm1 (2): one call with act in Residual.forward\n"
        "*.norm2 (2): one call with act in Residual.forward"
    )
    assert (type(model[1].norm1), type(model[1].act)) == (nn.GroupNorm, nn.SiLU)
    assert isinstance(model[1], Residual)
    assert str(ot.replace(model)) == "nothing to replace"


def test_replace_one_module_of_two_names():
    shared = nn.ELU()
    model = nn.Sequential(shared, nn.Conv2d(6, 6, 1), shared)
    check(model, ["0", "2"], {})
    assert type(model[2]) is ot.ELU
    assert model[0] is model[2]


def test_replace_leaves_hooks_and_dtypes():
    model = nn.Sequential(nn.GroupNorm(3, 6), nn.SiLU(), nn.ELU())
    model[0].register_forward_hook(lambda *_: None)
    model[2].register_forward_hook(lambda *_: None)
    check(model, [], {"0": "has hooks", "2": "it has hooks"})
    report = ot.replace(nn.GroupNorm(3, 6))
    assert str(report).startswith(
        "(the model): left as it is, because it is the model itself; use "
    )
    assert str(ot.replace(nn.ReLU())) == "nothing to replace"


def test_the_report_is_not_the_model():
    report = ot.replace(nn.Sequential(nn.ELU()))
    with pytest.raises(TypeError, match="replace changes the model itself"):
        report(torch.ones(1))
    with pytest.raises(AttributeError, match="no attribute parameters; replace changes the model"):
        report.parameters()
    assert copy.deepcopy(report) == report


def test_replace_leaves_what_the_operator_refuses():
    report = ot.replace(nn.Sequential(nn.GroupNorm(1, 4001), nn.SiLU()))
    assert report.left["0"].startswith("group_norm_swish: num_groups must leave at most 4000 chan")


def tripled(module):
    """A forward set on the instance, as tools do that wrap modules."""
    old = module.forward
    module.forward = lambda x: old(x) * 3
    return module


def test_replace_leaves_forwards_of_instances():
    sequence = nn.Sequential(tripled(nn.GroupNorm(3, 6)), nn.SiLU(), tripled(nn.ELU()))
    check(
        sequence,
        [],
        {"0": "0 overrides forward on the instance", "2": "it overrides forward on the instance"},
    )
    sequence = nn.Sequential(nn.GroupNorm(3, 6), tripled(nn.SiLU()))
    check(sequence, [], {"0": "1 overrides forward on the instance"})
    holder = "the module that holds it overrides forward on the instance"
    check(tripled(nn.Sequential(nn.GroupNorm(3, 6), nn.SiLU())), [], {"0": holder})
    block = Residual()
    block.forward = types.MethodType(lambda self, x: self.norm1(self.norm2(x)), block)
    check(block, [], {"norm1": holder, "norm2": holder})


@pytest.mark.parametrize("make", [lambda: nn.GroupNorm(3, 6), nn.ELU])
def test_replace_leaves_what_its_modules_would_not_have(make):
    def model():
        return nn.Sequential(make(), nn.SiLU())

    named = model()
    named[0].register_buffer("seen", torch.zeros(1))
    assert "holds seen too" in ot.replace(named).left["0"]
    assert "0.seen" in named.state_dict()
    for register in ("state_dict_post_hook", "load_state_dict_pre_hook"):
        hooked = model()
        getattr(hooked[0], f"register_{register}")(lambda *_: None)
        assert "has hooks" in ot.replace(hooked).left["0"]
    assert ot.replace(model()).left == {}


def test_replace_leaves_float64_models():
    """No product has the gradients of elu, hardshrink and group_norm_swish in float64."""
    layers = [nn.Linear(4, 4), nn.ELU(), nn.Hardshrink(), nn.LeakyReLU()]
    model = nn.Sequential(*layers, nn.GroupNorm(2, 4), nn.SiLU()).double()
    report = ot.replace(model)
    assert list(report.replaced) == ["3"]
    assert {key: why[:9] for key, why in report.left.items()} == {
        "1": "the model", "2": "the model", "4": "it has fl"
    }  # fmt: skip
    advice = "For float64, call openaclnn.set_product(None) before replace."
    assert str(report).splitlines()[-1] == advice
    x = torch.randn(3, 4, dtype=torch.float64)
    model(x).sum().backward()
    openaclnn.set_product(None)
    assert list(ot.replace(model).replaced) == ["1", "2", "4"]
    model(x).sum().backward()


def test_replace_leaves_one_norm_of_two():
    model = Residual()
    model.norm2.register_forward_hook(lambda *_: None)
    check(model, ["norm1"], {"norm2": "it has hooks"})
    model = Residual()
    model.act.register_forward_hook(lambda *_: None)
    check(model, [], {"norm1": "act has hooks", "norm2": "act has hooks"})


def test_replace_leaves_a_sequence_that_is_taken_apart():
    """As blocks do that scale and shift between norm and activation."""
    check(Apart(), [], {"layers.0": "Apart.forward takes the modules of its Sequential"})


class Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv2d(6, 6, 1))

    def forward(self, x):
        return self.layers[1:](self.layers[0](x) * 2 + 1)


def test_registered_classes():
    class Normed(nn.GroupNorm):
        def forward(self, x):
            return functional.silu(super().forward(x))

    def make(m):
        made = ot.GroupNormSwish(m.num_groups, m.num_channels, m.eps)
        made.load_state_dict(m.state_dict())
        return made if m.num_groups > 1 else None

    ot.register_replacement(Normed, make)
    other = "its class Normed, derived from GroupNorm, may compute something else"
    report = check(nn.Sequential(Normed(2, 6), Normed(1, 6)), ["0"], {"1": other})
    assert report.replaced == {"0": "openaclnn.torch.GroupNormSwish"}


def test_what_make_returns_is_checked():
    class Other(nn.GroupNorm):
        pass

    ot.register_replacement(Other, lambda module: "x")
    with pytest.raises(TypeError, match=r"make of .*Other must return .*, but returned str"):
        ot.replace(nn.Sequential(Other(2, 6)))
    with pytest.raises(TypeError, match="make must be a function of the module, but got int"):
        ot.register_replacement(Other, 3)


def test_norms_of_timm():
    """GroupNormAct as timm has it: a norm that holds its activation."""

    def forward(self, x):
        x = functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)
        return self.act(self.drop(x))

    kind = type("GroupNormAct", (nn.GroupNorm,), {"forward": forward})
    kind.__module__ = "timm.layers.norm_act"
    model = nn.Sequential(kind(2, 6), kind(2, 6))
    for module, act in zip(model, (nn.SiLU(), nn.ReLU()), strict=True):
        module.drop, module.act = nn.Identity(), act
    check(model, ["0"], {"1": "its class GroupNormAct"})


def test_replaced_models_copy_and_pickle():
    model = Residual()
    ot.replace(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(other) is type(model)
        assert same_bits(other(images()), model(images()))


def test_calls_check_what_they_call():
    """A norm or activation that changed after replace is called as it is."""
    model, seen = Residual(), []
    ot.replace(model)
    model.norm1.register_forward_hook(lambda *_: seen.append(1))
    model(images())
    assert seen == [1]
    model.act = nn.GELU()
    plain = Residual()
    plain.load_state_dict(model.state_dict())
    plain.act = nn.GELU()
    assert same_bits(model(images()), plain(images()))
    wide = copy.deepcopy(model).double()
    assert wide(images().double()).dtype == torch.float64
