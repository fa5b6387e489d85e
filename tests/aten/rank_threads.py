# SPDX-License-Identifier: Apache-2.0
"""Two ranks of a communicator as threads of this process, for operators that communicate. Each has
its own name of the communicator, by which the operators find the rank.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from tests.aten.aten_samples import ROWS
from tests.aten.quantised_support import PackedLibrary

RANKS = 2


class Rank:
    def __init__(self, rank: int, root: bytes) -> None:
        self.rank, self.group = rank, f"rank {rank} of the tests"
        self.library = PackedLibrary()
        config = ctypes.create_string_buffer(4096)
        ctypes.c_size_t.from_buffer(config).value = len(config)
        config[32 : 32 + len(self.group)] = self.group.encode()
        comm = ctypes.c_void_p()
        join = self.library.base.HcclCommInitRootInfoConfig
        assert join(RANKS, root, rank, config, ctypes.byref(comm)) == 0
        self.comm = comm

    def call(self, name: str, *values: Any) -> list[Any]:
        """As quantised_support.call; "group" is the name of the communicator."""
        given = [self.group if isinstance(v, str) and v == "group" else v for v in values]
        return self.library(ROWS[name], given)

    def destroy(self) -> None:
        assert self.library.base.HcclCommDestroy(self.comm) == 0


def start() -> tuple[list[ThreadPoolExecutor], list[Rank]]:
    root = ctypes.create_string_buffer(4108)
    assert PackedLibrary().base.HcclGetRootInfo(root) == 0
    threads = [ThreadPoolExecutor(1) for _ in range(RANKS)]
    joined = [t.submit(Rank, i, root.raw) for i, t in enumerate(threads)]
    return threads, [future.result(60) for future in joined]


started = cache(start)


def on_ranks(function: Callable[[Rank], Any]) -> list[Any]:
    """What the function returns on each rank; the first exception is raised."""
    threads, ranks = started()
    futures = [t.submit(function, rank) for t, rank in zip(threads, ranks, strict=True)]
    return [future.result(60) for future in futures]
