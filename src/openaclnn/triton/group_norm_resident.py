# SPDX-License-Identifier: Apache-2.0
"""Large groups in one launch that reads the tensors once: a program keeps its part of a group in
registers between the sums and the result.

An item is a tile of a group. Program k of a cooperative launch, whose programs all run at once,
takes items k, k + programs, …; the items of a group follow one another. Each stores the sums of
its channels, signals, waits until all items of its group have done so, and computes the result.

No program waits for ever. Let i be the smallest item that is not summed. If its program waits, it
does so at an item j <= i - programs. A group has at most so many items, so that of j ends before i,
and all of it is summed. Counters only say that sums are stored: what is added up, and in which
order, does not depend on them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .group_norm_arithmetic import (
    LOG2E,
    dims,
    group_gradients,
    group_moments,
    item_of,
    reciprocal_deviation,
    swish_gradient,
)
from .group_norm_forward import SIZES, normalised
from .group_norm_gradient import finish_item


@triton.jit
def signal(counter):
    tl.debug_barrier()  # all threads of the program have stored
    tl.atomic_add(counter, 1, sem="release")


@triton.jit
def wait(counter, count):
    while tl.atomic_add(counter, 0, sem="acquire") < count:
        pass
    tl.debug_barrier()


@triton.jit
def begin(sample, first, split, C, P, BP: tl.constexpr):
    """Offset of an item; those in it are below 2^31, since groups have no more items than there are
    programs."""
    return (sample.to(tl.int64) * C + first) * P + split * BP


@triton.jit
def offsets(rows, positions, P):
    return rows[:, None] * P + positions[None, :]


@triton.jit
def fetch(x, item, items, G, D, C, P, S, RB, BR: tl.constexpr, BP: tl.constexpr):
    """Brings an item to the L2 cache, line by line, while the program waits."""
    LINE: tl.constexpr = 1024 // x.dtype.element_ty.primitive_bitwidth
    LINES: tl.constexpr = (BP + LINE - 1) // LINE
    sample, first, end, split = item_of(item, G, D, C, S, RB, BR, False)
    rows, steps = tl.arange(0, BR), tl.arange(0, LINES) * LINE
    inside = (first + rows < end)[:, None] & (split * BP + steps < P)[None, :] & (item < items)
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }",
        "=r,l,r",
        [x + begin(sample, first, split, C, P, BP) + offsets(rows, steps, P), inside.to(tl.int32)],
        dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit(do_not_specialize=[*SIZES, "programs"])
def resident_forward(
    x, gamma, beta, y, mean, rstd, parts, counters, items, programs, G, D, C, P, S, RB, STEP,
    ALIGN: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr, SWISH: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr, FAST: tl.constexpr, FETCH: tl.constexpr,
):  # fmt: skip
    """counters: the items of each group that are summed; zeros at first."""
    C, P = dims(C, P, STEP, ALIGN, False)
    for item in range(tl.program_id(0), items, programs):
        sample, first, end, split = item_of(item, G, D, C, S, RB, BR, False)
        group = item // (RB * S)
        channels = first + tl.arange(0, BR)
        known = channels < end
        positions = split * BP + tl.arange(0, BP)
        inside = known[:, None] & (positions < P)[None, :]
        start = begin(sample, first, split, C, P, BP)
        at = offsets(tl.arange(0, BR), tl.arange(0, BP), P)
        value = tl.load(x + start + at, mask=inside, other=0.0).to(ACC)
        n = tl.minimum(P - split * BP, BP).to(tl.float64)
        average = tl.sum(value.to(SUM), 1).to(tl.float64) / n
        pivot = average.to(ACC)
        pivot = tl.where(tl.abs(pivot) < float("inf"), pivot, 0.0)
        away = tl.where(inside, value - pivot[:, None], 0.0)
        about = pivot.to(tl.float64)
        if SUM == ACC:  # sums of x - pivot do not cancel
            average = about + tl.sum(away, 1).to(tl.float64) / n
        shift = average - about
        rest = tl.sum(away * away, 1).to(tl.float64) - n * shift * shift
        pair = parts + ((sample.to(tl.int64) * C + channels) * S + split) * 2
        tl.store(pair, average, mask=known)
        tl.store(pair + 1, tl.where(rest < 0, 0.0, rest), mask=known)
        signal(counters + group)
        if FETCH:
            fetch(x, item + programs, items, G, D, C, P, S, RB, BR, BP)
        wait(counters + group, RB * S)
        whole_mean, _, variance = group_moments(parts, group, D, S, BP, P, BK, ONCE)
        deviation = reciprocal_deviation(variance, EPS, ACC)
        high = whole_mean.to(ACC)
        if item % (RB * S) == 0:
            tl.store(mean + group, high)
            tl.store(rstd + group, deviation.to(ACC))
        low = (whole_mean - high.to(tl.float64)).to(ACC)
        weight = tl.load(gamma + channels, mask=known, other=0.0).to(tl.float64)
        slope = (deviation * weight).to(ACC)[:, None]
        bias = tl.load(beta + channels, mask=known, other=0.0).to(ACC)[:, None]
        result = normalised(value, high, low, slope, bias, SCALE, SWISH, FAST)
        tl.store(y + start + at, result, mask=inside)


@triton.jit(do_not_specialize=[*SIZES, "N", "programs", "finishing"])
def resident_gradient(
    dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, counters,
    items, programs, finishing, groups, N, G, D, C, P, S, RB, STEP,
    ALIGN: tl.constexpr, SCALE: tl.constexpr, GAMMA: tl.constexpr, BETA: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr, FETCH: tl.constexpr,
):  # fmt: skip
    """The last counter is of the programs that have no item left; then dgamma and dbeta follow, in
    `finishing` parts."""
    C, P = dims(C, P, STEP, ALIGN, False)
    FACTOR: tl.constexpr = -SCALE * LOG2E
    for item in range(tl.program_id(0), items, programs):
        sample, first, end, split = item_of(item, G, D, C, S, RB, BR, False)
        group = item // (RB * S)
        channels = first + tl.arange(0, BR)
        known = channels < end
        about = tl.load(mean + group).to(ACC)
        deviation = tl.load(rstd + group).to(ACC)
        slope = deviation * tl.load(gamma + channels, mask=known, other=0.0).to(ACC)
        shift = tl.load(beta + channels, mask=known, other=0.0).to(ACC) * FACTOR
        positions = split * BP + tl.arange(0, BP)
        inside = known[:, None] & (positions < P)[None, :]
        start = begin(sample, first, split, C, P, BP)
        at = offsets(tl.arange(0, BR), tl.arange(0, BP), P)
        value = tl.load(x + start + at, mask=inside, other=0.0).to(ACC)
        incoming = tl.load(dy + start + at, mask=inside, other=0.0).to(ACC)
        away = tl.where(inside, value - about, 0.0)
        u = swish_gradient(incoming, away * (slope * FACTOR)[:, None] + shift[:, None], FAST)
        u = tl.where(inside, u, 0.0)
        pair = parts + ((sample.to(tl.int64) * C + channels) * S + split) * 2
        tl.store(pair, tl.sum(u, 1), mask=known)
        tl.store(pair + 1, tl.sum(u * away, 1) * deviation, mask=known)
        signal(counters + group)
        if FETCH:
            fetch(x, item + programs, items, G, D, C, P, S, RB, BR, BP)
            fetch(dy, item + programs, items, G, D, C, P, S, RB, BR, BP)
        wait(counters + group, RB * S)
        n = tl.cast(D, ACC) * P
        c1, c2 = group_gradients(parts, gamma, group, G, D, S, n, BK, ACC)
        c1 = c1 * deviation
        c2 = c2 * deviation * deviation
        tl.store(dx + start + at, u * slope[:, None] - (away * c2 + c1), mask=inside)
    if GAMMA or BETA:
        signal(counters + groups)
        for block in range(tl.program_id(0), finishing, programs):
            wait(counters + groups, programs)
            finish_item(block, parts, dgamma, dbeta, N, C, S, GAMMA, BETA, BC, BN, ACC)
