# SPDX-License-Identifier: Apache-2.0
"""Which product the library imitates and how it runs: product, threads, kernels."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from . import _core
from .rows.schema import Product
from .rows.table import ANY, PRODUCTS


def products() -> tuple[Product, ...]:
    """The products that the library can imitate; `set_product` takes their keys, and "any"."""
    return PRODUCTS


def set_product(key: str | None) -> None:
    """Plays another product from now on, which decides what operators and dtypes are accepted.

    The default is A2, or OPENACLNN_PRODUCT. None or "any" stands for no product: every operator
    with every dtype that the library computes, DOUBLE among them.
    """
    if key is None:
        key = ANY.key
    if not isinstance(key, str):
        known = ", ".join(p.key for p in (*PRODUCTS, ANY))
        raise TypeError(f"set_product: product must be a string ({known}), but got {key!r}")
    _core.set_product(key)


def is_unrestricted() -> bool:
    """Whether no product restricts what is accepted."""
    return bool(_core.product() == ANY.key)


def set_num_threads(count: int) -> None:
    """Threads an operator may use; by default OPENACLNN_NUM_THREADS or the CPUs of the process."""
    try:
        threads = operator.index(count)
    except TypeError:
        raise TypeError(f"set_num_threads: count must be an integer, but got {count!r}") from None
    if threads < 1:
        raise ValueError(f"set_num_threads: count must be at least 1, but got {threads}")
    _core.set_num_threads(min(threads, 2**31 - 1))  # the core has its own lower limit


def home() -> Path:
    """The installation directory laid out like CANN's: include/, lib64/, set_env.sh."""
    file = _core.__file__
    assert file is not None
    return Path(file).resolve().parent / "home"


def config() -> dict[str, Any]:
    """The choices in force.

    version, product, kernels (v2, v3, v4 or native), threads, torch_threads (how many torch gives
    to an operator that this thread calls; 0: the library's own threads), streaming_bytes, devices,
    device_memory (in bytes), compiler and home.
    """
    return {**_core.config(), "home": str(home())}
