# SPDX-License-Identifier: Apache-2.0
"""DLPack producers, well and ill behaved, with capsules made by hand.

Each fault, at every input of every row, gets a sentence; what was lent is always given back.
"""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
from tests.support import all_rows, arguments, plan

import openaclnn

pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("frozen")]

CPU, CUDA = 1, 2
FLOAT = 2
COPIED = 2
X = np.array([[-2.0, -0.0, 3.0], [1.0, -4.0, 0.5]], np.float32)
Y = np.array([[-0.5, -0.0, 3.0], [1.0, -1.0, 0.5]], np.float32)  # leaky_relu(X, 0.25)


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


PYTHON = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose functions other modules declare too
new_capsule = PYTHON.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)
PYTHON.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Producer:
    """Lends an array; keywords replace what its struct says."""

    def __init__(self, array, versioned=False, name=None, flags=0, version=(1, 0), **fields):
        self.array, self.given_back = array, 0
        self.shape = (ctypes.c_int64 * 8)(*fields.pop("shape", array.shape))
        strides = fields.pop("strides", [s // array.itemsize for s in array.strides])
        self.strides = None if strides is None else (ctypes.c_int64 * 8)(*strides)
        facts = {
            "data": array.ctypes.data,
            "device": (CPU, 0),
            "ndim": array.ndim,
            "code": FLOAT,
            "bits": array.itemsize * 8,
            "lanes": 1,
            "shape": ctypes.addressof(self.shape),
            "strides": None if strides is None else ctypes.addressof(self.strides),
            "byte_offset": 0,
        } | fields
        tensor = Tensor(*facts.values())
        self.deleter = DELETER(self.give_back)
        if versioned:
            self.managed = Versioned(version, None, self.deleter, flags, tensor)
        else:
            self.managed = Managed(tensor, None, self.deleter)
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")

    def give_back(self, address):
        assert address == ctypes.addressof(self.managed)
        self.given_back += 1

    def __dlpack_device__(self):
        return CPU, 0

    def __dlpack__(self, **options):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


FORMS = [pytest.param(False, id="before-1"), pytest.param(True, id="version-1")]


# ---- well behaved ----


@pytest.mark.parametrize("versioned", FORMS)
def test_what_is_lent_is_given_back(versioned):
    lender = Producer(X, versioned)
    assert (openaclnn.leaky_relu(lender, 0.25) == Y).all()
    assert lender.given_back == 1
    out = np.empty_like(X)
    planned = openaclnn.plan("aclnnLeakyRelu", lender, 0.25, out)
    planned.run()
    assert lender.given_back == 1
    assert (out == Y).all()
    del planned
    gc.collect()
    assert lender.given_back == 2


@pytest.mark.parametrize("versioned", FORMS)
def test_forms_of_structs(versioned):
    assert (openaclnn.leaky_relu(Producer(X, versioned, strides=None), 0.25) == Y).all()
    assert (openaclnn.leaky_relu(Producer(X.T, versioned), 0.25) == Y.T).all()
    second = Producer(X, versioned, shape=(1, 3), byte_offset=12)
    assert (openaclnn.leaky_relu(second, 0.25) == Y[1:]).all()
    empty = Producer(X, versioned, shape=(0, 3), data=None)
    assert openaclnn.leaky_relu(empty).shape == (0, 3)
    unowned = Producer(X, versioned)
    unowned.managed.deleter = DELETER()
    assert (openaclnn.leaky_relu(unowned, 0.25) == Y).all()


def test_read_only_arrays_are_read():
    x = X.copy()
    x.flags.writeable = False

    class Reader:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return CPU, 0

    assert (openaclnn.leaky_relu(Reader(), 0.25) == Y).all()


def test_what_a_producer_is_asked():
    asked = []

    class Asked(Producer):
        def __dlpack_device__(self):
            asked.append("device")
            return CPU, 0

        def __dlpack__(self, **options):
            asked.append(options)
            return super().__dlpack__()

    openaclnn.leaky_relu(Asked(X))
    assert asked == ["device", {"max_version": (1, 0), "copy": False}]


@pytest.mark.parametrize("versioned", FORMS)
def test_a_capsule_is_consumed(versioned):
    """Another holder of the capsule cannot consume it, and free its memory, while it is in use."""
    lender = Producer(X, versioned)
    capsule = lender.__dlpack__()
    lender.__dlpack__ = lambda **options: capsule
    openaclnn.leaky_relu(lender)
    assert PYTHON.PyCapsule_IsValid(capsule, b"used_" + lender.name)
    with pytest.raises(openaclnn.AclnnError, match="the capsule that this returned was used"):
        openaclnn.leaky_relu(lender)


# ---- ill behaved: what the struct says, and the sentence ----

BIG = 1 << 62
FAULTS = {
    "wrong name": ({"name": b"tensor"}, "lend its memory by __dlpack__, but this returned <cap"),
    "used": ({"name": b"used_dltensor"}, "but the capsule that this returned was used before"),
    "version": ({"version": (2, 1)}, "memory in version 1 of DLPack, but its version is 2.1"),
    "copied": ({"flags": COPIED}, "be read where it is, but its __dlpack__ made a copy"),
    "no data": ({"data": None}, "have data, but its DLPack tensor has none"),
    "negative size": ({"shape": (2, -3)}, "but its DLPack tensor has shape [2, -3]"),
    "huge sizes": ({"shape": (BIG, BIG)}, f"but its DLPack tensor has shape [{BIG}, {BIG}]"),
    "huge rank": ({"ndim": 1 << 30}, "have at most 8 dimensions, but got more than 25"),
    "negative rank": ({"ndim": -1}, "have a shape, but its DLPack tensor has -1 dimensions"),
    "no shape": ({"shape_address": 0}, "its DLPack tensor has 2 dimensions at no address"),
    "lanes": ({"lanes": 4}, "its DLPack dtype has code 2, bits 32 and lanes 4"),
    "dtype": ({"code": 99}, "its DLPack dtype has code 99, bits 32 and lanes 1"),
    "strides": ({"strides": (BIG, BIG)}, "lie within 2^58 elements, but has shape [2, 3] with str"),
    "negative strides": ({"strides": (-BIG, 1)}, "lie within 2^58 elements, but has shape [2, 3]"),
    "device of the tensor": ({"device": (CUDA, 0)}, "but its DLPack device type is 2 (CUDA)"),
}  # fmt: skip
ONLY_VERSIONED = {"version", "copied"}


def faulty(array, versioned, fields):
    fields = dict(fields)
    no_shape = "shape_address" in fields and fields.pop("shape_address") == 0
    made = Producer(array, versioned, **fields)
    if no_shape:
        made.managed.tensor.shape = None
    return made


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("versioned", FORMS)
def test_faults_of_structs(versioned, fault):
    fields, sentence = FAULTS[fault]
    if fault in ONLY_VERSIONED and not versioned:
        return
    lender = faulty(X, versioned, fields)
    with pytest.raises(openaclnn.AclnnError) as caught:
        openaclnn.leaky_relu(lender)
    assert str(caught.value).startswith("aclnnLeakyRelu: self must ")
    assert sentence in str(caught.value)
    assert caught.value.status == 161002
    del caught
    gc.collect()
    assert lender.given_back == ("name" not in fields)


@pytest.mark.parametrize("op", all_rows())
def test_faults_at_every_input(op):
    for p in op.tensors:
        for fault, (fields, sentence) in FAULTS.items():
            named = arguments(op)
            x = named[p.name]
            if p.role != "input" or x.ndim != 2:
                continue
            with pytest.raises(openaclnn.AclnnError) as caught:
                plan(op, named | {p.name: faulty(x, True, fields)})
            assert str(caught.value).startswith(f"{op.name}: {p.name} must ")
            assert sentence.partition("[")[0].partition("with")[0] in str(caught.value), fault


@pytest.mark.parametrize("op", all_rows())
def test_producers_are_not_written(op):
    for p in op.outputs:
        named = arguments(op)
        lender = Producer(named[p.name])
        with pytest.raises(openaclnn.AclnnError) as caught:
            plan(op, named | {p.name: lender})
        must = f"{op.name}: {p.name} must be a NumPy array or a torch tensor to be written, but got"
        assert str(caught.value).startswith(must)


class Device:
    """Reports its device; nothing else may be asked of it."""

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        raise AssertionError("asked for memory")


PAIR = "its __dlpack_device__ returned {}, which is not a pair of a device type and a number"


@pytest.mark.parametrize(("device", "found"), [
    ((CUDA, 0), "its DLPack device type is 2 (CUDA)"),
    ((10, 3), "its DLPack device type is 10 (ROCm)"),
    ((77, 0), "its DLPack device type is 77"),
    (None, PAIR.format("None")),
    ((1,), PAIR.format("(1,)")),
    (("cpu", 0), PAIR.format("('cpu', 0)")),
    ((-1, 0), PAIR.format("(-1, 0)")),
    ((1 << 80, 0), PAIR.format(f"({1 << 80}, 0)")),
])  # fmt: skip
@pytest.mark.parametrize("op", all_rows())
def test_the_device_is_asked_first(op, device, found):
    for p in op.input_tensors:
        if p.role == "input":
            with pytest.raises(openaclnn.AclnnError) as caught:
                plan(op, arguments(op) | {p.name: Device(device)})
            assert str(caught.value) == f"{op.name}: {p.name} must be on the CPU, but {found}"


@pytest.mark.parametrize("returned", [None, 7, "dltensor", X])
def test_what_is_no_capsule(returned):
    lender = Producer(X)
    lender.__dlpack__ = lambda **options: returned
    with pytest.raises(openaclnn.AclnnError, match=r"which is not a DLPack capsule$"):
        openaclnn.leaky_relu(lender)
