# SPDX-License-Identifier: Apache-2.0
"""A Python function (NumPy, torch, Triton in its interpreter, JAX) in a child process.

Parameters that have the names of the operator's are given by name; others by position, in the order
of the Python function or, with outputs to write, of the C function.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, compute_dtype, rounded_attributes
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean, near
from .cases import Case
from .child import WORKER, Child, Died
from .provider import BadProvider, Outcome
from .request import PATTERN, Request

NAMED = ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")
POSITIONAL = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")


class Arguments:
    """How the function takes the arguments of an operator, by name of the row's parameters."""

    def __init__(self, op: Op, parameters: Sequence[dict[str, Any]] | None) -> None:
        """ValueError if it does not take them."""
        known = {p.python_name: p.name for p in op.parameters}
        known |= {p.name: p.name for p in op.parameters}
        known |= {p.result_name: p.name for p in op.outputs}
        inputs = [p.name for p in op.parameters if p.role != "output"]
        every = [p.name for p in op.parameters]
        self.positions: list[str] = []
        self.named: dict[str, str] = {}
        given = [p for p in parameters or () if p["kind"] in (*NAMED, *POSITIONAL)]
        kinds = {p["kind"] for p in parameters or ()}
        # Has a default that no case changes: a number of threads, or a name with a typo.
        self.unknown = [p["name"] for p in given if p["default"] and p["name"] not in known]
        named = {p["name"]: known[p["name"]] for p in given
                 if p["name"] in known and p["kind"] in NAMED}  # fmt: skip
        needed = [p for p in given if not p["default"]]
        takes = ", ".join(p.python_name for p in op.parameters if p.role != "output")
        if named and all(p["name"] in named for p in needed):
            self.named = named
            if "VAR_KEYWORD" in kinds:
                rest = [p.name for p in op.parameters if p.role != "output"]
                python = {p.name: p.python_name for p in op.parameters}
                self.named |= {python[n]: n for n in rest if n not in named.values()}
        elif parameters is None or "VAR_POSITIONAL" in kinds:
            self.positions = inputs  # Python's order
        elif len(needed) <= len(inputs) <= sum(p["kind"] in POSITIONAL for p in given):
            self.positions = inputs
        elif len(needed) == len(every):
            self.positions = every
        else:
            has = ", ".join(p["name"] for p in given) or "nothing"
            raise ValueError(f"{op.python} has the arguments {takes}, but the function takes {has}")

        # By position although some names are the operator's: these must stand where it has them.
        pairs = zip((p["name"] for p in given), self.positions, strict=False)
        if moved := [word for word, due in pairs if known.get(word, due) != due]:
            other = next(p["name"] for p in given if p["name"] not in known)
            meant = near(other, (p.python_name for p in op.parameters))
            by_position = f"by position {moved[0]} would be another one"
            hint = did_you_mean(meant, by_position)
            raise ValueError(f"{other} is no argument of {op.python} ({takes}){hint}")

        self._own = [p["name"] for p in given if p["name"] not in known][: len(self.positions)]

    def renamed(self, op: Op) -> list[str]:
        """A sentence where arguments are passed by position under other names."""
        names = {
            p.name: f"{p.python_name} (to write)" if p.role == "output" else p.python_name
            for p in op.parameters
        }
        if self.named or not self._own:
            return []
        passed = ", ".join(names[n] for n in self.positions)
        meant = near(self._own[0], (p.python_name for p in op.parameters))
        hint = f" (did you mean {meant}?)" if meant and len(self._own) == 1 else ""
        own = ", ".join(self._own)
        return [f"{own}: no argument of {op.python}{hint}; passed by position: {passed}"]

    def untaken(self, op: Op) -> tuple[str, ...]:
        """The inputs and attributes, by Python name, that the function is not given."""
        taken = (p for p in op.parameters if p.role != "output" and p.name not in self.all)
        return tuple(p.python_name for p in taken)

    @property
    def all(self) -> list[str]:
        return [*self.positions, *self.named.values()]


# The interpreter needs no GPU. glibc fills what it allocates with the inverse of the number, so
# that results of the function hold PATTERN until they are written.
DEFAULTS = {"TRITON_INTERPRET": "1", "MALLOC_PERTURB_": str(PATTERN ^ 0xFF)}


