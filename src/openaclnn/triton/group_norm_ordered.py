# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwishGrad of large tensors in one launch: the second sweep over a group comes while the
group is in the cache.

Programs take tickets in the order in which they start. Ticket by ticket, item i of the first sweep
is followed by item i - LAG of the second, which waits until its group is summed. All that it waits
for has a smaller ticket, so it has started and waits for nothing that has not. Counters only say
that sums have been stored; what is added up, and in which order, does not depend on them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .group_norm_forward import SIZES
from .group_norm_gradient import apply_item, sum_item


@triton.jit(do_not_specialize=[*SIZES, "LAG"])
def ordered_gradient(
    dy, mean, rstd, x, gamma, beta, dx, parts, counters, items, groups, LAG,
    G, D, C, P, S, TILES, RB, STEP,
    ALIGN: tl.constexpr, LAST: tl.constexpr, SCALE: tl.constexpr, BR: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """counters: a ticket, and the items summed of each group; zeros at first."""
    ticket = tl.atomic_add(counters, 1, sem="relaxed")
    # Tickets: LAG sums; sums and second items in turn; LAG second items.
    turns = ticket - LAG
    both = (turns >= 0) & (turns < 2 * (items - LAG))
    is_sum = (turns < 0) | (both & (turns % 2 == 0))
    each = RB * S
    if is_sum:
        item = tl.where(turns < 0, ticket, LAG + turns // 2)
        sum_item(
            item, dy, mean, rstd, x, gamma, beta, parts, G, D, C, P, S, TILES, RB, STEP,
            ALIGN, LAST, SCALE, BR, BP, ACC, FAST,
        )  # fmt: skip
        tl.debug_barrier()  # all threads of the program have stored
        tl.atomic_add(counters + 1 + item // each, 1, sem="release")
    else:
        item = tl.where(both, turns // 2, ticket - items)
        counter = counters + 1 + item // each
        while tl.atomic_add(counter, 0, sem="acquire") < each:
            pass
        tl.debug_barrier()
        apply_item(
            item, dy, mean, rstd, x, gamma, beta, dx, parts, counters, groups,
            G, D, C, P, S, TILES, RB, STEP,
            ALIGN, LAST, SCALE, BR, BP, BK, ACC, FAST,
        )  # fmt: skip
