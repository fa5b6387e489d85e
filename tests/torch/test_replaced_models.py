# SPDX-License-Identifier: Apache-2.0
"""replace in models as people write, wrap and store them: equal numbers, or a line that says what
to do."""

from __future__ import annotations

import copy
import functools
import io
import pickle

import pytest
from tests.torch.replace_support import Residual, check, images
from tests.torch.torch_support import torch

import openaclnn.torch as ot

nn, functional = torch.nn, torch.nn.functional
checkpoint = torch.utils.checkpoint.checkpoint
weight_norm = nn.utils.parametrizations.weight_norm


class GroupNorm32(nn.GroupNorm):
    """As CompVis' and OpenAI's diffusion models have it."""

    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)


class Normalize(nn.GroupNorm):
    def __init__(self):
        super().__init__(2, 6, eps=1e-6)


class Shifted(nn.GroupNorm):
    def forward(self, x):
        return super().forward(x) + 1


class Block(nn.Module):
    def __init__(self, norm=None, act=None):
        super().__init__()
        self.norm = norm or nn.GroupNorm(2, 6)
        self.act = act or nn.SiLU()

    def forward(self, x):
        return self.act(self.norm(x))


class Sub(Block):
    def forward(self, x):
        return super().forward(x) * 2


class Checkpointed(Block):
    reentrant = False

    def forward(self, x):
        x = x.detach().requires_grad_()  # else reentrant ones have no gradients
        return checkpoint(self.run, x, use_reentrant=self.reentrant)

    def run(self, x):
        return functional.silu(self.norm(x), inplace=True)


class Reentrant(Checkpointed):
    reentrant = True


class InLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.GroupNorm(2, 6), nn.SiLU()])

    def forward(self, x):
        return functools.reduce(lambda y, layer: layer(y), self.layers, x)


class Doubling(nn.Sequential):
    def forward(self, x):
        return super().forward(x) * 2


def keyword(self, x):
    return self.act(self.norm(input=x))


def dropped(self, x):
    return self.act(functional.dropout(self.norm(x), 0.0))


def shared(self, x):
    return self.act(self.norm(x)) + self.norm(x)


def by_variable(self, x):
    layer = self.norm
    return self.act(layer(x))


def with_default(self, x, scale=2.0):
    return self.act(self.norm(x)) * scale


def using(forward, act=None):
    kind = type("Using", (Block,), {"forward": forward, "__module__": __name__})
    return kind(act=act)


def sequence(first, second=None):
    return nn.Sequential(first, second or nn.SiLU(), nn.Conv2d(6, 6, 1))


def norm():
    return nn.GroupNorm(2, 6)


