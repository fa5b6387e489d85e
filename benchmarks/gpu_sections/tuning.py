# SPDX-License-Identifier: Apache-2.0
"""Other divisions of group norm than the chosen one, timed; groups kept in registers."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import torch

from .blocks import BLOCKS, ROWS, divided
from .calling import tune
from .measuring import OPERANDS, ours, speed_of_copy, tensors
from .norms import SHAPES, Case
from .timing import cast, measured, sync

TWO_SWEEPS = {"resident": 0}
CHANGES: dict[str, dict[str, Any]] = {
    "block 4096": {"block": 4096},
    "last: block 2048": {"block_last": 2048},
    "block 8192": {"block": 8192, "block_last": 8192},
    "64 registers": {"registers": 64},
    "half the warps": {"elements_a_warp": 1024, "elements_a_warp_last": 2048},
    "twice the warps": {"elements_a_warp": 256, "elements_a_warp_last": 512},
    "1 tile": {"tiles": 1, "programs_last": 16},
    "16 tiles": {"tiles": 16, "programs": 2, "programs_last": 2},
    "64 channels": {"channels_last": 64},
    "sweeps": {"whole_forward": 0, "whole_gradient": 0},
    "whole": {"whole_forward": 65536, "whole_gradient": 65536, "whole_row_bytes": 0},
}
VARIANTS = {"chosen": {}} | {name: TWO_SWEEPS | changes for name, changes in CHANGES.items()}
RESIDENT: dict[str, dict[str, Any]] = {
    "chosen": {}, "two launches": TWO_SWEEPS,
    "one after the other": TWO_SWEEPS | {"dependent": False},
} | {
    f"{elements} elements, {threads} threads{'' if fetch else ', no fetch'}": {
        "resident": elements, "resident_bytes": 0, "resident_threads": threads,
        "resident_fetch": fetch,
    }
    for elements, threads, fetch in (
        (4096, 512, True), (8192, 768, True), (4096, 512, False), (4096, 768, True),
    )
}  # fmt: skip


def timed(
    run: Any, case: Case, labels: dict[str, Any], kind: str, variants: Any, seconds: float = 0.06
) -> None:
    speed = speed_of_copy(run)
    least = (2 if kind == "forward" else 3) * case.size
    for name, changes in variants.items():
        with run.attempt(**labels, kind=kind, variant=name):
            tune(**changes)
            calls = calls_of(case, kind)
            found = measured(calls, run.device, seconds)
            best = min(v for v in (found["graph"], found["us"]) if v)
            share = least / (best * 1e-6) / speed
            run.record(**labels, kind=kind, variant=name, **found, share=share)
            run.say(f"{kind} {labels} {name}: {best:.1f} us, {share:.0%}")
        if run.out_of_time():
            break
    tune()


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
    large = () if run.dry else SHAPES
    work: list[tuple[Any, str, str, str]] = [
        (shape, "nchw", dtype, name)
        for shape, dtype, name in itertools.product(large, ("bf16", "fp32"), RESIDENT)
    ]
    work += [(shape, "channels_last", dtype, "chosen")
             for shape in large for dtype in ("bf16", "fp32")]  # fmt: skip
    work += [(*place, name) for place in places(run.dry) for name in VARIANTS]
    known = RESIDENT | VARIANTS
    for shape, layout, dtype, name in work[run.shard :: run.shards]:
        with run.attempt(shape=shape, layout=layout, dtype=dtype, variant=name):
            tune(**known[name])
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


def different_runs(run: Any, case: Case, kind: str) -> int:
    """How many of 30 runs differ from the first."""
    call, words = calls_of(case, kind)[0], torch.int16
    first = [y.clone() for y in call()]
    return sum(
        any((a.view(words) != b.view(words)).any() for a, b in zip(call(), first, strict=True))
        for _ in range(2 if run.dry else 30)
    )


def far(run: Any, case: Case, kind: str) -> list[float]:
    """The largest difference from two launches of each result, of its largest value."""
    found = [y.float() for y in calls_of(case, kind)[0]()]
    tune(**TWO_SWEEPS)
    expected = [y.float() for y in calls_of(case, kind)[0]()]
    pairs = zip(found, expected, strict=True)
    return [float((a - b).abs().max() / b.abs().max()) for a, b in pairs]


def resident(run: Any) -> None:
    """One launch that keeps groups in registers: the same bits in every run, the results of two
    launches, and how fast. Programs wait for others; if one hangs, the process of this section is
    ended."""
    shapes = (
        ((1, 32, 4, 4),) if run.dry else (SHAPES[0], SHAPES[1], SHAPES[4], SHAPES[3], SHAPES[2])
    )
    for shape, dtype in itertools.product(shapes, ("fp32", "bf16")):
        labels = {"shape": shape, "dtype": dtype, "layout": "nchw"}
        case = Case(shape, dtype, "nchw", run.device, run.dry)
        for kind in ("gradient", "forward"):
            with run.attempt(**labels, what="bits"):
                tune()
                different, away = different_runs(run, case, kind), far(run, case, kind)
                run.record(**labels, kind=kind, runs=30, different=different, away=away)
                run.say(f"{kind} {labels}: {different} of 30 runs differ; from two launches {away}")
            timed(run, case, labels, kind, RESIDENT, 0.03)
        del case
        gc.collect()
        if run.out_of_time():
            run.say("out of time")
            break
