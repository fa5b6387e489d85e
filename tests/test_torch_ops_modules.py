# SPDX-License-Identifier: Apache-2.0
"""Functions and modules with torch's names: torch's own samples, state_dict, replace(model)."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from support import all_rows
from torch_support import arguments, operator, same_bits, tensors, torch

import openaclnn
import openaclnn.torch as ot
from openaclnn.gradients import differentiable
from openaclnn.torch import recording

nn, functional = torch.nn, torch.nn.functional


def op_infos():
    pytest.importorskip("expecttest", reason="torch's samples need expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    return {info.name: info for info in op_db}


PEERS = {
    "nn.functional.leaky_relu": ot.leaky_relu,
    "nn.functional.elu": ot.elu,
    "nn.functional.hardshrink": ot.hardshrink,
    "logit": ot.logit,
}


@pytest.mark.filterwarnings("ignore")  # of torch's test package, about itself
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PEERS)
def test_samples_of_torch(name, dtype):
    info = op_infos()[name]
    # in half types torch rounds inside logit: near 0 it keeps few digits
    wide = {torch.float32: (2e-6, 1e-6), torch.float16: (2e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2)}
    count = 0
    for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
        ours, theirs = (sample.input.detach().clone().requires_grad_() for _ in range(2))
        y = PEERS[name](ours * 1, *sample.args, **sample.kwargs)
        z = info.op(theirs * 1, *sample.args, **sample.kwargs)
        rtol, atol = wide[dtype]
        torch.testing.assert_close(y, z, rtol=rtol, atol=atol)
        y.sum().backward(), z.sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=rtol, atol=atol)
        count += 1
    assert count > 2


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "hardshrink"])
def test_arguments_are_those_of_torch(name):
    ours = inspect.signature(getattr(ot, name)).parameters
    theirs = getattr(functional, name)
    if name == "hardshrink":  # a builtin: hardshrink(input, lambd=0.5)
        assert list(ours) == ["input", "lambd"]
        return
    theirs = inspect.signature(theirs).parameters
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


@pytest.mark.parametrize("function", [ot.leaky_relu, ot.elu])
def test_in_place(function):
    x = torch.randn(5)
    expected = function(x)
    assert function(x, inplace=True) is x
    assert same_bits(x, expected)


MODULES = [
    (ot.ELU, nn.ELU, (1.5,)),
    (ot.LeakyReLU, nn.LeakyReLU, (0.2,)),
    (ot.Hardshrink, nn.Hardshrink, (0.3,)),
]


@pytest.mark.parametrize(("ours", "theirs", "arguments"), MODULES)
def test_activations(ours, theirs, arguments):
    x = torch.randn(3, 4)
    torch.testing.assert_close(ours(*arguments)(x), theirs(*arguments)(x))
    assert repr(ours(*arguments)) == repr(theirs(*arguments))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_swish(affine, dtype):
    torch.manual_seed(0)
    theirs = nn.GroupNorm(3, 6, eps=1e-4, affine=affine, dtype=dtype)
    ours = ot.GroupNormSwish(3, 6, eps=1e-4, affine=affine, dtype=dtype)
    if affine:
        nn.init.normal_(theirs.weight), nn.init.normal_(theirs.bias)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 6, 5, 4).to(dtype)
    exact = nn.GroupNorm(3, 6, eps=1e-4, affine=affine, dtype=torch.float64)
    exact.load_state_dict(theirs.state_dict())
    mine, true = x.clone().requires_grad_(), x.double().requires_grad_()
    y, z = ours(mine), functional.silu(exact(true))
    incoming = torch.randn(y.shape).to(dtype)
    y.backward(incoming), z.backward(incoming.double())
    step = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(y.double(), z, rtol=step, atol=step / 4)
    torch.testing.assert_close(mine.grad.double(), true.grad, rtol=step, atol=4 * step / 4)
    if affine:
        # statistics in float32: the gradients are rounded once, at the end
        for a, b in zip(ours.parameters(), exact.parameters(), strict=True):
            assert a.grad.dtype is dtype
            torch.testing.assert_close(a.grad.double(), b.grad, rtol=step, atol=step)


def test_what_group_norm_swish_keeps():
    """x, gamma, beta, mean and rstd, and no intermediate result of the size of x."""
    kept = []

    def pack(tensor):
        kept.append(tensor)
        return tensor

    module, x = ot.GroupNormSiLU(3, 6), torch.randn(2, 6, 5, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        module(x)
    assert sorted(tuple(t.shape) for t in kept) == [(2, 3), (2, 3), (2, 6, 5, 4), (6,), (6,)]
    assert sum(t.data_ptr() == x.data_ptr() for t in kept) == 1


def test_swish_scale():
    module, x = ot.GroupNormSwish(3, 6, swish_scale=1.702), torch.randn(2, 6, 5)
    v = functional.group_norm(x, 3)
    torch.testing.assert_close(module(x), v * torch.sigmoid(1.702 * v), rtol=1e-5, atol=1e-6)
    assert "swish_scale=1.702" in repr(module)


# ---- replace ----


class Residual(nn.Module):
    """One activation after two norms, as diffusion models have it."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, 6), nn.GroupNorm(3, 6)
        self.conv1, self.conv2 = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 1)
        self.act = nn.SiLU()

    def forward(self, x):
        h = self.conv1(self.act(self.norm1(x)))
        return x + self.conv2(self.act(self.norm2(h)))