class PythonProvider:
    """`python:FILE:FUNCTION`."""

    def __init__(self, name: str, file: str, function: str, timeout: float, op: Op | None) -> None:
        """`op`: the only operator that is asked for, if there is one; otherwise the function's name
        is an operator's."""
        self.name, self._file = name, file
        variables = DEFAULTS | os.environ
        words = [str(WORKER / "arrays.py"), "", file, function]
        self._child = Child(name, words, timeout, variables)
        said = self._child.started()
        self._parameters = said["parameters"]
        if op is None:
            self.close()
            raise BadProvider(
                f"{name} is a function of one operator: name it, and no other, with --op"
            )
        self._op = op
        try:
            self._arguments = Arguments(op, self._parameters)
        except ValueError as error:
            self.close()
            raise BadProvider(f"{name}: {error}") from None
        self.untaken = self._arguments.untaken(op)
        self.notes = [self._note(word) for word in self._arguments.unknown
                      if self._arguments.named]  # fmt: skip
        sets = REFERENCES[op.kernel].attributes
        self.notes += self._arguments.renamed(op)
        varied = [n for n in self.untaken if n in sets[0] and any(a[n] != sets[0][n] for a in sets)]
        if varied and not self.notes:
            self.notes = [f"{name}: the function has no parameter {' or '.join(varied)}"]
        written = {p.name for p in op.outputs} & {*self._arguments.all}
        self._writes = len(written) == len(op.outputs)
        self._takes_out = bool({p.name for p in op.outputs if p.role == "output"} & written)

    def missing(self, case: Case) -> str:
        if case.op is not self._op:
            return f"the function computes {self._op.python}"
        if case.mistake:
            return "a Python function has no status codes"
        if case.alias and not self._takes_out:
            return "the function makes its outputs"
        if case.out and not self._takes_out:
            return "the function has no argument for an output of another dtype"
        return ""

    def _note(self, word: str) -> str:
        """Of a parameter that no case gives a value."""
        takes = ", ".join(p.python_name for p in self._op.parameters if p.role != "output")
        hint = did_you_mean(near(word, self.untaken), "it keeps its default")
        return f"{self.name}: {word} is no argument of {self._op.python} ({takes}){hint}"

    @property
    def fingerprint(self) -> int:
        """Of the file: results of another version are not this one's."""
        return zlib.crc32(Path(self._file).read_bytes())

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome:
        request = Request(case, inputs)
        request.shown = {p.name: p.result_name for p in case.op.tensors}
        try:
            answer, parts = self._child.ask(self._message(request, case, inputs), request.data)
        except Died as died:
            return self._child.beside(request, died) or Outcome(None, died.kind, str(died))
        if "failed" in answer:
            kind, sentence = answer["failed"]
            return Outcome(None, kind, sentence)
        return request.outcome(answer, parts)

    def _message(self, request: Request, case: Case, inputs: Sequence[Array]) -> dict[str, Any]:
        """That of a library, with the names of parameters and of dtypes; scalars are rounded to
        FLOAT where phase 1 rounds them."""
        attributes = rounded_attributes(case.op, case.attributes, compute_dtype(inputs))
        named = zip(case.op.parameters, request.message["parameters"], strict=True)
        parameters = [p_data | {"name": p.name} for p, p_data in named]
        names = {p.name: p.python_name for p in case.op.attributes}
        for p in parameters:
            if p["kind"] == "tensor" and not p["null"]:
                p["dtype"] = request.views[p["name"]].dtype.name
            elif p["kind"] != "tensor":
                p["value"] = attributes[names[p["name"]]]
        request.message |= {
            "parameters": parameters,
            "positions": self._arguments.positions,
            "named": self._arguments.named,
            "results": [p.name for p in case.op.outputs],
            "optional": [p.name for p in case.op.outputs if p.condition is not None],
            "writes": self._writes,
        }
        return request.message

    def output(self) -> str:
        """Ends the child; what it wrote."""
        return self._child.output()

    def close(self) -> None:
        self._child.close()
