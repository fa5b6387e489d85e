# SPDX-License-Identifier: Apache-2.0
"""A run of openaclnn verify with known defects, whose page the tests look at."""

from __future__ import annotations

import numpy as np

import openaclnn
from openaclnn.reference.standards import Standard
from openaclnn.rows.catalogue import find_operator
from openaclnn.rows.table import PRODUCTS
from openaclnn.verify.generate import generate
from openaclnn.verify.provider import Outcome
from openaclnn.verify.report import Report
from openaclnn.verify.runner import Runner

HOSTILE = '</script><img src=x onerror=document.title=1> & "quotes" <!-- \u2028'
PRODUCT = next(p for p in PRODUCTS if p.key == "A2")


class Mine:
    """openaclnn, but for what `spoil` changes."""

    def __init__(self, name, spoil):
        self.name, self._spoil = name, spoil

    def missing(self, case):
        return "it takes good calls only" if case.mistake or case.out or case.companion else ""

    def run(self, case, inputs):
        given = {k: v for k, v in case.attributes.items() if v is not None}
        given |= {p.python_name: x for p, x in zip(case.op.input_tensors, inputs, strict=True)}
        made = getattr(openaclnn, case.op.python)(**given)
        return self._spoil(case, inputs, made)

    def close(self):
        pass


def good(case, inputs, made):
    return Outcome((made,))


def bad(case, inputs, made):
    """FLOAT16 of elu is 3 steps too high between -2 and -1; hardshrink's FLOAT crashes."""
    if case.op.python == "elu" and case.dtype == "FLOAT16":
        spoilt = (inputs[0] > -2) & (inputs[0] < -1) & np.isfinite(made) & (made < -0.01)
        bits = made.view(np.int16) + np.where(spoilt, 3, 0).astype(np.int16)
        return Outcome((bits.view(np.float16),))
    if case.op.python == "hardshrink" and case.dtype == "FLOAT":
        return Outcome(kind="crashed", sentence=HOSTILE)
    return good(case, inputs, made)


def report_of_mine():
    """Two operators in two dtypes, a bad provider beside a good one."""
    ops = [find_operator(name) for name in ("elu", "hardshrink")]
    cases = generate(ops, ["FLOAT", "FLOAT16"], PRODUCT, 1)
    standard = Standard()
    runner = Runner([Mine("mine", bad), Mine("good", good)], standard, profiles=True)
    results = runner.run(cases, lambda case, done: None)
    return Report(results, ["mine", "good"], standard, [], 1, 0.5)
