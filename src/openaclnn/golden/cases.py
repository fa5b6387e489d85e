# SPDX-License-Identifier: Apache-2.0
"""Cases of functions that ATen computes: each sample in several dtypes, layouts and values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..aten import Parameter, Row
from ..aten.products import entry_of
from ..reference.arrays import Array
from ..reference.dtypes import missing_module
from ..reference.layouts import CASE_LAYOUTS, EXPANDED, along_a_dim
from ..rows.schema import Product
from ..rows.table import ANY
from ..verify.case_conditions import BROADCAST, short
from ..verify.cases import BadCase, Case, Shape, seed_of
from .arguments import FLOATS
from .calling import Call
from .judging import described_op
from .samples import Sample, dtype_code, samples, tensor, tensor_word
from .unusual import Mistake, alias_of, mistaken, mistakes
from .values import why_not

NUMBERS = ("double", "float")
SCALARS = (0, 2, -0.5)
# Functions of a matrix that must have full rank: with a stride of 0 it has not.
OF_FULL_RANK = {"inverse", "logdet", "linalg_slogdet", "linalg_cholesky", "qr", "qr_some", "svd",
                "triangular_solve"}  # fmt: skip
LONG = 1031  # past blocks, and in the share of another thread or two
SHARE = 0.1  # of special values
# exp of these overflows in FLOAT unless the maximum is subtracted.
OF_EXPONENTIALS = {"_softmax", "_log_softmax", "logsumexp", "softmax_by_type",
                   "log_softmax_by_type", "scaled_masked_softmax"}  # fmt: skip
LARGE = 100.0
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan)


@dataclass(frozen=True, eq=False)
class GoldenCase(Case):
    """A call of a function that ATen computes."""

    sample: Sample | None = None

    def unusual(self) -> int:
        return int(bool(self.changed))

    def tensors(self) -> Iterator[tuple[str, Shape, bool]]:
        assert self.sample is not None
        for p, word in zip(self.sample.row.given, self.sample.words, strict=True):
            for shape in shapes_in(p, word):
                yield p.name, shape, p.written

    def inputs(self) -> list[Array]:
        """Those of `call`."""
        return []

    def call(self) -> Call:
        assert self.sample is not None
        rng = np.random.default_rng(self.seed)
        given: dict[str, Any] = {}
        outputs: dict[str, Array | None] = {}
        for p, word in zip(self.sample.row.given, self.sample.words, strict=True):
            if p.kind == "tensor" and p.written:
                outputs[p.name] = None if word is None else tensor(word, self.dtype, rng)
            elif p.kind == "tensor":
                given[p.name] = None if word is None else self._drawn(word, rng)
            elif p.kind == "tensors":
                listed = [None if w is None else self._drawn(w, rng) for w in word or ()]
                given[p.name] = None if word is None else listed
            elif p.kind == "dtype":
                given[p.name] = dtype_code(word, self.dtype)
            elif p.kind in NUMBERS:
                given[p.name] = None if word is None else float(word)
            else:
                given[p.name] = word
        call = Call(self.sample.row, given, outputs)
        return mistaken(call, (self.mistake, self.at)) if self.mistake else call

    def _drawn(self, word: str, rng: np.random.Generator) -> Array:
        x = tensor(word, self.dtype, rng)
        if "=" in word or x.dtype.name not in FLOATS:
            return x
        if self.values == "special":
            where = rng.random(x.shape) < SHARE
            x[where] = rng.choice(SPECIAL, np.count_nonzero(where)).astype(x.dtype)
        if self.values == "large":
            x *= x.dtype.type(LARGE)
        return along_a_dim(x, self.layout)

    def as_data(self) -> dict[str, Any]:
        assert self.sample is not None
        data = super().as_data() | {"arguments": list(map(str, self.sample.words))}
        return data | ({"at": self.at} if self.at else {})


def generate(rows: Iterable[Row], dtypes: Iterable[str], product: Product, seed: int) -> list[Case]:
    """As far as the product accepts the dtypes; BadCase for a function that cannot be judged."""
    wanted = [dtype for dtype in dtypes if not missing_module(dtype)]
    return [case for row in rows for case in _of_one(row, wanted, product, seed)]


def _accepted(sample: Sample, dtype: str, product: Product) -> bool:
    """Whether the product accepts the dtype for each tensor of the dtype of the case."""
    if product is ANY:
        return True
    entry = entry_of(sample.row)
    for p, word in zip(sample.row.given, sample.words, strict=True):
        words = word if isinstance(word, list) else [word]
        if not p.kind.startswith("tensor") or not any(w and w.startswith("f") for w in words):
            continue
        rule = entry.rules.get(p.name) if entry else None
        known = rule.accepted(product) if rule else None
        if known is not None and dtype not in known:
            return False
    return product.bfloat16 or dtype != "BFLOAT16"


def _of_one(row: Row, dtypes: list[str], product: Product, seed: int) -> Iterator[Case]:
    if why := why_not(row):
        raise BadCase(f"{row.name} has no golden value: {why}")
    known = [s for s in samples(row) if not any(w.startswith("c") for _, w in s.tensors())]
    if not known:
        raise BadCase(f"{row.name} has no sample calls; use openaclnn.compare with your inputs")
    op, numbers = described_op(row), itertools.count()
    main = max(known, key=lambda s: (not _has_constants(s), max(map(len, _shapes(s)))))
    for dtype in dtypes:
        for kind in _kinds(known, main):
            if not kind.sample.has_floats and dtype != dtypes[0]:
                continue
            if kind.mistake and dtype != dtypes[0]:  # what phase 1 checks of every dtype
                continue
            if not _accepted(kind.sample, dtype, product):
                continue
            name = f"{row.name}/{dtype}/{next(numbers)}"
            mistake, at = kind.mistake or ("", "")
            yield GoldenCase(
                name, op, dtype, _shapes(kind.sample), _attributes(kind.sample), kind.values,
                kind.layout, seed_of(seed, name), mistake=mistake, at=at,
                changed=kind.changed, alias=kind.alias, sample=kind.sample,
            )  # fmt: skip


class Kind(NamedTuple):
    """What a case is but its dtype."""

    sample: Sample
    values: str = "ordinary"
    layout: str = "contiguous"
    changed: str = ""
    alias: str = ""
    mistake: Mistake | None = None


def _kinds(known: list[Sample], main: Sample) -> Iterator[Kind]:
    """Every sample as it is; that of the highest rank in every layout, with special values, with
    other attributes, with its result in the memory of an input, and with mistakes."""
    yield from map(Kind, known)
    left_out = {"contiguous", *(EXPANDED if main.row.op in OF_FULL_RANK else ())}
    yield from (Kind(main, layout=name) for name in CASE_LAYOUTS if name not in left_out)
    if _may_be_special(main):
        yield Kind(main, values="special")
    if main.row.op in OF_EXPONENTIALS:
        yield Kind(main, values="large")
    yield from (Kind(other, changed=changed) for other, changed in _varied(main))
    if longer := _longer(main):
        yield Kind(longer, changed=f"for tensors with a dim of {LONG:,}")
        yield from (Kind(one, changed=BROADCAST) for one in _broadcast(main))
    if alias := alias_of(main):
        yield from (Kind(main, layout=name, alias=alias) for name in ("contiguous", "transposed"))
    yield from (Kind(main, mistake=mistake) for mistake in mistakes(main))


def _varied(sample: Sample) -> Iterator[tuple[Sample, str]]:
    """Other dims, flags and scalars, one at a time, and what is changed. What does not fit is found
    when it runs."""
    rank = max(map(len, _shapes(sample)))
    for i, (p, word) in enumerate(zip(sample.row.given, sample.words, strict=True)):
        others: Iterable[Any] = ()
        if p.kind == "int" and p.name.lower() in ("dim", "axis"):
            others = (d for d in range(-1, rank) if d != word)
        elif p.kind == "bool":
            others = (not word,)
        elif p.kind == "scalar" and isinstance(word, int | float):
            others = (x for x in SCALARS if x != word)
        for other in others:
            words = (*sample.words[:i], other, *sample.words[i + 1 :])
            counted_from_the_end = p.kind == "int" and word >= 0 > other
            how = "negative" if counted_from_the_end else f"not {short(word)}"
            yield replace(sample, words=words), f"where {p.name} is {how}"


def _longer(sample: Sample) -> Sample | None:
    """With another last dim, where all tensors have the same shape. What does not fit is found when
    it runs."""
    words = [word for _, word in sample.tensors()]
    shapes = {tensor_word(word).shape for word in words}
    if len(shapes) != 1 or any("=" in word for word in words) or not (shape := shapes.pop()):
        return None
    longer = (*shape[:-1], LONG)

    def resized(word: Any) -> Any:
        if isinstance(word, list):
            return [resized(one) for one in word]
        return None if word is None else _reshaped(word, longer)

    tensors = ("tensor", "tensors")
    given = zip(sample.row.given, sample.words, strict=True)
    return replace(sample, words=tuple(resized(w) if p.kind in tensors else w for p, w in given))


def _broadcast(sample: Sample) -> Iterator[Sample]:
    """With one input that has a dim of 1, the first or the last. What does not fit is found when it
    runs."""
    inputs = [i for i, p in enumerate(sample.row.given) if p.kind == "tensor" and not p.written]
    for i in inputs[1:]:
        word = sample.words[i]
        shape = tensor_word(word).shape if word else ()
        for smaller in dict.fromkeys(((1, *shape[1:]), (*shape[:-1], 1))) if len(shape) > 1 else ():
            words = (*sample.words[:i], _reshaped(word, smaller), *sample.words[i + 1 :])
            yield replace(sample, words=words)


def _reshaped(word: str, shape: Shape) -> str:
    """The word of a tensor with another shape."""
    old, new = ("x".join(map(str, sizes)) for sizes in (tensor_word(word).shape, shape))
    return word.replace(old, new, 1)


def _has_constants(sample: Sample) -> bool:
    """Tensors of one value, which hide most mistakes."""
    ranges = [tensor_word(word) for p, word in sample.tensors() if not p.written]
    return any(t.listed is None and t.low == t.high and t.letter != "b" for t in ranges)


def _may_be_special(sample: Sample) -> bool:
    """Whether results are floats: NaN has no integer."""
    written = zip(sample.row.given, sample.words, strict=True)
    return sample.has_floats and all(w is None or w[0] in "fF" for p, w in written if p.written)


def _shapes(sample: Sample) -> tuple[tuple[int, ...], ...]:
    """Of the inputs."""
    every = zip(sample.row.given, sample.words, strict=True)
    return tuple(s for p, word in every if not p.written for s in shapes_in(p, word)) or ((),)


def shapes_in(p: Parameter, word: Any) -> list[Shape]:
    """Those of the tensors of an argument."""
    if not p.kind.startswith("tensor"):
        return []
    words = word if isinstance(word, list) else [word]
    return [tensor_word(w).shape for w in words if w]


def _attributes(sample: Sample) -> dict[str, Any]:
    words = {p.name: w for p, w in zip(sample.row.given, sample.words, strict=True)}
    return {p.python_name: words[p.name] for p in described_op(sample.row).attributes}
