# SPDX-License-Identifier: Apache-2.0
"""Conditions without which nothing has failed, for failures of which no rule says much."""

from __future__ import annotations

import numpy as np

from .rules import CHANCE, FEW, Rule, Search

RARE = 0.5  # of all elements


def necessary(search: Search) -> Rule | None:
    """On elements; of cases if there is none."""
    return _on_elements(search) or _on_cases(search)


def _on_elements(search: Search) -> Rule | None:
    """The rarest that all wrong elements have, where that is no chance."""
    e, left, counted = search.e, search.left, search.counted
    every = e.weight[counted].sum()
    shares = {
        text: float(e.weight[where & counted].sum() / every)
        for text, where in search.conditions.items() if text and where[left].all()
    }  # fmt: skip
    text = min(shares, key=lambda text: shares[text], default="")
    if not text or shares[text] > RARE or shares[text] ** search.n_failed > CHANCE:
        return None
    where, all_cases = search.conditions[text], np.ones(len(e.results), bool)
    rate = float(e.weight[left].sum() / e.weight[where & counted].sum())
    return Rule((), text, "", rate, rate, 1.0, all_cases, where, where & counted, where & left)


def _on_cases(search: Search) -> Rule | None:
    """Of few results the only one that separates them from all others."""
    present, n_failed = search.total > 0, search.n_failed
    sizes = {c: int(np.count_nonzero(where & present)) for c, where in search.cases.items()
             if where[search.failed].all()}  # fmt: skip
    least = min(sizes.values(), default=0)
    found = [c for c, size in sizes.items() if size == least]
    share = least / np.count_nonzero(present)
    if n_failed < FEW:
        is_chance = least > n_failed or len(found) > 1
    else:
        is_chance = bool(share**n_failed > CHANCE)
    if not found or is_chance:
        return None
    of_cases = search.cases[found[0]]
    meet = of_cases[search.e.of]
    named = meet & search.counted
    rate = n_failed / least
    return Rule((found[0],), "", "", rate, rate, 1.0, of_cases, meet, named, named & search.left)
