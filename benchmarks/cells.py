# SPDX-License-Identifier: Apache-2.0
"""The data of one row, layout, dtype and size, and the calls of every backend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from jit import compiled, jax_call
from mixes import Mix, mixed, values_of

import openaclnn
from openaclnn.bench.agreeing import agrees
from openaclnn.bench.measure import aligned
from openaclnn.bench.peers import PEERS
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype
from openaclnn.rows.schema import Op

Array = np.ndarray[Any, Any]

DTYPES = {"fp32": "FLOAT", "bf16": "BFLOAT16", "fp16": "FLOAT16", "fp64": "DOUBLE"}
# What of the first input, the gradient, is there; the rest is repeated. R x C, or A x M x C.
BROADCAST = ("scalar", "row", "column", "middle")
STRIDED = ("transposed", "transposed_in")  # all tensors; the inputs alone
AFTER_TORCH = "after_torch"  # dense tensors, and torch adds before each call
ATTRIBUTES, MIXES = "attributes", "mixes"  # dense tensors: every set of attributes, special values
LAYOUTS = ("contiguous", *STRIDED, *BROADCAST, AFTER_TORCH, ATTRIBUTES, MIXES)

BLOCK = 1 << 20
SPOTS = 4099  # a prime: one element in so many is looked at after each sample
POISON = -77.0  # stands where every sample must write; no result of these rows and data


def blocks(size: int) -> Iterator[slice]:
    """Of up to 4 Mi elements all, else the first, the last, and a sixteenth of the others."""
    for i in range(0, size, BLOCK):
        if size <= 4 * BLOCK or i // BLOCK % 16 == 0 or i + BLOCK >= size:
            yield slice(i, min(size, i + BLOCK))


def flags_of(op: Op) -> list[dict[str, bool]]:
    """What attributes that are true or false can be, beside the first set: it, and the others."""
    first = first_set(op)
    return [{}, *({k: not v} for k, v in first.items() if isinstance(v, bool))]


def first_set(op: Op) -> dict[str, Any]:
    """What the tests have first; of logit it is not the default."""
    names = [p.python_name for p in op.attributes]
    return {name: REFERENCES[op.kernel].attributes[0][name] for name in names}


class Cell:
    def __init__(
        self,
        op: Op,
        layout: str,
        dtype: str,
        elements: int,
        attributes: Mapping[str, Any],
        mix: Mix,
    ) -> None:
        self.op, self.layout, self.dtype, self.elements = op, layout, dtype, elements
        self.mix, self.given = mix, attributes
        self.attributes = {**first_set(op), **attributes}
        kind = numpy_dtype(DTYPES[dtype])
        self.inputs: dict[str, Array] = {}
        for i, p in enumerate(op.inputs_):
            self.values = self.block(p.python_name).astype(kind)
            self.inputs[p.python_name] = self.input(few=i == 0 and layout in BROADCAST)
        self.result = aligned(elements, kind)  # flat
        self.original = None
        if op.inplace:
            (name,) = self.inputs
            self.result[:] = self.inputs[name].reshape(-1)
            self.original, self.inputs[name] = self.inputs[name].reshape(-1), self.result
        self.bytes = sum(x.nbytes for x in self.inputs.values())
        self.bytes += 0 if op.inplace else self.result.nbytes
        self.spots = np.arange(SPOTS // 2, elements, SPOTS) if elements > SPOTS else slice(None)

    def block(self, name: str) -> Array:
        """The values of an input, which are repeated: normal ones, or those of mixes.py."""
        count = min(self.elements, BLOCK)
        if self.layout in (AFTER_TORCH, ATTRIBUTES, MIXES):
            return mixed(self.op, name, values_of(self.op, name, count), self.mix, self.attributes)
        return np.random.default_rng(self.elements).standard_normal(count, np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        n = self.elements
        if self.layout in ("contiguous", AFTER_TORCH):
            return (n,)
        columns = min(n & -n, 1 << (n.bit_length() // 2))  # a power of 2
        rows = n // columns
        if self.layout != "middle":
            return (rows, columns)
        middle = min(64, rows & -rows)
        return (rows // middle, middle, columns)

    def input(self, few: bool) -> Array:
        shape = self.shape
        if few:
            along = {"scalar": range(len(shape)), "row": [0], "column": [1], "middle": [1]}
            shape = tuple(1 if i in along[self.layout] else n for i, n in enumerate(shape))
        memory = aligned(int(np.prod(shape)), self.values.dtype)
        for i in range(0, memory.size, BLOCK):
            memory[i : i + BLOCK] = self.values[: memory.size - i]
        if self.layout in STRIDED:
            return memory.reshape(shape[::-1]).T
        return memory.reshape(shape)

    @property
    def out(self) -> Array:
        if self.layout == "transposed":
            return self.result.reshape(self.shape[::-1]).T
        return self.result.reshape(self.shape)

    def tensors(self, backend: str, torch: ModuleType | None) -> dict[str, Any]:
        tensors = dict(self.inputs)
        if not self.op.inplace:
            tensors["out"] = self.out
        if backend not in ("torch", "compiled"):
            return tensors
        assert torch is not None
        if self.dtype != "bf16":
            return {name: torch.from_numpy(x) for name, x in tensors.items()}
        return {
            k: torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for k, x in tensors.items()
        }

    def call(self, backend: str, modules: dict[str, Any], attributes: dict[str, Any]) -> Any:
        """A call without arguments; what it gives back, if anything, is the result."""
        tensors, name = self.tensors(backend, modules.get("torch")), self.op.python
        if backend == "torch":
            return PEERS[name].torch(modules["torch"], tensors, attributes)
        if backend == "compiled":
            return compiled(modules["torch"], name, tensors, attributes)
        if backend == "jax":
            return jax_call(modules["jax"], name, tensors, attributes)
        if backend == "numpy":
            return PEERS[name].numpy(tensors, attributes)
        if backend == "plan":
            values = tensors | attributes
            names = ("out" if p.role == "output" else p.python_name for p in self.op.parameters)
            return openaclnn.plan(self.op.name, *(values[name] for name in names)).run
        given = tensors | attributes
        out = {} if self.op.inplace else {"out": tensors["out"]}
        ordered = [given[p.python_name] for p in self.op.parameters if p.role != "output"]
        return partial(getattr(openaclnn, self.op.python), *ordered, **out)

    def computed(self, call: Callable[[], Any]) -> Array:
        """The result of a call, flat in the order of memory."""
        if self.original is None:
            self.result[:] = POISON
        else:
            self.result[:] = self.original
        given = call()
        if type(given).__module__.startswith("jax"):
            self.out[...] = np.asarray(given)
        return self.result

    def poison(self) -> None:
        """Where spots_agree looks, every sample must write."""
        if self.original is None:
            self.result[self.spots] = POISON

    @property
    def cancels(self) -> float:
        return PEERS[self.op.python].cancels_below

    def spots_agree(self, expected: Array) -> bool:
        return agrees(self.result[self.spots], expected[self.spots], self.cancels)

    def agrees(self, expected: Array) -> bool:
        return all(agrees(self.result[i], expected[i], self.cancels) for i in blocks(self.elements))
