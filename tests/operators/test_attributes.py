# SPDX-License-Identifier: Apache-2.0
"""Attributes of the whole range: 0, ±1, infinite, NaN, subnormal, at the ends of fp32 and fp64, of
any exponent; and a search for the worst error among ordinary ones, at inputs that are hard.

Run as a program it prints the instruction set and the digest of results with such attributes.
"""

from __future__ import annotations

import hashlib
import math
import os

import numpy as np
import pytest
from tests.operators.drawing import draw_attributes, draw_inputs, near_one
from tests.operators.elu_attributes import SELU, elus
from tests.processes import assert_digest_on
from tests.support import FLOATS, SEED, assert_accurate, bits, call, rows

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype
from openaclnn.rows.table import OPS

ROUNDS = int(os.environ.get("ROUNDS", 1))  # how much longer than usual to search


def judge(op, dtype, sets, n, rng, **kinds):
    castable = op.output == "castable" and not op.inplace
    for _ in range(sets * ROUNDS):
        attributes = draw_attributes(op, "DOUBLE" if dtype == "DOUBLE" else "FLOAT", rng, **kinds)
        inputs = draw_inputs(op, dtype, attributes, n, rng)
        wanted = FLOATS[rng.integers(len(FLOATS))] if castable and rng.random() < 0.3 else dtype
        out = np.empty(n, numpy_dtype(wanted))
        assert_accurate(op, inputs, attributes, call(op, inputs, attributes, out), SEED)


def each_dtype(condition):
    return [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}")
        for op in OPS
        for dtype in op.dtypes
        if op.pointwise and not op.inplace and condition(op)
    ]


@pytest.mark.parametrize(("op", "dtype"), each_dtype(lambda op: True))
def test_the_whole_range(op, dtype):
    judge(op, dtype, 120, 200, np.random.default_rng([SEED, 1]))


def approximated(op):
    return REFERENCES[op.kernel].ulp["FLOAT"] > 0.51


@pytest.mark.parametrize(("op", "dtype"), each_dtype(approximated))
def test_hard_inputs(op, dtype):
    """The error depends on how attributes round: many sets of them, and many inputs for each."""
    rng = np.random.default_rng([SEED, 2])
    judge(op, dtype, 40, 15_000, rng, kinds=(near_one,))


def neighbours(x):
    return (x, np.nextafter(x, np.float32(-np.inf)), np.nextafter(x, np.float32(0)))


