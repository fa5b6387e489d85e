# SPDX-License-Identifier: Apache-2.0
"""The polynomials of core/kernels are as close to their functions as docs/design/exactness.md says.

Coefficients are read from the headers and evaluated in 45 digits: this is the error of the
approximation alone. What rounding adds to it is in the sweeps (test_exhaustive.py, test_half.py).
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

KERNELS = Path(__file__).resolve().parents[2] / "core" / "kernels"
CONSTANT = re.compile(r"-?0x1(?:\.[0-9a-f]+)?p[+-]?\d+|\b\d\.\d+(?=f?\b)")
STEP = re.compile(
    r"\s*(?:(?:const (?:double|V) [pq] = |return (?:f \* )?)polynomial\("
    r"|(?:double )?q = (?!q \* f$))"
)
LN2 = Decimal(2).ln()


def coefficients(header: str, function: str) -> list[Decimal]:
    """The coefficients of the polynomial in a function, the highest power first."""
    text = re.sub(r"//.*", "", (KERNELS / header).read_text())
    start = re.search(rf"\b{function}\([^;]*?\) (const )?\{{", text)
    assert start, f"{header}: there is no function {function}"
    body = text[start.start() :].split("\n}\n")[0].split("\n  }\n")[0]
    found: list[Decimal] = []
    for statement in body.replace("{", ";").split(";"):
        if STEP.match(statement):
            found += [Decimal(number(c)) for c in CONSTANT.findall(statement)]
    return found


def number(text: str) -> float:
    return float.fromhex(text) if text.lstrip("-").startswith("0x") else float(text)


def horner(c: list[Decimal], x: Decimal) -> Decimal:
    value = c[0]
    for next_one in c[1:]:
        value = value * x + next_one
    return value


def atanh(x: Decimal) -> Decimal:
    return ((1 + x) / (1 - x)).ln() / 2


# header, function, number of coefficients, how far the argument goes, what is approximated, from
# which polynomial, and the greatest relative error as a power of 1/2
CASES = {
    "exp, FLOAT": ("math.h", "exp_tail_single", 5, "0.3475", lambda r: r.exp(),
                   lambda p, r: 1 + r + r * r * p(r), "27.4"),
    "expm1, FLOAT": ("math.h", "expm1_tail_single", 6, "0.3475", lambda r: r.exp() - 1,
                     lambda p, r: r + r * r * p(r), "31"),
    "2^f, 16 bits": ("math.h", "exp2_half", 6, "0.5001", lambda f: (f * LN2).exp(),
                     lambda p, f: p(f), "22.6"),
    "exp, group norm": ("group_norm/swish.h", "exp_of_minus", 3, "0.0217", lambda r: r.exp(),
                        lambda p, r: 1 + r * p(r), "29.1"),
    "expm1, exact": ("math.h", "exponential", 10, "0.3466", lambda r: r.exp() - 1,
                     lambda p, r: r + r * r * p(r), "53"),
    "logit, FLOAT": ("elementwise/logit.h", "log_odds_single", 2, "0.25",
                     lambda f: 2 * atanh(f / 2), lambda p, f: f + f * f * f * p(f * f), "25.3"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_distance(name):
    header, function, count, end, true, value, bound = CASES[name]
    found = coefficients(header, function)
    assert len(found) == count, f"{function}: {len(found)} coefficients"
    with localcontext(prec=45):
        limit, worst = Decimal(2) ** -Decimal(bound), Decimal(0)
        for k in range(-1000, 1001):
            x = Decimal(end) * k / 1000
            if k != 0:
                error = abs(value(lambda y: horner(found, y), x) / true(x) - 1)
                worst = max(worst, error)
        what = f"{function}: 2^{float(worst.ln() / LN2):.2f}, bound 2^-{bound}"
        assert worst <= limit, what
        assert worst > limit * Decimal("0.8"), f"{what}: say the smaller one"


LN2_FLOAT = Decimal(number("0x1.62e430p-1"))
TABLES = {
    "kPowers": (
        "group_norm/swish.h",
        lambda j: bits_of((LN2 * j / 16).exp()) - (j + 1024 << 19),
    ),
    "kLogarithms": (
        "elementwise/logit.h",
        lambda j: bits_of((1 + Decimal(j) / 16).ln() - LN2_FLOAT * j / 16),
    ),
}


def bits_of(value: Decimal) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("name", TABLES)
def test_table(name):
    header, entry = TABLES[name]
    found = re.search(rf"\b{name}\[16\] = \{{([^}}]*)\}}", (KERNELS / header).read_text())
    assert found, f"{header}: there is no table {name}"
    with localcontext(prec=45):
        assert [int(c, 16) for c in found[1].split(",")] == [entry(j) for j in range(16)]


def test_the_page_states_every_bound():
    page = (KERNELS.parent.parent / "docs" / "design" / "exactness.md").read_text()
    for name, case in CASES.items():
        assert f"| {name} | `{case[1]}`, {Path(case[0]).name} |" in page, (
            f"docs/design/exactness.md: {name} is missing"
        )
        assert f"| 2^-{case[-1]} |" in page, f"docs/design/exactness.md: {name} is 2^-{case[-1]}"
