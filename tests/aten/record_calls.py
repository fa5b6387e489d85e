# SPDX-License-Identifier: Apache-2.0
"""Writes plausible calls of the rows that ATen computes, from the samples with which PyTorch tests
its operators, for tests/aten/aten_samples.py:

    pip install expecttest
    python -m tests.aten.record_calls src/openaclnn/golden/calls/recorded.txt

A call is a line: the function, then its arguments in their order. A tensor is its dtype (f for the
float under test), its shape, and the range of its values; of a few integers, the values; of an
output, nothing.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from tests.aten.aten_samples import Library, Refused, arguments, sample
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from openaclnn.aten import Row, rows

CALLS = 2  # of a row: the first, and the largest
LARGEST = 3000  # elements of a tensor
FEW = 8  # integers that are written down
LETTERS = {
    torch.float32: "f", torch.int64: "i", torch.bool: "b", torch.complex64: "c", torch.uint8: "u",
    torch.int32: "w",
}  # fmt: skip


class Unusable(Exception):
    """A call that cannot be written down."""


def tensor(value: torch.Tensor, result: bool = False) -> str:
    if value.dtype not in LETTERS or value.numel() > LARGEST or value.is_sparse:
        raise Unusable
    text = LETTERS[value.dtype] + "x".join(map(str, value.shape))
    if result or value.dtype == torch.bool or value.numel() == 0:
        return text
    if not value.dtype.is_floating_point and not value.is_complex() and value.numel() <= FEW:
        return f"{text}={','.join(map(str, value.flatten().tolist()))}"
    if value.dtype == torch.complex64:
        value = torch.view_as_real(value)
    kept = value.detach()
    kept = kept[kept.isfinite()] if value.dtype.is_floating_point else kept
    low, high = (kept.min().item(), kept.max().item()) if kept.numel() else (0, 0)
    return f"{text}[{low:.4g},{high:.4g}]" if isinstance(low, float) else f"{text}[{low},{high}]"


def written(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "tensor" and isinstance(value, torch.Tensor):
        return tensor(value)
    if kind in ("tensors", "scalars", "ints", "bools", "floats"):
        if isinstance(value, torch.Tensor) or not isinstance(value, (list, tuple)):
            value = [value]
        return [written(one, kind.removesuffix("s")) for one in value]
    if kind == "dtype":
        return LETTERS.get(value) or unusable()
    if isinstance(value, (bool, int, float, str)):
        return value
    raise Unusable


def unusable() -> str:
    raise Unusable


ABSENT = {"int": 0, "double": 0.0, "float": 0.0, "dtype": "f"}
CONSTANTS = {"none": None, "true": True, "false": False}


def same_constant(text: str, value: Any) -> bool:
    if text in CONSTANTS:
        return value is CONSTANTS[text]
    return str(value) == text.strip('"')


def call(row: Row, given: list[Any], results: list[Any]) -> str:
    names = [p.name for p in row.parameters]
    values: dict[str, Any] = {}
    for text, value in zip(row.arguments, given, strict=False):
        if text in names:
            values[text] = written(value, row.parameters[names.index(text)].kind)
        elif text != "dtype of out" and not same_constant(text, value):
            raise Unusable
    for place, result in zip(row.outputs, results, strict=False):
        name = names[place]
        if name in values:
            continue
        kind = row.parameters[place].kind
        values[name] = (
            [tensor(r, True) for r in result] if kind == "tensors" else tensor(result, True)
        )
    for parameter in row.given:  # what C has no none for
        if parameter.name in values and values[parameter.name] is None:
            known = {**ABSENT, "int": 1} if parameter.name == "correction" else ABSENT
            values[parameter.name] = known.get(parameter.kind)
    in_place = row.inplace or names[row.outputs[0]] in row.arguments
    if in_place and given[0].shape != results[0].shape:  # self would take a larger result
        raise Unusable
    words = [repr(values.get(p.name, 0 if p.kind in ("int", "byte") else None)) for p in row.given]
    return f"{row.name}({', '.join(words)})"


class Recorder(TorchDispatchMode):
    def __init__(self, wanted: dict[tuple[str, str], list[Row]]) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: dict[str, dict[str, None]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        for row in self.wanted.get((name, func._schema.overload_name), ()):
            calls = self.found.setdefault(row.name, {})
            given = kwargs or {}
            values = [
                args[i] if i < len(args) else given.get(a.name, a.default_value)
                for i, a in enumerate(func._schema.arguments)
            ]
            several = any(row.parameters[i].kind == "tensors" for i in row.outputs)
            results = list(result) if isinstance(result, tuple) and not several else [result]
            with contextlib.suppress(Unusable):
                calls[call(row, values, results)] = None
        return result


def record() -> dict[str, dict[str, None]]:
    wanted: dict[tuple[str, str], list[Row]] = {}
    for row in rows():
        if row.overload is not None and not row.is_type:
            wanted.setdefault((row.op, row.overload), []).append(row)
    recorder = Recorder(wanted)
    for info in op_db:
        if torch.float32 not in info.dtypes:
            dtype = torch.int64 if torch.int64 in info.dtypes else None
        else:
            dtype = torch.float32
        if dtype is None:
            continue
        torch.manual_seed(0)
        try:
            samples = list(info.sample_inputs("cpu", dtype, requires_grad=info.supports_autograd))
        except Exception as error:
            print(f"{info.name}: {error}", file=sys.stderr)
            continue
        for one in samples[:24]:
            try:
                with recorder:
                    result = info(one.input, *one.args, **one.kwargs)
                    leaves = result if isinstance(result, (tuple, list)) else [result]
                    leaves = [r for r in leaves if isinstance(r, torch.Tensor) and r.requires_grad]
                    if leaves:
                        torch.autograd.backward(leaves, [torch.randn_like(r) for r in leaves])
            except Exception as error:
                print(f"{info.name}: {str(error).splitlines()[:1]}", file=sys.stderr)
    return recorder.found


def size(line: str) -> int:
    """The elements of the tensors."""
    shapes = re.findall(r"'[a-z]([\dx]*)", line)
    return sum(math.prod(map(int, filter(None, shape.split("x")))) for shape in shapes)


def chosen(lines: list[str]) -> list[str]:
    large = sorted(lines[1:], key=size, reverse=True)[: CALLS - 1]
    return [line for line in lines if line in (lines[0], *large)]


def foreach(row: Row) -> str:
    words = {"tensors": ["f3x5[0.1,0.9]", "f7[0.1,0.9]"], "scalars": [0.5, 1.5], "scalar": 0.5,
             "tensor": "f1[0.5,1.5]"}  # fmt: skip
    outs = ["f", "f"] if row.name == "aclnnForeachNorm" else ["f3x5", "f7"]
    if "values" in row.arguments and row.op in ("_foreach_addcdiv", "_foreach_addcmul"):
        words["tensor"] = "f2[0.5,1.5]"
    return f"{row.name}({', '.join(repr(outs if p.written else words[p.kind]) for p in row.given)})"


def accepted(library: Library, line: str) -> bool:
    """Whether the function takes it: PyTorch's samples have dtypes that C has no out for."""
    one = sample(line)
    with contextlib.suppress(Refused):
        library(one.row, arguments(one, torch.float32, torch.float32))
        return True
    return False


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = record()
    lines = [foreach(row) for row in rows() if row.op.startswith("_foreach")]
    lines += [line for name in sorted(found) if found[name] for line in chosen(list(found[name]))]
    library = Library()
    lines = [line for line in lines if accepted(library, line)]
    head = "# SPDX-License-Identifier: Apache-2.0\n# Written by tests/aten/record_calls.py.\n"
    Path(sys.argv[1]).write_text(head + "\n".join(lines) + "\n")
    print(f"{len(lines)} calls of {len({line.partition('(')[0] for line in lines})} functions")
