# SPDX-License-Identifier: Apache-2.0
"""The module acl in a process with torch_npu: one set of devices, streams and memory."""

from __future__ import annotations

from pathlib import Path

import acl
import torch
import torch_npu

TO_DEVICE, TO_HOST = 1, 2
ND, FLOAT, INT32 = 2, 0, 3


def done(result):
    values, ret = (result[:-1], result[-1]) if isinstance(result, tuple) else ((), result)
    assert ret == 0, acl.get_recent_err_msg()
    return values[0] if len(values) == 1 else values


def test_the_device_is_that_of_torch():
    torch.npu.synchronize()
    assert acl.get_soc_name() == torch.npu.get_device_name()
    assert done(acl.rt.get_device()) == torch.npu.current_device()
    assert done(acl.rt.get_device_count()) == torch.npu.device_count()
    assert done(acl.rt.get_mem_info(1))[1] == torch.npu.mem_get_info()[1]
    # torch_npu has called it: until 2.10 with a configuration of its own, and another is refused
    own = str(Path(torch_npu.__file__).with_name("acl_default.json"))
    assert {acl.init(), acl.init(own)} == {100002, 100000}


def test_copies_between_tensors_and_host():
    """What vllm-ascend does with the weights of a sleeping model."""
    x = torch.arange(8, dtype=torch.float32).npu() + 0
    torch.npu.synchronize()
    host = torch.empty(8, pin_memory=True)
    done(acl.rt.memcpy(host.data_ptr(), 32, x.data_ptr(), 32, TO_HOST))
    assert host.tolist() == list(range(8))
    host += 1
    done(acl.rt.memcpy(x.data_ptr(), 32, host.data_ptr(), 32, TO_DEVICE))
    assert x.tolist() == list(range(1, 9))


def test_a_stream_of_torch():
    stream = torch.npu.Stream()
    x = torch.ones(4).npu()
    data = bytes(range(16))
    with torch.npu.stream(stream):
        y = x + 1
    torch.npu.synchronize()  # the queue of torch_npu may hold it back
    event = done(acl.rt.create_event())
    done(acl.rt.memcpy_async(x.data_ptr(), 16, acl.util.bytes_to_ptr(data), 16, TO_DEVICE,
                             stream.npu_stream))  # fmt: skip
    done(acl.rt.record_event(event, stream.npu_stream))
    done(acl.rt.synchronize_event(event))
    done(acl.rt.destroy_event(event))
    assert y.tolist() == [2, 2, 2, 2]
    assert x.view(torch.uint8).tolist() == list(data)


def test_an_operator_by_type_that_aten_computes():
    x = torch.tensor([1.7, -2.2, 3.0]).npu()
    y = torch.empty(3, dtype=torch.int32).npu()
    torch.npu.synchronize()
    stream = done(acl.rt.create_stream())
    given, place = (acl.create_data_buffer(t.data_ptr(), 12) for t in (x, y))
    types = [acl.create_tensor_desc(dtype, [3], ND) for dtype in (FLOAT, INT32)]
    attr = acl.op.create_attr()
    done(acl.op.set_attr_int(attr, "dst_type", INT32))
    done(acl.op.execute_v2("Cast", types[:1], [given], types[1:], [place], attr, stream))
    done(acl.rt.synchronize_stream(stream))
    assert y.tolist() == [1, -2, 3]
    acl.op.destroy_attr(attr)
    for desc in types:
        acl.destroy_tensor_desc(desc)
    for buffer in (given, place):
        done(acl.destroy_data_buffer(buffer))
    done(acl.rt.destroy_stream(stream))
