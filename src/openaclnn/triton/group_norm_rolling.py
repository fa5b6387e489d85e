# SPDX-License-Identifier: Apache-2.0
"""Large groups in one launch that sums an item, and then computes the result of an earlier one,
whose tensors it reads again from the L2 cache.

Program k of a cooperative launch, whose programs all run at once, takes steps k, k + programs, ...
Step i stores the sums of item i, signals, waits until all items of the group of item i - lag are
summed, and computes the result of this item. A group has at most lag items.

No program waits for ever. Let i be the smallest step that does. It waits for items below
i - lag + lag = i, or for i itself, which it has summed. Steps below i do not wait for ever, so
their items are summed. Counters only say that sums are stored: what is added up, and in which
order, does not depend on them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from . import group_norm_forward as forward
from . import group_norm_gradient as gradient
from .group_norm_forward import SIZES
from .group_norm_resident import signal, wait

forward_sum, forward_apply = forward.sum_item, forward.apply_item
gradient_sum, gradient_apply = gradient.sum_item, gradient.apply_item
finish_item = gradient.finish_item


@triton.jit(do_not_specialize=[*SIZES, "programs", "lag"])
def rolling_forward(
    x, gamma, beta, y, mean, rstd, parts, counters, items, programs, lag, groups,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, EPS: tl.constexpr, SCALE: tl.constexpr, SWISH: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr,
    ACC: tl.constexpr, SUM: tl.constexpr, FAST: tl.constexpr, STORED: tl.constexpr,
):  # fmt: skip
    """counters: the items of each group that are summed; zeros at first."""
    for item in range(tl.program_id(0), items + lag, programs):
        if item < items:
            forward_sum(
                item, x, parts, G, D, C, P, S, TILES, RB, STEP, ALIGN, False, BR, BP, ACC, SUM
            )  # fmt: skip
            signal(counters + item // (RB * S))
        if item >= lag:
            wait(counters + (item - lag) // (RB * S), RB * S)
            forward_apply(
                item - lag, x, gamma, beta, y, mean, rstd, parts, parts, groups,
                G, D, C, P, S, TILES, RB, STEP, ALIGN, False, EPS, SCALE, SWISH,
                BR, BP, BK, ONCE, ACC, FAST, False, STORED,
            )  # fmt: skip


@triton.jit(do_not_specialize=[*SIZES, "N", "programs", "lag", "finishing"])
def rolling_gradient(
    dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, counters,
    items, programs, lag, finishing, groups, N, G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, SCALE: tl.constexpr, GAMMA: tl.constexpr, BETA: tl.constexpr,
    BR: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr, STORED: tl.constexpr,
):  # fmt: skip
    """The last counter is of all groups; after it, dgamma and dbeta follow in `finishing` parts."""
    for item in range(tl.program_id(0), items + lag, programs):
        if item < items:
            gradient_sum(
                item, dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
                ALIGN, False, SCALE, BR, BP, ACC, FAST,
            )  # fmt: skip
            signal(counters + item // (RB * S))
        if item >= lag:
            wait(counters + (item - lag) // (RB * S), RB * S)
            gradient_apply(
                item - lag, dy, mean, rstd, x, gamma, beta, dx, parts, parts, groups,
                G, D, C, P, S, TILES, RB, STEP, ALIGN, False, SCALE, BR, BP, BK, ACC, FAST,
                False, STORED,
            )  # fmt: skip
    if GAMMA or BETA:
        signal(counters + groups)
        for block in range(tl.program_id(0), finishing, programs):
            wait(counters + groups, programs)
            finish_item(block, parts, dgamma, dbeta, N, C, S, GAMMA, BETA, BC, BN, ACC)
