# SPDX-License-Identifier: Apache-2.0
"""Why the records miss targets: by the beginning of the target's text."""

from __future__ import annotations

LOGIT_GRAD = (
    "LogitGrad rounds once in fp32 (0.5 ulp), torch three times. Correcting the quotient costs "
    "seven multiplications on top of the division; on Zen 4, which divides 16 numbers in about "
    "ten cycles, that is more than the division itself."
)
MEMORY = (
    "Large tensors run at the speed of memory on both sides: 1.0 to 1.9 times. On a Zen 5 the "
    "mean was 2.98."
)
SMALL_GROUPS = (
    "Tensors of less than 64 Ki elements are 1.6 to 3.2 times as fast as torch; the others have a "
    "mean above 3."
)
TWO_SWEEPS = (
    "A group of dy and x takes 8 MiB and the second-level cache of this CPU has 2, so two sweeps "
    "move 5/3 of the least traffic: 60 % is what remains. Zen 5 keeps the group in its third-level "
    "cache: 69 %."
)
KNOWN = {
    "geometric mean": MEMORY,
    "cases below 0.95x": "Two threads share 11 µs of work; another run had 1.40x.",
    "defaults and attributes from 0.001 to 10": "Two threads share 5 µs of work; with 1 Mi "
    "elements the same attributes have 0.98x.",
    "other attributes": "In fp16 half of the results of elu are -inf with alpha = 1e10, and tiles "
    "with infinities are computed by `exact`; alpha = 1e4 takes as long as alpha = 1.",
    "0.1% special values, cases below": LOGIT_GRAD + " `exact` computes 64 values for "
    "each special one.",
    "group_norm_swish, geometric": SMALL_GROUPS,
    "group_norm_swish_grad, geometric": SMALL_GROUPS,
    "group_norm_swish_grad 1x128x512x512/32 fp32, share": TWO_SWEEPS,
}


def reason(what: str) -> str:
    return next((why for start, why in KNOWN.items() if what.startswith(start)), "unknown")
