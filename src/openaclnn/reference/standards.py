# SPDX-License-Identifier: Apache-2.0
"""The standards by which results pass or fail.

ours        within the distance that the library promises of itself, or within `ulp` units of the
            last place; special values exactly (docs/reference/numerics.md)
float       what computing in FLOAT costs (in_float.py): 4 ulp, or 0.6 where the result is rounded
            to 16 bits, for sums 32 times the bound of ours; besides what 2 ulp of the inputs make
single      one benchmark: relative errors |got - golden| / (|golden| + 1e-7); their mean is below T
            and their greatest below 10 T; T is 2^-10 (fp16), 2^-7 (bf16), 2^-13 (fp32)
double      two benchmarks: greatest and mean relative error and root of the mean square, each over
            that of another implementation, within 10/2/2 (L0), 5/1.5/1.5 (L1) or 2/1.2/1.2 (L2);
            small golden values by their absolute error; where the other implementation has NaN or
            an infinity and the golden value is finite, 10 T of `single` is the limit
either      single or, where that fails, double
allclose    |got - golden| <= atol + rtol |golden|
peer        at most `ulp` units of the last place (0: the same bits but for NaNs) from the result of
            another implementation; the golden value does not count

NaN and infinities must be those of the golden value, rounded to the dtype of the result, or for
peer those of the other implementation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..rows.suggestions import did_you_mean, near

OPTIONS: dict[str, tuple[str, ...]] = {  # that each standard takes
    "ours": ("ulp",),
    "float": (),
    "single": (),
    "double": ("level",),
    "either": ("level",),
    "allclose": ("rtol", "atol"),
    "peer": ("ulp",),
}
LIMITS = ("ulp", "level", "rtol", "atol")
ASKED = ("standard", *LIMITS)  # what callers of `chosen` choose by
NEEDS_BENCHMARK = ("double", "either", "peer")  # these need what another implementation got
DEFAULT_LEVEL = "L1"
LEVELS = {"L0": (10.0, 2.0, 2.0), "L1": (5.0, 1.5, 1.5), "L2": (2.0, 1.2, 1.2)}


@dataclass(frozen=True)
class Standard:
    """A standard and its numbers; None stands for the standard's own number."""

    name: str = "ours"
    ulp: float | None = None
    level: str | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def level_used(self) -> str:
        return DEFAULT_LEVEL if self.level is None else self.level

    def __post_init__(self) -> None:
        for what, value, known in (
            ("standard", self.name, OPTIONS),
            ("level", self.level_used, LEVELS),
        ):
            if value not in known:
                every, hint = ", ".join(known), did_you_mean(near(value, known))
                raise ValueError(f"{what} must be one of {every}, but got {value!r}{hint}")
        for what, number in (("ulp", self.ulp), ("rtol", self.rtol), ("atol", self.atol)):
            if number is not None and not number >= 0:  # nor NaN, beyond which nothing is
                raise ValueError(f"{what} must be at least 0, but got {number!r}")
        for option in LIMITS:
            takers = [name for name, options in OPTIONS.items() if option in options]
            if getattr(self, option) is not None and self.name not in takers:
                raise ValueError(
                    f"{option} must come with standard {' or '.join(takers)}, but it is {self.name}"
                )


def chosen(
    default: str,
    *,
    standard: str | None = None,
    ulp: float | None = None,
    level: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    benchmark: bool = False,
) -> Standard:
    """The standard that a caller asks for; without a name, ours if there is `ulp`, or `default`.
    `benchmark`: whether there are results of another implementation."""
    if standard is None:
        standard = default if ulp is None else "ours"
    standard = standard.lower()
    found = Standard(standard, ulp, level, rtol, atol)
    if benchmark and found.name not in NEEDS_BENCHMARK:
        raise ValueError(
            f"benchmark must come with standard {', '.join(NEEDS_BENCHMARK[:-1])} or "
            f"{NEEDS_BENCHMARK[-1]}, but it is {found.name}"
        )
    return found
