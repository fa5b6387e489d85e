# SPDX-License-Identifier: Apache-2.0
"""What can be said of CUDA tensors without a GPU: registration, fakes, phase 1, refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.torch.torch_support import arguments, operator, tensors, torch
from torch._subclasses.fake_tensor import FakeTensorMode

import openaclnn
from openaclnn import _core
from openaclnn.rows.table import OPS
from openaclnn.torch import cuda

BACKWARD = next(op for op in OPS if op.python == "leaky_relu_backward")


@pytest.mark.programs
@pytest.mark.parametrize("kind", ["", "python"])
def test_triton_is_not_imported(kind):
    program = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "import torch, openaclnn.torch as ot\n"
        "ot.elu(torch.ones(3, requires_grad=True)).sum().backward()\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'triton'])\n"
        "print(torch._C._dispatch_has_kernel_for_dispatch_key('openaclnn::elu', 'CUDA'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OPENACLNN_TORCH": kind},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split("\n")[:2] == ["[]", "True"], done.stderr[-2000:]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_overload_has_a_kernel(op):
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [op.python] if op.inplace else [op.python, f"{op.python}.out"]
    assert all(has_kernel(f"openaclnn::{name}", "CUDA") for name in names)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_fakes_stay_on_the_device(op):
    inputs = tensors(op, "FLOAT")
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        fakes = [torch.empty_strided(x.shape, x.stride(), device="cuda") for x in inputs]
        assert mode is not None
        results = operator(op)(*arguments(op, fakes))
    expected = operator(op)(*arguments(op, [x.clone() for x in inputs]))
    pairs = zip(
        results if isinstance(results, tuple) else (results,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    )
    for result, real in pairs:
        assert result.device.type == "cuda"
        assert (result.shape, result.stride()) == (real.shape, real.stride())


def described(*tensors):
    return [(str(x.dtype)[6:], x.shape, x.stride(), x.data_ptr()) for x in tensors]


def test_phase_1_sees_overlap_by_addresses():
    memory = torch.zeros(100)
    g, x, out = memory[:40], torch.zeros(40), memory[20:60]
    call = OPS.index(BACKWARD)
    assert _core.check(call, *described(g, x), 0.5, False, *described(memory[40:80])) == [None]
    assert _core.check(call, *described(g, x), 0.5, False, *described(g)) == [None]
    sentence = "out must be the same view as grad_output or share no memory with it, but overlaps"
    with pytest.raises(ValueError, match=sentence):
        _core.check(call, *described(g, x), 0.5, False, *described(out))
    with pytest.raises(TypeError, match="strides and address optional"):
        _core.check(call, *described(g, x), 0.5, False, ("float32", (40,), (1,), "here"))


REFUSED = {
    "another device": (
        lambda: (torch.zeros(3), torch.zeros(3, device="meta")),
        "x must be on the device of grad_output, cpu, but is on meta",
    ),
    "a dtype that no row has": (
        lambda: (torch.zeros(3), torch.zeros(3, dtype=torch.int32)),
        "x must have dtype float32, float16, float64 or bfloat16 on .*, but got int32",
    ),
    "shapes": (
        lambda: (torch.zeros(3), torch.zeros(4)),
        r"x must broadcast with grad_output \[3\], but got \[4\]",
    ),
    "a layout": (
        lambda: (torch.zeros(3).to_sparse(), torch.zeros(3)),
        "grad_output must be a dense tensor in CPU or CUDA memory, but is one of layout",
    ),
    "no memory": (
        lambda: (torch._efficientzerotensor(3), torch.zeros(3)),
        "grad_output must be a dense tensor in CPU or CUDA memory, but is one without memory",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=f"^leaky_relu_backward: {sentence}"):
        cuda.kernel(BACKWARD)(*make(), 0.5, False)


def test_attributes_are_real():
    with pytest.raises(ValueError, match="negative_slope must be a real number, but is complex"):
        cuda.kernel(BACKWARD)(torch.zeros(3), torch.zeros(3), 1j, False)


def test_outputs_that_overlap():
    memory = torch.zeros(6)
    with pytest.raises(ValueError, match="out must be the same view as x or share no memory"):
        cuda.kernel(BACKWARD)(torch.zeros(3), memory[:3], 0.5, False, out=memory[1:4])
    one = torch.zeros(1).expand(3)
    with pytest.raises(ValueError, match="out must not overlap itself"):
        cuda.kernel(BACKWARD)(torch.zeros(3), torch.zeros(3), 0.5, False, out=one)


def test_without_triton(monkeypatch):
    monkeypatch.setitem(sys.modules, "openaclnn.triton", None)
    monkeypatch.delattr(openaclnn, "triton", raising=False)
    cuda._kernels.cache_clear()
    with pytest.raises(RuntimeError, match="need the package triton: pip install triton"):
        cuda.kernel(BACKWARD)(torch.zeros(3), torch.zeros(3), 0.5, False)
    monkeypatch.setattr(torch.version, "hip", "6.2")
    with pytest.raises(RuntimeError, match="GPUs must be NVIDIA's, but this torch is for ROCm"):
        cuda.kernel(BACKWARD)(torch.zeros(3), torch.zeros(3), 0.5, False)
    cuda._kernels.cache_clear()


PLANS = {
    "an output that is missing": (
        lambda x: (x, x, 0.5, False, None),
        "out must be given to a plan",
    ),
    "a gradient": (
        lambda x: (x.clone().requires_grad_(), x, 0.5, False, x.clone()),
        "grad_output must not require a gradient",
    ),
    "an array of NumPy": (
        lambda x: (x, x.numpy(), 0.5, False, x.clone()),
        "x must be a torch tensor, like the others, but is a ndarray",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_are_refused(name):
    make, sentence = PLANS[name]
    with pytest.raises(ValueError, match=f"^leaky_relu_backward: {sentence}"):
        cuda.Plan(OPS.index(BACKWARD), *make(torch.zeros(3)))
