# SPDX-License-Identifier: Apache-2.0
"""A case as the worker takes it, and its answer as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import dtype_name, evaluate, numpy_dtype
from ..reference.layouts import CASE_LAYOUTS, of_output, place, root
from ..rows.dtypes import DTYPES
from .cases import Case
from .provider import Outcome

PATTERN = 0xA5  # what outputs hold before: an element that nobody writes shows
WORKSPACE = "the workspace"


class Packed:
    """`message` is JSON, `data` the memory of the tensors, `names` whose memory each part is."""

    message: dict[str, Any]

    def __init__(self, alias: str = "") -> None:
        """`alias`: the input, by name, in whose memory the first output is."""
        self.views: dict[str, Array] = {}
        self.shown: dict[str, str] = {}  # names in sentences, where not those of C
        self.data: list[bytes] = []
        self.names: list[str] = []
        self.written: list[str] = []  # the outputs, in order
        self._alias = alias
        self._memory: dict[str, int] = {}  # the part of each tensor

    def _tensor(self, name: str, view: Array, alias: str = "") -> dict[str, Any]:
        """`alias`: the tensor whose memory it is."""
        if alias:
            self._memory[name] = self._memory[alias]
        else:
            self._memory[name] = len(self.data)
            self.data.append(root(view).tobytes())
            self.names.append(name)
        self.views[name] = view
        offset, strides = place(view)
        return {
            "kind": "tensor",
            "null": False,
            "memory": self._memory[name],
            "alias": bool(alias),
            "shape": list(view.shape),
            "strides": list(strides),
            "offset": offset,
            "storage": root(view).size,
            "dtype": self._code(view.dtype),
        }

    def _code(self, dtype: Any) -> int:
        """aclDataType."""
        return DTYPES[dtype_name(dtype)].code

    def fenced(self, which: Sequence[int]) -> dict[str, Any]:
        """The message with fences beside some of the memory only; -1 is the workspace."""
        return self.message | {"fenced": list(which)}

    def text_of(self, name: str) -> str:
        """A tensor as sentences name it."""
        return self.shown.get(name, name)

    def outcome(self, answer: Mapping[str, Any], parts: Sequence[bytes]) -> Outcome:
        """Results, or what was changed although it is not a result."""
        for name, kept in zip(self.names, answer["guards"], strict=True):
            if not kept:
                return Outcome(None, "damaged", f"wrote outside the memory of {self.text_of(name)}")
        results: dict[str, Array] = {}
        for name, view in self.views.items():
            which = self._memory[name]
            if name not in self.written:
                written = any(self._memory.get(out) == which for out in self.written)
                if not written and self.data[which] != parts[which]:
                    text = f"wrote into {self.text_of(name)}, which is an input"
                    return Outcome(None, "damaged", text)
                continue
            now = np.frombuffer(bytearray(parts[which]), root(view).dtype)
            offset, strides = place(view)
            taken = np.lib.stride_tricks.as_strided(
                now[offset:], view.shape, [s * view.dtype.itemsize for s in strides]
            )
            results[name] = taken.copy()
            taken[...] = view
            if now.tobytes() != self.data[which]:
                text = f"wrote beside the elements of {self.text_of(name)}"
                return Outcome(None, "damaged", text)
        if differ := answer.get("unsteady"):
            names = [self.text_of(n) for n in self.written if self._memory.get(n) in differ]
            text = f"two runs of the same call gave different bits in {' and '.join(names)}"
            if self._alias:
                name = self.text_of(self.written[0])
                text = f"the bits differ between {name} as a second tensor in the memory of "
                text += f"{self._alias} and {name} as the very tensor {self._alias}"
            return Outcome(None, "unsteady", text)
        return Outcome(tuple(results.get(name) for name in self.written))

    def refusal(self, answer: Mapping[str, Any]) -> Outcome:
        """Of a call that was refused as it must be: what a refusal leaves behind."""
        if written := answer.get("written"):
            changed = " and ".join(f"*{name}" for name in written)
            text = f"phase 1 refused the call, but wrote {changed}: a refusal must write neither"
            return Outcome(None, "refusal", f"{text} *workspaceSize nor *executor")
        if not answer.get("message"):
            text = "phase 1 refused the call without a sentence: aclGetRecentErrMsg() is empty"
            return Outcome(None, "refusal", text)
        return Outcome(())


class Request(Packed):
    """A case of a row of openaclnn."""

    def __init__(self, case: Case, inputs: Sequence[Array]) -> None:
        super().__init__(case.alias)
        given = {p.name: x for p, x in zip(case.op.input_tensors, inputs, strict=True)}
        shapes = [x.shape for x in evaluate(case.op, inputs, case.attributes)]
        made = zip(case.op.outputs, shapes, case.output_dtypes, strict=True)
        outputs = {p.name: (shape, dtype) for p, shape, dtype in made}
        first = next(p for p in case.op.tensors)
        asked = dict(zip(outputs, case.asked, strict=True))
        parameters: list[dict[str, Any]] = []
        for p in case.op.parameters:
            if p.role == "attribute":
                value = _plain(case.attributes[p.python_name])
                value = float(value) if p.kind == "scalar" else value
                parameters.append({"kind": p.kind, "value": value})
            elif (case.mistake == "null input" and p is first) or not asked.get(p.name, True):
                parameters.append({"kind": p.kind, "null": True})
            elif p.name in given:
                move = CASE_LAYOUTS[case.layout_of(p.python_name)]
                parameters.append(self._tensor(p.name, move(given[p.name])))
            elif case.alias and p is case.op.outputs[0]:
                alias = next(q.name for q in case.op.input_tensors if q.python_name == case.alias)
                parameters.append(self._tensor(p.name, self.views[alias], alias))
            else:
                shape, dtype = outputs[p.name]
                longer = (*shape, 2) if case.mistake == "wrong shape" else shape
                layout = case.layout_of(p.result_name)
                view = of_output(layout)(np.zeros(longer, numpy_dtype(dtype)))
                root(view).reshape(-1).view(np.uint8)[...] = PATTERN
                parameters.append(self._tensor(p.name, view))
        self.written = [p.name for p in case.op.outputs]
        self.message = {
            "function": case.op.name,
            "parameters": parameters,
            "sizes": [len(part) for part in self.data],
            "outputs": sorted({self._memory[name] for name in self.written if name in self.views}),
            "repeat": 2,
            "refuse": bool(case.mistake),
            "fenced": [*range(len(self.data)), -1],
        }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