INPUT = {"is_result": False}
# What programs found: row, dtype, attributes, inputs.
FOUND = [
    ("elu_backward", "FLOAT", elus(0.37370625, 0.17689034, 1, **INPUT), (1.3063569, -12.107482)),
    (
        "elu_backward",
        "FLOAT",
        elus(0.5, 0.0048349563, 0.0041682959, **INPUT),
        (0.44769478, -76.22287),
    ),
    # 1.06 ulp, before what the sum of expm1 loses was kept
    ("elu", "FLOAT", elus(0.12223183, 0.06690333, 1.0), (-0.269228,)),
    # 1.04 and 1.47 ulp in forms of inputScale other than 1 that were never released
    ("elu", "FLOAT", elus(1.3396147, 1.5981508, 1.2061731), (-0.218318,)),
    (
        "elu",
        "FLOAT",
        elus(7.924646183710138e-07, 5.6785979722917546e-06, 0.30304828),
        (-1.28359156e-26,),
    ),
    (
        "elu",
        "DOUBLE",
        elus(32.525873594409596, 157.3796174000521, -42177825703.12108),
        (-8.821112043526626e-10,),
    ),
    *(
        ("elu", dtype, elus(0.5, 1.0, rate), (x,))
        for dtype in FLOATS
        for rate in (1e-38, -1e-38, 1e-45, -1e-45, math.inf, -math.inf)
        for x in (-math.inf, -1.0, -1e-20)
    ),
    *(
        ("elu_backward", dtype, elus(0.5, 1.0, rate, **INPUT), (g, x))
        for dtype in ("FLOAT", "FLOAT16", "BFLOAT16")
        for rate in (1e-38, -1e-38, math.inf, -math.inf)
        for x in (-math.inf, -1.0)
        for g in (1.0, 0.0, math.inf)
    ),
    # v and alpha scale cancel except for what alpha scale loses as fp32, and its neighbours
    *(
        ("elu_backward", "FLOAT", elus(alpha, scale, rate, is_result=True), (g, v))
        for alpha, scale in (SELU, (10000000000.0, 3.0), (1e-30, 1e-9), (13883374177.0, 146184.77))
        for rate in (1.0, -1.0193441, 0.003647885, 0.0, -0.0)
        for v in neighbours(-np.float32(alpha) * np.float32(scale))
        for g in (1.0, -0.3, 0.0, -0.0, math.inf, -math.inf)
    ),
    # -0.96 * 2^-149, near -alpha scale: the sign of the result
    (
        "elu_backward",
        "FLOAT",
        elus(*map(float.fromhex, ("0x1.0f9baep-1", "0x1.394834p-1")), 1, is_result=True),
        tuple(map(float.fromhex, ("0x1.79f822p-124", "-0x1.4c61f4p-2"))),
    ),
    *(
        ("elu", dtype, elus(alpha, scale, rate), (x,))
        for dtype in FLOATS
        for alpha, scale in ((math.inf, 1.0), (1.0, -math.inf), (math.inf, 0.0), (0.0, 1.0))
        for rate in (1.0, -1.0, 1e-30, math.inf)
        for x in (-math.inf, -1e-30, -0.0, 0.0, 2.0)
    ),
    ("elu", "DOUBLE", elus(1e-300, 1e-300, 1e-300), (-1e-200,)),
    *(
        (name, dtype, {"eps": eps}, (1.0,) * inputs)
        for name, inputs in (("logit", 1), ("logit_grad", 2))
        for dtype in ("FLOAT", "FLOAT16", "BFLOAT16")
        for eps in (2.0**-53, 2.0**-54, 1e-17, 1e-300, 5e-324)
    ),
]


@pytest.mark.parametrize("name", sorted({case[0] for case in FOUND}))
def test_what_programs_found(name):
    for _, dtype, attributes, values in (case for case in FOUND if case[0] == name):
        (op,) = (op for op in OPS if op.python == name)
        inputs = [np.array([x] * 3).astype(numpy_dtype(dtype)) for x in values]
        assert_accurate(op, inputs, attributes, call(op, inputs, attributes))


def test_every_row_is_drawn():
    drawn = {case.values[0].name for case in each_dtype(lambda op: True)}
    assert drawn == {row.values[0].name for row in rows(lambda op: not op.inplace)}


@pytest.fixture(scope="module")
def digest_here():
    return digest()


@pytest.mark.programs
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_instruction_sets(level, digest_here):
    assert_digest_on(__file__, level, digest_here)


def digest() -> str:
    """Bits with drawn attributes, which need forms that the attributes of the rows do not use."""
    sha, rng = hashlib.sha256(), np.random.default_rng([SEED, 3])
    for op, dtype in (case.values for case in each_dtype(lambda op: True)):
        for _ in range(60):
            compute = "DOUBLE" if dtype == "DOUBLE" else "FLOAT"
            attributes = draw_attributes(op, compute, rng)
            inputs = draw_inputs(op, dtype, attributes, 333, rng)
            sha.update(bits(call(op, inputs, attributes)).tobytes())
    return sha.hexdigest()


@pytest.mark.parametrize("rate", [2.0**-60, 1.0, 2.0**60])
@pytest.mark.parametrize("factor", [2.0**-60, 2.0**-10, 2.0**60])
def test_elu_at_the_ends_of_its_fast_form(factor, rate):
    """Zeros keep their sign, and subnormal inputs their digits."""
    (op,) = (op for op in OPS if op.python == "elu")
    x = np.array([0.0, -0.0, -1e-45, -1e-40, -1.2e-38, -1e-36, -1.0], np.float32).repeat(40)
    attributes = elus(factor, 1.0, rate)
    assert_accurate(op, [x], attributes, call(op, [x], attributes, np.empty_like(x)), SEED)


if __name__ == "__main__":
    print(openaclnn.config()["kernels"], digest())
