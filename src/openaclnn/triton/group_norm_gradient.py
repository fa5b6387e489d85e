# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwishGrad: kernels. With d = x - mean, x̂ = d rstd, t = s (x̂ γ + β) and
u = dy σ(t) (1 + t (1 - σ(t))), dx = rstd (γ u - c1 - x̂ c2).

Small groups: `whole`, which keeps dy and x in registers. Others: `sums` stores Σ u and Σ u x̂ of
each channel and split, by one writer each; c1 and c2 come from them in `combine`, or in `apply`
itself, which reads dy and x once more. dgamma and dbeta are sums of the same parts (`finish`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from .group_norm_arithmetic import (
    LOG2E,
    await_last,
    dims,
    group_gradients,
    group_offsets,
    item_of,
    let_next_start,
    swish_gradient,
    tile,
)
from .group_norm_forward import SIZES


@triton.jit(do_not_specialize=[*SIZES, "N"])
def whole(
    dy, mean, rstd, x, gamma, beta, dx, parts, groups, G, D, P, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr,
    BG: tl.constexpr, BD: tl.constexpr, BP: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Groups that fit into registers: BG of them in a program."""
    D, P = dims(D, P, STEP, ALIGN, LAST)
    group = tl.program_id(0) * BG + tl.arange(0, BG)
    d, p = tl.arange(0, BD), tl.arange(0, BP)
    channels = (group % G)[:, None] * D + d[None, :]
    known = (group < groups)[:, None] & (d < D)[None, :]
    inside = known[:, :, None] & (p < P)[None, None, :]
    sample = group // G
    at = group_offsets(group, d, p, G, D, P, LAST)
    about = tl.load(mean + group, mask=group < groups, other=0.0).to(ACC)
    deviation = tl.load(rstd + group, mask=group < groups, other=0.0).to(ACC)
    weight = tl.load(gamma + channels, mask=known, other=0.0).to(ACC)
    bias = tl.load(beta + channels, mask=known, other=0.0).to(ACC)
    value = tl.load(x + at, mask=inside, other=0.0).to(ACC)
    incoming = tl.load(dy + at, mask=inside, other=0.0).to(ACC)
    FACTOR: tl.constexpr = -SCALE * LOG2E
    slope = deviation[:, None] * weight
    away = tl.where(inside, value - about[:, None, None], 0.0)
    t = away * (slope * FACTOR)[:, :, None] + (bias * FACTOR)[:, :, None]
    u = tl.where(inside, swish_gradient(incoming, t, FAST), 0.0)
    channel_u = tl.sum(u, 2)
    channel_ux = tl.sum(u * away, 2) * deviation[:, None]
    pair = parts + (sample.to(tl.int64)[:, None] * (G * D) + channels) * 2
    tl.store(pair, channel_u, mask=known)
    tl.store(pair + 1, channel_ux, mask=known)
    n = tl.cast(D, ACC) * P
    c1 = tl.sum(weight * channel_u, 1) / n * deviation
    c2 = tl.sum(weight * channel_ux, 1) / n * deviation * deviation
    result = u * slope[:, :, None] - (away * c2[:, None, None] + c1[:, None, None])
    tl.store(dx + at, result, mask=inside)


@triton.jit
def sum_item(
    item, dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    C, P = dims(C, P, STEP, ALIGN, LAST)
    SPAN = TILES * BP
    sample, first, end, split = item_of(item, G, D, C, S, RB, BR, LAST)
    channels = first + tl.arange(0, BR)
    known = channels < end
    group = sample * G + channels // D
    about = tl.load(mean + group, mask=known, other=0.0).to(ACC)
    deviation = tl.load(rstd + group, mask=known, other=0.0).to(ACC)
    FACTOR: tl.constexpr = -SCALE * LOG2E
    slope = deviation * tl.load(gamma + channels, mask=known, other=0.0).to(ACC) * FACTOR
    shift = tl.load(beta + channels, mask=known, other=0.0).to(ACC) * FACTOR
    start = split * SPAN
    stop = tl.minimum(start + SPAN, P)
    at, inside = tile(sample, channels, known, start, stop, C, P, LAST, BP)
    loaded = tl.load(x + at, mask=inside, other=0.0)
    arriving = tl.load(dy + at, mask=inside, other=0.0)
    total, products = tl.zeros([BR, BP], ACC), tl.zeros([BR, BP], ACC)
    for begin in range(start, stop, BP):
        value, incoming, here = loaded.to(ACC), arriving.to(ACC), inside
        at, inside = tile(sample, channels, known, begin + BP, stop, C, P, LAST, BP)
        loaded = tl.load(x + at, mask=inside, other=0.0)
        arriving = tl.load(dy + at, mask=inside, other=0.0)
        away = tl.where(here, value - about[:, None], 0.0)
        u = swish_gradient(incoming, away * slope[:, None] + shift[:, None], FAST)
        u = tl.where(here, u, 0.0)
        total += u
        products += u * away
    pair = parts + ((sample.to(tl.int64) * C + channels) * S + split) * 2
    tl.store(pair, tl.sum(total, 1), mask=known)
    tl.store(pair + 1, tl.sum(products, 1) * deviation, mask=known)


@triton.jit(do_not_specialize=SIZES)
def sums(
    dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    let_next_start(PDL)
    sum_item(
        tl.program_id(0), dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
        ALIGN, LAST, SCALE, BR, BP, ACC, FAST,
    )  # fmt: skip


@triton.jit
def finish_item(
    item, parts, dgamma, dbeta, N, C, S,
    GAMMA: tl.constexpr, BETA: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """dgamma and dbeta of BC channels: the parts of all samples and splits, in their order."""
    channels = item * BC + tl.arange(0, BC)
    known = channels < C
    k = tl.arange(0, BK)
    gamma_sum, beta_sum = tl.zeros([BC, BK], tl.float64), tl.zeros([BC, BK], tl.float64)
    for first in range(0, N * S, BK):
        j = first + k
        row = (j // S).to(tl.int64)[None, :] * C + channels[:, None]
        pair = parts + (row * S + (j % S)[None, :]) * 2
        inside = known[:, None] & (j < N * S)[None, :]
        if BETA:
            beta_sum += tl.load(pair, mask=inside, other=0.0).to(tl.float64)
        if GAMMA:
            gamma_sum += tl.load(pair + 1, mask=inside, other=0.0).to(tl.float64)
    if BETA:
        tl.store(dbeta + channels, tl.sum(beta_sum, 1).to(ACC), mask=known)
    if GAMMA:
        tl.store(dgamma + channels, tl.sum(gamma_sum, 1).to(ACC), mask=known)


@triton.jit(do_not_specialize=[*SIZES, "N"])
def combine(
    parts, gamma, statistics, dgamma, dbeta, groups, N, G, D, C, P, S,
    GAMMA: tl.constexpr, BETA: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """A program for each of `groups` groups, c1 and c2; then those of dgamma and dbeta."""
    item = tl.program_id(0)
    if item < groups:
        n = tl.cast(D, ACC) * P
        c1, c2 = group_gradients(parts, gamma, item, G, D, S, n, BK, ACC)
        tl.store(statistics + item, c1)
        tl.store(statistics + groups + item, c2)
    else:
        finish_item(item - groups, parts, dgamma, dbeta, N, C, S, GAMMA, BETA, BC, BN, ACC)


@triton.jit
def apply_item(
    item, dy, mean, rstd, x, gamma, beta, dx, parts, statistics, groups,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr, BR: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
    PDL: tl.constexpr,
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
    arriving = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
    group = sample * G + channels // D
    about = tl.load(mean + group, mask=known, other=0.0).to(ACC)[:, None]
    deviation = tl.load(rstd + group, mask=known, other=0.0).to(ACC)[:, None]
    await_last(PDL)
    if LAST:
        c1 = tl.load(statistics + group, mask=known, other=0.0)[:, None]
        c2 = tl.load(statistics + groups + group, mask=known, other=0.0)[:, None]
    else:  # all of one group
        n = tl.cast(D, ACC) * P
        c1, c2 = group_gradients(parts, gamma, item // (RB * S), G, D, S, n, BK, ACC)
    FACTOR: tl.constexpr = -SCALE * LOG2E
    slope = deviation * tl.load(gamma + channels, mask=known, other=0.0).to(ACC)[:, None]
    shift = tl.load(beta + channels, mask=known, other=0.0).to(ACC)[:, None] * FACTOR
    c1 = c1 * deviation
    c2 = c2 * deviation * deviation
    for begin in range(start, stop, BP):
        value, incoming = loaded.to(ACC), arriving.to(ACC)
        to, here = dx + at, inside
        at, inside = tile(sample, channels, known, begin + BP, stop, C, P, LAST, BP)
        loaded = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        arriving = tl.load(dy + at, mask=inside, other=0.0, eviction_policy="evict_first")
        away = value - about
        u = swish_gradient(incoming, away * (slope * FACTOR) + shift, FAST)
        tl.store(to, u * slope - (away * c2 + c1), mask=here)


@triton.jit(do_not_specialize=[*SIZES, "N"])
def apply(
    dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, statistics, items, groups, N,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr, GAMMA: tl.constexpr,
    BETA: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr,
    BN: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """In the reverse order of `sums`: what it read last is in the cache. Programs after those of
    the items compute dgamma and dbeta."""
    item = tl.program_id(0)
    if item < items:
        apply_item(
            items - 1 - item, dy, mean, rstd, x, gamma, beta, dx, parts, statistics, groups,
            G, D, C, P, S, TILES, RB, STEP, ALIGN, LAST, SCALE, BR, BP, BK, ACC, FAST, PDL,
        )  # fmt: skip
    else:
        await_last(PDL)
        finish_item(item - items, parts, dgamma, dbeta, N, C, S, GAMMA, BETA, BC, BN, ACC)
