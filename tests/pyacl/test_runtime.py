# SPDX-License-Identifier: Apache-2.0
"""acl and acl.rt by value: devices, contexts, streams, events, memory, callbacks."""

from __future__ import annotations

import struct
import threading

import pytest
from tests.pyacl.pyacl_support import (
    HOST_TO_HOST,
    INVALID,
    NOT_SUPPORTED,
    ON_DEVICE,
    TO_DEVICE,
    TO_HOST,
    acl,
    done,
    on_device,
    on_host,
)

NO_SUCH_DEVICE, INVALID_ARGUMENT, OUT_OF_MEMORY = 107001, 107000, 207001


def test_devices():
    count = done(acl.rt.get_device_count())
    assert count >= 1
    assert done(acl.rt.get_device()) == 0
    assert acl.rt.set_device(count) == NO_SUCH_DEVICE
    assert acl.get_soc_name() == "Ascend910B1"
    assert done(acl.rt.get_run_mode()) == 1  # ACL_HOST
    assert done(acl.rt.get_primary_ctx_state(0)) == (1, 0)  # active, flags
    assert done(acl.rt.query_device_status(0)) == 0
    assert done(acl.rt.get_device_info(0, 601)) > 0  # ACL_DEV_ATTR_NPU_ARCH
    assert done(acl.get_device_capability(0, 1)) > 0  # vector cores
    assert done(acl.get_cann_attribute(1)) == 1  # BF16
    assert done(acl.rt.device_get_stream_priority_range()) == (7, 0)
    assert acl.rt.device_can_access_peer(0, 0) == (0, INVALID_ARGUMENT)  # no other device
    done(acl.rt.synchronize_device())
    done(acl.rt.synchronize_device_with_timeout(1000))


def test_the_message_and_the_code_of_a_failure():
    assert acl.rt.set_device(99) == NO_SUCH_DEVICE
    assert acl.rt.peek_at_last_error(0) == NO_SUCH_DEVICE
    assert acl.rt.get_last_error(0) == NO_SUCH_DEVICE
    assert acl.rt.get_last_error(0) == 0
    assert "aclrtSetDevice: " in acl.get_recent_err_msg()
    assert acl.get_recent_err_msg() == ""


def test_contexts():
    before = done(acl.rt.get_context())
    made = done(acl.rt.create_context(0))
    assert done(acl.rt.get_context()) == made != before
    assert done(acl.rt.ctx_get_current_default_stream()) != 0
    done(acl.rt.set_context(before))
    assert done(acl.rt.get_context()) == before
    done(acl.rt.destroy_context(made))
    assert acl.rt.set_context(made) != 0


def test_parameters_of_the_system():
    done(acl.rt.set_sys_param_opt(0, 1))
    assert done(acl.rt.get_sys_param_opt(0)) == 1
    done(acl.rt.set_sys_param_opt(0, 0))
    done(acl.rt.ctx_set_sys_param_opt(2, 1))
    assert done(acl.rt.ctx_get_sys_param_opt(2)) == 1
    done(acl.rt.ctx_set_sys_param_opt(2, 0))


def test_half_floats_and_sizes():
    assert acl.float_to_float16(1.5) == 0x3E00
    assert acl.float16_to_float(0x3E00) == 1.5
    assert [acl.data_type_size(dtype) for dtype in (0, 1, 9, 12, 27)] == [4, 2, 8, 1, 2]


def test_streams_and_events():
    first = done(acl.rt.create_stream())
    second = done(acl.rt.create_stream_with_config(0, 3))
    start, end = done(acl.rt.create_event()), done(acl.rt.create_event_with_flag(9))
    other = done(acl.rt.create_event_ex_with_flag(1))
    done(acl.rt.record_event(start, first))
    done(acl.rt.record_event(other, first))
    done(acl.rt.stream_wait_event(second, other))
    done(acl.rt.record_event(end, second))
    done(acl.rt.synchronize_event(end))
    done(acl.rt.synchronize_event_with_timeout(end, 1000))
    assert done(acl.rt.query_event_status(end)) == 1
    assert done(acl.rt.query_event(end)) == 0
    assert 0 <= done(acl.rt.event_elapsed_time(start, end)) < 1000
    done(acl.rt.synchronize_stream(second))
    done(acl.rt.synchronize_stream_with_timeout(second, 1000))
    assert done(acl.rt.query_event_wait_status(end)) == 0
    assert done(acl.rt.event_get_timestamp(end)) >= done(acl.rt.event_get_timestamp(start))
    assert done(acl.rt.stream_query(second)) == 0
    assert done(acl.rt.get_event_id(start)) != done(acl.rt.get_event_id(end))
    done(acl.rt.reset_event(end, second))
    done(acl.rt.set_stream_failure_mode(first, 1))
    done(acl.rt.stream_abort(first))
    for event in (start, end, other):
        done(acl.rt.destroy_event(event))
    done(acl.rt.destroy_stream(first))
    done(acl.rt.destroy_stream_force(second))
    assert acl.rt.synchronize_stream(second) == 107017  # an invalid handle


