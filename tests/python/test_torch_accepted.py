# SPDX-License-Identifier: Apache-2.0
"""Tensors and modes of torch that look like those that cannot be used, but can."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from tests.python.test_torch_refusals import in_make_fx, in_trace, ones

import openaclnn

torch = pytest.importorskip("torch", reason="torch is not installed")


# ---- what may be used ----


class Derived(torch.Tensor):
    """Overrides nothing."""


@pytest.mark.parametrize("make", [
    lambda: torch.nn.Parameter(torch.full((4,), -4.0), requires_grad=False),
    lambda: torch.nn.Buffer(torch.full((4,), -4.0)),
    lambda: torch.full((4,), -4.0).as_subclass(Derived),
])  # fmt: skip
def test_tensors_that_are_plain(make):
    result = openaclnn.leaky_relu(make(), 0.25)
    assert (result == -1).all()
    assert (openaclnn.leaky_relu_(make(), torch.tensor(0.25)) == -1).all()


def test_modes_that_only_watch():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        assert (openaclnn.leaky_relu(torch.full((4,), -4.0), 0.25) == -1).all()


@pytest.mark.filterwarnings("ignore:Dynamo does not know")  # it breaks the graph and says so
def test_graph_breaks_of_compile():
    f = torch.compile(lambda x: openaclnn.leaky_relu(x * 2, 0.25) + 1, backend="eager")
    assert (f(torch.full((4,), -4.0)) == -1).all()


def test_no_gradient_where_none_is_recorded():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return openaclnn.leaky_relu(x, 0.25)

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            return openaclnn.leaky_relu_backward(gradient.contiguous(), x, 0.25, False)

    x = torch.tensor([-4.0, 4.0], requires_grad=True)
    Function.apply(x).sum().backward()
    assert x.grad.tolist() == [0.25, 1]


@pytest.mark.filterwarnings("ignore")
def test_plans_that_run_where_they_must_not():
    x, y = torch.ones(1), torch.ones(1)
    plain = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    for context in (in_trace, in_make_fx):

        def use(_):
            with pytest.raises(openaclnn.AclnnError, match="aclnnLeakyRelu: self must not be trac"):
                plain.run()

        context(use)
    with torch.inference_mode():
        made = openaclnn.plan("aclnnInplaceLeakyRelu", ones(), 0.25)
        made.run()
    with pytest.raises(openaclnn.AclnnError, match="selfRef must not be an inference tensor"):
        made.run()


# A torch from before 2.9 has no exchange table: its memory is lent by __dlpack__.
OLDER = """
import sys, ctypes, torch, openaclnn, numpy as np
if "exchange" in sys.argv:
    del torch.Tensor.__dlpack_c_exchange_api__
x, y = torch.full((4,), -4.0), torch.zeros(4)
assert openaclnn.leaky_relu(x, 0.25, out=y) is y and (y == -1).all()
assert (openaclnn.leaky_relu(torch.nn.Parameter(x).detach(), 0.25) == -1).all()
with torch.no_grad():
    assert (openaclnn.leaky_relu(torch.nn.Parameter(x), 0.25) == -1).all()
plan = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
plan.run()
x.resize_(1000000)
for refused in (plan.run, lambda: openaclnn.leaky_relu(torch.ones(2).to_sparse())):
    try:
        refused()
    except openaclnn.AclnnError as error:
        print(error)
"""


@pytest.mark.programs
def test_an_older_torch():
    done = subprocess.run([sys.executable, "-c", OLDER, "exchange"], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "aclnnLeakyRelu: self must keep its memory while a plan uses it, but was resized or given "
        "other data: plan again",
        "aclnnLeakyRelu: self must be dense, but has layout torch.sparse_coo: pass x.to_dense()",
    ]


def test_a_mode_that_moves_what_it_is_asked_about():
    """torch asks a mode about every property; its code runs before an address is read."""
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, given=(), named=None):
            x.data, y.data = x.data.clone(), y.data.clone()
            asked.append(function)
            return function(*given, **(named or {}))

    for shape in ((1 << 16,), (1, 1 << 16)):
        asked, x, y = [], torch.full(shape, -4.0), torch.zeros(shape)
        with Mode():
            assert openaclnn.leaky_relu(x, 0.25, out=y) is y
            made = openaclnn.leaky_relu(x, 0.25)
        assert asked
        assert (y == -1).all()
        assert (made == -1).all()


def test_warnings_of_torch_stay_where_they_are():
    """To convert a tensor to a number warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert openaclnn.leaky_relu(np.full(1, -4.0), torch.tensor(0.25)).item() == -1
