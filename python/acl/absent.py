# SPDX-License-Identifier: Apache-2.0
"""Functions of pyACL that a CPU cannot have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def absent(name: str, why: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError with this sentence."""

    def call(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"acl.{name}: {why}")

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"Not available: {why}."
    return call