def test_memory_of_host_and_device(stream):
    data = bytes(range(64))
    pointer = on_device(data)
    assert on_host(pointer, 64) == data
    done(acl.rt.memset(pointer, 64, 7, 4))
    done(acl.rt.memset_async(pointer + 4, 60, 9, 4, stream))
    done(acl.rt.synchronize_stream(stream))
    assert on_host(pointer, 10) == b"\7\7\7\7\t\t\t\t\x08\t"
    for allocate in (acl.rt.malloc_align32, acl.rt.malloc_cached):
        other = done(allocate(64, 0))
        done(acl.rt.memcpy_async(other, 64, pointer, 64, ON_DEVICE, stream))
        done(acl.rt.synchronize_stream(stream))
        assert on_host(other, 64) == on_host(pointer, 64)
        done(acl.rt.free(other))
    assert acl.rt.memcpy(pointer, 8, pointer + 16, 9, ON_DEVICE) == INVALID_ARGUMENT
    assert "destMax" in acl.get_recent_err_msg()
    done(acl.rt.free(pointer))
    assert acl.rt.free(pointer) != 0
    assert acl.rt.malloc(1 << 62, 0) == (0, OUT_OF_MEMORY)
    free, total = done(acl.rt.get_mem_info(1))
    assert 0 < free <= total


def test_rows_of_memory(stream):
    source = on_device(bytes(range(16)))
    target = on_device(bytes(8))
    done(acl.rt.memcpy2d(target, 2, source, 4, 2, 4, TO_DEVICE))
    assert on_host(target, 8) == bytes([0, 1, 4, 5, 8, 9, 12, 13])
    done(acl.rt.memcpy2d_async(target, 4, source, 8, 4, 2, TO_DEVICE, stream))
    done(acl.rt.synchronize_stream(stream))
    assert on_host(target, 8) == bytes([0, 1, 2, 3, 8, 9, 10, 11])
    done(acl.rt.free(source)), done(acl.rt.free(target))


def test_registered_host_memory():
    host = done(acl.rt.malloc_host(8192))
    page = (host + 4095) // 4096 * 4096
    assert done(acl.rt.host_register(page, 4096, 0)) == page
    done(acl.rt.host_unregister(page))
    done(acl.rt.host_register_v2(page, 4096, 2))
    assert done(acl.rt.host_get_device_pointer(page, 0)) == page
    done(acl.rt.host_unregister(page))
    done(acl.rt.memcpy(page, 4, host, 4, HOST_TO_HOST))
    done(acl.rt.free_host(host))


def test_a_reduction(stream):
    target, source = (on_device(struct.pack("2f", *v)) for v in ((1, 2), (10, 20)))
    done(acl.rt.reduce_async(target, source, 8, 10, 0, stream, 0))  # a sum of FLOAT
    done(acl.rt.synchronize_stream(stream))
    assert struct.unpack("2f", on_host(target, 8)) == (11, 22)
    done(acl.rt.free(source)), done(acl.rt.free(target))


def test_callbacks_run_in_the_thread_that_is_subscribed(stream):
    seen, leave = [], threading.Event()

    def serve(timeouts):
        while not leave.is_set():
            acl.rt.process_report(*timeouts)

    def callback(arguments):
        seen.append((arguments, threading.get_ident()))

    thread, ret = acl.util.start_thread(serve, [20])
    assert ret == 0
    assert acl.rt.launch_callback(callback, ["early"], 1, stream) != 0  # nobody is subscribed
    done(acl.rt.subscribe_report(thread, stream))
    for number in range(3):
        done(acl.rt.launch_callback(callback, ["item", number], 1, stream))
    done(acl.rt.synchronize_stream(stream))
    done(acl.rt.unsubscribe_report(thread, stream))
    leave.set()
    assert acl.util.stop_thread(thread) == 0
    assert acl.util.stop_thread(thread) == INVALID
    assert seen == [(["item", number], thread) for number in range(3)]
    with pytest.raises(TypeError, match="fn must be a function, but got int"):
        acl.rt.launch_callback(1, [], 0, stream)


def test_a_task_that_fails_is_reported(stream):
    """A callback whose thread leaves fails its stream."""
    found = []

    def failed(info):
        names = ("task_id", "stream_id", "thread_id", "device_id", "error_code")
        found.append([getattr(acl.rt, f"get_{n}_from_exception_info")(info) for n in names])
        found.append(acl.rt.get_task_id_from_exception_info(info + 8))  # not what was passed

    done(acl.rt.set_exception_info_callback(failed))
    thread = threading.get_ident() + 1  # nobody
    done(acl.rt.subscribe_report(thread, stream))
    done(acl.rt.launch_callback(print, [], 1, stream))
    done(acl.rt.unsubscribe_report(thread, stream))
    assert acl.rt.synchronize_stream(stream) == 100034  # not subscribed
    acl.rt.set_exception_info_callback(lambda info: None)
    (task, _, _, device, code), foreign = found
    assert (device, code, foreign) == (0, 100034, 0xFFFFFFFF)
    assert task != foreign
    with pytest.raises(TypeError, match="fn must be a function"):
        acl.rt.set_exception_info_callback(None)


def test_what_needs_an_npu_says_so():
    assert acl.mdl.load_from_file("resnet50.om") == (0, NOT_SUPPORTED)
    assert ".om models hold kernels of an NPU" in acl.get_recent_err_msg()
    assert acl.mdl.load_from_mem(0, 0) != (0, 0)
    assert acl.mdl.query_size("resnet50.om") == (0, 0, NOT_SUPPORTED)
    assert acl.mdl.execute(1, 0, 0) != 0
    with pytest.raises(NotImplementedError, match=r"^acl\.media\.dvpp_malloc: .* on the host$"):
        acl.media.dvpp_malloc(64)
    with pytest.raises(NotImplementedError, match=r"^acl\.op\.load: .*acl\.op\.execute_v2$"):
        acl.op.load(0, 0)
    assert not hasattr(acl.media, "malloc")
    assert acl.rt.memcpy(0, 4, 0, 4, TO_DEVICE) != 0
    assert acl.rt.memcpy(0, 4, 0, 4, TO_HOST) != 0
