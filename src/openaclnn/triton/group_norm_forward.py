# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish: kernels. With h = (x - mean) rstd and v = h γ + β, y = v σ(s v), or v.

Small groups: `whole`, which keeps x in registers. Others: `sums` stores mean and squared deviations
of each channel and split, by one writer each; `combine` joins those of a group in a fixed order,
unless `apply` does so itself; `apply` reads x once more. SUM is the dtype in which x is added up:
of fp32, fp64, so that elements near the mean keep their digits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .group_norm_arithmetic import (
    LOG2E,
    await_last,
    dims,
    group_moments,
    group_offsets,
    item_of,
    let_next_start,
    reciprocal_deviation,
    swish,
    tile,
)

SIZES = ["G", "D", "C", "P", "S", "SPAN", "TILES", "RB", "STEP", "items", "groups"]


@triton.jit
def normalised(
    x, high, low, slope, bias, SCALE: tl.constexpr, SWISH: tl.constexpr, FAST: tl.constexpr
):
    """y of x, with the mean as high + low; slope: rstd γ."""
    away = (x - high) - low
    v = away * slope + bias
    if SWISH:
        FACTOR: tl.constexpr = -SCALE * LOG2E
        return swish(v, away * (slope * FACTOR) + bias * FACTOR, FAST)
    else:
        return v


