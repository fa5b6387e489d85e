# SPDX-License-Identifier: Apache-2.0
"""What torch_npu names, without torch_npu: libraries by their names, functions that are refused,
operators by type, options and facts. And `openaclnn npu` where something is missing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import openaclnn
from openaclnn import aten
from openaclnn.torch_npu import names

pytestmark = pytest.mark.programs

FOLDER = openaclnn.home() / "lib64" / "npu"
NOT_SUPPORTED = 200001


@pytest.fixture(scope="module")
def acl():
    found = ctypes.CDLL(str(FOLDER / "libascendcl.so"))
    found.aclGetRecentErrMsg.restype = ctypes.c_char_p
    for name in ("aclCreateTensorDesc", "aclCreateDataBuffer", "aclopCreateAttr"):
        getattr(found, name).restype = ctypes.c_void_p
    return found


@pytest.fixture
def on_device(acl):
    assert acl.aclrtSetDevice(0) == 0
    message(acl)
    yield
    assert acl.aclrtResetDevice(0) == 0


def message(acl) -> str:
    return acl.aclGetRecentErrMsg().decode()


@pytest.mark.parametrize("name", [*names.NEEDED, *names.WANTED, *names.WANTED_IN_HOME])
def test_libraries_have_the_names_that_the_wheel_needs(name):
    folder = FOLDER.parent if name in names.WANTED_IN_HOME else FOLDER
    assert ctypes.CDLL(str(folder / f"lib{name}.so"))
    if shutil.which("readelf"):
        command = ["readelf", "-d", folder / f"lib{name}.so"]
        listed = subprocess.run(command, capture_output=True, text=True).stdout
        assert f"soname: [lib{name}.so]" in listed


@pytest.mark.parametrize("function", names.refused(), ids=lambda f: f.name)
def test_refused_functions_say_so_and_write_their_results(acl, function):
    kept, arguments = [], []
    for kind, _, result in function.parameters:
        if result:
            kept.append(ctypes.c_uint64(0x1234))
            arguments.append(ctypes.byref(kept[-1]))
        else:
            arguments.append(ctypes.c_void_p(0) if kind.endswith("*") else ctypes.c_uint64(0))
    message(acl)
    call = getattr(acl, function.name)
    assert call(*arguments) == NOT_SUPPORTED
    assert f"{function.name}: not supported by openaclnn" in message(acl)
    for value, width in zip(kept, result_widths(function), strict=True):
        assert value.value & ((1 << 8 * width) - 1) == 0
    assert (
        call(*(None if isinstance(a, ctypes.c_void_p) else 0 for a in arguments)) == NOT_SUPPORTED
    )


def result_widths(function) -> list[int]:
    sizes = {"uint32_t*": 4, "uint64_t*": 8, "void**": 8}
    return [sizes[kind] for kind, _, result in function.parameters if result]


@pytest.mark.parametrize("name", names.WORKING)
def test_working_functions_are_there(acl, name):
    assert getattr(acl, name)


# ---- libhccl ----


def test_communication_needs_the_compiled_library_and_says_so():
    """In a process where no other test has loaded it."""
    code = f"""
import ctypes
acl = ctypes.CDLL({str(FOLDER / "libascendcl.so")!r})
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
root = (ctypes.c_char * 4108)(*b"left behind")
print(acl.HcclGetRootInfo(root), any(root.raw), acl.aclGetRecentErrMsg().decode())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("5 False "), done.stderr
    assert "HCCL backend not loaded" in done.stdout


def test_communicators_that_are_none_are_refused(acl):
    other, one = ctypes.create_string_buffer(64), ctypes.c_uint64(1)
    calls = {
        "HcclCommDestroy": lambda comm: (comm,),
        "HcclGetCommAsyncError": lambda comm: (comm, other),
        "HcclAllReduce": lambda comm: (other, other, one, 4, 0, comm, None),
        "HcclRecv": lambda comm: (other, one, 4, 0, comm, None),
        "HcclBatchSendRecv": lambda comm: (other, 1, comm, None),
    }
    for name, arguments in calls.items():
        for comm in (None, other):
            assert getattr(acl, name)(*arguments(comm)) == 1
            assert f"{name}: comm was destroyed or never created" in message(acl)
    assert not any(other.raw)


def test_arguments_of_communicators(acl):
    comm = ctypes.c_void_p(1)
    root = ctypes.create_string_buffer(4108)
    assert acl.HcclCommInitRootInfoConfig(2, root, 2, None, ctypes.byref(comm)) == 1
    assert "rank must be in [0, nRanks), but got 2 of 2" in message(acl)
    assert comm.value is None
    assert acl.HcclCommInitRootInfoConfig(2, None, 0, None, ctypes.byref(comm)) == 2
    assert "rootInfo must not be NULL" in message(acl)
    assert acl.HcclGroupEnd() == 1
    assert "call HcclGroupStart first" in message(acl)
    assert acl.HcclGroupStart() == 0
    assert acl.HcclGroupEnd() == 0


# ---- operators by type ----


def execute(acl, kind: bytes, source: np.ndarray, target: np.ndarray, attribute=None) -> int:
    made = []
    for array in (source, target):
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        dtype = {"float32": 0, "int32": 3}[array.dtype.name]
        made.append(ctypes.c_void_p(acl.aclCreateTensorDesc(dtype, array.ndim, dims, 2)))
        made.append(
            ctypes.c_void_p(
                acl.aclCreateDataBuffer(
                    ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
                )
            )
        )
    lists = [(ctypes.c_void_p * 1)(handle) for handle in made]
    acl.aclopCompileAndExecute.argtypes = None
    code = acl.aclopCompileAndExecute(
        kind, 1, lists[0], lists[1], 1, lists[2], lists[3], attribute, 0, 0, None, None
    )
    assert acl.aclrtSynchronizeStream(None) == 0
    for i in (0, 2):
        acl.aclDestroyTensorDesc(made[i])
    for i in (1, 3):
        assert acl.aclDestroyDataBuffer(made[i]) == 0
    return code


