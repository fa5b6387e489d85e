# SPDX-License-Identifier: Apache-2.0
"""Results against the references and against the CPU; the same bits in every run; sanitizers."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from openaclnn.reference.evaluation import (
    REFERENCES,
    input_shapes,
    numpy_dtype,
    sample,
    special_values,
)
from openaclnn.rows.table import OPS

from .calling import ROWS, call, different_bits, judged, on_cpu, operator, placed, to_torch

SEED = 20240607
LAYOUTS = ("contiguous", "channels_last", "strided", "offset")
DTYPES = {"FLOAT": torch.float32, "BFLOAT16": torch.bfloat16, "FLOAT16": torch.float16}
# Group norm: groups in registers, two sweeps, several channels in a tile, splits, odd rows.
SHAPES = ((2, 64, 16, 16), (2, 64, 64, 80), (2, 96, 48, 40), (1, 16, 256, 320), (2, 32, 33, 67),
          (4, 64), (2, 320, 64, 64))  # fmt: skip


def smoke(run: Any) -> None:
    """One call of each row: a failure here saves the rest of the time."""
    for op in OPS:
        with run.attempt(op=op.python):
            attributes = REFERENCES[op.kernel].attributes[0]
            shape = (4, 1000) if op.pointwise else REFERENCES[op.kernel].example
            inputs = sample(op, shape, "FLOAT", SEED, attributes)
            found = judged(op, inputs, attributes, call(op, inputs, attributes, run.device))
            run.record(op=op.python, **found)
            run.say(f"{op.python}: {'passed' if found['passed'] else found['reason']}")


def grid(op: Any, dtype: str, attributes: Any) -> list[Any]:
    """Every combination of special values."""
    special = special_values(op, dtype, attributes)
    mesh = np.meshgrid(*[special] * len(op.input_tensors), indexing="ij")
    return [x.reshape(-1) for x in mesh]


def cases(dry: bool) -> list[tuple[str, Any, str, Any, Any]]:
    """Kind, row, dtype, attributes, and a shape or a layout."""
    found: list[tuple[str, Any, str, Any, Any]] = []
    for op in OPS:
        for dtype, (i, attributes) in itertools.product(
            op.dtypes, enumerate(REFERENCES[op.kernel].attributes)
        ):
            if op.pointwise:
                found.append(("values", op, dtype, attributes, None))
                if i == 0:
                    found += [("layout", op, dtype, attributes, x) for x in LAYOUTS]
            else:
                found.append(("group norm", op, dtype, attributes, (SHAPES[0], "contiguous")))
                if i == 0:
                    shapes = SHAPES[:1] if dry else SHAPES
                    found += [
                        ("group norm", op, dtype, attributes, x)
                        for x in itertools.product(shapes, LAYOUTS)
                        if math.prod(x[0]) < 1 << 20 or x[1] in LAYOUTS[:2]
                    ]
                if dtype == "FLOAT" and i < 2:
                    # the kernels' gradient has no digits where σ is below exp(-87)
                    gradient = op.python == "group_norm_swish_grad"
                    kinds = [
                        kind for kind in REFERENCES[op.kernel].together
                        if not (gradient and kind == "tails")
                    ]  # fmt: skip
                    found += [("together", op, dtype, attributes, kind) for kind in kinds]
    return found


def matrix(run: Any) -> None:
    # Element-wise cases of one row stay together, because they compile the same kernels. Those of
    # group norm take long to judge.
    pointwise = [c for c in cases(run.dry) if c[1].pointwise]
    mine = [c for c in cases(run.dry) if not c[1].pointwise][run.shard :: run.shards]
    mine += [c for k, c in enumerate(pointwise) if k * run.shards // len(pointwise) == run.shard]
    mine = mine[:: 7 if run.dry else 1]
    failed = passed = 0
    for kind, op, dtype, attributes, what in mine:
        labels = {"kind": kind, "op": op.python, "dtype": dtype, "attributes": attributes,
                  "what": what}  # fmt: skip
        with run.attempt(**labels):
            for inputs, layout in inputs_of(kind, op, dtype, attributes, what):
                got = call(op, inputs, attributes, run.device, layout)
                found = judged(op, inputs, attributes, got)
                if dtype in ("BFLOAT16", "FLOAT16"):
                    expected = on_cpu(op, inputs, attributes)
                    found["differ_from_cpu"] = different_bits(got, expected)
                    found["elements"] = [int(y.size) for y in got]
                run.record(**labels, **found)
                passed += found["passed"]
                failed += not found["passed"]
                if not found["passed"] and failed <= 3:
                    run.say(f"{op.python} {dtype} {what}: {found['reason']}")
        if run.out_of_time():
            run.say("out of time")
            break
    run.record(summary=True, passed=passed, failed=failed)
    run.say(f"{passed} passed, {failed} failed")


def inputs_of(kind: str, op: Any, dtype: str, attributes: Any, what: Any) -> Any:
    """Pairs of inputs and layout."""
    if kind == "values":
        yield sample(op, (5, 3, 67), dtype, SEED, attributes), "contiguous"
        yield grid(op, dtype, attributes), "contiguous"
        if dtype in ("BFLOAT16", "FLOAT16"):  # all patterns
            inputs = sample(op, (1 << 16,), dtype, SEED, attributes)
            patterns = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))
            place = [p.python_name for p in op.input_tensors]
            varied = place.index("x") if "x" in place else len(place) - 1
            inputs[varied] = patterns
            yield inputs, "contiguous"
    elif kind == "layout":
        yield sample(op, (5, 3, 67), dtype, SEED, attributes), what
    elif kind == "together":
        shapes = input_shapes(op, (2, 24, 40, 64), attributes)
        made = REFERENCES[op.kernel].together[what](np.random.default_rng(SEED), attributes, shapes)
        inputs = [np.asarray(x).astype(numpy_dtype(dtype)) for x in made]
        yield inputs, "contiguous"
        yield inputs, "channels_last"
    else:
        shape, layout = what
        groups = attributes["num_groups"]
        channels = -(-shape[1] // groups) * groups
        yield sample(op, (shape[0], channels, *shape[2:]), dtype, SEED, attributes), layout


def determinism(run: Any) -> None:
    """The same bits in every of 100 runs, some of them beside other work on the device."""
    shapes = ((2, 320, 64, 64), (1, 64, 256, 256), (2, 640, 16, 16))
    for op_name, shape, dtype, layout in itertools.product(
        ("group_norm_swish", "group_norm_swish_grad"), shapes[2:] if run.dry else shapes,
        ("FLOAT", "BFLOAT16"), ("contiguous", "channels_last"),
    ):  # fmt: skip
        op = ROWS[op_name]
        labels = {"op": op_name, "shape": shape, "dtype": dtype, "layout": layout}
        with run.attempt(**labels):
            attributes = {**REFERENCES[op.kernel].attributes[1], "num_groups": 32}
            inputs = sample(op, (1, 32, 4) if run.dry else shape, dtype, SEED, attributes)
            tensors = [placed(to_torch(x, run.device), layout) for x in inputs]
            given = dict(zip((p.name for p in op.input_tensors), tensors, strict=True))
            values = [given.get(p.name, attributes.get(p.python_name))
                      for p in op.parameters if p.role != "output"]  # fmt: skip
            function = operator(op, run.device)
            first, different = function(*values), 0
            beside = torch.randn(1 << (4 if run.dry else 24), device=run.device)
            for i in range(2 if run.dry else 100):
                if i % 2:
                    beside.sin_()
                again = function(*values)
                words = torch.int32 if first[0].dtype == torch.float32 else torch.int16
                different += not all(
                    torch.equal(a.view(words), b.view(words))
                    for a, b in zip(first, again, strict=True)
                )
            run.record(**labels, runs=100, different=different)
            run.say(f"{op_name} {shape} {dtype} {layout}: {different} of 100 runs differ")
        if run.out_of_time():
            break


def sanitizer(run: Any) -> None:
    """compute-sanitizer on one small case of each kernel."""
    tools = ("memcheck", "racecheck", "initcheck")
    script = Path(__file__).with_name("sanitized.py")
    for tool in tools[run.shard :: run.shards]:
        with run.attempt(tool=tool):
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
            if run.dry:
                command = []
            environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
            done = subprocess.run(
                [*command, sys.executable, str(script), run.device],
                capture_output=True, text=True, timeout=80, env=environment,
                cwd=script.parent.parent,
            )  # fmt: skip
            tail = (done.stdout + done.stderr)[-1500:]
            run.record(tool=tool, exit=done.returncode, tail=tail)
            run.say(f"{tool}: exit {done.returncode}: {tail.strip().splitlines()[-1:]}")