class Act(nn.Module):
    """A function that replace cannot read."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


REPLACED = {
    "in place": (lambda: sequence(norm(), nn.SiLU(inplace=True)), "0"),
    "GroupNorm32": (lambda: sequence(GroupNorm32(2, 6)), "0"),
    "GroupNorm32 in a method": (lambda: Block(GroupNorm32(2, 6)), "norm"),
    "a class with other defaults": (lambda: Block(Normalize()), "norm"),
    "a forward with defaults": (lambda: using(with_default), "norm"),
    "one call of two": (lambda: using(shared), "norm"),
    "checkpoint": (Checkpointed, "norm"),
    "reentrant checkpoint": (Reentrant, "norm"),
    "weight_norm of a neighbour": (
        lambda: nn.Sequential(weight_norm(nn.Conv2d(6, 6, 1)), norm(), nn.SiLU()),
        "1",
    ),
}
SILU_ALONE, NOT_CALLED = "no SiLU alone takes its result", "no method calls it as self.NAME(x)"
LEFT = {
    "keyword": (lambda: using(keyword), "norm", SILU_ALONE),
    "dropout between": (lambda: using(dropped), "norm", SILU_ALONE),
    "module between": (lambda: nn.Sequential(norm(), nn.Identity(), nn.SiLU()), "0", SILU_ALONE),
    "lambda": (lambda: Block(act=Act(lambda x: functional.silu(x))), "norm", SILU_ALONE),
    "partial": (lambda: Block(act=Act(functools.partial(functional.silu))), "norm", SILU_ALONE),
    "by a variable": (lambda: using(by_variable), "norm", NOT_CALLED),
    "method of the base": (Sub, "norm", NOT_CALLED),
    "loop": (InLoop, "layers.0", NOT_CALLED),
    "another forward": (lambda: Doubling(norm(), nn.SiLU()), "0", NOT_CALLED),
    "another norm": (lambda: sequence(Shifted(2, 6)), "0", "its class Shifted, derived"),
    "weight_norm": (lambda: sequence(weight_norm(norm())), "0", "0 has hooks"),
}


@pytest.mark.parametrize("how", REPLACED)
def test_replaced(how):
    make, name = REPLACED[how]
    check(make(), [name], {})


@pytest.mark.parametrize("how", LEFT)
def test_left_with_advice(how):
    make, name, why = LEFT[how]
    report = check(make(), [], {name: why})
    advice = "Call replace before" if "hooks" in why else "call openaclnn.torch.group_norm_swish"
    assert advice in str(report).splitlines()[-1]


def test_group_norm_32_of_half_precision():
    """It normalises in float32, and rounds once more before the activation than the one call."""
    model, x = sequence(GroupNorm32(2, 6)), images().to(torch.bfloat16)
    due = model[:2](x.float())
    rounded = model[:2](x)
    ot.replace(model)
    result = model[:2](x)
    assert result.dtype == torch.bfloat16
    assert (result - due).abs().max() <= (rounded - due).abs().max()


# ---- wrapped, copied, stored: before replace and after ----


class Lora(nn.Module):
    """A frozen layer and a low-rank one, as adapters add them."""

    def __init__(self, base):
        super().__init__()
        self.base, self.down = base.requires_grad_(False), nn.Conv2d(6, 2, 1)
        self.up = nn.Conv2d(2, 6, 1)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def lora(model):
    torch.manual_seed(1)
    model[0].conv2 = Lora(model[0].conv2)
    return model


def frozen(model):
    model[0].norm1.requires_grad_(False)
    return model


def stored(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def on_meta(model):
    """Without storage, then with that of a state_dict."""
    state = copy.deepcopy(model.state_dict())
    model = model.to("meta")
    model.load_state_dict(state, assign=True)
    return model


def sharded(model):
    from torch.distributed.fsdp import fully_shard

    fully_shard(model[0])
    return fully_shard(model) or model


def compiled_in_place(model):
    model.compile(backend="eager")
    return model


def used(model):
    model = torch.compile(model, backend="eager")
    model(images())
    return model


WRAPPERS = {
    "compile": lambda m: torch.compile(m, backend="eager"),
    "compiled and used": used,
    "compile in place": compiled_in_place,
    "DistributedDataParallel": lambda m: nn.parallel.DistributedDataParallel(m),
    "fully_shard": sharded,
    "average": torch.optim.swa_utils.AveragedModel,
    "deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "torch.save": stored,
    "meta": on_meta,
    "adapter": lora,
    "frozen": frozen,
    "eval": lambda m: m.eval(),
}


@pytest.fixture(scope="module")
def one_process():
    distributed = torch.distributed
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def ends(model):
    """The result and all gradients."""
    y = model(images())
    y.square().sum().backward()
    found = [y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]
    return [t.full_tensor() if hasattr(t, "full_tensor") else t for t in found]


@pytest.mark.filterwarnings("ignore")  # of torch, about gradients that DDP and gloo lay out
@pytest.mark.parametrize("first", [True, False], ids=["replaced first", "wrapped first"])
@pytest.mark.parametrize("how", WRAPPERS)
def test_wrapped(how, first, one_process):
    results = []
    for replaces in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Sequential(Residual(), nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv2d(6, 6, 1))
        if replaces and first:
            report = ot.replace(model)
        model = WRAPPERS[how](model)
        if replaces and not first:
            report = ot.replace(model)
        results.append(ends(model))
    if how == "fully_shard" and not first:  # it adds hooks
        assert not report.replaced
        assert "Call replace before" in str(report)
    else:
        assert (len(report.replaced), report.left) == (3, {})
    for ours, due in zip(*results[::-1], strict=True):
        torch.testing.assert_close(ours, due, rtol=1e-4, atol=1e-4)
