# SPDX-License-Identifier: Apache-2.0
"""How inputs of ordinary values are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Drawn = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Drawn]


@dataclass(frozen=True)
class Domain:
    draw: Draw
    # Outside, results are NaN or constant: what is timed and plotted stays within.
    interval: tuple[float, float] | None = None

    def __call__(self, rng: np.random.Generator, n: int) -> Drawn:
        return self.draw(rng, n)

    def within(self, rng: np.random.Generator, n: int) -> Drawn:
        """The same values, those outside of the interval folded into it."""
        drawn = self.draw(rng, n)
        if self.interval is None:
            return drawn
        low, high = self.interval
        return low + abs(drawn - low) % (high - low)


# Both signs, magnitudes spread over 2^-20 to 2^20.
wide = Domain(lambda rng, n: np.ldexp(rng.uniform(-1, 1, n), rng.integers(-20, 21, n)))


def normal(mean: float, deviation: float) -> Domain:
    return Domain(lambda rng, n: rng.normal(mean, deviation, n))


# What activations look like.
ordinary = normal(0, 3)


def _probability(rng: np.random.Generator, n: int) -> Drawn:
    """Often close to 0 or 1; a tenth outside."""
    odds = np.exp(rng.normal(0, 4, n))
    return np.where(rng.random(n) < 0.1, rng.normal(0, 3, n), odds / (1 + odds))


probability = Domain(_probability, interval=(0.0, 1.0))
