# SPDX-License-Identifier: Apache-2.0
"""Large tensors in one launch: the second sweep over a group comes while the group is in the cache.

Programs take tickets in the order in which they start. Ticket by ticket, item i of the first sweep
is followed by item i - LAG of the second, which waits until its group is summed. All that it waits
for has a smaller ticket, so it has started and waits for nothing that has not. Counters only say
that sums have been stored; what is added up, and in which order, does not depend on them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from . import group_norm_forward as forward
from . import group_norm_gradient as gradient
from .group_norm_forward import SIZES

apply_forward, sum_forward = forward.apply_item, forward.sum_item
apply_gradient, sum_gradient = gradient.apply_item, gradient.sum_item


@triton.jit
def next_item(counters, items, LAG):
    """Whether it is an item of the first sweep, and which. Tickets: LAG of the first; first and
    second in turn; LAG of the second."""
    ticket = tl.atomic_add(counters, 1, sem="relaxed")
    turns = ticket - LAG
    in_turn = (turns >= 0) & (turns < 2 * (items - LAG))
    is_first = (turns < 0) | (in_turn & (turns % 2 == 0))
    first = tl.where(turns < 0, ticket, LAG + turns // 2)
    second = tl.where(in_turn, turns // 2, ticket - items)
    return is_first, tl.where(is_first, first, second)


@triton.jit
def signal(counter):
    tl.debug_barrier()  # all threads of the program have stored
    tl.atomic_add(counter, 1, sem="release")


@triton.jit
def wait(counter, count):
    while tl.atomic_add(counter, 0, sem="acquire") < count:
        pass
    tl.debug_barrier()


@triton.jit(do_not_specialize=[*SIZES, "LAG"])
def ordered_forward(
    x, gamma, beta, y, mean, rstd, parts, counters, items, groups, LAG,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr,
    SWISH: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """counters: a ticket, and the items summed of each group; zeros at first."""
    is_first, item = next_item(counters, items, LAG)
    counter = counters + 1 + item // (RB * S)
    if is_first:
        sum_forward(
            item, x, parts, G, D, C, P, S, TILES, RB, STEP, ALIGN, LAST, BR, BP, ACC, SUM
        )  # fmt: skip
        signal(counter)
    else:
        wait(counter, RB * S)
        apply_forward(
            item, x, gamma, beta, y, mean, rstd, parts, parts, groups,
            G, D, C, P, S, TILES, RB, STEP,
            ALIGN, LAST, EPS, SCALE, SWISH, BR, BP, BK, ACC, FAST,
        )  # fmt: skip


@triton.jit(do_not_specialize=[*SIZES, "LAG"])
def ordered_gradient(
    dy, mean, rstd, x, gamma, beta, dx, parts, counters, items, groups, LAG,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr, BR: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """dx; the sums of the channels stay in `parts`."""
    is_first, item = next_item(counters, items, LAG)
    counter = counters + 1 + item // (RB * S)
    if is_first:
        sum_gradient(
            item, dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
            ALIGN, LAST, SCALE, BR, BP, ACC, FAST,
        )  # fmt: skip
        signal(counter)
    else:
        wait(counter, RB * S)
        apply_gradient(
            item, dy, mean, rstd, x, gamma, beta, dx, parts, parts, groups,
            G, D, C, P, S, TILES, RB, STEP,
            ALIGN, LAST, SCALE, BR, BP, BK, ACC, FAST,
        )  # fmt: skip
