# SPDX-License-Identifier: Apache-2.0
"""The same values elsewhere in memory. Tests and `openaclnn verify` put tensors there.

Each gives a view of its own memory, which begins where the root of the view does; what lies
between the elements is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array


def _contiguous(x: Array) -> Array:
    return x.copy()


def _transposed(x: Array) -> Array:
    return x.T.copy().T


def _swapped(x: Array) -> Array:
    return x.swapaxes(0, -1).copy().swapaxes(0, -1) if x.ndim else x.copy()


def _channels_last(x: Array) -> Array:
    """(N, H, W, C) in memory; the same as contiguous below three dimensions."""
    return np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1) if x.ndim > 2 else x.copy()


def _strided(x: Array) -> Array:
    wide: Array = np.ones([2 * n + 1 for n in x.shape], x.dtype)
    odd: tuple[Any, ...] = (
        ...,
        *(slice(1, None, 2) for _ in x.shape),
    )  # ... keeps an array of rank 0 an array
    view: Array = wide[odd]
    view[...] = x
    return view


def _flipped(x: Array) -> Array:
    back: tuple[Any, ...] = (..., *(slice(None, None, -1) for _ in x.shape))
    flipped: Array = x[back].copy()[back]
    return flipped


def _offset(x: Array) -> Array:
    flat = np.ones(x.size + 3, x.dtype)
    flat[3:] = x.reshape(-1)
    return flat[3:].reshape(x.shape)


def _padded(x: Array) -> Array:
    if x.ndim == 0:
        return x.copy()
    wide = np.ones((*x.shape[:-1], x.shape[-1] + 5), x.dtype)
    wide[..., 2:-3] = x
    return wide[..., 2:-3]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "swapped": _swapped,
    "strided": _strided,
    "flipped": _flipped,
    "offset": _offset,
    "padded": _padded,
}
# The strides of aclTensor are not negative.
FORWARD_LAYOUTS = tuple(name for name in LAYOUTS if name != "flipped")

# Layouts of inputs in which all elements along a dim are one: what of an array is in memory.
EXPANDED: dict[str, Callable[[Array], Array]] = {
    "expanded": lambda x: x[..., :1],  # the last dim has stride 0
    "repeated": lambda x: x[:1],  # the first dim has
}


def along_a_dim(x: Array, layout: str) -> Array:
    """The array made of what it has in memory in such a layout; itself in another one."""
    if layout not in EXPANDED or x.ndim == 0:
        return x
    view: Array = np.broadcast_to(EXPANDED[layout](x).copy(), x.shape)
    view.flags.writeable = True  # torch warns of memory that is not
    return view


def _expanded(layout: str) -> Callable[[Array], Array]:
    return lambda x: along_a_dim(x, layout) if x.ndim else x.copy()


# What a case of `openaclnn verify` may have.
CASE_LAYOUTS = (
    {name: LAYOUTS[name] for name in FORWARD_LAYOUTS}
    | {"channels_last": _channels_last}
    | {name: _expanded(name) for name in EXPANDED}
)


def of_output(layout: str) -> Callable[[Array], Array]:
    """Elements of an output cannot be one."""
    return CASE_LAYOUTS["contiguous" if layout in EXPANDED else layout]


def root(x: Array) -> Array:
    """The array whose memory a view is in."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def place(x: Array) -> tuple[int, tuple[int, ...]]:
    """Offset in the root and strides of a view, in elements."""
    size = x.dtype.itemsize
    offset = (x.ctypes.data - root(x).ctypes.data) // size
    return offset, tuple(s // size for s in x.strides)
