# SPDX-License-Identifier: Apache-2.0
"""The same bits from every build: each row, dtype and attribute set on the same inputs.

    python -m tests.bits.compare PROGRAM...

A PROGRAM is run_calls of a build (-DOPENACLNN_TESTS=ON). One of x86-64 runs its kernels v2, v3 and
v4, one of aarch64 its only ones, under qemu-aarch64 where the machine is another. Each run stores
with and without bypassing the cache. The script prints a digest for each operator and dtype. It
reports each difference with operator, attributes and element, and then exits with 1. Inputs are the
lattice of special values, random bit patterns and ordinary values, in several layouts.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.abi.abi import DTYPES
from tests.support import HALVES, LAYOUTS, SEED, bits, grid, text, wide_dtypes

from openaclnn.reference.evaluation import (
    REFERENCES,
    Array,
    dtype_name,
    evaluate,
    numpy_dtype,
    sample,
)
from openaclnn.rows.schema import Op
from openaclnn.rows.table import OPS

LARGE = ((1, 12, 61, 67), (3, 12, 1), (2, 24, 3, 1, 2))  # of families that sum: N, C, ...
PATTERNS = 20_000  # random ones of each input
TENSOR, NUMBER, TEXT, NOTHING = range(4)
MACHINES = {62: ("x86_64", ("v2", "v3", "v4")), 183: ("aarch64", ("native",))}  # of ELF files
STREAMING = {"cached": str(1 << 40), "streamed": "1"}


@dataclass
class Call:
    """Arguments of phase 1 by C name: arrays and numbers."""

    op: Op
    dtype: str
    what: str
    arguments: dict[str, Any]

    @property
    def written(self) -> list[Array]:
        tensors = {p.name: self.arguments[p.name] for p in self.op.outputs}
        return [x for x in tensors.values() if x is not None]

    def encoded(self) -> bytes:
        parameters = self.op.parameters
        parts = [_sized(self.op.name.encode()), _int64(len(parameters))]
        for p in parameters:
            value = self.arguments[p.name]
            if value is None:
                parts += [_int64(NOTHING)]
            elif p.kind == "tensor":
                parts += [_int64(TENSOR, int(p.role != "input")), _tensor(value)]
            elif p.kind == "text":
                parts += [_int64(TEXT), _sized(value.encode())]
            else:
                parts += [_int64(NUMBER), struct.pack("<d", value)]
        return b"".join(parts)


def _int64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _sized(data: bytes) -> bytes:
    return _int64(len(data)) + data


def storage(x: Array) -> Array:
    """The memory that an array is a view of, in the order of addresses."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    flat = x.ravel("K")
    assert np.shares_memory(flat, x)
    return flat


