# SPDX-License-Identifier: Apache-2.0
"""What the group norm kernels compute in one tile: Swish, its gradient, tiles of channels.

A tile holds BR channels (axis 0) and BP positions (axis 1). With E = exp(-t), t = s v and
p = log2(E), the logistic function is σ = 1 / (1 + E) and 1 - σ is E σ, which does not cancel.
FAST takes the reciprocal of the hardware (1 ulp) in place of a division.
"""

from __future__ import annotations

import triton
import triton.language as tl

try:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
except ImportError:  # an older Triton
    gdc_launch_dependents = gdc_wait = None

CAN_START_EARLY = gdc_wait is not None  # whether Triton has programmatic dependent launch
LN2 = tl.constexpr(0.6931471805599453)
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    if FAST:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return 1 / x


@triton.jit
def swish(v, p, FAST: tl.constexpr):
    """v σ. Where t < 0 it is (v h) (h / (1 + h²)) with h = 2^(-|p| / 2), which keeps its digits as
    far as v σ is a normal number."""
    h = tl.exp2(tl.abs(p) * -0.5)
    factor = tl.where(p > 0, h, 1.0)
    return (v * factor) * (factor * reciprocal(1 + h * h, FAST))


@triton.jit
def swish_gradient(dy, p, FAST: tl.constexpr):
    """dy σ (1 + t (1 - σ)); NaN where t is infinite. From p = 127 on (fp64: 1022), σ is 0: keeping
    its digits there takes 10 % longer (H200, bf16)."""
    e = tl.exp2(tl.minimum(p, 1022.0 if p.dtype.is_fp64() else 127.0))
    logistic = reciprocal(1 + e, FAST)
    return (dy * logistic) * (1 - (p * LN2) * (e * logistic))


@triton.jit
def dims(C, P, STEP, ALIGN: tl.constexpr, LAST: tl.constexpr):
    """C and P; the one that is the length of a row in memory, as STEP ALIGN: the compiler sees that
    rows are aligned. LAST: the channels are the last dimension in memory."""
    if LAST:
        return STEP * ALIGN, P
    return C, STEP * ALIGN


@triton.jit
def tile_offsets(sample, channels, positions, C, P, LAST: tl.constexpr):
    """Offsets of a tile in a dense tensor."""
    first = sample.to(tl.int64) * C * P
    if LAST:
        return first + channels[:, None] + positions[None, :].to(tl.int64) * C
    return first + channels[:, None].to(tl.int64) * P + positions[None, :]


@triton.jit
def tile(sample, channels, known, begin, stop, C, P, LAST: tl.constexpr, BP: tl.constexpr):
    """Offsets of the tile at position `begin`, and what of it is inside; nothing from `stop` on."""
    positions = begin + tl.arange(0, BP)
    end = tl.where(begin < stop, P, 0)  # as much aligned as P
    inside = known[:, None] & (positions < end)[None, :]
    return tile_offsets(sample, channels, positions, C, P, LAST), inside


