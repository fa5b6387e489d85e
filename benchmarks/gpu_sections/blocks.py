# SPDX-License-Identifier: Apache-2.0
"""The element-wise rows with other blocks and warps than the chosen ones, timed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openaclnn.torch import cuda
from openaclnn.triton import elementwise

from .measuring import OPERANDS, ours, speed_of_copy, tensors, theirs
from .timing import cast, measured, sets_for

ROWS = (
    ("elu", "bf16"), ("elu", "fp16"), ("elu_backward", "bf16"), ("elu_backward", "fp16"),
    ("logit", "fp32"), ("logit", "bf16"), ("logit_grad", "bf16"), ("elu", "fp32"),
)  # fmt: skip
BLOCKS = tuple(itertools.product((1024, 2048, 4096), (4, 8)))  # elements and warps
SECONDS = 0.02  # of each time


@contextmanager
def divided(itemsize: int, block: tuple[int, int]) -> Iterator[None]:
    """With this block for elements of so many bytes."""
    chosen = elementwise.BLOCKS[itemsize]
    elementwise.BLOCKS[itemsize] = block
    cuda.forget()
    try:
        yield
    finally:
        elementwise.BLOCKS[itemsize] = chosen
        cuda.forget()


def blocks(run: Any) -> None:
    speed = speed_of_copy(run)
    sizes = (1 << 10,) if run.dry else (64 << 20, 1 << 20)
    for size, (name, dtype) in itertools.product(sizes, ROWS):
        itemsize = cast(dtype).itemsize
        traffic = OPERANDS[name] * size * itemsize
        count = sets_for(traffic, run.dry)
        sets = [tensors(size, cast(dtype), run.device) for _ in range(count)]
        graph = size < 64 << 20
        peer = measured([theirs(name, t) for t in sets], run.device, SECONDS, graph)
        found = {}
        for block, warps in BLOCKS:
            labels = {"op": name, "dtype": dtype, "elements": size, "block": block, "warps": warps}
            with run.attempt(**labels), divided(itemsize, (block, warps)):
                times = measured([ours(name, t, run.device) for t in sets], run.device, SECONDS,
                                 graph)  # fmt: skip
                best = times["graph"] or times["us"] or 1.0
                ratio = (peer["graph"] or peer["us"] or 0.0) / best
                share = traffic / (best * 1e-6) / speed
                run.record(**labels, ours=times, torch=peer, share=share, ratio=ratio)
                found[f"{block}/{warps}"] = f"{share:.0%} {ratio:.2f}x"
        run.say(f"{name} {dtype} {size}: {found}")
        del sets
        if run.out_of_time():
            run.say("out of time")
            break
