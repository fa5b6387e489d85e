# SPDX-License-Identifier: Apache-2.0
"""A single operator from Python, through pyACL and ctypes. Without an NPU:

openaclnn run python pyacl_leaky_relu.py
"""

import ctypes

import acl
import numpy as np

HUGE_FIRST, TO_DEVICE, TO_HOST = 0, 1, 2
FLOAT, ND = 0, 2


def check(what, result):
    """The values of a call; RuntimeError with the library's sentence if it failed."""
    *values, ret = result if isinstance(result, tuple) else (result,)
    if ret != 0:
        raise RuntimeError(f"{what} returned {ret}: {acl.get_recent_err_msg()}")
    return values[0] if values else None


check("acl.init", acl.init())
check("acl.rt.set_device", acl.rt.set_device(0))
stream = check("acl.rt.create_stream", acl.rt.create_stream())

x = np.array([-2, -1, 0, 3], dtype=np.float32)
pointers = [check("acl.rt.malloc", acl.rt.malloc(x.nbytes, HUGE_FIRST)) for _ in range(2)]
data = x.tobytes()
source = acl.util.bytes_to_ptr(data)
check("acl.rt.memcpy", acl.rt.memcpy(pointers[0], x.nbytes, source, x.nbytes, TO_DEVICE))

# Both phases of aclnnLeakyRelu.
nnopbase, opapi = (ctypes.CDLL(f"lib{name}.so") for name in ("nnopbase", "opapi"))
nnopbase.aclCreateTensor.restype = nnopbase.aclCreateScalar.restype = ctypes.c_void_p
shape = (ctypes.c_int64 * 1)(x.size)
slope = ctypes.c_float(0.5)


def tensor(pointer):
    one, whole = ctypes.c_uint64(1), ctypes.c_void_p(pointer)
    made = nnopbase.aclCreateTensor(shape, one, FLOAT, None, None, ND, shape, one, whole)
    return ctypes.c_void_p(made)


given, result = (tensor(pointer) for pointer in pointers)
scalar = ctypes.c_void_p(nnopbase.aclCreateScalar(ctypes.byref(slope), FLOAT))
size, executor = ctypes.c_uint64(), ctypes.c_void_p()
phase1 = opapi.aclnnLeakyReluGetWorkspaceSize
planned = phase1(given, scalar, result, ctypes.byref(size), ctypes.byref(executor))
check("aclnnLeakyReluGetWorkspaceSize", planned)
done = opapi.aclnnLeakyRelu(None, size, executor, ctypes.c_void_p(stream))
check("aclnnLeakyRelu", done)
check("acl.rt.synchronize_stream", acl.rt.synchronize_stream(stream))

host = check("acl.rt.malloc_host", acl.rt.malloc_host(x.nbytes))
check("acl.rt.memcpy", acl.rt.memcpy(host, x.nbytes, pointers[1], x.nbytes, TO_HOST))
print(np.frombuffer(acl.util.ptr_to_bytes(host, x.nbytes), dtype=x.dtype).tolist())

check("acl.rt.free_host", acl.rt.free_host(host))
for pointer in pointers:
    check("acl.rt.free", acl.rt.free(pointer))
check("acl.rt.destroy_stream", acl.rt.destroy_stream(stream))
check("acl.rt.reset_device", acl.rt.reset_device(0))
check("acl.finalize", acl.finalize())
