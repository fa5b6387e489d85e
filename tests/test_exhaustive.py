# SPDX-License-Identifier: Apache-2.0
"""Every fp32 pattern: each row with one input swept and the others 1, against float64.

The ordinary suite takes every 4099th pattern and the neighbourhoods of the special points, for all
attribute sets. All 2^32 for the first set (minutes for each row, a progress bar on stderr):

    pytest -m exhaustive -s                 every row
    python tests/test_exhaustive.py elu     some rows; prints lines of docs/numerics_sweep.md
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

import numpy as np
import pytest
from support import call, rows, text

import openaclnn
from openaclnn.reference import (
    REFERENCES,
    accuracy,
    evaluate,
    numpy_dtype,
    special_values,
    ulp_error,
)
from openaclnn.table import OPS

ALL = 1 << 32
CHUNK = 1 << 17  # the arrays of a chunk stay in L2
TASK = 1 << 24


def swept(op):
    """The input that is swept: the one the formula depends on in more than a factor."""
    names = ("x", "input", "self_or_result")
    return next(i for i, p in enumerate(op.inputs_) if p.python_name in names)


def worst_of(op, attributes, patterns, output="FLOAT"):
    """The largest error in ULP of the output, and the input that has it."""
    x = patterns.astype(np.uint32).view(np.float32)
    inputs = [np.ones_like(x)] * len(op.inputs_)
    inputs[swept(op)] = x
    out = np.empty(x.shape, numpy_dtype(output))
    error = ulp_error(call(op, inputs, attributes, out), evaluate(op, inputs, attributes), output)
    at = int(np.argmax(error))
    return float(error[at]), float(x[at])


def worst_of_task(task):
    name, attributes, begin = task
    openaclnn.set_num_threads(1)
    op = next(op for op in OPS if op.name == name)
    starts = range(begin, begin + TASK, CHUNK)
    return max(worst_of(op, attributes, np.arange(s, s + CHUNK, dtype=np.uint64)) for s in starts)


def sweep(op, attributes, processes):
    """All patterns, shared among processes."""
    tasks = [(op.name, attributes, begin) for begin in range(0, ALL, TASK)]
    worst, started = (0.0, 0.0), time.monotonic()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done, found in enumerate(pool.imap_unordered(worst_of_task, tasks), 1):
            worst = max(worst, found)
            bar = "#" * (40 * done // len(tasks))
            end = "\n" if done == len(tasks) else ""
            line = f"\r{op.python} [{bar:40}] {worst[0]:.4f} ulp at {worst[1]!r} "
            print(line, end=end, file=sys.stderr, flush=True)
    return *worst, time.monotonic() - started


def plain(op):
    return not op.inplace and "FLOAT" in op.dtypes


@pytest.mark.parametrize("op", rows(plain))
def test_a_slice_of_all_patterns(op):
    for attributes in REFERENCES[op.kernel].attributes:
        special = special_values(op, "FLOAT", attributes).view(np.uint32).astype(np.int64)
        near = (special[:, None] + np.arange(-300, 301)).reshape(-1) % ALL
        patterns = np.concatenate([np.arange(0, ALL, 4099), near])
        for output in ("FLOAT", "FLOAT16", "BFLOAT16") if op.output == "castable" else ("FLOAT",):
            error, x = worst_of(op, attributes, patterns, output)
            limit = accuracy(op, "FLOAT", output)[1]
            what = f"{op.name}, {text(attributes)}, {output}: {error:.4f} ulp at {x!r}"
            assert error <= limit, what


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", rows(plain))
def test_all_patterns(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    error, x, _ = sweep(op, attributes, len(os.sched_getaffinity(0)))
    assert error <= accuracy(op, "FLOAT", "FLOAT")[1], f"{error:.4f} ulp at {x!r}"


def main(names):
    print("| operator | attributes | worst ulp | at x | allowed | seconds |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    processes = int(os.environ.get("PROCESSES", len(os.sched_getaffinity(0))))
    for op in OPS:
        if not plain(op) or (names and op.python not in names):
            continue
        attributes = REFERENCES[op.kernel].attributes[0]
        error, x, seconds = sweep(op, attributes, processes)
        limit = accuracy(op, "FLOAT", "FLOAT")[1]
        row = op.python, text(attributes), f"{error:.4f}", repr(x), limit, f"{seconds:.0f}"
        print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
