# SPDX-License-Identifier: Apache-2.0
"""What the tests of openaclnn.torch share. Importing it skips where there is no torch, and where
there is no compiler."""

from __future__ import annotations

import math

import pytest
from tests.support import SEED, shape_for

from openaclnn.bench import cases
from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.calling import given
from openaclnn.rows.gradients import gradient_dtypes
from openaclnn.rows.schema import Op
from openaclnn.rows.table import OPS

torch = pytest.importorskip("torch", reason="torch is not installed")

from openaclnn.torch.building import compiler

if compiler() is None:
    pytest.skip("no C++ compiler is installed", allow_module_level=True)

import openaclnn.torch  # noqa: F401
from openaclnn.torch import recording, registration
from openaclnn.torch.dtypes import TORCH

assert registration.kind == "compiled"
recording.stop()  # other files test the functions without it

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
# A value for which the operator has a gradient and an in-place form.
PLAIN = {op.name: REFERENCES[op.kernel].attributes[0] for op in OPS}


def to_torch(x):
    return cases.to_torch(torch, x)


def to_numpy(x):
    import ml_dtypes

    x = x.detach().contiguous()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def same_bits(a, b) -> bool:
    if a is None or b is None:
        return a is b
    kind = INTEGERS[a.element_size()]
    patterns = [x.detach().contiguous().view(kind) for x in (a, b)]
    return a.dtype == b.dtype and torch.equal(*patterns)


def operator(op: Op, overload: str = "default"):
    return getattr(getattr(torch.ops.openaclnn, op.python), overload)


def tensors(op: Op, dtype: str, attributes=None, shape=None, seed=SEED):
    """Ordinary inputs; element-wise, a quarter of them are special."""
    attributes = attributes or PLAIN[op.name]
    shape = shape or shape_for(op, (3, 41))
    return [to_torch(x) for x in sample(op, shape, dtype, seed, attributes)]


def arguments(op: Op, inputs, attributes=None):
    """Positional arguments of the operator."""
    named = {p.name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    attributes = attributes or PLAIN[op.name]
    return [named[p.name] if p.kind == "tensor" else attributes[p.python_name] for p in given(op)]


def call(op: Op, inputs, attributes=None):
    """The outputs as a tuple. An in-place row works on a copy."""
    inputs = list(inputs)
    if op.inplace:
        inputs[0] = inputs[0].clone()
    found = operator(op)(*arguments(op, inputs, attributes))
    return found if isinstance(found, tuple) else (found,)


def has_gradient(op: Op, attributes) -> bool:
    """Whether the row has a gradient for these attributes."""
    g = op.gradient
    if g is None:
        return False
    named = {p.name: attributes[p.python_name] for p in op.attributes}
    flag = g.only_if is None or named[g.only_if]
    return flag and not any(named[name] < 0 for name in g.nonnegative)


def gradient_cases():
    return [
        (op, dtype, attributes)
        for op in OPS
        for dtype in gradient_dtypes(op)
        for attributes in REFERENCES[op.kernel].attributes
        if has_gradient(op, attributes)
    ]


def name_of(value) -> str:
    if isinstance(value, Op):
        return value.name
    if isinstance(value, dict):
        return ",".join(f"{v:g}" for v in value.values() if v is not None)
    return str(value)


# ---- the same values elsewhere in memory ----


def _sliced(x):
    wide = torch.ones([2 * n + 1 for n in x.shape], dtype=x.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in x.shape)]
    return view.copy_(x)


def _channels_last(x):
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x.clone()


def _transposed(x):
    return x.mT.contiguous().mT if x.dim() > 1 else x.clone()


def _offset(x):
    flat = torch.ones(math.prod(x.shape) + 3, dtype=x.dtype)
    return flat[3:].view(x.shape).copy_(x)


LAYOUTS = {
    "contiguous": torch.clone,
    "transposed": _transposed,
    "channels_last": _channels_last,
    "sliced": _sliced,
    "offset": _offset,
}

assert set(TORCH) == {"FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"}
