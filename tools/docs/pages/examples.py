# SPDX-License-Identifier: Apache-2.0
"""An example of a row in Python and in C, both complete. They print the same lines, which the tests
compare; inputs and attributes are those of its reference."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from openaclnn.reference.arrays import Array
from openaclnn.reference.domains import wide
from openaclnn.reference.evaluation import REFERENCES, evaluate, input_shapes
from openaclnn.rows.schema import Op, Parameter

SEED = 7
WIDTH = 98


def small(op: Op, size: str) -> int:
    """A named size: 2, or 4 if an attribute of 2 divides it."""
    return 4 if size in op.multiples else 2


def attributes_of(op: Op) -> dict[str, Any]:
    """By Python name: the first set of the reference, on the small shape."""
    chosen = dict(REFERENCES[op.kernel].attributes[0])
    return chosen | {p.python_name: small(op, p.name) for p in op.attributes if p.name in op.sizes}


def shape_of(op: Op) -> tuple[int, ...]:
    """The shape of the first input."""
    return (*(small(op, size) for size in op.input_tensors[0].form.sizes or ("",)), 3)


def inputs_of(op: Op) -> list[Array]:
    """Values of the reference's domain, few and short enough to be read."""
    rng = np.random.default_rng(SEED)
    shapes = input_shapes(op, shape_of(op), attributes_of(op))
    made = []
    for domain, shape in zip(REFERENCES[op.kernel].domain, shapes, strict=True):
        n = math.prod(shape)
        values = rng.normal(0, 2, n) if domain is wide else domain(rng, n)
        made.append(np.array([float(f"{v:.2g}") for v in values], np.float32).reshape(shape))
    return made


def output_shapes(op: Op) -> list[tuple[int, ...]]:
    return [x.shape for x in evaluate(op, inputs_of(op), attributes_of(op))]


def _wrapped(lines: list[str], indent: str) -> str:
    """Lines of code, those that are too long over several."""
    shown = []
    for line in lines:
        fits = "\n" in line or len(line) <= WIDTH
        shown += [line] if fits else textwrap.wrap(line, WIDTH, subsequent_indent=indent)
    return "\n".join(shown) + "\n"


# ---- Python ----


def python_example(op: Op) -> str:
    attributes = attributes_of(op)
    lines = ["import numpy as np", "", "import openaclnn", ""]
    for p, x in zip(op.input_tensors, inputs_of(op), strict=True):
        values = ", ".join(f"{v:g}" for v in x.ravel())
        shape = "" if x.ndim == 1 else f".reshape{x.shape}"
        lines.append(f"{p.python_name} = np.array([{values}], np.float32){shape}")
    words, named = [], False
    for p in op.parameters:
        if p.role == "output" or p.kind == "text":
            named = True  # a parameter was left out: the following ones need their names
        elif p.role == "attribute":
            words.append(f"{p.python_name}={attributes[p.python_name]!r}")
            named = True
        else:
            words.append(f"{p.python_name}={p.python_name}" if named else p.python_name)
    call = f"openaclnn.{op.python}({', '.join(words)})"
    names = [p.python_name if op.inplace else p.result_name for p in op.outputs]
    lines.append(call if op.inplace else f"{', '.join(names)} = {call}")
    for p, name in zip(op.outputs, names, strict=True):
        lines.append(f'print("{p.name}:", *(f"{{v:g}}" for v in {name}.ravel()))')
    return _wrapped(lines, indent="    ")


# ---- C ----

HEAD = """\
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnnop/{header}"

#define CHECK(call)                                               \\
  do {{                                                            \\
    if ((call) != 0) {{                                            \\
      fprintf(stderr, "%s\\n%s", #call, aclGetRecentErrMsg());     \\
      exit(1);                                                    \\
    }}                                                             \\
  }} while (0)

/* A tensor of the device with these values. */
static aclTensor* make(const float* values, const int64_t* shape, uint64_t rank, void** memory) {{
  int64_t count = 1;
  for (uint64_t i = 0; i < rank; ++i) count *= shape[i];
  const size_t bytes = (size_t)count * sizeof(float);
  CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(*memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return aclCreateTensor(shape, rank, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, rank, *memory);
}}

/* The values of a result. */
static void show(const char* name, float* values, size_t count, const void* memory) {{
  const size_t bytes = count * sizeof(float);
  CHECK(aclrtMemcpy(values, bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("%s:", name);
  for (size_t i = 0; i < count; ++i) printf(" %g", values[i]);
  printf("\\n");
}}

int main(void) {{
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
"""


def _literal(value: float) -> str:
    text = f"{value:g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _attribute(p: Parameter, value: Any) -> str:
    """What stands for an attribute in the call of phase 1."""
    if p.kind == "scalar":
        return p.name
    if p.kind == "bool":
        return "true" if value else "false"
    return "NULL" if p.kind == "text" else repr(value)


def _tensor(p: Parameter, shape: tuple[int, ...], values: Array | None) -> list[str]:
    count = math.prod(shape)
    filled = "0" if values is None else ", ".join(_literal(v) for v in values.ravel())
    sizes = ", ".join(map(str, shape))
    return [
        f"  float {p.name}Host[{count}] = {{{filled}}};",
        f"  const int64_t {p.name}Shape[] = {{{sizes}}};",
        f"  void* {p.name}Memory;",
        f"  aclTensor* {p.name} = make({p.name}Host, {p.name}Shape, {len(shape)}, "
        f"&{p.name}Memory);",
    ]


def c_example(op: Op) -> str:
    attributes = attributes_of(op)
    lines = [HEAD.format(header=op.header)]
    for p, x in zip(op.input_tensors, inputs_of(op), strict=True):
        lines += _tensor(p, x.shape, x)
    for p, shape in zip(op.outputs, output_shapes(op), strict=True):
        if p.role == "output":
            lines += _tensor(p, shape, None)
    for p in op.attributes:
        if p.kind == "scalar":
            value = attributes[p.python_name]
            lines.append(f"  float {p.name}Value = {_literal(value)};")
            lines.append(f"  aclScalar* {p.name} = aclCreateScalar(&{p.name}Value, ACL_FLOAT);")
    given = [
        _attribute(p, attributes.get(p.python_name)) if p.role == "attribute" else p.name
        for p in op.parameters
    ]
    phase1 = f"  CHECK({op.name}GetWorkspaceSize({', '.join(given)}, &size, &executor));"
    lines += [
        "",
        "  uint64_t size = 0;",
        "  aclOpExecutor* executor = NULL;",
        phase1,
        "  void* workspace = NULL;",
        "  if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));",
        f"  CHECK({op.name}(workspace, size, executor, NULL)); /* NULL: the default stream */",
        "  CHECK(aclrtSynchronizeStream(NULL));",
        "",
    ]
    counts = [math.prod(shape) for shape in output_shapes(op)]
    for p, count in zip(op.outputs, counts, strict=True):
        lines.append(f'  show("{p.name}", {p.name}Host, {count}, {p.name}Memory);')
    lines.append("")
    lines += [f"  aclDestroyScalar({p.name});" for p in op.attributes if p.kind == "scalar"]
    lines += [f"  aclDestroyTensor({p.name});" for p in op.tensors]
    lines += [f"  CHECK(aclrtFree({p.name}Memory));" for p in op.tensors]
    lines += [
        "  if (workspace != NULL) CHECK(aclrtFree(workspace));",
        "  CHECK(aclrtResetDevice(0));",
        "  CHECK(aclFinalize());",
        "  return 0;",
        "}",
    ]
    return _wrapped(lines, indent="      ")
