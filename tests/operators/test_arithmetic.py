# SPDX-License-Identifier: Apache-2.0
"""The floating-point environment of the calling thread changes no result and is as it was after
every call: flushed subnormals, the four rounding modes, exceptions that end the process.

Run as a program it makes the calls with exceptions unmasked: one that is raised kills it."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import subprocess
import sys

import numpy as np
import pytest
from tests.abi import abi
from tests.support import REFERENCES, SEED, all_rows, bits, call, results, same

import openaclnn
from openaclnn.reference.evaluation import sample

pytestmark = pytest.mark.usefixtures("device")
X86 = platform.machine() in ("x86_64", "AMD64")
LIBM = ctypes.CDLL("libm.so.6")
UNMASKED = "unmasked"

# fenv_t of glibc. x86-64: the control word of the x87 unit in the lower half of word 0, MXCSR in
# word 7, whose flags are bits 0 to 5; aarch64: FPCR in word 0 and FPSR in word 1.
if X86:
    WORDS, CONTROLS = 8, {
        "flush": (0, 0x8040), "down": (0x400, 0x2000), "up": (0x800, 0x4000),
        "to zero": (0xC00, 0x6000), "nearest": (0, 0),
    }  # fmt: skip
else:
    WORDS, CONTROLS = 2, {
        "flush": 1 << 24, "down": 2 << 22, "up": 1 << 22, "to zero": 3 << 22, "nearest": 0,
    }  # fmt: skip


def environment():
    words = (ctypes.c_uint32 * WORDS)()
    assert LIBM.fegetenv(words) == 0
    return words


def controls(words) -> tuple[int, ...]:
    """Control and exception flags, without the addresses of the last x87 instruction."""
    return (words[0] & 0xFFFF, words[1] & 0x3F, words[7]) if X86 else tuple(words)


def environment_of(name: str):
    """One without raised flags."""
    words = environment()
    if X86:
        unit, vectors = CONTROLS["nearest" if name == UNMASKED else name]
        masks = (0, 0) if name == UNMASKED else (0x3F, 0x1F80)
        words[0] = words[0] & ~0xC3F & 0xFFFFFFFF | unit | masks[0]
        words[1] &= ~0x80FF & 0xFFFFFFFF
        words[7] = vectors | masks[1]
    else:
        words[0], words[1] = 0x1F00 if name == UNMASKED else CONTROLS[name], 0
    return words


@contextlib.contextmanager
def inside(name: str):
    """Checks at the end that the environment is the one set."""
    before, chosen, after = environment(), environment_of(name), environment()
    LIBM.fesetenv(chosen)
    try:
        yield
    finally:
        LIBM.fegetenv(after)
        LIBM.fesetenv(before)
    assert controls(after) == controls(chosen), f"{name}: the environment is another after the call"


# ---- calls: prepared before, run inside, checked afterwards ----

SIZES = {"brief": 1, "large": 1 << 16}


def attribute_sets(op):
    """The sets of the row, and sets with numbers that fp32 rounds or holds as subnormals."""
    yield from REFERENCES[op.kernel].attributes
    numbers = [p.python_name for p in op.attributes if p.kind in ("scalar", "double")]
    for value in (0.1, 1.1e-40, 3e-45):
        yield {**REFERENCES[op.kernel].attributes[0], **dict.fromkeys(numbers, value)}


def shape_of(op, size: str):
    usual = REFERENCES[op.kernel].example
    if op.pointwise:
        return (SIZES[size],) if size == "large" else (3, 41)
    return (*usual[:2], 50, 60) if size == "large" else usual


def inputs_of(op, size: str, dtype: str, attributes):
    """Ordinary and special values, half of them as subnormal numbers where the dtype has some."""
    inputs = sample(op, shape_of(op, size), dtype, SEED, attributes)
    for x in inputs if op.pointwise else ():
        with np.errstate(all="ignore"):
            tiny = np.finfo(x.dtype).smallest_normal if x.dtype.kind == "f" else 1.2e-38
            x.reshape(-1)[1::2] *= np.asarray(tiny).astype(x.dtype)
    return inputs


def made_calls(op, size: str):
    """(what it is, a function to be called inside, the results it leaves, what they must be)."""
    few = size == "large"
    for dtype in op.dtypes[:1] if few else op.dtypes:
        for attributes in list(attribute_sets(op))[:: -3 if few else 1]:
            case = f"{op.name}, {dtype}, {attributes}, {size}, seed {SEED}"
            inputs = inputs_of(op, size, dtype, attributes)
            expected = results(op, inputs, attributes)
            yield from through_python(op, inputs, attributes, expected, case)
            yield through_c(op, inputs, attributes, expected, case)


def through_python(op, inputs, attributes, expected, case):
    """Calls the function, with numbers of Python and of NumPy, and a plan on a stream."""
    narrow = {k: np.float32(v) if isinstance(v, float) else v for k, v in attributes.items()}
    for given in (attributes, narrow):
        want = expected if given is attributes else results(op, inputs, given)
        given_inputs = [x.copy() for x in inputs]
        out = tuple(np.zeros_like(x) for x in want)
        out = out if len(out) > 1 else out[0]
        if op.inplace:
            out[...] = inputs[0]
            tensors = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
            named = {**tensors, op.input_tensors[0].python_name: out, **given}
            function = getattr(openaclnn, op.python)
            yield case, (lambda f=function, n=named: f(**n)), out, want
        else:
            run = lambda i=given_inputs, a=given, o=out: call(op, i, a, o)  # noqa: E731
            yield f"{case}, {given}", run, out, want
    out = tuple(np.zeros_like(x) for x in expected)
    tensors = [x.copy() for x in inputs]
    if op.inplace:
        out = (tensors[0],)
    values = {p.name: x for p, x in zip(op.input_tensors, tensors, strict=True)}
    outputs = [p.name for p in op.outputs if p.role == "output"]
    values |= dict(zip(outputs, out, strict=False))
    values |= {p.name: attributes[p.python_name] for p in op.attributes}
    stream = openaclnn.Stream()

    def planned():
        openaclnn.plan(op.name, *(values[p.name] for p in op.parameters)).run(stream)
        stream.synchronize()

    yield f"{case}, as a plan", planned, out, expected


def through_c(op, inputs, attributes, expected, case):
    """Scalars are made, and both phases run, inside."""
    tensors = [x.copy() for x in inputs]
    out = tuple(np.zeros_like(x) for x in expected)
    if op.inplace:
        out = (tensors[0],)
    named = {p.name: x for p, x in zip(op.input_tensors, tensors, strict=True)}
    named |= dict(zip([p.name for p in op.outputs if p.role == "output"], out, strict=False))
    kinds = {p.name: p.kind for p in op.parameters}
    named |= {p.name: attributes[p.python_name] for p in op.attributes}
    bytes_of = {
        name: np.array([float(named[name])]) for name, kind in kinds.items() if kind == "scalar"
    }
    views = [abi.Objects()]
    handles = {n: views[0].tensor(named[n]) for n, kind in kinds.items() if kind == "tensor"}
    workspace = np.empty(1 << 23, np.uint8)

    def both_phases():
        values = []
        for p in op.parameters:
            if p.kind == "scalar":
                address = ctypes.c_void_p(bytes_of[p.name].ctypes.data)
                values.append(abi.meta.aclCreateScalar(address, abi.DTYPES["DOUBLE"]))
            else:
                values.append(handles[p.name] if p.kind == "tensor" else named[p.name])
        status, size, executor = abi.phase1(op, values)
        status = status or abi.phase2(op, executor, workspace.ctypes.data, workspace.size)
        status = status or abi.acl.aclrtSynchronizeStream(None)
        for p, value in zip(op.parameters, values, strict=True):
            if p.kind == "scalar":
                abi.meta.aclDestroyScalar(value)
        if status != 0 or size > workspace.size:
            raise AssertionError(status)

    return f"{case}, through C", both_phases, out, expected


def assert_same(out, expected, case):
    found = out if isinstance(out, tuple) else (out,)
    different = [int((bits(a) != bits(b)).sum()) for a, b in zip(found, expected, strict=True)]
    assert same(found, expected), f"{case}: {different} elements differ"


@pytest.mark.parametrize("op", all_rows())
def test_rows(op):
    for size in SIZES:
        for case, run, out, expected in made_calls(op, size):
            before = [x.copy() for x in (out if isinstance(out, tuple) else (out,))]
            for name in CONTROLS:
                for x, again in zip(out if isinstance(out, tuple) else (out,), before, strict=True):
                    x[...] = again
                with inside(name):
                    run()
                assert_same(out, expected, f"{case}, {name}")


@pytest.mark.programs
@pytest.mark.parametrize("op", all_rows())
def test_unmasked_exceptions(op):
    """Our divisions by zero, overflows, underflows and inexact results do not end the process."""
    if not X86:
        pytest.skip("this CPU has no exceptions to unmask")
    done = subprocess.run(
        [sys.executable, __file__, op.name], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-300:]} {done.stderr[-2000:]}"
    assert int(done.stdout.split()[-1]) > 4


@pytest.mark.parametrize("name", CONTROLS)
def test_sentences(name):
    """Numbers in refusals do not depend on the rounding mode."""
    x = np.ones(3, np.float32)
    want = "negativeSlope must be at least 0 when selfIsResult is true, but got -0.1"
    with inside(name):
        try:
            openaclnn.leaky_relu_backward(x, x, -0.1, True)
            sentence = ""
        except openaclnn.AclnnError as error:
            sentence = str(error)
    assert sentence.endswith(want), sentence


def test_torch_set_flush_denormal():
    """The findings of a user: -0, and 1e-40 that passed a threshold above it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, tiny = np.float32([-1e20]), np.float32([1e-40])
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU keeps subnormals")
    try:
        y = openaclnn.leaky_relu(x, 1e-40)
        kept = openaclnn.hardshrink(tiny, 1.1e-40)
    finally:
        torch.set_flush_denormal(False)
    assert y[0] == np.float32(1e20) * -np.float32(1e-40) != 0
    assert kept[0] == 0


def run_unmasked(name: str) -> int:
    op = next(p.values[0] for p in all_rows() if p.values[0].name == name)
    assert abi.acl.aclrtSetDevice(0) == 0
    count = 0
    for size in SIZES:
        for case, run, out, expected in made_calls(op, size):
            print(case, flush=True)
            with inside(UNMASKED):
                run()
            assert_same(out, expected, case)
            count += 1
    return count


if __name__ == "__main__":
    print(run_unmasked(sys.argv[1]))
