# SPDX-License-Identifier: Apache-2.0
"""The language extensions of triton-ascend that have a meaning in Triton's interpreter: what they
compute. triton_modules.py has their names and those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


def _value(given: Any) -> Any:
    return given.value if isinstance(given, tl.constexpr) else given


def _number(given: Any) -> int:
    given = _value(given)
    return int(given.handle.data.item()) if isinstance(given, tl.tensor) else int(given)


def _numbers(given: Any) -> list[int]:
    return [_number(part) for part in _value(given)]


def _tensor(data: np.ndarray[Any, Any], scalar: Any) -> Any:
    kind = tl.block_type(scalar, list(data.shape)) if data.ndim else scalar
    return tl.tensor(interpreter.TensorHandle(np.atleast_1d(data), scalar), kind)


def _slices(
    name: str, shape: Sequence[int], offsets: Any, sizes: Any, strides: Any
) -> tuple[slice, ...]:
    lists = [_numbers(given) for given in (offsets, sizes, strides)]
    if any(len(given) != len(shape) for given in lists):
        raise ValueError(f"{name}: offsets, sizes and strides must have {len(shape)} elements")
    found = []
    for size, first, count, step in zip(shape, *lists, strict=True):
        end = first + (count - 1) * step + 1
        if min(first, count - 1, step - 1) < 0 or end > size:
            raise ValueError(
                f"{name}: {count} elements from {first} in steps of {step} exceed {size}"
            )
        found.append(slice(first, end, step))
    return tuple(found)


def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any) -> Any:
    data = ful.handle.data.copy()
    part = _slices("insert_slice", data.shape, offsets, sizes, strides)
    data[part] = sub.to(ful.dtype).handle.data.reshape(data[part].shape)
    return _tensor(data, ful.dtype)


def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any) -> Any:
    data = ful.handle.data
    part = _slices("extract_slice", data.shape, offsets, sizes, strides)
    return _tensor(data[part].copy(), ful.dtype)


def get_element(src: Any, indice: Any) -> Any:
    data, place = src.handle.data, tuple(_numbers(indice))
    if len(place) != data.ndim or not all(
        0 <= i < n for i, n in zip(place, data.shape, strict=True)
    ):
        raise ValueError(f"get_element: index {place} is outside of shape {data.shape}")
    return _tensor(data[place], src.dtype)


def sort(ptr: Any, dim: Any = -1, descending: Any = False) -> Any:
    data, axis = ptr.handle.data, _number(dim)
    keys = ptr.to(tl.float32).handle.data if ptr.dtype == tl.bfloat16 else data
    order = np.argsort(keys, axis=axis, kind="stable")
    if _value(descending):
        order = np.flip(order, axis)
    return _tensor(np.take_along_axis(data, order, axis), ptr.dtype)


def flip(ptr: Any, dim: Any = -1) -> Any:
    return _tensor(np.flip(ptr.handle.data, _number(dim)).copy(), ptr.dtype)


def cast(
    input: Any,
    dtype: Any,
    fp_downcast_rounding: Any = None,
    bitcast: Any = False,
    overflow_mode: Any = None,
) -> Any:
    wanted = _value(dtype)
    if _value(overflow_mode) == "saturate" and wanted.is_int():
        values = input.to(tl.float32) if input.dtype == tl.bfloat16 else input
        bits, signed = wanted.primitive_bitwidth, wanted.is_int_signed()
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        data = values.handle.data
        if data.dtype.kind == "f":  # bounds of 32 and 64 bits are no fp32 numbers
            inside = np.where(np.isnan(data), 0, data).astype(np.float64)
        else:
            inside = data.astype(object) if bits == 64 else data.astype(np.int64)
        as_type = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
        clipped = np.where(
            inside >= high, high, np.where(inside <= low, low, inside.astype(object))
        )
        return _tensor(np.vectorize(int, otypes=[as_type])(clipped), wanted)
    return input.to(wanted, fp_downcast_rounding=fp_downcast_rounding, bitcast=_value(bitcast))


def compile_hint(ptr: Any, hint_name: Any, hint_val: Any = None) -> None:
    """Of the compiler; the values are the same without it."""


def multibuffer(src: Any, size: Any) -> None:
    """Of the compiler; the values are the same without it."""


def sync_block_set(*given: Any, **named: Any) -> None:
    """Cores of one program: the interpreter runs its operations one after another."""


def sync_block_wait(*given: Any, **named: Any) -> None:
    """Cores of one program: the interpreter runs its operations one after another."""


def debug_barrier(sync_mode: Any = None) -> None:
    """Pipelines of one core: the interpreter runs its operations one after another."""


class scope:
    """Which cores run a block: here the same one runs all."""

    def __init__(self, **features: Any) -> None:
        pass

    def __enter__(self) -> scope:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class parallel:
    """A range whose turns may run side by side."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = 1, **options: Any) -> None:
        ends = (0, _number(arg1)) if arg2 is None else (_number(arg1), _number(arg2))
        self.turns = range(*ends, _number(step))

    def __iter__(self) -> Iterator[int]:
        return iter(self.turns)


def function_of(call: Callable[..., Any]) -> Callable[..., Any]:
    """The values in float64, rounded to the dtype of the first tensor."""

    def function(*given: Any) -> Any:
        tensors = [x for x in given if isinstance(x, tl.tensor)]
        if not tensors or not tensors[0].dtype.is_floating():
            raise TypeError("functions of libdevice need a tensor of floating-point numbers")
        scalar = tensors[0].dtype
        wide = [x.to(tl.float64).handle.data if isinstance(x, tl.tensor) else _value(x)
                for x in given]  # fmt: skip
        with np.errstate(all="ignore"):
            data = np.asarray(call(*wide))
        if data.dtype == np.bool_:
            return _tensor(data, tl.int1).reshape(tensors[0].shape)
        if not tensors[0].shape:
            data = data.reshape(())
        narrow = _tensor(data.astype(np.float32), tl.float32)
        return _tensor(data, tl.float64) if scalar == tl.float64 else narrow.to(scalar)

    return function


def _round(x: Any) -> Any:
    """Halves away from zero."""
    return np.trunc(x) + np.trunc(2 * (x - np.trunc(x)))


def _erf(x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x)


MATHS = {
    **{name: getattr(np, name) for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10",
        "log1p", "sqrt", "ceil", "floor", "trunc", "rint", "isnan", "isinf", "fmod", "hypot",
        "copysign", "fmax", "fmin", "nextafter", "cbrt", "signbit",
    )},
    **{f"a{name}": getattr(np, f"arc{name}") for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2"
    )},
    "nearbyint": np.rint, "round": _round, "fabs": np.abs, "abs": np.abs, "pow": np.power,
    "isfinited": np.isfinite, "finitef": np.isfinite, "erf": _erf,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.where(x < 0, 0.0, x), "div_rn": np.divide, "fdiv": np.divide,
    "sqrt_rn": np.sqrt, "fma": lambda x, y, z: x * y + z, "exp10": lambda x: np.power(10.0, x),
    "ldexp": lambda x, n: x * np.exp2(n), "scalbn": lambda x, n: x * np.exp2(n),
}  # fmt: skip
