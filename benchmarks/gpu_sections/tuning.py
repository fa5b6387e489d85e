# SPDX-License-Identifier: Apache-2.0
"""Other divisions of group norm than the chosen one, timed; the launch in order."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import torch

from openaclnn.triton import group_norm as kernels

from .blocks import BLOCKS, ROWS, divided
from .measuring import OPERANDS, SHAPES, Case, ours, speed_of_copy, tensors
from .timing import cast, measured, sync

VARIANTS: dict[str, dict[str, Any]] = {
    "chosen": {},
    "block 2048": {"block": 2048, "block_last": 2048},
    "block 8192": {"block": 8192, "block_last": 8192},
    "64 registers": {"registers": 64},
    "half the warps": {"elements_a_warp": 1024, "elements_a_warp_last": 2048},
    "twice the warps": {"elements_a_warp": 256, "elements_a_warp_last": 512},
    "1 tile": {"tiles": 1, "programs_last": 16},
    "16 tiles": {"tiles": 16, "programs": 4, "programs_last": 2},
    "64 channels": {"channels_last": 64},
    "sweeps": {"whole_forward": 0, "whole_gradient": 0},
    "whole": {"whole_forward": 65536, "whole_gradient": 65536, "whole_row_bytes": 0},
}
ORDERED = {
    f"ordered {mib} MiB, {tiles} tiles": {
        "ordered_from": 0, "ordered_bytes": mib << 20, "tiles": tiles,
    }
    for mib, tiles in ((8, 4), (4, 4), (16, 4), (8, 1), (4, 1), (8, 8))
} | {"ordered 8 MiB, 64 registers": {"ordered_from": 0, "registers": 64}
}  # fmt: skip


def timed(run: Any, case: Case, labels: dict[str, Any], kind: str, variants: Any) -> None:
    speed = speed_of_copy(run)
    least = (2 if kind == "forward" else 3) * case.size
    for name, changes in variants.items():
        with run.attempt(**labels, kind=kind, variant=name):
            kernels.tuning = kernels.Tuning(**changes)
            calls = calls_of(case, kind)
            found = measured(calls, run.device, 0.06)
            best = min(v for v in (found["graph"], found["us"]) if v)
            share = least / (best * 1e-6) / speed
            run.record(**labels, kind=kind, variant=name, **found, share=share)
            run.say(f"{kind} {labels} {name}: {best:.1f} us, {share:.0%}")
        if run.out_of_time():
            break
    kernels.tuning = kernels.Tuning()


def places(dry: bool) -> Any:
    shapes = ((1, 32, 4, 4),) if dry else (SHAPES[2], SHAPES[0], SHAPES[3], SHAPES[1])
    return itertools.product(shapes, ("nchw", "channels_last"), ("bf16", "fp32"))


def variants(run: Any) -> None:
    for shape, layout, dtype in places(run.dry):
        labels = {"shape": shape, "dtype": dtype, "layout": layout}
        case = Case(shape, dtype, layout, run.device, run.dry)
        for kind in ("gradient", "forward"):
            timed(run, case, labels, kind, VARIANTS)
        del case
        gc.collect()
        sync(run.device)
        if run.out_of_time():
            run.say("out of time")
            break


def warm(run: Any) -> None:
    """Compiles what the sections of times call, into Triton's cache on disk."""
    work = [(*place, name) for place in places(run.dry) for name in VARIANTS]
    work += [(shape, layout, dtype, "chosen")
             for shape in (() if run.dry else SHAPES)
             for layout in ("nchw", "channels_last") for dtype in ("bf16", "fp32")]  # fmt: skip
    for shape, layout, dtype, name in work[run.shard :: run.shards]:
        with run.attempt(shape=shape, layout=layout, dtype=dtype, variant=name):
            kernels.tuning = kernels.Tuning(**VARIANTS[name])
            case = Case(shape, dtype, layout, run.device, dry=True)
            case.gradient()[0]()
        if run.out_of_time():
            break
    rows = list(itertools.product(OPERANDS, ("fp32", "bf16", "fp16")))
    for name, dtype in rows[run.shard :: run.shards]:
        with run.attempt(op=name, dtype=dtype):
            ours(name, tensors(1 << 10, cast(dtype), run.device), run.device)()
    for block in list(BLOCKS)[run.shard :: run.shards]:
        for name, dtype in ROWS:
            labels = {"op": name, "dtype": dtype, "block": block}
            with run.attempt(**labels), divided(cast(dtype).itemsize, block):
                ours(name, tensors(1 << 13, cast(dtype), run.device), run.device)()
    run.say(f"{len(work[run.shard :: run.shards])} compiled")


def calls_of(case: Case, kind: str) -> Any:
    return case.forward() if kind == "forward" else case.gradient()


def ordered(run: Any) -> None:
    """Both sweeps in one launch: right, the same bits in every run, and how fast. Programs wait for
    others; if one hangs, the process of this section is ended."""
    shapes = ((1, 32, 4, 4),) if run.dry else (SHAPES[2], SHAPES[3], SHAPES[4], SHAPES[0])
    sweeps = {"whole_forward": 0, "whole_gradient": 0}
    for shape, dtype in itertools.product(shapes, ("fp32", "bf16")):
        labels = {"shape": shape, "dtype": dtype, "layout": "nchw"}
        case = Case(shape, dtype, "nchw", run.device, run.dry)
        for kind in ("gradient", "forward"):
            with run.attempt(**labels, what="bits"):
                kernels.tuning = kernels.Tuning(**sweeps)
                expected = [y.clone() for y in calls_of(case, kind)[0]()]
                kernels.tuning = kernels.Tuning(**sweeps, ordered_from=0)
                call, different, words = calls_of(case, kind)[0], 0, torch.int16
                for _ in range(2 if run.dry else 30):
                    pairs = zip(call(), expected, strict=True)
                    different += any((a.view(words) != b.view(words)).any() for a, b in pairs)
                run.record(**labels, kind=kind, runs=30, different=different)
                run.say(f"{kind} {labels}: {different} of 30 runs differ from the two launches")
        for kind in ("gradient", "forward"):
            others = {name: {**changes, **sweeps} for name, changes in ORDERED.items()}
            timed(run, case, labels, kind, {"two launches": sweeps} | others)
        del case
        gc.collect()
        if run.out_of_time():
            run.say("out of time")
            break
