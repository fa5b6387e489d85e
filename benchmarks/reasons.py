# SPDX-License-Identifier: Apache-2.0
"""Why bars are not met on the machines of the records: by the beginning of what a bar is of."""

from __future__ import annotations

LOGIT_GRAD = (
    "LogitGrad rounds once in fp32 (0.5 ulp), torch three times. What the quotient "
    "lacks takes seven products beside the division; Zen 4, which divides 16 numbers in about ten "
    "cycles, spends more on them than on dividing. (A form with five products, wrong by up to 0.6 "
    "ulp, takes 0.93 of the time.) "
)
REASONS = {
    "every set of attributes, cells": LOGIT_GRAD
    + "EluBackward from results: with alpha 1e-30 and scale 1e-9 the results of Elu are subnormal "
    "and computed in double; with a negative inputScale the correction to 1 ulp is longer than "
    "torch's whole formula.",
    "data with special values": LOGIT_GRAD
    + "Zeros, infinities and NaN cost it two comparisons more, which run where products do. "
    "EluBackward: where a register holds a NaN or a value far below 0, its exponential takes two "
    "factors; from results (0.5 to 0.8x), NaN takes the form that is right for all numbers. "
    "The record is one run, and its other cells are those of a machine that others use too: five "
    "of the slowest, measured again, took 1.74 instead of 0.06x (EluBackward fp16 64Ki, NaN in the "
    "gradient), 1.07 instead of 0.43x, 2.03 instead of 0.55x, 1.35 instead of 0.61x and 1.14 "
    "instead of 0.61x.",
    "0.1% special values": "The five slowest cells, measured again, took at most 1.7 times as "
    "long as ordinary data; see the bar above.",
    "cells below 0.9x torch right after": "The record is one run; EluBackward from results is "
    "bound by memory at 4 Mi.",
    "cells below 0.95x torch": LOGIT_GRAD
    + "The others read and write 1 Mi values in L2 and L3, like torch.",
    "geometric mean against torch": "The bar is of five sizes; these three lack the smallest, "
    "where the cost of a call decides, and the largest.",
}
UNKNOWN = "the reason is not known"
