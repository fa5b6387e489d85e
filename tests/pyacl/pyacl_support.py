# SPDX-License-Identifier: Apache-2.0
"""The module acl of the installation directory, as `openaclnn run` puts it on the path."""

from __future__ import annotations

import importlib
import sys

import openaclnn

FOLDER = openaclnn.home() / "python" / "site-packages"

sys.path.insert(0, str(FOLDER))
acl = importlib.import_module("acl")
call = importlib.import_module("acl.call")
sys.path.remove(str(FOLDER))

INVALID, NOT_SUPPORTED = 100000, 200001
HOST_TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE = range(4)


def done(result):
    """The values of a call that succeeded."""
    values, ret = (result[:-1], result[-1]) if isinstance(result, tuple) else ((), result)
    assert ret == 0, acl.get_recent_err_msg()
    return values[0] if len(values) == 1 else values


def on_device(data: bytes) -> int:
    pointer = done(acl.rt.malloc(len(data), 0))
    source = acl.util.bytes_to_ptr(data)
    done(acl.rt.memcpy(pointer, len(data), source, len(data), TO_DEVICE))
    return pointer


def on_host(pointer: int, size: int) -> bytes:
    """Copied from the device."""
    host = done(acl.rt.malloc_host(size))
    done(acl.rt.memcpy(host, size, pointer, size, TO_HOST))
    data = acl.util.ptr_to_bytes(host, size)
    done(acl.rt.free_host(host))
    return data
