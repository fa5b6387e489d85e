# SPDX-License-Identifier: Apache-2.0
"""Settings, environment variables, the exception, what an import brings."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

import openaclnn
from openaclnn.errors import NAMES
from openaclnn.rows.table import OPS, PRODUCTS

# ---- settings and errors ----


def test_config():
    config = openaclnn.config()
    assert config["version"] == openaclnn.__version__
    assert config["product"] == "A2"
    assert config["kernels"] in ("v2", "v3", "v4", "native")
    assert config["streaming_bytes"] > 0
    openaclnn.set_num_threads(3)
    openaclnn.set_product("910")
    assert (openaclnn.config()["threads"], openaclnn.config()["product"]) == (3, "910")
    for part in ("include/acl/acl.h", "lib64/libascendcl.so", "set_env.sh", "bin/setenv.bash"):
        assert (openaclnn.home() / part).is_file(), part
    assert openaclnn.products() == PRODUCTS


def test_settings_out_of_range():
    with pytest.raises(ValueError, match=r"^set_num_threads: count must be at least 1, but got 0$"):
        openaclnn.set_num_threads(0)
    with pytest.raises(
        TypeError, match=r"^set_num_threads: count must be an integer, but got '2'$"
    ):
        openaclnn.set_num_threads("2")
    openaclnn.set_num_threads(10**30)
    assert openaclnn.config()["threads"] == 256
    known = "910, A2, A3, 310P, 310B, any"
    with pytest.raises(TypeError) as wrong:
        openaclnn.set_product(910)
    assert str(wrong.value) == f"set_product: product must be a string ({known}), but got 910"
    with pytest.raises(openaclnn.AclnnError) as caught:
        openaclnn.set_product("A9")
    assert caught.value.status == 161002
    sentence = 'set_product: product must be 910, A2, A3, 310P, 310B or any, but got "A9"'
    assert str(caught.value) == sentence


def test_the_exception():
    for status, name in NAMES.items():
        error = openaclnn.AclnnError(status, "a sentence")
        twin = pickle.loads(pickle.dumps(error))
        assert isinstance(twin, ValueError)
        assert (twin.status, twin.name, str(twin)) == (status, name, "a sentence")
    assert openaclnn.AclnnError(7, "").name == "ACL_ERROR_7"


def test_import_brings_nothing_but_numpy_and_the_standard_library():
    program = (
        "import sys, numpy; before = set(sys.modules); import openaclnn;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"openaclnn"}


def test_public_names():
    assert {op.python for op in OPS} <= set(openaclnn.__all__)
    for name in openaclnn.__all__:
        assert getattr(openaclnn, name).__doc__ or name == "OPS", f"{name} needs a docstring"


# ---- the environment ----


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "value", "must_be", "used"),
    [
        ("OPENACLNN_PRODUCT", "A9", "910, A2, A3, 310P, 310B or any", "A2"),
        ("OPENACLNN_ISA", "v9", "v2, v3 or v4, and one that this CPU has", None),
        ("OPENACLNN_NUM_THREADS", "many", "a whole number from 1 to 256", None),
        ("OPENACLNN_NUM_THREADS", "0", "a whole number from 1 to 256", None),
        ("OPENACLNN_STREAMING_BYTES", "1k", f"a whole number from 1 to {2**62}", "33554432"),
    ],
)
def test_a_wrong_variable_is_told_once(name, value, must_be, used):
    script = "import openaclnn; openaclnn.config(); openaclnn.config()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {name: value},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    message = f'openaclnn: {name} must be {must_be}, but is "{value}"; '
    assert line.startswith(message)
    assert line.endswith(f"{used or ''} is used")


@pytest.mark.programs
@pytest.mark.parametrize(
    ("value", "count", "used"),
    [
        ("a", 0, "no device"),
        ("0,x,1", 1, "the list up to entry 1"),
        ("1,0", 1, "the list up to entry 1"),
        ("0,1,7", 2, "the list up to entry 2"),
        ("0,2", 2, None),
        ("", 0, None),
    ],
)
def test_a_wrong_list_of_devices_is_reported_once(value, count, used):
    script = (
        "import ctypes, openaclnn\n"
        "acl = ctypes.CDLL(openaclnn.home() / 'lib64' / 'libascendcl.so')\n"
        "count = ctypes.c_uint32(99)\n"
        "assert acl.aclrtGetDeviceCount(ctypes.byref(count)) == 0\n"
        "assert acl.aclrtGetDeviceCount(ctypes.byref(count)) == 0\n"
        "print(count.value)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"OPENACLNN_DEVICES": "4", "ASCEND_RT_VISIBLE_DEVICES": value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{count}\n"
    expected = (
        "openaclnn: ASCEND_RT_VISIBLE_DEVICES must be ascending numbers below 4, separated by "
        f'commas, but is "{value}"; {used} is used\n'
    )
    assert done.stderr == (expected if used else "")
