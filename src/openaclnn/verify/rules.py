# SPDX-License-Identifier: Apache-2.0
"""Rules that explain wrong elements: which cases, which of their elements, and how they are wrong.

A rule has conditions on cases ("where scale is not 1"), one on elements ("x is NaN") and a symptom
("off by a few ulp"), each of which may be missing. Its score is a mean of

    precision   how many of the elements that it names are wrong, the mean over results
    recall      how much of what is wrong it names, the mean over failed results

less a price for each condition. It counts if so much in common is more than chance.

The constants were chosen with about 300 kernels of one or two mistakes: more of these mistakes are
named, with fewer other findings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..reference.arrays import Array
from ..reference.patterns import TAILS
from ..reference.precision import HYPOTHESES, TELLING
from .condition import Condition
from .evidence import VAGUE, Evidence

RECALL = 0.35  # its weight in the mean: other rules may explain what one leaves
# The price of the first condition; of the second twice as much; of a list of values besides; of a
# condition beside a symptom that says what the kernel computes, and needs none.
PRICE, LISTING, UNIVERSAL = 0.03, 0.03, 0.05
TOLD = 0.5  # the score of such a symptom alone, beside which a rule that says nothing is left out
# By which a rule must be rarer than chance; of few cases, the share of what separates those that
# failed from all others.
BITS, OF_FEW = 10.0, 0.7
WITNESSES = 4  # elements of a result that count for this
LEAST = 0.7  # the least precision of a symptom that many mistakes have, as few elements as have it
# Conditions on cases alone: one on more than half of them says less, as does one on cases
# of which few elements are wrong.
NARROW, VISIBLE = 2.0, 0.2
# A condition on cases alone says nothing if calls elsewhere fail as often, by this share.
AS_OFTEN = 0.9
SEEN = 0.1  # of the failed results, which must have a condition or symptom for it to be tried
BEST = 12  # conditions on cases that are tried with each other
FEW, CHANCE = 3, 1e-2  # results that may have anything in common by chance, or so probably
ALONE = 3  # rules of cases alone
AS_GOOD = 0.95  # of its recall and precision, at which a hypothesis replaces one of these


@dataclass(frozen=True)
class Rule:
    """`elements` and `symptom` are empty for any."""

    cases: tuple[Condition, ...]
    elements: str
    symptom: str
    score: float
    precision: float
    recall: float
    of_cases: Array  # results
    meet: Array  # the elements that meet its conditions
    named: Array  # those of them that other rules do not explain
    explained: Array  # those of them that are wrong as it says

    @property
    def says_something(self) -> bool:
        return bool(self.cases or self.elements or self.symptom)


@dataclass(frozen=True)
class Scores:
    """Of each condition on cases (rows) with each pair of a condition on elements and a symptom."""

    score: Array
    precision: Array
    recall: Array


class Search:
    """Rules for the wrong elements that are left. Those that are done, which other rules explain,
    count neither way."""

    def __init__(
        self, e: Evidence, left: Array, done: Array, cases: Mapping[Condition, Array], small: Array
    ) -> None:
        """`cases`: the conditions on results. `small`: elements whose only cause is that their
        errors are small."""
        self._unexplained = e.count(left | small) > 0
        self.e, self.left, self.cases = e, left, cases
        self._bad = e.count(left, e.weight)
        self.failed = self._bad > 0
        # What a result without its explained elements would be is not known: it has not passed.
        self.counted = ~done & (self.failed | (e.count(done) == 0))[e.of]
        self.total = e.count(self.counted, e.weight)
        self.n_failed = max(1, int(np.count_nonzero(self.failed)))
        every = np.ones(e.of.size, bool)
        seen = {
            text: where for text, where in e.conditions.items()
            if self._is_seen(where) and not (text in TAILS and self._is_vacuous(where))
        }  # fmt: skip
        shown = {text: where for text, where in e.symptoms.items() if self._is_telling(text)}
        self.conditions = {"": every, **seen}
        self._symptoms = {"": every, **shown}
        self._pairs = [(text, symptom) for text in self.conditions for symptom in self._symptoms
                       if not (text and symptom.startswith(HYPOTHESES))]  # fmt: skip
        self._count_elements()

    def _is_seen(self, where: Array) -> bool:
        results = np.count_nonzero(self.e.count(where & self.left))
        return bool(results >= max(1, SEEN * self.n_failed))

    def _is_vacuous(self, where: Array) -> bool:
        """Whether elements outside are as wrong, of results that have such: all of a small tensor
        lies past the last full block."""
        e = self.e
        some = e.count(self.counted & ~where) > 0
        inside, outside = (e.count(self.left & w, e.share)[some].sum() for w in (where, ~where))
        return bool(inside <= outside)

    def _is_telling(self, symptom: str) -> bool:
        hit = self.e.symptoms[symptom] & self.left
        telling = np.count_nonzero(self.e.telling[symptom] & hit)
        return self._is_seen(hit) and bool(telling >= TELLING * np.count_nonzero(hit))

    def _count_elements(self) -> None:
        """Precision, recall and rarity of each pair in each result."""
        e, shape = self.e, (len(self._pairs), len(self.e.results))
        precision, recall, counts, bits, seen = (np.zeros(shape) for _ in range(5))
        due = np.where(self.failed, e.count(self.left, e.share), 1)
        known = ""
        n, has, rare = self._sizes(known)
        for k, (text, symptom) in enumerate(self._pairs):
            if text != known:
                known, (n, has, rare) = text, self._sizes(text)
            where = self.conditions[text]
            hit = where & self._symptoms[symptom] & self.left
            w = e.count(hit, e.weight)
            p, says = w / n, has
            if symptom in VAGUE:  # of chance: results without say nothing
                p, says = LEAST + (1 - LEAST) * p, w > 0
            elif symptom:  # of the elements that speak for or against it
                total = w + e.count(where & self.counted & e.against[symptom], e.weight)
                p, says = w / np.where(total > 0, total, 1), total > 0
            counts[k] = says
            precision[k] = p * counts[k]
            recall[k] = e.count(hit, e.share) / due
            bits[k] = np.minimum(e.count(hit), WITNESSES) * rare
            seen[k] = has
        self._precision, self._recall = precision.T, recall.T
        self._present, self._bits, self._seen = counts.T, bits.T, seen.T

    def _sizes(self, text: str) -> tuple[Array, Array, Array]:
        """Of a condition on elements: how many elements of each result have it, at least 1; whether
        any has; how rare they are."""
        n = self.e.count(self.conditions[text] & self.counted, self.e.weight)
        has, n = n > 0, np.where(n > 0, n, 1)
        return n, has, np.where(has, np.log2(np.maximum(self.total, n) / n), 0)

    def _scores(self, of_cases: Array, conditions: int, longer: Array) -> Scores:
        """`of_cases`: results by rows, each row the product of so many conditions. `longer`: the
        price of their texts."""
        there = self.total > 0
        every, size = np.count_nonzero(there), (of_cases @ there)[:, None]
        p = (of_cases @ self._precision) / np.maximum(of_cases @ self._present, 1)
        if conditions:  # on cases alone: how many have failed, as far as others are better
            share = self._bad / np.where(there, self.total, 1)
            inside, rate = ((of_cases @ x)[:, None] / np.maximum(size, 1)
                            for x in (share, self.failed))  # fmt: skip
            outside = (share.sum() - inside * size) / np.maximum(every - size, 1)
            lift = np.clip(1 - outside / np.maximum(inside, 1e-9), 0, 1)
            lift *= np.minimum(1, NARROW * (1 - size / every)) * np.minimum(1, inside / VISIBLE)
            p[:, :1] = lift * rate + (1 - lift) * p[:, :1]
            unexplained = (of_cases @ self._unexplained)[:, None]
            elsewhere = (self._unexplained.sum() - unexplained) / np.maximum(every - size, 1)
            p[:, :1] *= elsewhere < AS_OFTEN * unexplained / np.maximum(size, 1)
        explained = of_cases @ self._recall
        r = explained / self.n_failed
        n = conditions + np.array([bool(text) for text, _ in self._pairs])
        seen = np.maximum(of_cases @ self._seen, 1)
        bits = explained * np.log2(every / seen) + of_cases @ self._bits
        mean = (1 + RECALL) * p * r / np.maximum(RECALL * p + r, 1e-9)
        separating = self.n_failed * math.log2(max(int(every), 1) / self.n_failed)
        needed = min(BITS, OF_FEW * separating) if self.n_failed >= FEW else BITS
        score = np.where((n == 0) | (bits >= needed), mean, 0) - PRICE * n * (n + 1) / 2
        says_all = np.array([symptom in self.e.against for _, symptom in self._pairs])
        score -= longer[:, None] + UNIVERSAL * n * says_all
        score = np.round(score, 6)  # so that ties are ties on every machine
        return Scores(score, p, r)

    def rules(self) -> list[Rule]:
        """The best by their scores: of each symptom without, with one and with two conditions on
        cases, and of cases alone; one for each pair."""
        everywhere = np.ones((1, len(self.e.results)))
        found = self._best([()], everywhere, self._scores(everywhere, 0, np.zeros(1)))
        every = list(self.cases)
        if every:
            rows = np.array([self.cases[c] for c in every], float)
            long = LISTING * np.array([max(0, c.values - 2) for c in every])
            scores = self._scores(rows, 1, long)
            bounds = np.array([c.is_bound for c in every])
            silent = np.array([not symptom.startswith(HYPOTHESES) for _, symptom in self._pairs])
            scores.score[np.ix_(bounds, silent)] = 0
            other = np.array([not (c.attributes or c.of_dtypes) for c in every])
            scores.score[np.ix_(other, ~silent)] = 0  # a formula does not depend on memory
            found += self._best([(c,) for c in every], rows, scores)
            for i in np.argsort(-scores.score[:, 0], kind="stable")[:ALONE]:
                found.append(self._rule((every[i],), rows[i], 0, scores, i))
            plain = np.flatnonzero(~bounds)
            best = plain[np.argsort(-scores.score[plain].max(axis=1), kind="stable")[:BEST]]
            chosen = [
                (i, j, rows[i] * rows[j]) for i in best for j in plain
                if 0 < np.dot(rows[i], rows[j]) < min(rows[i].sum(), rows[j].sum())
                and not set(every[i].attributes) & set(every[j].attributes)
            ]  # fmt: skip
            if chosen:
                both = np.array([product for *_, product in chosen])
                named = [(every[i], every[j]) for i, j, _ in chosen]
                longer = np.array([long[i] + long[j] for i, j, _ in chosen])
                scores = self._scores(both, 2, longer)
                either = np.array([other[i] or other[j] for i, j, _ in chosen])
                scores.score[np.ix_(either, ~silent)] = 0
                found += self._best(named, both, scores)
        found.sort(key=lambda rule: -rule.score)
        found = [rule for rule in found if not self._is_said_better(rule, found)]
        if any(rule.score >= TOLD and self._is_hypothesis(rule) for rule in found):
            found = [rule for rule in found if rule.says_something]
        distinct: dict[tuple[object, ...], Rule] = {}
        for rule in found:
            pair = (rule.elements, rule.symptom)
            distinct.setdefault(pair if any(pair) else rule.cases, rule)
        return [rule for rule in distinct.values() if rule.score > 0]

    def _is_hypothesis(self, rule: Rule) -> bool:
        """Without conditions."""
        return rule.symptom in self.e.against and not rule.cases and not rule.elements

    def _is_said_better(self, rule: Rule, others: Sequence[Rule]) -> bool:
        """Whether a hypothesis explains as much under the same conditions."""
        return not rule.elements and not rule.symptom and any(
            other.symptom.startswith(HYPOTHESES)
            and other.cases == rule.cases
            and other.recall >= AS_GOOD * rule.recall
            and other.precision >= AS_GOOD * rule.precision
            for other in others
        )  # fmt: skip

    def _best(
        self, cases: Sequence[tuple[Condition, ...]], rows: Array, scores: Scores
    ) -> list[Rule]:
        found = []
        for symptom in self._symptoms:
            columns = [k for k, (_, own) in enumerate(self._pairs) if own == symptom]
            part = scores.score[:, columns]
            i, k = np.unravel_index(np.argmax(part), part.shape)
            found.append(self._rule(cases[int(i)], rows[i], columns[int(k)], scores, int(i)))
        return found

    def _rule(
        self, cases: tuple[Condition, ...], row: Array, k: int, scores: Scores, i: int
    ) -> Rule:
        text, symptom = self._pairs[k]
        of_cases = row > 0
        meet = of_cases[self.e.of] & self.conditions[text]
        named = meet & self.counted
        explained = named & self._symptoms[symptom] & self.left
        score, p, r = (float(x[i, k]) for x in (scores.score, scores.precision, scores.recall))
        return Rule(cases, text, symptom, score, p, r, of_cases, meet, named, explained)