def _tensor(x: Array) -> bytes:
    memory, item = storage(x), x.itemsize
    offset = (x.ctypes.data - memory.ctypes.data) // item
    strides = [stride // item for stride in x.strides]
    described = [DTYPES[dtype_name(x.dtype)], x.ndim, *x.shape, x.ndim, *strides]
    return _int64(*described, offset, memory.size) + _sized(memory.tobytes())


# ---- the calls ----


def calls() -> Iterator[Call]:
    for op in OPS:
        yield from elementwise(op) if op.pointwise else sums(op)


def elementwise(op: Op) -> Iterator[Call]:
    for dtype in op.dtypes:
        for i, attributes in enumerate(REFERENCES[op.kernel].attributes):
            inputs = values(op, dtype, attributes)
            outputs = [dtype, *(HALVES if dtype in wide_dtypes(op) else ())]
            for output in outputs:
                what = f"{text(attributes)} to {output}"
                yield call(op, dtype, what, inputs, attributes, output)
            if i == 0:
                cube = [x[: 37 * 5 * 41].reshape(37, 5, 41) for x in inputs]
                for name, move in LAYOUTS.items():
                    if name != "flipped":  # C has no negative strides
                        moved = [move(x) for x in cube]
                        yield call(op, dtype, name, moved, attributes, dtype)
                if op.shapes == "broadcast":
                    few = [*cube[:-1], cube[-1][:, :1].copy()]
                    yield call(op, dtype, "broadcast", few, attributes, dtype)


def sums(op: Op) -> Iterator[Call]:
    """Other families: several shapes and outputs, companions of x's dtype and of FLOAT."""
    reference = REFERENCES[op.kernel]
    for dtype, i in itertools.product(op.dtypes, range(len(reference.attributes))):
        attributes = reference.attributes[i]
        for companion in dict.fromkeys((dtype, "FLOAT")):
            for shape in (reference.example, *(LARGE if i == 0 else ())):
                inputs = sample(op, shape, dtype, SEED, attributes, companion)
                outputs = [x.shape for x in evaluate(op, inputs, attributes)]
                for name, move in LAYOUTS.items() if i == 0 else [("contiguous", np.copy)]:
                    if name != "flipped":
                        made = {
                            p.name: move(x) for p, x in zip(op.input_tensors, inputs, strict=True)
                        }
                        made |= {p.name: attributes[p.python_name] for p in op.attributes}
                        for p, own in zip(op.outputs, outputs, strict=True):
                            kind = numpy_dtype(companion if p.companion else dtype)
                            made[p.name] = move(np.zeros(own, kind))
                        what = f"{text(attributes)} {name} {list(shape)} beside {companion}"
                        yield Call(op, dtype, what, made)


def values(op: Op, dtype: str, attributes: Any) -> list[Array]:
    rng = np.random.default_rng(SEED)
    drawn = sample(op, (8000,), dtype, SEED, attributes)
    found = []
    for special, ordinary in zip(grid(op, dtype, attributes), drawn, strict=True):
        size = special.itemsize
        patterns = rng.integers(0, 256, PATTERNS * size, np.uint8).view(special.dtype)
        found.append(np.concatenate([special, patterns, ordinary]))
    return found


def call(op: Op, dtype: str, what: str, inputs: list[Array], attributes: Any, output: str) -> Call:
    by_name: dict[str, Any] = {
        p.name: x.copy() if op.inplace and x.base is None else x
        for p, x in zip(op.input_tensors, inputs, strict=True)
    }
    by_name |= {p.name: attributes[p.python_name] for p in op.attributes}
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    for p in op.parameters:
        if p.role == "output":  # the layout of the first input, where it has all elements
            by_name[p.name] = np.zeros_like(inputs[0], numpy_dtype(output), shape=shape)
    return Call(op, dtype, what, by_name)


# ---- the runs ----


def commands(program: Path) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Name, command and environment of every run."""
    machine, levels = MACHINES[struct.unpack_from("<H", program.read_bytes()[:20], 18)[0]]
    foreign = machine != platform.machine()
    emulator = [f"qemu-{machine}", "-L", f"/usr/{machine}-linux-gnu"] if foreign else []
    for level in levels:
        for stores, threshold in STREAMING.items():
            environment = {"OPENACLNN_ISA": level, "OPENACLNN_STREAMING_BYTES": threshold}
            yield f"{machine} {level} {stores}", [*emulator, str(program)], environment


def results(command: list[str], environment: dict[str, str], file: Path) -> bytes | None:
    """What the calls wrote; None where the CPU has not that instruction set."""
    out = file.with_suffix(".out")
    done = subprocess.run(
        [*command, str(file), str(out)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    if "OPENACLNN_ISA" in done.stderr:
        return None
    if done.stderr:
        sys.exit(done.stderr)
    return out.read_bytes()


def by_call(made: list[Call], written: bytes) -> list[list[Array]]:
    """The storage of every written tensor of every call."""
    found, at = [], 0
    for one in made:
        tensors = []
        for x in map(storage, one.written):
            tensors.append(bits(np.frombuffer(written, x.dtype, x.size, at)))
            at += x.nbytes
        found.append(tensors)
    assert at == len(written), f"{len(written)} bytes of results, but {at} were asked for"
    return found


def digests(made: list[Call], written: list[list[Array]]) -> dict[tuple[str, str], str]:
    """One for each operator and dtype."""
    found: dict[tuple[str, str], Any] = {}
    for one, tensors in zip(made, written, strict=True):
        digest = found.setdefault((one.op.name, one.dtype), hashlib.sha256())
        for x in tensors:
            digest.update(x.tobytes())
    return {key: digest.hexdigest()[:16] for key, digest in found.items()}


def differences(made: list[Call], a: list[list[Array]], b: list[list[Array]]) -> list[str]:
    """A sentence for each operator and dtype: the first call and element that differ."""
    found: dict[tuple[str, str], str] = {}
    for one, ours, theirs in zip(made, a, b, strict=True):
        for p, x, y in zip(one.op.outputs, ours, theirs, strict=True):
            unequal = np.flatnonzero(x != y)
            if unequal.size:
                i = unequal[0]
                sentence = (
                    f"{one.op.name} {one.dtype} ({one.what}): {p.name} has other bits in "
                    f"{unequal.size} of {x.size} places, first [{i}]: {x[i]:#x} and {y[i]:#x}"
                )
                found.setdefault((one.op.name, one.dtype), sentence)
    return list(found.values())


def main(programs: list[str]) -> int:
    made = list(calls())
    first: list[list[Array]] | None = None
    name_of_first, failed = "", False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls"
        file.write_bytes(b"".join(one.encoded() for one in made))
        for program in programs:
            for name, command, environment in commands(Path(program)):
                written = results(command, environment, file)
                if written is None:
                    print(f"{name}: not on this CPU")
                    continue
                found = by_call(made, written)
                if first is None:
                    first, name_of_first = found, name
                    for (op, dtype), digest in digests(made, found).items():
                        print(f"{op:26} {dtype:8} {digest}")
                sentences = differences(made, first, found)
                failed |= bool(sentences)
                same = "the same bits"
                if sentences:
                    same = f"{len(sentences)} differ from {name_of_first}"
                print(f"{name}: {len(made)} calls, {same}")
                print("".join(f"    {sentence}\n" for sentence in sentences), end="")
    return 1 if failed or first is None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
