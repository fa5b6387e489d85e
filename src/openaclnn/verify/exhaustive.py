# SPDX-License-Identifier: Apache-2.0
"""Every input of a formula of one input: 2^16 patterns of a 16-bit dtype, 2^32 of FLOAT, in order.

The patterns are put to the providers in chunks. A state file has a line of JSON for each chunk that
is done, so that a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.comparison import Element
from ..reference.evaluation import REFERENCES, numpy_dtype
from ..reference.judge import outputs
from ..reference.standards import Standard
from ..report.output import writing
from ..rows.dtypes import DTYPES
from ..rows.schema import Op
from .cases import BadCase, Case
from .explanations import Cause, known
from .profile import Curve, Profile
from .provider import Provider
from .runner import Result, Runner
from .sample import Sample

SCHEMA = "openaclnn-verify-exhaustive-6"
CHUNK = 1 << 22  # patterns of a call
PATTERNS = {name: 1 << dtype.bits for name, dtype in DTYPES.items() if dtype.bits <= 32}


@dataclass(frozen=True)
class Chunk(Case):
    """Neighbouring bit patterns."""

    first: int = 0

    def inputs(self) -> list[Array]:
        (size,) = self.shapes[0]
        return [self.inputs_at(np.arange(size))]

    def inputs_at(self, positions: Array) -> Array:
        kind = np.dtype(numpy_dtype(self.dtype))
        return (self.first + positions).astype(f"u{kind.itemsize}").view(kind)


def has_every(op: Op, dtype: str) -> bool:
    """Whether the operator has few enough inputs for all of them to be tried."""
    return len(op.input_tensors) == 1 and op.pointwise and dtype in PATTERNS


def targets(cases: Iterable[Case], chosen: bool) -> list[Case]:
    """One case of each operator, dtype and attribute set, in place of all their shapes and values.
    Unless they were `chosen` in a file, the first attribute set of each is enough."""
    found: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        if not has_every(case.op, case.dtype) or case.mistake or case.out:
            continue
        usual = REFERENCES[case.op.kernel].usual
        if chosen or repr(dict(case.attributes)) == repr(dict(usual)):
            found.setdefault((case.op.name, case.dtype, repr(case.attributes)), case)
    if not found:
        raise BadCase(
            "--exhaustive needs an operator of one input in FLOAT16, BFLOAT16 or FLOAT, "
            "and none of these is"
        )
    return list(found.values())


def chunks(cases: Iterable[Case], size: int = 0) -> list[Case]:
    """Of `size` patterns, CHUNK unless given."""
    size = size or CHUNK
    made: list[Case] = []
    for case in cases:
        every = PATTERNS[case.dtype]
        digits = 2 * np.dtype(numpy_dtype(case.dtype)).itemsize
        for first in range(0, every, size):
            last = min(first + size, every) - 1
            span = f"{first:0{digits}x}-{last:0{digits}x}"
            made.append(
                Chunk(
                    id=f"{case.id}/every/{span}",
                    op=case.op,
                    dtype=case.dtype,
                    shapes=((last + 1 - first,),),
                    attributes=case.attributes,
                    values=f"0x{first:0{digits}x} to 0x{last:0{digits}x}",
                    first=first,
                )
            )
    return made


class State:
    """The results of the chunks that are done, in memory and in a file."""

    def __init__(self, path: Path | None, header: Mapping[str, Any], cases: Sequence[Case]) -> None:
        self._path = path
        self.done: dict[str, list[Result]] = {}
        header = json.loads(json.dumps({"schema": SCHEMA, **header}))
        if path is None:
            return
        whole = self._read(path, header, {case.id: case for case in cases})
        with writing(path), path.open("ab") as file:
            file.truncate(whole)  # a line that was cut off
            if not whole:
                file.write(json.dumps(header).encode() + b"\n")

    def _read(self, path: Path, header: Mapping[str, Any], cases: Mapping[str, Case]) -> int:
        """The number of bytes that are whole lines."""
        if path.exists() and not path.is_file():  # a device may have no end
            raise BadCase(f"{path} must be a state file of --exhaustive or not exist")
        text = path.read_bytes() if path.exists() else b""
        lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
        if not lines:
            if text:
                raise BadCase(f"{path} must be a state file of --exhaustive or not exist")
            return 0
        try:
            found = json.loads(lines[0])
            entries = [json.loads(line) for line in lines[1:]]
        except ValueError:
            found, entries = None, []
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise BadCase(f"{path} must be a state file of --exhaustive or not exist")
        if other := [name for name in header if found.get(name) != header[name]]:
            raise BadCase(f"{path} is the state of a run with other {', '.join(other)}")
        for entry in entries:
            case = cases.get(entry["id"])
            if case is not None:
                self.done[case.id] = [_result(case, data) for data in entry["results"]]
        return sum(map(len, lines))

    def add(self, case: Case, results: Sequence[Result]) -> None:
        self.done[case.id] = list(results)
        if self._path is not None:
            entry = {"id": case.id, "results": [_data(r) for r in results]}
            with writing(self._path), self._path.open("ab") as file:
                file.write(json.dumps(entry).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())


def _data(result: Result) -> dict[str, Any]:
    kept = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "case"}
    kept["worst"] = [asdict(element) for element in result.worst]
    kept["profiles"] = [asdict(profile) for profile in result.profiles]
    kept["samples"] = [_sample_data(sample) for sample in result.samples]
    kept["element"] = asdict(result.element) if result.element else None
    kept["causes"] = {str(cause.defect.number): cause.elements for cause in result.causes}
    return kept


def _result(case: Case, data: Mapping[str, Any]) -> Result:
    kept = dict(data)
    kept["worst"] = tuple(_element(e) for e in data["worst"])
    kept["profiles"] = tuple(
        Profile(**{**p, "curves": {name: Curve(**c) for name, c in p["curves"].items()}})
        for p in data["profiles"]
    )
    kept["samples"] = tuple(_sample(case, entry) for entry in data["samples"])
    kept["element"] = _element(data["element"]) if data["element"] else None
    kept["untaken"], kept["outputs"] = tuple(data["untaken"]), tuple(data["outputs"])
    elements = data.get("causes", {})
    kept["causes"] = tuple(
        Cause(defect, elements[str(defect.number)])
        for defect in known(data["provider"])
        if str(defect.number) in elements
    )
    return Result(case, **kept)


def _sample_data(sample: Sample) -> dict[str, Any]:
    """The inputs follow from the positions. What is expected may come from another library."""
    output = sample.output
    got = output.got
    arrays = {"at": sample.at, "got": got.view(f"u{got.itemsize}"), "wrong": sample.wrong,
              "weight": sample.weight, "unwritten": sample.unwritten,
              "expected": output.expected.astype(np.float64)}  # fmt: skip
    kept = {
        "wrong_in_all": sample.wrong_in_all,
        "onset": sample.onset,
        "dtype": sample.output.dtype,
    }
    return kept | {name: array.tolist() for name, array in arrays.items()}


def _sample(case: Case, data: Mapping[str, Any]) -> Sample:
    assert isinstance(case, Chunk)
    kind = np.dtype(numpy_dtype(data["dtype"]))
    at = np.array(data["at"], np.int64)
    got = np.array(data["got"], f"u{kind.itemsize}").view(kind)
    (output,) = outputs(case.op, [case.inputs_at(at)], case.attributes, [got])
    output = output.against(np.array(data["expected"]))
    return Sample(
        output,
        at,
        np.array(data["wrong"], bool),
        np.array(data["weight"]),
        np.array(data["unwritten"], bool),
        case.shapes[0],
        data["wrong_in_all"],
        data["onset"],
    )


def _element(data: Mapping[str, Any]) -> Element:
    pairs = {name: tuple(data[name]) for name in ("nearest", "got")}
    given = {name: tuple(value) for name, value in data["inputs"].items()}
    return Element(**{**data, **pairs, "index": tuple(data["index"]), "inputs": given})


def header(
    providers: Sequence[Provider],
    benchmark: Provider | None,
    standard: Standard,
    profiles: bool,
    version: str,
) -> dict[str, Any]:
    """What two runs must have in common for their results to make one report."""
    return {
        "version": version,
        "providers": [p.name for p in providers],
        "libraries": [getattr(p, "fingerprint", None) for p in providers],
        "benchmark": benchmark.name if benchmark else None,
        "standard": asdict(standard),
        "histograms": profiles,
    }


def run(
    runner: Runner, cases: Sequence[Case], state: State, on_case: Callable[[Case, int], None]
) -> list[Result]:
    """`on_case` is called before each chunk that is not done, with the patterns before it."""
    before = 0
    for case in cases:
        if case.id not in state.done:
            on_case(case, before)
            state.add(case, runner.case(case))
        before += case.shapes[0][0]
    return [result for case in cases for result in state.done[case.id]]
