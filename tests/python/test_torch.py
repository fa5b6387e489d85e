# SPDX-License-Identifier: Apache-2.0
"""torch CPU tensors in and out, without copies. Skipped where torch is not installed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.support import SEED, bits, call, rows

import openaclnn
from openaclnn.bench import cases
from openaclnn.reference.evaluation import REFERENCES, sample

torch = pytest.importorskip("torch", reason="torch is not installed")

DTYPES = {
    "FLOAT": torch.float32,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "DOUBLE": torch.float64,
}


def to_torch(x):
    return cases.to_torch(torch, x)


def torch_bits(x):
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.view(integers[x.element_size()]).numpy().view(f"u{x.element_size()}")


def torch_call(op, inputs, attributes, **out):
    given = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    return getattr(openaclnn, op.python)(**given, **attributes, **out)


@pytest.mark.parametrize("op", rows())
def test_torch_in_torch_out(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    for dtype in op.dtypes:
        inputs = sample(op, (3, 5, 7), dtype, SEED)
        expected = call(op, inputs, attributes)
        result = torch_call(op, [to_torch(x.copy()) for x in inputs], attributes)
        assert isinstance(result, torch.Tensor)
        assert result.dtype is DTYPES[dtype]
        assert (torch_bits(result) == bits(expected)).all()


@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_out_and_strides(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = [to_torch(x) for x in sample(op, (4, 6), "FLOAT", SEED)]
    expected = torch_call(op, inputs, attributes)
    memory = torch.zeros(8, 9)
    out = memory[::2, 1:7]
    assert torch_call(op, [x.t() for x in inputs], attributes, out=memory.t()[1:7, ::2]) is not out
    assert (torch_bits(out.contiguous()) == torch_bits(expected)).all()
    result = torch_call(op, [x.t() for x in inputs], attributes)
    assert result.stride() == inputs[0].t().stride()


def test_in_place_and_views():
    x = torch.full((4, 4), -4.0)
    row = x[1]
    assert openaclnn.leaky_relu_(row, 0.25) is row
    assert x.sum() == -4 * 12 - 4


def test_plans_read_tensors_in_place():
    x, y = torch.full((8,), -4.0), torch.empty(8)
    p = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    x.mul_(2)
    p.run()
    assert (y == -2).all()


def test_channels_last_stays():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert openaclnn.leaky_relu(x).is_contiguous(memory_format=torch.channels_last)


def test_empty_and_rank_0():
    assert openaclnn.leaky_relu(torch.empty(2, 0, 3)).shape == (2, 0, 3)
    assert openaclnn.leaky_relu(torch.tensor(-4.0), 0.25) == -1


def test_numpy_and_torch_mix():
    x, out = np.full(4, -4.0, np.float32), torch.empty(4)
    assert openaclnn.leaky_relu(x, 0.25, out=out) is out
    assert (out == -1).all()


def refused(x, sentence):
    with pytest.raises(openaclnn.AclnnError) as caught:
        openaclnn.leaky_relu(x)
    assert caught.value.status == 161002
    assert str(caught.value) == f"aclnnLeakyRelu: self must {sentence}"


def test_unusable_tensors():
    wants_gradient = torch.ones(2, requires_grad=True)
    pass_detached = (
        "not require a gradient, which plans never record, and functions only after import "
        "openaclnn.torch: call a function of openaclnn.torch, or pass x.detach()"
    )
    refused(wants_gradient, pass_detached)
    with torch.no_grad():
        assert (openaclnn.leaky_relu(wants_gradient) == 1).all()


# A dense tensor is not asked whether it is lazily negated: none of these is dense.
def test_lazy_negations():
    imag = (torch.arange(24).reshape(2, 3, 4) * (1 - 1j)).conj().imag
    views = [imag, imag[0, 0, 0], imag[:1, :1, 1], imag[:, ::2], imag.permute(2, 0, 1)]
    for lazy in [*views, imag[0, 0].expand(5, 4), imag.unfold(2, 2, 1)]:
        assert lazy.is_neg()
        refused(lazy, "be its memory, but is a lazy negation: pass x.resolve_neg()")
        assert (openaclnn.leaky_relu(lazy.resolve_neg()) == lazy).all()
    for plain in (torch.ones(8)[::2], torch.ones(1), torch.ones(()), torch.ones(3, 1).expand(3, 4)):
        assert (openaclnn.leaky_relu(plain) == 1).all()


def test_autograd_sees_writes():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    for write in (
        lambda t: openaclnn.leaky_relu_(t, 0.5),
        lambda t: openaclnn.leaky_relu(torch.ones(2), out=t),
        lambda t: openaclnn.plan("aclnnInplaceLeakyRelu", t, 0.5).run(),
    ):
        hidden = x * 1
        loss = (hidden * hidden).sum()
        write(hidden.detach())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


BEFORE_LISTS = """
import torch, openaclnn
from torch.autograd import graph

