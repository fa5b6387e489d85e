# SPDX-License-Identifier: Apache-2.0
"""A case: what is measured, and its arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import openaclnn

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, input_shapes, numpy_dtype
from ..rows.schema import Op
from ..rows.shapes import shape_of
from .baseline_table import BASELINES
from .machine import memory_for
from .timing import aligned

BLOCK = 1 << 16  # values drawn; large inputs repeat them, and the formula judges as many
SEED = 5
BENT = ("x", "input", "self_or_result")  # the input of a formula that is not the gradient
# The dims along which the gradient has size 1.
BROADCAST: dict[str, tuple[int, ...]] = {
    "scalar": (0, 1),
    "row": (0,),
    "column": (1,),
    "middle": (1,),
}
# transposed_in: the inputs alone
LAYOUTS = ("contiguous", "transposed", "transposed_in", "channels_last", *BROADCAST)


class CannotMeasure(ValueError):
    """One sentence."""


@dataclass(frozen=True)
class Special:
    """A value that replaces a share of the ordinary values of one input."""

    name: str
    value: float
    share: float
    in_gradient: bool = False  # instead of the input that the formula bends

    def __str__(self) -> str:
        return f"{100 * self.share:g}% {self.name}" + " in the gradient" * self.in_gradient


@dataclass(frozen=True)
class Case:
    """`shape` is that of the first input before broadcasting."""

    op: Op
    dtype: str
    shape: tuple[int, ...]
    attributes: Mapping[str, Any]
    layout: str = "contiguous"
    special: Special | None = None

    @property
    def timed(self) -> dict[str, Any]:
        """In place, attributes that do not change the data."""
        return {**self.attributes, **BASELINES[self.op.python].timed}


@dataclass(frozen=True)
class Arrays:
    """In place, the result is the input."""

    inputs: list[Array]
    results: list[Array]

    @property
    def bytes(self) -> int:
        """Least traffic: every input read once, every result written once."""
        given = {id(x): x for x in (*self.inputs, *self.results)}
        return sum(x.nbytes for x in given.values())


def arrays(case: Case) -> Arrays:
    """Inputs of ordinary values in aligned memory."""
    op, kind = case.op, numpy_dtype(case.dtype)
    shapes, out = _shapes(case)
    need = 2 * sum(math.prod(one) for one in (*shapes, *out)) * kind.itemsize
    if not memory_for(need):
        raise CannotMeasure(
            f"--shape {text(case.shape)} needs {need >> 20:,} MiB, more than is free"
        )
    rng = np.random.default_rng(SEED)
    inputs = []
    for one, domain in zip(shapes, REFERENCES[op.kernel].domain, strict=True):
        memory = aligned(math.prod(one), kind)
        with np.errstate(over="ignore"):
            drawn = domain.within(rng, min(BLOCK, memory.size)).astype(kind)
        drawn[np.isinf(drawn)] = 1  # gradients up to 2^20, in FLOAT16
        memory[...] = np.resize(drawn, memory.size)
        inputs.append(_view(memory, one, case.layout))
    named = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    _imply(case, named)
    if case.special is not None:
        _mix(case.special, named, rng)
    if op.inplace:
        return Arrays(inputs, [inputs[0]])
    layout = "contiguous" if case.layout == "transposed_in" else case.layout
    return Arrays(inputs, [_view(aligned(math.prod(one), kind), one, layout) for one in out])


def _shapes(case: Case) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Of inputs and results."""
    op = case.op
    try:
        shapes = list(input_shapes(op, case.shape, case.attributes))
        known = op.known_sizes({op.input_tensors[0].name: case.shape}, case.attributes)
    except (KeyError, ValueError, IndexError):
        form = op.input_tensors[0].form
        raise CannotMeasure(
            f"--shape must be {form} for {op.python}, but is {text(case.shape)}"
        ) from None
    made = [p for p in op.outputs if p.role == "output"]
    out = [shapes[0] if p.form.broadcast else shape_of(p.form, known) for p in made]
    if case.layout in BROADCAST:
        ones = BROADCAST[case.layout]
        shapes[0] = tuple(1 if i in ones else n for i, n in enumerate(shapes[0]))
    return shapes, out


def _view(memory: Array, shape: tuple[int, ...], layout: str) -> Array:
    if layout.startswith("transposed"):
        return memory.reshape(shape[::-1]).T
    if layout == "channels_last" and len(shape) > 2:
        return np.moveaxis(memory.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
    return memory.reshape(shape)


def _imply(case: Case, named: dict[str, Array]) -> None:
    """Inputs that follow from others: group norm's mean and rstd, and the results of Elu."""
    implied = REFERENCES[case.op.kernel].implied
    if implied is not None:
        for name, values in implied(named, case.attributes).items():
            named[name][...] = values.reshape(named[name].shape)
    if case.attributes.get("is_result"):
        rates = (case.attributes[name] for name in ("alpha", "scale", "input_scale"))
        openaclnn.elu_(named["self_or_result"], *rates)


def _mix(special: Special, named: dict[str, Array], rng: np.random.Generator) -> None:
    name = next(n for n in named if (n in BENT) != special.in_gradient)
    x = named[name]
    places = rng.random(min(BLOCK, x.size)) < special.share
    x[np.resize(places, x.size).reshape(x.shape)] = special.value


def ours(case: Case, data: Arrays, attributes: Mapping[str, Any]) -> Callable[[], Any]:
    """The call that a user writes, into existing memory."""
    op = case.op
    given = {p.python_name: x for p, x in zip(op.input_tensors, data.inputs, strict=True)}
    given |= dict(attributes)
    ordered = [given[p.python_name] for p in op.parameters if p.role != "output"]
    out: dict[str, Any] = {}
    if not op.inplace:
        out["out"] = data.results[0] if len(data.results) == 1 else tuple(data.results)
    return partial(getattr(openaclnn, op.python), *ordered, **out)


def text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def count(word: str) -> int:
    """65536 for 64Ki."""
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|)", word)
    if match is None:
        raise ValueError(f"a size is a number, or one with Ki or Mi, but got {word}")
    return int(match[1]) << {"": 0, "Ki": 10, "Mi": 20}[match[2]]


def to_torch(torch: Any, x: Array) -> Any:
    """The same memory as a tensor; torch does not read ml_dtypes arrays."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)
