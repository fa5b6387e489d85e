# SPDX-License-Identifier: Apache-2.0
"""What a row is: a public function as plain data, and what follows from it.

The build, the package and the tests import this module; it needs nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from .shapes import ANY_SHAPE, Form, bind, shape_of

Kind = Literal["tensor", "scalar", "double", "int64", "bool", "text"]
Role = Literal["input", "output", "inout", "attribute"]
Default = float | int | bool | None

C_TYPES: dict[Kind, str] = {
    "tensor": "const aclTensor*",
    "scalar": "const aclScalar*",
    "double": "double",
    "int64": "int64_t",
    "bool": "bool",
    "text": "char*",
}

# The kinds as C++ names them, where double and bool are words of the language.
CPP_KINDS: dict[Kind, str] = {
    "tensor": "tensor",
    "scalar": "scalar",
    "double": "real",
    "int64": "integer",
    "bool": "flag",
    "text": "text",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of phase 1."""

    name: str
    kind: Kind
    role: Role
    required: bool
    c_type: str
    default: Default
    companion: bool  # has the dtype of the first tensor or FLOAT, like all other companions
    condition: str | None  # the attribute without which an output is neither needed nor touched
    form: Form  # the shape of a tensor

    @property
    def has_default(self) -> bool:
        return self.default is not None or self.kind == "text"

    @cached_property
    def python_name(self) -> str:
        """snake_case; `self` and `selfRef`, which mean something else in Python, are `x`."""
        if self.name in ("self", "selfRef"):
            return "x"
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.name.removesuffix("Optional")).lower()

    @property
    def result_name(self) -> str:
        """The name of an output in the tuple that a Python function returns."""
        return self.python_name.removesuffix("_out")

    @property
    def c_declaration(self) -> str:
        return f"{self.c_type} {self.name}"


@dataclass(frozen=True)
class Gradient:
    """The row that computes the gradient of a row, and what its parameters receive.

    "d out" is the gradient of that output or inout, "self" a value (of an inout the one that it
    has afterwards), True or False a constant; a result of the gradient row receives "d self", the
    gradient of that input. A parameter that is not named here receives the value of the same name.
    The condition of a result is whether somebody wants that gradient (gradients.py).
    """

    row: str
    given: Mapping[str, str | bool]  # by parameter of the gradient row
    zero: tuple[str, ...]  # inputs whose gradient is zero wherever there is one
    only_if: str | None  # a flag of the row; there is no gradient where it is false
    nonnegative: tuple[str, ...]  # attributes; there is no gradient where one of them is negative