real = torch._C._increment_version
def of_one(tensor):
    if not isinstance(tensor, torch.Tensor):
        raise RuntimeError("increment_version expects a tensor")
    if tensor.is_inference():
        raise RuntimeError("inference tensors do not track version counter")
    real((tensor,))
torch._C._increment_version = graph.increment_version = of_one
x, y, mean, rstd = torch.ones(1, 4), torch.zeros(1, 4), torch.zeros(1, 1), torch.zeros(1, 1)
openaclnn.group_norm_swish(x, x[0], x[0], 1, out=(y, mean, rstd))
print(x._version, y._version, mean._version, rstd._version)
with torch.inference_mode():
    print(openaclnn.leaky_relu(x, 0.5, out=torch.zeros(1, 4)).sum().item())
"""


@pytest.mark.programs
def test_a_torch_that_increments_one_version_at_a_time():
    done = subprocess.run([sys.executable, "-c", BEFORE_LISTS], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 1 1 1\n4.0\n", "")


WITHOUT = """
import sys, numpy as np, openaclnn
x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
openaclnn.leaky_relu_(openaclnn.leaky_relu(x))
openaclnn.leaky_relu(x, out=out)
plan = openaclnn.plan("aclnnLeakyRelu", x, 0.5, out)
plan.run()
stream = openaclnn.Stream()
plan.run(stream)
stream.synchronize()
print("torch" in sys.modules)
"""


@pytest.mark.programs
def test_arrays_of_numpy_do_not_load_torch():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_default_device_is_none_of_our_business():
    with torch.device("meta"):
        x = torch.tensor([-4.0, 4.0], device="cpu")
        result = openaclnn.leaky_relu_backward(x[:, None], x[None, :], 0.5, False)
    assert result.tolist() == [[-2, -4], [2, 4]]


def test_inference_tensors():
    with torch.inference_mode():
        x = torch.tensor([-4.0])
        openaclnn.leaky_relu_(x, 0.25)
        assert x.item() == -1


@pytest.mark.parametrize("move", [lambda t: t.resize_(1_000_000), lambda t: t.set_()])
def test_a_plan_whose_tensor_moved(move):
    x, out = torch.ones(4), torch.zeros(4)
    planned = openaclnn.plan("aclnnLeakyRelu", x, 0.5, out)
    move(x)
    with pytest.raises(openaclnn.AclnnError, match="plan again"):
        planned.run()


def test_flush_denormal_changes_nothing():
    """Threads of the pool have their own arithmetic; bits must not depend on who computes."""
    n = 1 << 20
    x = np.full(n, -1e-40, np.float32)
    openaclnn.set_num_threads(2)
    expected = openaclnn.leaky_relu(x, 0.5)
    assert (expected != 0).all()
    assert torch.set_flush_denormal(True)
    try:
        assert (bits(openaclnn.leaky_relu(x, 0.5)) == bits(expected)).all()
    finally:
        torch.set_flush_denormal(False)
