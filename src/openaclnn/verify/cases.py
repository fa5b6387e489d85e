# SPDX-License-Identifier: Apache-2.0
"""A case: one call of one operator, so that it can be written down and made again."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..plan import find
from ..reference.arrays import Array
from ..reference.dtypes import dtype_of
from ..reference.evaluation import REFERENCES, input_shapes, refused
from ..reference.layouts import CASE_LAYOUTS, EXPANDED, along_a_dim
from ..report.output import read_json
from ..rows.catalogue import attributes_text, find_operator
from ..rows.schema import Op
from . import values as kinds

SCHEMA = "openaclnn-verify-cases-1"
Shape = tuple[int, ...]

# Calls that must be refused, and with which status.
MISTAKES = {"null input": 161001, "wrong shape": 161002, "wrong dtype": 161002}
OF_ROWS = ("null input", "wrong shape")  # those of openaclnn's own operators


@dataclass(frozen=True)
class Case:
    """One call. The inputs follow from the rest."""

    id: str
    op: Op
    dtype: str  # of the first input
    shapes: tuple[Shape, ...]  # of the inputs
    attributes: Mapping[str, Any] = field(hash=False)
    values: str = "mixed"
    layout: str = "contiguous"
    seed: int = 0
    companion: str | None = None  # dtype of the tensors that may have another
    out: str | None = None  # dtype of the output, where it may have another
    mistake: str = ""  # of MISTAKES
    at: str = ""  # the parameter that has it; of rows the first input, or the output
    changed: str = ""  # "where dim is not 2": all else is as in a case before
    alias: str = ""  # the input, by Python name, in whose memory the first output is
    of: str = ""  # the one tensor, as sentences name it, that has the layout; all unless given

    @property
    def input_dtypes(self) -> list[str]:
        other = self.companion or self.dtype
        return [other if p.companion else self.dtype for p in self.op.input_tensors]

    @property
    def output_dtypes(self) -> list[str]:
        other = self.companion or self.dtype
        return [other if p.companion else self.out or self.dtype for p in self.op.outputs]

    @property
    def dtypes(self) -> set[str]:
        return {*self.input_dtypes, *self.output_dtypes}

    @property
    def asked(self) -> list[bool]:
        """Whether each output is: some are only with a flag."""
        flags = {p.name: self.attributes.get(p.python_name) for p in self.op.attributes}
        return [p.condition is None or bool(flags[p.condition]) for p in self.op.outputs]

    def unusual(self) -> int:
        """How many attributes are others than people use."""
        usual = REFERENCES[self.op.kernel].usual
        return sum(repr(value) != repr(usual[name]) for name, value in self.attributes.items())

    def tensors(self) -> Iterator[tuple[str, Shape, bool]]:
        """Name, shape and whether it is written. Outputs: the first, which has the shape of the
        first input where inputs are not broadcast."""
        first = np.broadcast_shapes(*self.shapes) if self.op.pointwise else self.shapes[0]
        for i, name in enumerate(tensor_names(self.op)):
            written = i == len(self.shapes)
            yield name, first if written else self.shapes[i], written

    def layout_of(self, name: str) -> str:
        """Of a tensor, as sentences name it."""
        return self.layout if self.of in ("", name) else "contiguous"

    @property
    def input_layouts(self) -> list[str]:
        return [self.layout_of(p.python_name) for p in self.op.input_tensors]

    def inputs(self) -> list[Array]:
        drawn = kinds.draw(
            self.op, self.shapes, self.input_dtypes, self.values, self.attributes, self.seed
        )
        return [along_a_dim(x, own) for x, own in zip(drawn, self.input_layouts, strict=True)]

    @property
    def layout_text(self) -> str:
        return f"{self.layout} of {self.of} alone" if self.of else self.layout

    def text(self) -> str:
        """What is particular to it, in words."""
        shapes = " ".join(str(list(s)) for s in dict.fromkeys(self.shapes))
        parts = [f"shape {shapes}", f"layout {self.layout_text}", f"values {self.values}"]
        parts += [attributes_text(self.op, self.attributes)] if self.attributes else []
        parts += [f"companions {self.companion}"] if self.companion else []
        parts += [f"output {self.out}"] if self.out else []
        parts += [f"output in the memory of {self.alias}"] if self.alias else []
        parts += [self.mistake + (f" of {self.at}" if self.at else "")] if self.mistake else []
        return ", ".join(parts)

    def as_data(self) -> dict[str, Any]:
        """What `from_data` reads."""
        data: dict[str, Any] = {
            "id": self.id,
            "op": self.op.python,
            "dtype": self.dtype,
            "shapes": [list(s) for s in self.shapes],
            "attributes": {k: _written(v) for k, v in self.attributes.items()},
            "values": self.values,
            "layout": self.layout,
            "seed": self.seed,
        }
        for name in ("of", "companion", "out", "mistake", "alias"):
            if value := getattr(self, name):
                data[name] = value
        return data


def tensor_names(op: Op) -> list[str]:
    """As sentences name them: the inputs and, unless it is one of them, the first output."""
    names = [p.python_name for p in op.input_tensors]
    return names if op.inplace else [*names, op.outputs[0].result_name]


def aliases(op: Op, shapes: Sequence[Shape]) -> list[str]:
    """The inputs, by Python name, that the first output may be: those of its shape and dtype."""
    if op.inplace:
        return []
    shape = np.broadcast_shapes(*shapes) if op.shapes == "broadcast" else shapes[0]
    given = zip(op.input_tensors, shapes, strict=True)
    return [p.python_name for p, own in given if own == shape and not p.companion]


def seed_of(base: int, name: str) -> int:
    """The seed of a case; the same whatever other cases there are."""
    return zlib.crc32(f"{base}/{name}".encode())


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class BadCase(ValueError):
    """A case that cannot be made: one sentence."""


def from_data(data: Any, position: int, base: int = 0) -> Case:
    """A case of a file. Only `op` is needed; the rest has defaults."""
    where = f"case {position}"
    if not isinstance(data, dict) or "op" not in data:
        raise BadCase(f'{where} must be an object with "op", but is {data!r}')
    fields = {"id", "op", "dtype", "shape", "shapes", "attributes", "values", "layout", "seed",
              "of", "companion", "out", "mistake", "alias"}  # fmt: skip
    if unknown := sorted(set(data) - fields):
        raise BadCase(f"{where} has {unknown[0]!r}, but the fields are {', '.join(sorted(fields))}")
    op = find_operator(str(data["op"]))
    if op is None:
        raise BadCase(f"{where}: there is no operator {data['op']}")
    reference = REFERENCES[op.kernel]
    dtype = _dtype(where, data.get("dtype", op.dtypes[0]))
    attributes = _attributes(where, op, data.get("attributes", {}))
    values = _one_of(where, "values", data.get("values", "ordinary"), kinds.names(op, dtype))
    name = str(data.get("id", f"{op.python}/{dtype}/file-{position}"))
    first = kinds.shape_of(op, dtype, values, attributes)
    if first is None:
        first = _shape(where, data.get("shape", reference.example))
    try:
        shapes = tuple(input_shapes(op, first, attributes))
    except (KeyError, IndexError, TypeError, ValueError):
        raise BadCase(f"{where}: {op.python} cannot have shape {list(first)}") from None
    if "shapes" in data and kinds.shape_of(op, dtype, values, attributes) is None:
        shapes = tuple(_shape(where, s) for s in _list(where, "shapes", data["shapes"]))
        if len(shapes) != len(op.input_tensors):
            raise BadCase(f"{where}: shapes must be {len(op.input_tensors)}, but are {len(shapes)}")
    if (why := refused(op, shapes, attributes)) is not None:
        raise BadCase(f"{where}: {why.removeprefix(f'{op.python}: ')}")
    mistake = data.get("mistake") or ""
    if mistake:
        _one_of(where, "mistake", mistake, OF_ROWS)
    layout = _one_of(where, "layout", data.get("layout", "contiguous"), CASE_LAYOUTS)
    if layout in EXPANDED and op.inplace:
        raise BadCase(f"{where}: {op.python} writes its input, which must not have layout {layout}")
    if of := data.get("of") or "":
        _one_of(where, "of", of, tensor_names(op))
    alias = data.get("alias") or ""
    if alias:
        if not (known_aliases := aliases(op, shapes)):
            raise BadCase(f'{where}: {op.python} has no input that "alias" can name')
        _one_of(where, "alias", alias, known_aliases)
        if mistake or layout in EXPANDED or data.get("out"):
            raise BadCase(f'{where}: "alias" goes with no "out", no "mistake" and no stride of 0')
    return Case(
        id=name,
        op=op,
        dtype=dtype,
        shapes=shapes,
        attributes=attributes,
        values=values,
        layout=layout,
        of=of,
        seed=_seed(where, data.get("seed", seed_of(base, name))),
        companion=_dtype(where, data["companion"]) if data.get("companion") else None,
        out=_dtype(where, data["out"]) if data.get("out") else None,
        mistake=mistake,
        alias=alias,
    )


def _dtype(where: str, given: Any) -> str:
    try:
        return dtype_of(given)
    except ValueError as error:
        raise BadCase(f"{where}: {error}") from None


def _one_of(where: str, what: str, given: Any, known: Any) -> str:
    if not isinstance(given, str) or given not in known:
        raise BadCase(f"{where}: {what} must be one of {', '.join(known)}, but is {given!r}")
    return str(given)


def _seed(where: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise BadCase(f"{where}: seed must be an integer of at least 0, but is {given!r}")
    return given


def _list(where: str, what: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise BadCase(f"{where}: {what} must be a list, but is {given!r}")
    return given


def _shape(where: str, given: Any) -> Shape:
    sizes = given if isinstance(given, list | tuple) else None
    if sizes is None or not all(isinstance(n, int) and n >= 0 for n in sizes) or len(sizes) > 8:
        raise BadCase(f"{where}: a shape must be a list of at most 8 sizes, but is {given!r}")
    return tuple(sizes)


# What JSON has for the kinds of attributes; of the others anything that float takes, "inf" too.
_KINDS: dict[str, tuple[type, str]] = {
    "int64": (int, "an integer"),
    "bool": (bool, "true or false"),
    "text": (str, "a string or null"),
}


def _attributes(where: str, op: Op, given: Any) -> dict[str, Any]:
    """The first set of the operator's reference, changed as given."""
    chosen = dict(REFERENCES[op.kernel].usual)
    if not isinstance(given, dict):
        raise BadCase(f"{where}: attributes must be an object, but are {given!r}")
    for name, value in given.items():
        if name not in chosen:
            raise BadCase(
                f"{where}: {op.python} has no attribute {name!r}; it has {', '.join(chosen)}"
            )
        kind = next(p.kind for p in op.attributes if p.python_name == name)
        kept, what = _KINDS.get(kind, (float, "a number"))
        try:
            chosen[name] = float(value) if kept is float else value
        except (TypeError, ValueError):
            raise BadCase(f"{where}: {name} must be a number, but is {value!r}") from None
        if type(chosen[name]) not in (kept, type(None) if kind == "text" else kept):
            raise BadCase(f"{where}: {name} must be {what}, but is {value!r}")
    return chosen


def read(path: str, seed: int) -> Sequence[Case]:
    """The cases of a file."""
    try:
        given = read_json(path, SCHEMA).get("cases")
    except ValueError as error:
        raise BadCase(str(error)) from None
    if not isinstance(given, list):
        raise BadCase(f'{path}: "cases" must be a list, but is {given!r}')
    cases = [from_data(entry, i, seed) for i, entry in enumerate(given)]
    if len({case.id for case in cases}) < len(cases):
        raise BadCase(f"{path} must not have two cases of one id")
    return cases


def operator(name: str) -> Op:
    """The row of a C or Python name, or a ValueError with the one that was meant."""
    return find_operator(name) or find(name)[1]
