# SPDX-License-Identifier: Apache-2.0
"""Calls of operators by type through pyACL, from tables: a type, its inputs, its attributes, its
results.
"""

from __future__ import annotations

import acl
import torch

DTYPES = {torch.float: 0, torch.half: 1, torch.int8: 2, torch.int32: 3, torch.uint8: 4,
          torch.int64: 9, torch.uint64: 10, torch.bool: 12}  # fmt: skip
ND, UNDEFINED = 2, -1


def attributes(values):
    made = acl.op.create_attr()
    for name, value in values.items():
        kinds = {bool: "bool", int: "int", float: "float", str: "string"}
        kind = f"list_{kinds[type(value[0])]}" if isinstance(value, list) else kinds[type(value)]
        assert getattr(acl.op, f"set_attr_{kind}")(made, name, value) == 0
    return made


def execute(name, inputs, outputs, **values):
    """The status; the results are in outputs. An input that is None is left out."""
    torch.npu.synchronize()
    given = [
        (acl.create_tensor_desc(UNDEFINED, [], ND), acl.create_data_buffer(0, 0))
        if t is None else
        (acl.create_tensor_desc(DTYPES[t.dtype], list(t.shape), ND),
         acl.create_data_buffer(t.data_ptr(), t.numel() * t.element_size()))
        for t in (*inputs, *outputs)
    ]  # fmt: skip
    descs, buffers = ([pair[i] for pair in given] for i in range(2))
    attr, count = attributes(values), len(inputs)
    stream, _ = acl.rt.create_stream()
    status = acl.op.execute_v2(
        name, descs[:count], buffers[:count], descs[count:], buffers[count:], attr, stream
    )
    assert acl.rt.synchronize_stream(stream) == 0
    acl.rt.destroy_stream(stream)
    acl.op.destroy_attr(attr)
    for desc, buffer in given:
        acl.destroy_tensor_desc(desc)
        acl.destroy_data_buffer(buffer)
    return status


def ints(*values):
    return torch.tensor(values)


def numbers(*shape, seed=7):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def gradients(function, given, dy):
    """Of what `function` gives for `given`, by autograd."""
    leaves = [t.clone().requires_grad_() for t in given]
    return list(torch.autograd.grad(function(*leaves), leaves, dy))


def compiled(function, *given):
    """What function gives on the device, and the gradients of given, as operators by type."""
    torch.npu.set_compile_mode(jit_compile=True)
    try:
        leaves = [t.npu().requires_grad_(t.is_floating_point()) for t in given]
        y = function(*leaves)
        found = [y.detach()]
        if y.requires_grad:
            dy = numbers(*y.shape, seed=11).to(y)
            with torch.autograd.set_multithreading_enabled(False):  # the mode is the thread's
                y.backward(dy)
            found += [t.grad for t in leaves if t.grad is not None]
        torch.npu.synchronize()
    finally:
        torch.npu.set_compile_mode(jit_compile=False)
    return [t.cpu() for t in found]


def check_compiled(function, *given):
    """The same on the CPU, result and gradients."""
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in given]
    y = function(*leaves)
    right = [y.detach()]
    if y.requires_grad:
        y.backward(numbers(*y.shape, seed=11).to(y))
        right += [t.grad for t in leaves if t.grad is not None]
    for found, expected in zip(compiled(function, *given), right, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def check(case):
    """The results of a case, up to the tolerances of assert_close."""
    name, inputs, values, expected = case
    outputs = [torch.full_like(e, 3, memory_format=torch.contiguous_format).npu() for e in expected]
    given = [None if t is None else t.contiguous().npu() for t in inputs]
    assert execute(name, given, outputs, **values) == 0, acl.get_recent_err_msg()
    for found, right in zip(outputs, expected, strict=True):
        torch.testing.assert_close(found.cpu(), right.contiguous())