class TwoUsers(Residual):
    def forward(self, x):
        n = self.norm1(x)
        return n + self.act(n) + self.act(self.norm2(x))


class OtherInputs(Residual):
    def forward(self, x):
        return self.act(self.norm1(x)) + self.act(self.norm2(x)) + self.act(x)


class Functional(Residual):
    def forward(self, x):
        return functional.silu(self.norm1(x))


class Untraceable(Residual):
    def forward(self, x):
        return self.act(self.norm1(x)) if x.sum() > -1e9 else x


class NotInTraining(Residual):
    def forward(self, x):
        h = self.norm1(x)
        return self.act(h * 2 if self.training else h) + self.act(self.norm2(x))


class NotWithoutSkip(Residual):
    def forward(self, x, scale=None, skip=None):
        h = self.norm1(x)
        if scale is not None and skip is None:
            h = h * scale
        return self.act(h if skip is not None else h + x)


class Indifferent(Residual):
    """What depends on the call is no matter of the norms."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x, *, skip=None):
        h = self.conv1(self.act(self.norm1(x)))
        if self.training:
            self.steps.add_(1)
            self.steps += 1
            self.last = h
            h = h * 0.9 + 0 * torch.rand(())
        return self.act(self.norm2(h if skip is None else h + skip))


class Picky(Residual):
    """Calls that it refuses are no ways through it."""

    def forward(self, x, emb=None, mask=None):
        if mask is None:
            raise ValueError("mask must be given")
        return self.act(self.norm1(x) + emb[:, :6] * mask)


class TwoNames(Residual):
    def __init__(self):
        super().__init__()
        self.act2 = self.act

    def forward(self, x):
        return self.act2(self.norm1(x))


def images():
    return torch.randn(2, 6, 5, 4, generator=torch.Generator().manual_seed(1))


def check(model, replaced, left):
    """The report, and that the model computes what it did, gradients too."""
    x, before = images(), list(model.state_dict())
    ends = []
    for _ in range(2):
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        ends.append([y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
        if len(ends) == 1:
            report = ot.replace(model)
    assert set(report.replaced) == set(replaced)
    assert {name: why for name, why in report.left.items()}.keys() == left.keys()
    for name, why in left.items():
        assert why in report.left[name]
        assert f"{name}: left as it is, because" in str(report)
    assert list(model.state_dict()) == before
    for a, b in zip(*ends, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    return report


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
    check(model, ["1.norm1", "1.norm2", "2.norm1", "2.norm2"], {})
    assert type(model[1].act) is nn.Identity


@pytest.mark.parametrize("training", [True, False])
def test_replace_sees_every_way_through_a_forward(training):
    model = Indifferent().train(training)
    state = torch.get_rng_state()
    check(model, ["norm1", "norm2"], {})
    assert model.steps == (4 if training else 0)  # of the calls, not of replace
    assert type(getattr(model, "last", images())) is torch.Tensor
    assert training or torch.equal(torch.get_rng_state(), state)
    report = ot.replace(Picky().train(training))
    assert report.left["norm1"] == "no SiLU alone takes its result"
    some = "act follows it in some calls only: the forward depends on training or on an argument"
    check(NotInTraining().train(training), [], {"norm1": some, "norm2": some})
    check(NotWithoutSkip().train(training), [], {"norm1": some, "norm2": "no SiLU alone"})


def test_replace_one_module_of_two_names():
    shared = nn.ELU()
    model = nn.Sequential(shared, nn.Conv2d(6, 6, 1), shared)
    check(model, ["0", "2"], {})
    assert type(model[2]) is ot.ELU
    assert model[0] is model[2]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (TwoUsers, {"norm1": "no SiLU alone", "norm2": "has other inputs too"}),
        (OtherInputs, {"norm1": "has other inputs too", "norm2": "has other inputs too"}),
        (Functional, {"norm1": "no SiLU alone", "norm2": "no SiLU alone"}),
        (Untraceable, {"norm1": "torch.fx cannot trace", "norm2": "torch.fx cannot trace"}),
        (TwoNames, {"norm1": "has several names", "norm2": "no SiLU alone"}),
    ],
)
def test_replace_leaves_what_it_cannot_see(kind, why):
    check(kind(), [], why)


def test_replace_leaves_hooks_and_dtypes():
    model = nn.Sequential(nn.GroupNorm(3, 6), nn.SiLU(), nn.ELU())
    model[0].register_forward_hook(lambda *_: None)
    model[2].register_forward_hook(lambda *_: None)
    check(model, [], {"0": "has hooks", "2": "it has hooks"})
    report = ot.replace(nn.Sequential(nn.GroupNorm(3, 6).double(), nn.SiLU()))
    assert report.left == {"0": "its parameters are float64"}
    assert str(ot.replace(nn.ReLU())) == "nothing to replace"


def test_replace_one_norm_refused_keeps_the_activation():
    model = Residual()
    model.norm2.register_forward_hook(lambda *_: None)
    check(model, [], {"norm1": "norm2 has hooks", "norm2": "norm2 has hooks"})
    assert type(model.act) is nn.SiLU


def test_replaced_models_export_and_copy():
    import copy

    model = Residual()
    ot.replace(model)
    assert same_bits(copy.deepcopy(model)(images()), model(images()))


# ---- openaclnn's own functions ----


@pytest.fixture
def recorded():
    recording.start()
    yield
    recording.stop()


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("op", all_rows())
def test_functions_of_openaclnn_record(op):
    inputs = tensors(op, "FLOAT")
    grads = []
    for function in (operator(op), getattr(openaclnn, op.python)):
        leaves = [x.clone() for x in inputs]
        for p, x in zip(op.inputs_, leaves, strict=True):
            x.requires_grad_(p in differentiable(op))
        taken = [x * 1 for x in leaves] if op.inplace else leaves
        found = function(*arguments(op, taken))
        found = found if isinstance(found, tuple) else (found,)
        if any(x.requires_grad for x in leaves):
            found[0].sum().backward()
        grads.append([x.grad for x in leaves] + [y.detach() for y in found])
    assert all(map(same_bits, *grads))


@pytest.mark.usefixtures("recorded")
def test_functions_of_openaclnn_refuse_what_they_did():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="a call with out= must not require a gradient"):
        openaclnn.leaky_relu(x, out=torch.empty(3))
    images, w = torch.ones(2, 4, 5, requires_grad=True), torch.ones(4)
    with pytest.raises(ValueError, match="a call with out= must not require a gradient"):
        openaclnn.group_norm_swish(images, w, w, 2, out=(torch.zeros(2, 4, 5), None, None))
    with pytest.raises(openaclnn.AclnnError, match="aclnnElu: self must have dtype"):
        openaclnn.elu(torch.ones(3, dtype=torch.int32))
    assert isinstance(openaclnn.elu(np.ones(3, np.float32)), np.ndarray)


IMPORTED = """
import torch, openaclnn
x = torch.tensor([-2.0, 3.0], requires_grad=True)
try:
    openaclnn.leaky_relu(x)
except openaclnn.AclnnError:
    print("refused")
import openaclnn.torch
openaclnn.leaky_relu(x, 0.5).sum().backward()
print(x.grad.tolist())
"""


def test_the_import_makes_the_difference():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refused\n[0.5, 1.0]\n", "")
