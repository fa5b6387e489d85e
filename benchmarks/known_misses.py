# SPDX-License-Identifier: Apache-2.0
"""Why the records miss targets: by the beginning of the target's text."""

from __future__ import annotations

MEMORY = (
    "Large tensors of operators that only choose or multiply run at the speed of memory on both "
    "sides: 1.2 to 1.4 times. Records before 29 November said 2.4 to 3: a tenth of logit's data "
    "lay outside of [0, 1], where torch's logarithm takes ten times as long."
)
SMALL_GROUPS = (
    "Where torch keeps a group in the cache, too, it is 1.4 to 4 times; the largest are 7 to 13 "
    "times as fast as torch."
)
KNOWN = {
    "geometric mean": MEMORY,
    "defaults and attributes from 0.001 to 10": "LogitGrad rounds once in fp32 (0.5 ulp), "
    "torch three times.",
    "other attributes": "In fp16 half of the results of elu are -inf with alpha = 1e10, and tiles "
    "with infinities are computed by `exact`, as is everything with alpha = 1e-30; alpha = 1e4 "
    "takes as long as alpha = 1.",
    "20% special values": "Three operators whose `fast` form is quick on Zen 5: `exact`, in "
    "double, computes nearly all.",
    "group_norm_swish, geometric": SMALL_GROUPS,
    "group_norm_swish_grad, geometric": SMALL_GROUPS,
}


def reason(what: str) -> str:
    return next((why for start, why in KNOWN.items() if what.startswith(start)), "unknown")
