# SPDX-License-Identifier: Apache-2.0
"""Why bars are not met on the machines of the records: by the beginning of what a bar is of."""

from __future__ import annotations

LOGIT_GRAD = (
    "LogitGrad rounds once in fp32 (0.5 ulp), torch three times. Correcting the quotient costs "
    "seven multiplications on top of the division; on Zen 4, which divides 16 numbers in about "
    "ten cycles, that is more than the division itself. (A form with five multiplications, wrong "
    "by up to 0.6 ulp, takes 0.93 of the time.) "
)
STREAMING = (
    "The record is of Zen 4, whose arithmetic takes longer here than its memory: moments in fp64, "
    "and an exponential and a division for each element. Zen 5 reached 74 % (group_norm_swish) "
    "and 69 % (its gradient) on 2026-11-22."
)
REASONS = {
    "every set of attributes, cells": LOGIT_GRAD
    + "EluBackward from results: with alpha 1e-30 and scale 1e-9 the results of Elu are subnormal "
    "and computed in double; with a negative inputScale the correction to 1 ulp is longer than "
    "torch's whole formula.",
    "data with special values": LOGIT_GRAD
    + "Zeros, infinities and NaN cost it two comparisons more, which run where multiplications "
    "do. EluBackward from results: data with a NaN take the form that is right for all numbers, "
    "with 11 additions where the quick form has 5.",
    "0.1% special values": "Noise: from one run to the next these cells change places, and none "
    "has broken this bar twice.",
    "cells below 0.9x torch right after": "The record is one run; EluBackward from results is "
    "bound by memory at 4 Mi.",
    "cells below 0.95x torch": LOGIT_GRAD
    + "The others read and write 1 Mi values in L2 and L3, like torch.",
    "geometric mean against torch": "The bar is of five sizes; these three lack the smallest, "
    "where the cost of a call decides, and the largest.",
    "group_norm_swish 1x128x512x512/32 fp32, share": STREAMING,
    "group_norm_swish_grad 1x128x512x512/32 fp32, share": STREAMING,
}
UNKNOWN = "the reason is not known"