@triton.jit
def group_offsets(group, d, p, G, D, P, LAST: tl.constexpr):
    """Offsets of whole groups."""
    first = (group // G).to(tl.int64) * (G * D) * P
    channels = (group % G)[:, None] * D + d[None, :]
    if LAST:
        row = first[:, None] + channels
        return row[:, :, None] + (p.to(tl.int64) * (G * D))[None, None, :]
    row = first[:, None] + channels.to(tl.int64) * P
    return row[:, :, None] + p[None, None, :]


@triton.jit
def let_next_start(PDL: tl.constexpr):
    """The next kernel may start, and wait (`await_last`)."""
    if PDL:
        gdc_launch_dependents()


@triton.jit
def await_last(PDL: tl.constexpr):
    """Until the last kernel has ended and its stores are visible."""
    if PDL:
        gdc_wait()


@triton.jit
def item_of(item, G, D, C, S, RB, BR: tl.constexpr, LAST: tl.constexpr):
    """Sample, first channel, end of the channels and split of a work item. An item has BR channels
    and one of S parts of the positions; they are of one group unless the channels are last."""
    if LAST:
        sample = item // (RB * S)
        first, end = (item % RB) * BR, C
        split = item // RB % S
    else:
        group = item // (RB * S)
        sample = group // G
        first = group % G * D
        end = first + D
        first += item // S % RB * BR
        split = item % S
    return sample, first, end, split


@triton.jit
def group_moments(parts, group, D, S, SPAN, P, BK: tl.constexpr, ONCE: tl.constexpr):
    """Mean and variance of a group, in fp64, from the mean and the squared deviations (Chan) of
    each channel and split. `parts` has pairs, [N, C, S, 2]; all of a group are one range.
    ONCE: they are at most BK. Also what the rounded mean lacks, for DOUBLE, whose elements near
    the mean would lose digits."""
    count = D * S
    at = parts + group.to(tl.int64) * count * 2
    k = tl.arange(0, BK)
    n = tl.cast(D, tl.float64) * P
    if ONCE:
        about = tl.load(at + k * 2, mask=k < count, other=0.0, cache_modifier=".cg")
        rest = tl.load(at + k * 2 + 1, mask=k < count, other=0.0, cache_modifier=".cg")
        size = tl.where(k < count, tl.minimum(SPAN, P - k % S * SPAN), 0).to(tl.float64)
        mean = tl.sum(size * about, 0) / n
        away = tl.where(k < count, about - mean, 0.0)
        lacks = size * away
        squares = rest + size * away * away
    else:
        total = tl.zeros([BK], tl.float64)
        for first in range(0, count, BK):
            j = first + k
            size = tl.minimum(SPAN, P - j % S * SPAN).to(tl.float64)
            total += size * tl.load(at + j * 2, mask=j < count, other=0.0, cache_modifier=".cg")
        mean = tl.sum(total, 0) / n
        squares = tl.zeros([BK], tl.float64)
        lacks = tl.zeros([BK], tl.float64)
        for first in range(0, count, BK):
            j = first + k
            size = tl.minimum(SPAN, P - j % S * SPAN).to(tl.float64)
            away = tl.load(at + j * 2, mask=j < count, other=0.0, cache_modifier=".cg") - mean
            rest = tl.load(at + j * 2 + 1, mask=j < count, other=0.0, cache_modifier=".cg")
            squares += tl.where(j < count, rest + size * away * away, 0.0)
            lacks += tl.where(j < count, size * away, 0.0)
    return mean, tl.sum(lacks, 0) / n, tl.sum(squares, 0) / n


@triton.jit
def group_gradients(parts, gamma, group, G, D, S, n, BK: tl.constexpr, ACC: tl.constexpr):
    """c1 and c2: the means over a group of γ u and γ u x̂, from the sums of each channel and
    split."""
    count = D * S
    at = parts + group.to(tl.int64) * count * 2
    k = tl.arange(0, BK)
    first_sum, second_sum = tl.zeros([BK], ACC), tl.zeros([BK], ACC)
    for first in range(0, count, BK):
        j = first + k
        inside = j < count
        weight = tl.load(gamma + group % G * D + j // S, mask=inside, other=0.0).to(ACC)
        first_sum += weight * tl.load(at + j * 2, mask=inside, other=0.0, cache_modifier=".cg")
        second_sum += weight * tl.load(at + j * 2 + 1, mask=inside, other=0.0, cache_modifier=".cg")
    return tl.sum(first_sum, 0) / n, tl.sum(second_sum, 0) / n


@triton.jit
def reciprocal_deviation(variance, EPS: tl.constexpr, ACC: tl.constexpr):
    """1 / sqrt(variance + eps) in fp64, of a variance in fp64; for ACC = fp32 by a step of Newton's
    from the root in fp32, since a division in fp64 takes long."""
    total = variance + EPS
    if ACC.is_fp64():
        return 1 / tl.sqrt(total)
    else:
        root = tl.div_rn(1.0, tl.sqrt_rn(total.to(tl.float32))).to(tl.float64)
        better = root * (1.5 - 0.5 * total * root * root)
        return tl.where(root < float("inf"), better, root)