@dataclass(frozen=True)
class Op:
    """One public operator: the pair <name>GetWorkspaceSize and <name>, and all that follows."""

    name: str
    python: str
    parameters: tuple[Parameter, ...]
    family: str  # the phase 1 function of core/ops: plan_<family>
    kernel: str  # the formula in core/kernels, in formulas.py and in the benchmarks
    products: tuple[str, ...]
    dtypes: tuple[str, ...]  # of the inputs; BFLOAT16 only where the product has it
    extra_dtypes: tuple[str, ...]  # that no product has and the library computes all the same
    sizes: Mapping[str, str]  # what the named sizes count: {"N": "samples"}
    multiples: Mapping[str, str]  # of sizes: the attribute that divides each
    limits: str  # what else the shapes must keep to, in words
    inputs: Literal["promote", "equal"]  # dtypes of the inputs among themselves, but companions
    output: Literal["castable", "equal"]  # dtype of the output against the inputs, but companions
    rules: tuple[str, ...]  # further checks, functions of core/ops/rules.h
    formula: str  # in terms of the parameters, functions and the letters that `where` defines
    where: tuple[str, ...]
    doc: str
    gradient: Gradient | None = None

    @property
    def header(self) -> str:
        """`aclnn_leaky_relu.h`; an in-place form lives in the header of its plain form."""
        words = re.findall(r"[A-Z][a-z0-9]*", self.name.replace("aclnnInplace", "aclnn"))
        return "aclnn_" + "_".join(word.lower() for word in words) + ".h"

    @cached_property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "tensor")

    @cached_property
    def input_tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.tensors if p.role in ("input", "inout"))

    @cached_property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.tensors if p.role in ("output", "inout"))

    @cached_property
    def attributes(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role == "attribute")

    @property
    def pointwise(self) -> bool:
        """Whether an element of a result depends on the inputs' elements of the same place only."""
        return self.family == "elementwise"

    @property
    def shapes(self) -> Literal["same", "broadcast", "named"]:
        """What the shapes of the tensors have to do with each other."""
        forms = {p.form for p in self.tensors}
        if any(form.sizes for form in forms):
            return "named"
        return "same" if forms == {ANY_SHAPE} else "broadcast"

    def known_sizes(
        self, shapes: Mapping[str, Sequence[Any]], attributes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The sizes by name, from the shapes of some inputs and the attributes by Python name."""
        forms = {p.name: p.form for p in self.input_tensors}
        return bind(forms, shapes) | {p.name: attributes[p.python_name] for p in self.attributes}

    def made_shapes(
        self,
        shapes: Mapping[str, Sequence[Any]],
        attributes: Mapping[str, Any],
        broadcast: Callable[..., Any],
    ) -> list[Any]:
        """The shape of each output that a call makes, None where nobody wants it.

        `shapes` are those of the inputs, by name; sizes may be symbolic. `broadcast` is
        `broadcast_shapes` of NumPy, JAX or torch, and `attributes` go by Python name.
        """
        known = self.known_sizes(shapes, attributes)
        whole = broadcast(*shapes.values()) if self.shapes == "broadcast" else None

        def shape(p: Parameter) -> Any:
            if p.condition is not None and not known[p.condition]:
                return None
            return shape_of(p.form, known) if whole is None else whole

        return [shape(p) for p in self.outputs if p.role == "output"]

    def example_shapes(
        self, shapes: Mapping[str, Sequence[Any]], attributes: Mapping[str, Any]
    ) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs with an integer in the place of each symbolic size, so that
        phase 1 can check the rest: what another input has there, or the attribute that divides the
        size, or 1."""
        if all(isinstance(n, int) for shape in shapes.values() for n in shape):
            return {name: tuple(shape) for name, shape in shapes.items()}
        values = {p.name: attributes[p.python_name] for p in self.attributes}
        fitting = {size: max(1, values[divisor]) for size, divisor in self.multiples.items()}

        def named(p: Parameter) -> list[tuple[str, Any]]:
            rest = ("" if p.form.broadcast else f"*{i}" for i in range(len(shapes[p.name])))
            return list(zip((*p.form.sizes, *rest), shapes[p.name], strict=False))

        for p in reversed(self.input_tensors):  # the first counts
            if not (p.form.flat or p.form.broadcast):
                fitting |= {name: n for name, n in named(p) if isinstance(n, int)}
        fitting |= values

        def example(p: Parameter) -> tuple[int, ...]:
            if p.form.flat:
                return tuple(fitting.get(size, 1) for size in p.form.sizes)
            return tuple(n if isinstance(n, int) else fitting.get(s, 1) for s, n in named(p))

        return {p.name: example(p) for p in self.input_tensors}

    @property
    def inplace(self) -> bool:
        return any(p.role == "inout" for p in self.parameters)

    @property
    def computed(self) -> tuple[str, ...]:
        """All dtypes of the inputs that the library computes, as product `any` accepts them."""
        return self.dtypes + self.extra_dtypes

    def accepted(self, product: Product) -> tuple[str, ...]:
        """The dtypes of the inputs on a product; none where it lacks the operator."""
        if product.everything:
            return self.computed
        if product.key not in self.products:
            return ()
        return tuple(d for d in self.dtypes if product.bfloat16 or d != "BFLOAT16")


@dataclass(frozen=True)
class Product:
    """A product that the library can imitate."""

    key: str
    title: str
    soc_name: str
    bfloat16: bool
    memory: int = 0  # of a device, in GiB; 0: no limit
    chips: tuple[str, ...] = ()  # how the names of its chips begin, in capitals, without "Ascend"
    everything: bool = False  # accepts whatever the library computes
