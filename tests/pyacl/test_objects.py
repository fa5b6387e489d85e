# SPDX-License-Identifier: Apache-2.0
"""Data buffers, descriptions, attributes, operators by type, datasets, and acl.util."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pyacl.pyacl_support import INVALID, acl, done, on_device, on_host

FLOAT, ND, NCHW = 0, 2, 0


def test_data_buffers():
    first, second = on_device(bytes(16)), on_device(bytes(32))
    buffer = acl.create_data_buffer(first, 16)
    assert acl.get_data_buffer_addr(buffer) == first
    assert acl.get_data_buffer_size(buffer) == acl.get_data_buffer_size_v2(buffer) == 16
    done(acl.update_data_buffer(buffer, second, 32))
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size(buffer)) == (second, 32)
    done(acl.destroy_data_buffer(buffer))
    assert acl.destroy_data_buffer(buffer) == INVALID
    assert acl.get_data_buffer_addr(buffer) == 0


def test_descriptions():
    made = acl.create_tensor_desc(FLOAT, [2, 3, -1], ND)
    assert [acl.get_tensor_desc_dim(made, i) for i in range(4)] == [2, 3, -1, -1]
    assert done(acl.get_tensor_desc_dim_v2(made, 1)) == 3
    done(acl.set_tensor_shape_range(made, [[2, 2], [3, 3], [1, 10]]))
    assert done(acl.get_tensor_desc_dim_range(made, 2, 2)) == [1, 10]
    assert acl.destroy_tensor_desc(made) is None
    made = acl.create_tensor_desc(FLOAT, np.array([4, 5]), ND)
    assert acl.get_tensor_desc_num_dims(made) == 2
    assert acl.get_tensor_desc_element_count(made) == 20
    assert acl.get_tensor_desc_size(made) == 80
    done(acl.set_tensor_shape(made, (20,)))  # that of the storage
    assert acl.get_tensor_desc_type(made) == FLOAT
    done(acl.set_tensor_format(made, NCHW))  # that of the storage
    assert acl.get_tensor_desc_format(made) == ND
    assert acl.set_tensor_desc_name(made, "größe") is None
    assert acl.get_tensor_desc_name(made) == "größe"
    done(acl.set_tensor_place_ment(made, 1))
    data = bytes(80)
    done(acl.set_tensor_const(made, acl.util.bytes_to_ptr(data), 80))
    assert acl.destroy_tensor_desc(made) is None
    assert acl.get_tensor_desc_num_dims(made) == 0
    with pytest.raises(ValueError, match=r"dims_range must have pairs \[low, high\]"):
        acl.set_tensor_shape_range(made, [[1, 2, 3]])


def test_an_operator_by_type(stream):
    data = np.arange(6, dtype=np.float32)
    source, target = on_device(data.tobytes()), on_device(bytes(24))
    desc = acl.create_tensor_desc(FLOAT, [2, 3], ND)
    given, place = (acl.create_data_buffer(pointer, 24) for pointer in (source, target))
    attr = acl.op.create_attr()
    for execute in (acl.op.execute, acl.op.execute_v2):
        done(acl.rt.memset(target, 24, 0, 24))
        done(execute("Identity", [desc], [given], [desc], [place], attr, stream))
        done(acl.rt.synchronize_stream(stream))
        assert on_host(target, 24) == data.tobytes()
    assert acl.op.execute_v2("NoSuch", [desc], [given], [desc], [place], attr, stream) == 100024
    assert "opType NoSuch is not supported" in acl.get_recent_err_msg()
    acl.op.destroy_attr(attr)


def test_attributes_reach_the_refusal_of_an_unknown_type():
    """The sentence shows all of them."""
    attr = acl.op.create_attr()
    done(acl.op.set_attr_bool(attr, "a", True))
    done(acl.op.set_attr_int(attr, "b", -7))
    done(acl.op.set_attr_float(attr, "c", 2.5))
    done(acl.op.set_attr_string(attr, "d", "word"))
    done(acl.op.set_attr_list_bool(attr, "e", np.array([True, False])))
    done(acl.op.set_attr_list_float(attr, "f", [1.5, 2.25]))
    done(acl.op.set_attr_list_int(attr, "g", np.array([10, 20], dtype=np.int32)))
    done(acl.op.set_attr_list_string(attr, "h", ["x", "yz"]))
    done(acl.op.set_attr_list_list_int(attr, "i", [[10], [20, 30]]))
    assert acl.op.execute_v2("NoSuch", [], [], [], [], attr, 0) != 0
    text = acl.get_recent_err_msg()
    for shown in ("a", "-7", "2.5", "word", "2.25", "20", "yz", "30"):
        assert shown in text, text
    acl.op.destroy_attr(attr)
    assert acl.op.set_attr_int(attr, "b", 1) == INVALID
    with pytest.raises(TypeError, match="must be a list, but got int"):
        acl.op.set_attr_list_list_int(attr, "i", [1])


def test_datasets():
    dataset, buffer = acl.mdl.create_dataset(), acl.create_data_buffer(on_device(bytes(4)), 4)
    assert done(acl.mdl.add_dataset_buffer(dataset, buffer)) == dataset
    assert acl.mdl.get_dataset_num_buffers(dataset) == 1
    assert acl.mdl.get_dataset_buffer(dataset, 0) == buffer
    done(acl.mdl.destroy_dataset(dataset))
    desc = acl.mdl.create_desc()
    assert acl.mdl.get_num_inputs(desc) == acl.mdl.get_num_outputs(desc) == 0
    dims, ret = acl.mdl.get_input_dims(desc, 0)
    assert dims == {"name": "", "dimCount": 0, "dims": []}
    assert ret == INVALID
    done(acl.mdl.destroy_desc(desc))


# ---- acl.util ----


def test_addresses_of_bytes_and_arrays():
    data = b"0123456789"
    assert acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(data) + 2, 3) == b"234"
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert acl.util.numpy_to_ptr(array) == array.ctypes.data
    pointer, same = acl.util.numpy_contiguous_to_ptr(array)
    assert (pointer, same is array) == (array.ctypes.data, True)
    pointer, copy = acl.util.numpy_contiguous_to_ptr(array.T)
    assert acl.util.ptr_to_bytes(pointer, 24) == array.T.tobytes()
    assert np.array_equal(copy, array.T)


@pytest.mark.parametrize(("number", "dtype"), [(11, "float32"), (5, "int32"), (23, "float16")])
def test_memory_as_an_array(number, dtype):
    host = done(acl.rt.malloc_host(24))
    count = 24 // np.dtype(dtype).itemsize
    for kind in (number, np.dtype(dtype)):
        array = acl.util.ptr_to_numpy(host, (count,), kind)
        array[:] = range(count)  # the memory itself
        assert acl.util.ptr_to_bytes(host, 24) == np.arange(count, dtype=dtype).tobytes()
    assert array.dtype == dtype
    done(acl.rt.free_host(host))


def test_memory_that_the_host_cannot_read():
    pointer = on_device(bytes(8))
    for read in (
        lambda place: acl.util.ptr_to_bytes(place, 8),
        lambda place: acl.util.ptr_to_numpy(place, (2,), 11),
    ):
        with pytest.raises(ValueError, match=r"is device memory; copy it .* acl\.rt\.memcpy$"):
            read(pointer)
        for nowhere in (0, 8, (1 << 64) - 8):
            with pytest.raises(ValueError, match="no readable memory at 0x"):
                read(nowhere)
    assert acl.util.ptr_to_bytes(0, 0) == b""
    assert acl.util.ptr_to_numpy(0, (0, 3), 11).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "arguments", "sentence"),
    [
        ("bytes_to_ptr", ("text",), "bytes_to_ptr: must be bytes, but got str"),
        ("bytes_to_ptr", (bytearray(2),), "bytes_to_ptr: must be bytes, but got bytearray"),
        ("numpy_to_ptr", ([1],), "numpy_to_ptr: must be a NumPy array, but got list"),
        ("numpy_contiguous_to_ptr", (1,), "must be a NumPy array, but got int"),
        ("ptr_to_bytes", ("a", 1), "ptr_to_bytes: ptr and size must be an int, but got str"),
        ("ptr_to_bytes", (8, -1), "ptr_to_bytes: ptr and size must be in "),
        ("ptr_to_numpy", (8, (2,), 17), "type 17 is not a number type of NumPy"),
        ("ptr_to_numpy", (8, (2,), object), "type must be a number type, but got object"),
        ("ptr_to_numpy", (8, 2, 11), "shape must be a list, but got int"),
        ("ptr_to_numpy", (8, (-2,), 11), "shape must be in "),
        ("start_thread", (1, []), "function must be a function, but got int"),
    ],
)
def test_wrong_arguments_of_util(call, arguments, sentence):
    with pytest.raises((TypeError, ValueError)) as error:
        getattr(acl.util, call)(*arguments)
    assert str(error.value).startswith("acl.util.")
    assert sentence in str(error.value)


def test_a_thread_that_is_unknown_cannot_be_stopped():
    assert acl.util.stop_thread(1) == INVALID
