# SPDX-License-Identifier: Apache-2.0
"""The layout FRACTAL_NZ: its sizes, and casts to it and back. Scales as bits, from numbers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Refused, torch
from tests.aten.golden import call, library

import openaclnn

ND, NZ = 2, 29


def plain(name: str) -> Callable[..., int]:
    """A function of one phase, which is in the core."""
    home = openaclnn.home() / "lib64" / "aten" / "libopenaclnn_aten.so"
    return getattr(ctypes.CDLL(str(home)), f"openaclnn_{name}")


def sizes_of(x: torch.Tensor, to: int = NZ, dtype: int = -1) -> tuple[int, list[int], int]:
    """The status, and with status 0 the shape and the format."""
    one, shape = library(), ctypes.POINTER(ctypes.c_int64)()
    count, format_ = ctypes.c_uint64(), ctypes.c_int()
    one.made = []
    source = ctypes.c_void_p(one.tensor(x))
    code = plain("aclnnNpuFormatCastCalculateSizeAndFormat")(
        source, to, dtype, *map(ctypes.byref, (shape, count, format_)))  # fmt: skip
    one.base.aclDestroyTensor(source)
    return code, shape[: count.value] if shape else [], format_.value


@pytest.mark.parametrize(
    ("dtype", "additional", "columns"),
    [(torch.float16, -1, 16), (torch.bfloat16, -1, 16), (torch.int8, -1, 32), (torch.int32, -1, 8),
     (torch.float32, 1, 16), (torch.float32, -1, 8), (torch.int32, 2, 32)],
)  # fmt: skip
def test_sizes_and_casts_are_those_of_tiles(dtype, additional, columns):
    x = torch.arange(2 * 18 * 40).reshape(2, 18, 40).to(dtype)
    shape = [2, -(-40 // columns), 2, 16, columns]
    assert sizes_of(x, NZ, additional) == (0, shape, NZ)
    assert sizes_of(x, ND, additional) == (0, [2, 18, 40], ND)
    (tiles,) = call("aclnnNpuFormatCast", x, torch.full(shape, 7).to(dtype))
    for k, n in ((0, 0), (17, 39), (16, 15), (5, 31)):
        assert torch.equal(tiles[:, n // columns, k // 16, k % 16, n % columns], x[:, k, n])
    assert tiles.double().abs().sum() == x.double().abs().sum()
    assert torch.equal(call("aclnnNpuFormatCast", tiles, torch.zeros_like(x))[0], x)
    assert torch.equal(call("aclnnNpuFormatCast", x, torch.zeros_like(x))[0], x)


def test_what_has_no_tiles():
    assert sizes_of(torch.ones(5)) == (0, [5], ND)
    assert sizes_of(torch.ones(2, 2), 50)[0] == 161002
    assert sizes_of(torch.ones(2, 2, dtype=torch.float64))[0] == 161002
    for shape, sentence in (((1, 2, 16, 16), r"dst must have shape \[3, 2, 16, 16\]"),
                            ((18, 41), r"dst must have shape \[18, 40\]")):  # fmt: skip
        with pytest.raises(Refused, match=sentence):
            call("aclnnNpuFormatCast", torch.ones(18, 40), torch.ones(shape))
    with pytest.raises(Refused, match="dst must have the dtype of src"):
        call("aclnnNpuFormatCast", torch.ones(18, 40), torch.ones(18, 40).half())


def test_weights_have_room_for_their_tiles():
    one, size = library(), ctypes.c_uint64()
    one.made = []
    shape = ctypes.c_void_p(one.array("IntArray", ctypes.c_int64, [3, 33, 20]))
    for dtype, expected in ((1, 3 * 48 * 32), (2, 3 * 48 * 32), (27, 3 * 48 * 32)):
        assert plain("aclnnCalculateMatmulWeightSizeV2")(shape, dtype, ctypes.byref(size)) == 0
        assert size.value == expected
    assert plain("aclnnCalculateMatmulWeightSize")(shape, ctypes.byref(size)) == 0
    assert size.value == 3 * 48 * 32
    narrow = ctypes.c_void_p(one.array("IntArray", ctypes.c_int64, [16, 16]))
    assert plain("aclnnCalculateMatmulWeightSizeV2")(narrow, 2, ctypes.byref(size)) == 0
    assert size.value == 16 * 32
    assert plain("aclnnCalculateMatmulWeightSize")(None, ctypes.byref(size)) == 161001
    for array in (shape, narrow):
        one.base.aclDestroyIntArray(array)


def quant_bits(scales: list[float], offsets: list[float] | None) -> tuple[int, list[int]]:
    found, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_uint64()
    held = [(ctypes.c_float * len(x))(*x) if x is not None else None for x in (scales, offsets)]
    code = plain("aclnnTransQuantParam")(
        held[0], ctypes.c_uint64(len(scales)), held[1], ctypes.c_uint64(len(offsets or [])),
        ctypes.byref(found), ctypes.byref(count))  # fmt: skip
    return code, found[: count.value] if found else []


def test_scales_become_bits_of_which_the_lowest_13_are_cut():
    scales, offsets = [0.1, 3.14159, -2.5], [5.5, -300.0, 255.0]
    high = [struct.unpack("I", struct.pack("f", s))[0] & 0xFFFFE000 | 1 << 46 for s in scales]
    assert quant_bits(scales, None) == (0, high)
    # To even, and clamped to 9 bits.
    with_offsets = [h | (o & 0x1FF) << 37 for h, o in zip(high, (6, -256, 255), strict=True)]
    assert quant_bits(scales, offsets) == (0, with_offsets)
    assert quant_bits(scales, offsets[:1])[1] == [h | 6 << 37 for h in high]
    tensors = torch.tensor(scales), torch.tensor(offsets), torch.empty(3, dtype=torch.int64)
    assert call("aclnnTransQuantParamV2", *tensors)[0].tolist() == with_offsets
    assert quant_bits([], None)[0] == 161002
    assert quant_bits([1.0, 2.0], [1.0, 2.0, 3.0])[0] == 161002