@triton.jit(do_not_specialize=SIZES)
def whole(
    x, gamma, beta, y, mean, rstd, groups, G, D, P, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr,
    SWISH: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, BP: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Groups that fit into registers: BG of them in a program."""
    D, P = dims(D, P, STEP, ALIGN, LAST)
    group = tl.program_id(0) * BG + tl.arange(0, BG)
    d, p = tl.arange(0, BD), tl.arange(0, BP)
    channels = (group % G)[:, None] * D + d[None, :]
    known = (group < groups)[:, None] & (d < D)[None, :]
    inside = known[:, :, None] & (p < P)[None, None, :]
    at = group_offsets(group, d, p, G, D, P, LAST)
    value = tl.load(x + at, mask=inside, other=0.0).to(ACC)
    n = tl.cast(D, ACC) * P
    about = tl.sum(tl.sum(value.to(SUM), 2), 1) / n
    high = about.to(ACC)
    if value.dtype == SUM:
        known_mean = tl.where(tl.abs(high) < float("inf"), high, 0.0)[:, None, None]
        low = tl.sum(tl.sum(tl.where(inside, value - known_mean, 0.0), 2), 1) / n
    else:
        low = (about - high.to(SUM)).to(ACC)
    # An infinite mean stays in one part, so that inf - inf does not hide its sign.
    high = tl.where(tl.abs(high) < float("inf"), high, 0.0)
    low = tl.where(tl.abs(about) < float("inf"), low, about.to(ACC))
    away = tl.where(inside, (value - high[:, None, None]) - low[:, None, None], 0.0)
    variance = tl.sum(tl.sum(away * away, 2), 1) / n
    deviation = reciprocal_deviation(variance.to(tl.float64), EPS, ACC)
    weight = tl.load(gamma + channels, mask=known, other=0.0).to(tl.float64)
    slope = (deviation[:, None] * weight).to(ACC)
    bias = tl.load(beta + channels, mask=known, other=0.0).to(ACC)
    result = normalised(
        value, high[:, None, None], low[:, None, None], slope[:, :, None], bias[:, :, None],
        SCALE, SWISH, FAST,
    )  # fmt: skip
    tl.store(y + at, result, mask=inside)
    tl.store(mean + group, high + low, mask=group < groups)
    tl.store(rstd + group, deviation.to(ACC), mask=group < groups)


@triton.jit
def sum_item(
    item, x, parts, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    C, P = dims(C, P, STEP, ALIGN, LAST)
    SPAN = TILES * BP
    sample, first, end, split = item_of(item, G, D, C, S, RB, BR, LAST)
    channels = first + tl.arange(0, BR)
    known = channels < end
    start = split * SPAN
    stop = tl.minimum(start + SPAN, P)
    at, inside = tile(sample, channels, known, start, stop, C, P, LAST, BP)
    value = tl.load(x + at, mask=inside, other=0.0).to(ACC)
    at, following = tile(sample, channels, known, start + BP, stop, C, P, LAST, BP)
    loaded = tl.load(x + at, mask=following, other=0.0)  # early
    # The mean of the first tile is the pivot of all squares, which then hardly cancel.
    sums = tl.sum(value.to(SUM), 1)
    pivot = (sums / tl.minimum(stop - start, BP).to(SUM)).to(ACC)
    pivot = tl.where(tl.abs(pivot) < float("inf"), pivot, 0.0)
    away = tl.where(inside, value - pivot[:, None], 0.0)
    if SUM == ACC:  # sums of x - pivot do not cancel
        total = away
    squares = away * away
    for begin in range(start + BP, stop, BP):
        value = loaded.to(ACC)
        away = tl.where(following, value - pivot[:, None], 0.0)
        at, following = tile(sample, channels, known, begin + BP, stop, C, P, LAST, BP)
        loaded = tl.load(x + at, mask=following, other=0.0)
        if SUM == ACC:
            total += away
        else:
            sums += tl.sum(value.to(SUM), 1)
        squares += away * away
    n = (stop - start).to(tl.float64)
    about = pivot.to(tl.float64)
    mean = about + tl.sum(total, 1).to(tl.float64) / n if SUM == ACC else sums / n
    shift = mean - about
    rest = tl.sum(squares, 1).to(tl.float64) - n * shift * shift
    rest = tl.where(rest < 0, 0.0, rest)
    pair = parts + ((sample.to(tl.int64) * C + channels) * S + split) * 2
    tl.store(pair, mean, mask=known)
    tl.store(pair + 1, rest, mask=known)


@triton.jit(do_not_specialize=SIZES)
def sums(
    x, parts, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    let_next_start(PDL)
    sum_item(
        tl.program_id(0), x, parts, G, D, C, P, S, TILES, RB, STEP, ALIGN, LAST, BR, BP, ACC, SUM
    )  # fmt: skip


@triton.jit(do_not_specialize=SIZES)
def combine(
    parts, statistics, mean, rstd, groups, D, P, S, SPAN,
    EPS: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """A program for each group; statistics: mean and rstd in fp64."""
    group = tl.program_id(0)
    about, _, variance = group_moments(parts, group, D, S, SPAN, P, BK, ONCE)
    deviation = reciprocal_deviation(variance, EPS, ACC)
    tl.store(statistics + group, about)
    tl.store(statistics + groups + group, deviation)
    tl.store(mean + group, about.to(ACC))
    tl.store(rstd + group, deviation.to(ACC))


@triton.jit
def apply_item(
    item, x, gamma, beta, y, mean, rstd, parts, statistics, groups, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr,
    SWISH: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    C, P = dims(C, P, STEP, ALIGN, LAST)
    SPAN = TILES * BP
    sample, first, end, split = item_of(item, G, D, C, S, RB, BR, LAST)
    channels = first + tl.arange(0, BR)
    known = channels < end
    start = split * SPAN
    stop = tl.minimum(start + SPAN, P)
    at, inside = tile(sample, channels, known, start, stop, C, P, LAST, BP)
    loaded = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
    await_last(PDL)
    if LAST:
        group = sample * G + channels // D
        about = tl.load(statistics + group, mask=known, other=0.0)
        deviation = tl.load(statistics + groups + group, mask=known, other=0.0)
    else:  # all of one group
        group = item // (RB * S)
        about, lacks, variance = group_moments(parts, group, D, S, SPAN, P, BK, ONCE)
        deviation = reciprocal_deviation(variance, EPS, ACC)
        if item % (RB * S) == 0:
            tl.store(mean + group, about.to(ACC))
            tl.store(rstd + group, deviation.to(ACC))
    weight = tl.load(gamma + channels, mask=known, other=0.0).to(tl.float64)
    slope = (deviation * weight).to(ACC)[:, None]
    bias = tl.load(beta + channels, mask=known, other=0.0).to(ACC)[:, None]
    high = about.to(ACC)
    low = (about - high.to(tl.float64)).to(ACC)
    if high.dtype == tl.float64 and not LAST:
        low = tl.where(tl.abs(lacks) < float("inf"), lacks, low)
    if LAST:
        high, low = high[:, None], low[:, None]
    for begin in range(start, stop, BP):
        value, to, known_here = loaded.to(ACC), y + at, inside
        at, inside = tile(sample, channels, known, begin + BP, stop, C, P, LAST, BP)
        loaded = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        result = normalised(value, high, low, slope, bias, SCALE, SWISH, FAST)
        tl.store(to, result, mask=known_here)


@triton.jit(do_not_specialize=SIZES)
def apply(
    x, gamma, beta, y, mean, rstd, parts, statistics, items, groups, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr,
    SWISH: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """In the reverse order of `sums`: what it read last is in the cache."""
    apply_item(
        items - 1 - tl.program_id(0), x, gamma, beta, y, mean, rstd, parts, statistics, groups,
        G, D, C, P, S, TILES, RB, STEP, ALIGN, LAST, EPS, SCALE, SWISH, BR, BP, BK, ONCE, ACC, FAST,
        PDL,
    )  # fmt: skip
