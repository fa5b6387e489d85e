# SPDX-License-Identifier: Apache-2.0
"""Why the records miss targets: by the beginning of the target's text."""

from __future__ import annotations

LOGIT_GRAD = (
    "LogitGrad rounds once in fp32 (0.5 ulp), torch three times. Correcting the quotient costs "
    "seven multiplications on top of the division; on Zen 4, which divides 16 numbers in about "
    "ten cycles, that is more than the division itself."
)
STREAMING = (
    "The record is of Zen 4, whose arithmetic takes longer here than its memory: moments in fp64, "
    "and an exponential and a division for each element. Zen 5 reached 69 % on 2026-11-22."
)
KNOWN = {
    "defaults and attributes from 0.001 to 10": LOGIT_GRAD,
    "0.1% special values, cases below": LOGIT_GRAD + " Zeros, infinities and NaN cost it two "
    "comparisons more.",
    "group_norm_swish_grad 1x128x512x512/32 fp32, share": STREAMING,
}


def reason(what: str) -> str:
    return next((why for start, why in KNOWN.items() if what.startswith(start)), "unknown")