@pytest.fixture
def not_queued(monkeypatch):
    """Read once in the process, before the first operator by type."""
    monkeypatch.setenv("TASK_QUEUE_ENABLE", "0")


def test_identity_copies(acl, on_device, not_queued):
    source, target = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    assert execute(acl, b"Identity", source, target) == 0
    assert np.array_equal(source, target)


def test_identity_refuses_what_does_not_fit(acl, on_device, not_queued):
    source = np.arange(6, dtype=np.float32)
    assert execute(acl, b"Identity", source, np.zeros(5, np.float32)) == 100000
    assert "Identity must have buffers of at least 24 bytes and one dtype" in message(acl)
    assert execute(acl, b"Identity", source, np.zeros(6, np.int32)) == 100000


def test_other_types_are_refused_by_name(acl, on_device, not_queued):
    attribute = ctypes.c_void_p(acl.aclopCreateAttr())
    assert acl.aclopSetAttrInt(attribute, b"axis", ctypes.c_int64(-1)) == 0
    numbers = (ctypes.c_int64 * 2)(3, 4)
    assert acl.aclopSetAttrListInt(attribute, b"pads", 2, numbers) == 0
    target = np.full(3, 7, np.float32)
    assert execute(acl, b"GatherV2D", np.ones(3, np.float32), target, attribute) == 100024
    text = message(acl)
    assert "opType GatherV2D is not supported (inputs [3] and axis=-1, pads=[3, 4])" in text
    assert np.all(target == 7)
    acl.aclopDestroyAttr(attribute)
    assert acl.aclopSetAttrInt(attribute, b"axis", ctypes.c_int64(0)) == 100000
    assert "was destroyed or never created" in message(acl)


# ---- options and facts ----


def test_compile_options_are_kept(acl):
    text = ctypes.create_string_buffer(32)
    assert acl.aclGetCompileopt(10, text, ctypes.c_size_t(32)) == 0
    assert text.value == b"disable"
    assert acl.aclSetCompileopt(3, b"high_precision") == 0
    acl.aclGetCompileoptSize.restype = ctypes.c_size_t
    assert acl.aclGetCompileoptSize(3) == len("high_precision") + 1
    assert acl.aclGetCompileopt(3, text, ctypes.c_size_t(32)) == 0
    assert text.value == b"high_precision"
    assert acl.aclGetCompileopt(3, text, ctypes.c_size_t(14)) == 100000
    assert "length must be at least 15, but got 14" in message(acl)


def test_results_do_not_saturate(acl, on_device):
    assert acl.aclrtSetDeviceSatMode(1) == 0
    assert acl.aclrtSetDeviceSatMode(0) == 207000
    assert "results do not saturate here" in message(acl)
    flag = ctypes.c_uint32(9)
    assert acl.aclrtSetStreamOverflowSwitch(None, 1) == 0
    assert acl.aclrtGetStreamOverflowSwitch(None, ctypes.byref(flag)) == 0
    assert flag.value == 1


def test_facts(acl, on_device):
    value, pid, uuid = ctypes.c_int64(), ctypes.c_int32(), ctypes.create_string_buffer(16)
    assert acl.aclGetDeviceCapability(0, 0, ctypes.byref(value)) == 0
    assert value.value == openaclnn.config()["threads"]
    assert acl.aclGetDeviceCapability(0, 9, ctypes.byref(value)) == 100000
    assert acl.aclGetDeviceCapability(77, 0, ctypes.byref(value)) == 107001
    assert acl.aclrtDeviceGetBareTgid(ctypes.byref(pid)) == 0
    assert pid.value == os.getpid()
    assert acl.aclrtDeviceGetUuid(0, uuid) == 0
    assert uuid.raw == b"openaclnn CPU 00"


def test_the_page_lists_the_functions():
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, root / "tools" / "build" / "npu_names.py", "--markdown"]
    tables = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert tables in (root / "docs" / "reference" / "npu_coverage.md").read_text(encoding="utf-8")


# ---- rows ----


def test_rows_say_what_they_mean():
    found = aten.rows()
    assert len({row.name for row in found}) == len(found)
    own = {op.name for op in openaclnn.OPS}
    assert not own & {row.name for row in found}
    for row in found:
        if row.is_type:  # what core/torch/aten/operators_by_type.cpp makes of an attribute
            kinds = {p.kind for p in row.parameters}
            known = {"tensor", "tensors", "text", "ints", "int", "bool", "float", "floats"}
            assert kinds <= known, row.name
        assert row.outputs, row.name
        given = {p.name for p in row.parameters}
        for argument in row.arguments:
            literal = (
                argument in ("none", "true", "false", "dtype of out")
                or argument[0] in '"-.0123456789'
            )
            assert literal or argument in given, f"{row.name}: {argument}"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("aclnnAbs(self, out!) abs(self)", "not a row"),
        (
            "aclnnAbs(self: tensr, out!) = abs(self)",
            "kinds must be one of tensor, .*, but got tensr",
        ),
    ],
)
def test_rows_that_are_none(line, sentence):
    with pytest.raises(ValueError, match=sentence):
        aten.parse(line)
