# SPDX-License-Identifier: Apache-2.0
"""A shared library with the aclnn C interface, in a child process: it may crash or hang there.

How this works

    parent (LibraryProvider)                 child (worker/__main__.py), which has the library
    JSON: function, parameters, sizes   ──▶
    memory of each tensor               ──▶  lays the tensors out between guard bytes or pages
                                        ◀──  {"step", "run"} before each step that may crash
                                             phase 1, phase 2 (`repeat` times), destruction
                                        ◀──  JSON: status, message, guards, sizes
                                        ◀──  memory of each tensor afterwards

* The last step reported says where a child died; the next case starts another child.
* A refusal that the case demands is an answer: the parent checks that nothing was written.
* A crash is repeated with fewer fences: one that needs a fence beside a tensor is an access out of
  bounds, reported with the name of that tensor.
* The child imports nothing but the standard library, so no code of openaclnn runs beside the
  library under test, except where that lacks the functions of the runtime.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..reference.arrays import Array
from ..rows.table import OPS
from ..settings import home
from .cases import MISTAKES, Case
from .child import WORKER, Child, Died, message_of
from .provider import BadProvider, Outcome
from .request import Packed, Request

OWN = tuple(op.name for op in OPS)


class LibraryProvider:
    """Starts the child when it is needed, and again after a crash or a hang."""

    def __init__(
        self,
        name: str,
        path: str,
        timeout: float,
        variables: Mapping[str, str],
        functions: Sequence[str] = OWN,
    ) -> None:
        """`functions`: those that it may be asked for."""
        self.name, self._path = name, path
        runtime = [str(home() / "lib64" / f"lib{n}.so") for n in ("ascendcl", "nnopbase")]
        words = ["-I", str(WORKER), "", path, *runtime]
        self._child = Child(name, words, timeout, variables)
        self._child.started()
        has = self._child.tell({"has": list(functions), "sizes": []})
        self._has: dict[str, bool] = has["has"]
        if not any(self._has.values()):
            self.close()
            which = "openaclnn's operators" if functions is OWN else ", ".join(functions)
            raise BadProvider(f"{name} has none of {which}")

        if halves := has["halves"]:
            self.close()
            first = halves[0]
            raise BadProvider(f"{name} has {first}GetWorkspaceSize, but no {first}, phase 2")

    def missing(self, case: Case) -> str:
        return "" if self._has[case.op.name] else f"{Path(self._path).name} has no {case.op.name}"

    @property
    def fingerprint(self) -> int:
        """Of the library's file: results of another build are not this one's."""
        return zlib.crc32(Path(self._path).read_bytes())

    # ---- a case ----

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome:
        return self.answered(case, Request(case, inputs))

    def answered(self, case: Case, request: Packed) -> Outcome:
        try:
            answer, parts = self._child.ask(request.message, request.data)
        except Died as died:
            return self._child.beside(request, died) or Outcome(None, died.kind, str(died))
        due = MISTAKES.get(case.mistake, 0)
        status, step = answer["status"], answer["step"]
        if status != due:
            message = f": {text}" if (text := message_of(answer)) else ""
            where = step if status else "both phases"
            text = f"{where} must return {due}, but returned {status}{message}"
            return Outcome(None, "status", text)
        return request.refusal(answer) if due else request.outcome(answer, parts)

    def output(self) -> str:
        """Ends the child; what it wrote."""
        return self._child.output()

    def close(self) -> None:
        self._child.close()
