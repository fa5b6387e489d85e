# SPDX-License-Identifier: Apache-2.0
"""torch.ops.openaclnn: values, layouts, schemas and fakes of every row."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.support import SEED, all_rows, assert_accurate, rows, shape_for
from tests.torch.torch_support import (
    LAYOUTS,
    TORCH,
    arguments,
    call,
    name_of,
    operator,
    same_bits,
    tensors,
    to_numpy,
    torch,
)

from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.calling import made
from openaclnn.rows.gradients import differentiable
from openaclnn.rows.table import OPS
from openaclnn.torch.fakes import fake

CASES = [
    (op, dtype, attributes)
    for op in OPS
    for dtype in op.dtypes
    for attributes in REFERENCES[op.kernel].attributes
]


@pytest.mark.parametrize(("op", "dtype", "attributes"), CASES, ids=name_of)
def test_values(op, dtype, attributes):
    if op.inplace and dtype == "DOUBLE":
        pytest.skip("the same kernel as the plain form")
    inputs = tensors(op, dtype, attributes)
    found = call(op, inputs, attributes)
    assert all(y is None or y.dtype is TORCH[dtype] for y in found)
    arrays = [to_numpy(y) for y in found]
    assert_accurate(op, [to_numpy(x) for x in inputs], attributes, arrays, SEED)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", all_rows())
def test_layouts(op, layout):
    """The same bits, and the layout that torch would give."""
    shape = shape_for(op, (2, 3, 4, 5))
    inputs = tensors(op, "FLOAT", shape=shape)
    expected = call(op, inputs)
    elsewhere = [LAYOUTS[layout](x) for x in inputs]
    found = call(op, elsewhere)
    assert all(map(same_bits, found, expected))
    if not op.inplace:
        large = next(x for x in elsewhere if x.shape == found[0].shape)
        assert found[0].stride() == torch.empty_like(large).stride()


@pytest.mark.parametrize("op", rows())
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (2, 1, 3, 1, 2, 1, 2, 1)])
def test_shapes(op, shape):
    (found,) = call(op, [torch.full(shape, 0.25) for _ in op.input_tensors])
    assert found.shape == shape


@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_expanded_inputs(op):
    inputs = [x.expand(4, 41) for x in tensors(op, "FLOAT", shape=(1, 41))]
    (found,) = call(op, inputs)
    (expected,) = call(op, [x.contiguous() for x in inputs])
    assert same_bits(found, expected)


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_broadcast(op):
    one, other = tensors(op, "FLOAT", shape=(3, 41))
    (found,) = call(op, [one[:, None], other[None]])
    (expected,) = call(op, [x.expand(3, 3, 41) for x in (one[:, None], other[None])])
    assert same_bits(found, expected.contiguous())


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_out(op):
    inputs = tensors(op, "FLOAT")
    expected = call(op, inputs)
    names = ["out"] if len(made(op)) == 1 else [p.python_name for p in made(op)]
    outs = dict(zip(names, [torch.zeros_like(y) for y in expected], strict=True))
    versions = [x._version for x in outs.values()]
    found = operator(op, "out")(*arguments(op, inputs), **outs)
    found = found if isinstance(found, tuple) else (found,)
    assert all(a is b for a, b in zip(found, outs.values(), strict=True))
    assert all(map(same_bits, found, expected))
    assert [x._version for x in outs.values()] == [v + 1 for v in versions]


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_in_place(op):
    (x,) = tensors(op, "FLOAT")
    (expected,) = call(op, [x])
    memory = torch.zeros(5, 43)
    view = memory[1:4, 1:42].copy_(x)
    assert operator(op)(*arguments(op, [view])) is view
    assert same_bits(view, expected)
    assert memory.count_nonzero() == expected.count_nonzero()
    assert memory._version == 2


# opcheck compares real, fake and captured calls, alias annotations, strides and gradients. Captured
# calls take three quarters of its time, and know the strides from the fake ones.
FAKE = ("test_schema", "test_faketensor")
ALL = (*FAKE, "test_autograd_registration", "test_aot_dispatch_dynamic")


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # opcheck reads it, of a result too
@pytest.mark.parametrize(
    ("layout", "recorded", "checks"),
    [
        ("contiguous", True, ALL),
        ("channels_last", True, ALL),
        ("transposed", True, FAKE),
        ("transposed", False, ALL),
    ],
    ids=["contiguous", "channels_last", "transposed", "transposed, not recorded"],
)
@pytest.mark.parametrize("op", all_rows())
def test_opcheck(op, layout, recorded, checks):
    shape = shape_for(op, (2, 3, 4, 5))
    inputs = [torch.rand(x.shape) * 0.5 + 0.25 for x in tensors(op, "FLOAT", shape=shape)]
    inputs = [LAYOUTS[layout](x) for x in inputs]
    having = {p.name for p in differentiable(op)} | set(op.gradient.zero if op.gradient else ())
    for p, x in zip(op.input_tensors, inputs, strict=True):
        x.requires_grad_(recorded and p.name in having)
    if op.inplace and recorded:
        inputs = [x * 1 for x in inputs]
    torch.library.opcheck(operator(op), arguments(op, inputs), test_utils=checks)


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_opcheck_of_out(op):
    inputs = [torch.rand(x.shape) for x in tensors(op, "FLOAT")]
    names = ["out"] if len(made(op)) == 1 else [p.python_name for p in made(op)]
    outs = dict(zip(names, map(torch.empty_like, call(op, inputs)), strict=True))
    torch.library.opcheck(operator(op, "out"), arguments(op, inputs), outs)


@pytest.mark.parametrize("op", all_rows(lambda op: any(p.condition for p in op.outputs)))
def test_optional_outputs(op):
    flags = [p for p in op.attributes if any(o.condition == p.name for o in op.outputs)]
    inputs = tensors(op, "FLOAT")
    expected = call(op, inputs)
    for flag in flags:
        attributes = {**REFERENCES[op.kernel].attributes[0], flag.python_name: False}
        found = call(op, inputs, attributes)
        imagined = fake(op)(*arguments(op, [x.to("meta") for x in inputs], attributes))
        for p, y, z, full in zip(op.outputs, found, imagined, expected, strict=True):
            assert (y is None) == (z is None) == (p.condition == flag.name)
            assert y is None or same_bits(y, full)


@pytest.mark.parametrize(
    "op", rows(lambda op: op.inputs == "promote" and len(op.input_tensors) == 2)
)
def test_promotion(op):
    for one, other in (("FLOAT", "FLOAT16"), ("FLOAT16", "BFLOAT16"), ("BFLOAT16", "FLOAT")):
        inputs = [tensors(op, d)[i] for i, d in enumerate((one, other))]
        (found,) = call(op, inputs)
        imagined = fake(op)(*arguments(op, [x.to("meta") for x in inputs]))
        assert found.dtype is imagined.dtype is torch.float32


def test_schemas_say_what_the_functions_of_openaclnn_take():
    for op in OPS:
        schema = operator(op)._schema
        assert [a.name for a in schema.arguments] == [
            p.python_name for p in op.parameters if p.role != "output"
        ]
        assert schema.is_mutable == op.inplace
        defaults = [a.default_value for a in schema.arguments if a.has_default_value()]
        assert defaults == [p.default for p in op.parameters if p.has_default]


def test_names_appear_where_people_look():
    x = torch.rand(3, requires_grad=True)
    y = torch.ops.openaclnn.leaky_relu(x, 0.1)
    assert y.grad_fn.name() == "openaclnn::leaky_reluBackward"
    with torch.profiler.profile() as profiler:
        torch.ops.openaclnn.leaky_relu(x, 0.1).sum().backward()
    names = {event.key for event in profiler.key_averages()}
    assert {"openaclnn::leaky_relu", "openaclnn::leaky_relu_backward"} <= names


WITHOUT = """
import sys, openaclnn
print("torch" in sys.modules)
"""


@pytest.mark.programs
def test_openaclnn_does_not_import_torch():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_no_python_runs_in_a_call():
    """The kernels are those of core/torch, on every dispatch key that a dense call passes."""
    for op in OPS:
        table = torch._C._dispatch_dump(f"openaclnn::{op.python}")
        for key in ("CPU", "AutogradCPU"):
            line = re.search(rf"^{key}\b.*$|^Autograd\[alias\].*$", table, re.M)
            assert line is not None, table
            assert "share/torch/library.cpp:" in line[0], line[0]
