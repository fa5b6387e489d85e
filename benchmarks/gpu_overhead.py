# SPDX-License-Identifier: Apache-2.0
"""What a call on CUDA tensors keeps the host, without a GPU: kernels are compiled for one, launches
are stubbed, and tensors of the CPU stand in for those of CUDA.

    pip install --no-deps triton==3.9.0
    python benchmarks/gpu_overhead.py [--repeats 400]

It counts the launches of each call, too. A real launch and the allocator of CUDA cost more; so does
autograd, which is left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia

import openaclnn.torch  # noqa: F401
from openaclnn.rows.table import OPS
from openaclnn.torch import cuda
from openaclnn.triton import group_norm

SHAPES = ((2, 64, 16, 16), (2, 320, 32, 32), (2, 320, 64, 64))
GROUPS = 32


class Utilities:
    """Of the driver: launches are counted."""

    launches = 0

    def launch(self, *arguments: Any) -> None:
        self.launches += 1

    def load_binary(self, *arguments: Any) -> tuple[Any, ...]:
        return 1, 1, 32, 0, 1024  # module, function, registers, spills, threads

    def unload_module(self, module: Any) -> None: ...

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232448}

    def build_signature_metadata(self, signature: Any) -> bytes:
        return b""


class Driver:
    launcher_cls = nvidia.CudaLauncher

    def __init__(self) -> None:
        self.utils = Utilities()

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_device_capability(self, device: int) -> tuple[int, int]:
        return 9, 0


def stand_in() -> Any:
    """The kernels for CUDA tensors take those of the CPU."""
    library = torch.library.Library("openaclnn", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of each kernel that is replaced
        for op in OPS:
            library.impl(op.python, cuda.kernel(op), "CPU")
    return library


def calls(shape: tuple[int, ...], dtype: torch.dtype, layout: Any) -> dict[str, Callable[[], Any]]:
    x, dy = (torch.randn(shape).to(dtype).to(memory_format=layout) for _ in range(2))
    gamma, beta = (torch.randn(shape[1]) for _ in range(2))
    ops = torch.ops.openaclnn
    _, mean, rstd = ops.group_norm_swish(x, gamma, beta, GROUPS, None, 1e-5, True, 1.0)

    forward, backward = ops.group_norm_swish.default, ops.group_norm_swish_grad.default
    return {
        "forward": lambda: forward(x, gamma, beta, GROUPS, None, 1e-5, True, 1.0),
        "gradient": lambda: backward(dy, mean, rstd, x, gamma, beta, GROUPS, None, 1.0, True, True),
        "elu": lambda: ops.elu.default(x),
    }


def timed(call: Callable[[], Any], repeats: int) -> float:
    """µs: the median of groups of ten calls."""
    found = []
    for _ in range(max(repeats // 10, 3)):
        begin = time.perf_counter()
        for _ in range(10):
            call()
        found.append((time.perf_counter() - begin) * 1e5)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    driver = Driver()
    triton.runtime.driver.set_active(driver)
    nvidia.PyKernelArg, nvidia.ARG_KERNEL = dict, 0  # of a module that only a GPU's driver loads
    group_norm._MULTIPROCESSORS, group_norm._GENERATION = 132, 9
    torch.set_num_threads(1)
    library, below_autograd = stand_in(), torch._C._AutoDispatchBelowAutograd()
    print("| shape | dtype | layout | call | µs | launches |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        for dtype in torch.float32, torch.bfloat16:
            for layout in torch.contiguous_format, torch.channels_last:
                for name, call in calls(shape, dtype, layout).items():
                    call()
                    before = driver.utils.launches
                    call()
                    launches = driver.utils.launches - before
                    what = str(dtype)[6:], str(layout)[6:], name, f"{timed(call, repeats):.1f}"
                    size = "×".join(map(str, shape))
                    print(f"| {size} | {' | '.join(what)} | {launches} |", flush=True)
    del library, below_autograd


if __name__ == "__main__":
    main()
