# SPDX-License-Identifier: Apache-2.0
"""Every fp32 pattern, compared with float64: one input of each row is swept, and the others get
numbers drawn for each pattern.

The ordinary suite takes every 16411th pattern and the neighbourhoods of the special points, for all
attribute sets. All 2^32 take minutes for each row and set, with a progress bar on stderr, and the
result goes into the record, docs/reference/numerics_sweep.md:

    pytest -m exhaustive -k first                     every row with its first set of attributes
    pytest -m exhaustive -k drawn                     with a set for each of 32,768 pieces
    pytest -m exhaustive -k 'logit and not grad'      one row with all its sets
    PROCESSES=1 pytest -m exhaustive -k first-elu-    on one core
    SEED=7 pytest -m exhaustive -k drawn-elu-         with other draws; the bar shows the seed
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.operators.drawing import draw_attributes, near_one, partner
from tests.support import SEED, call, rows, text

import openaclnn
from openaclnn.reference.evaluation import (
    REFERENCES,
    accuracy,
    evaluate,
    numpy_dtype,
    special_values,
    ulp_error,
)
from openaclnn.rows.table import OPS

RECORD = Path(__file__).resolve().parents[2] / "docs" / "reference" / "numerics_sweep.md"
ALL = 1 << 32
CHUNK = 1 << 17  # the arrays of a chunk stay in L2
TASK = 1 << 24


def swept(op):
    """The index of the input that is swept: all others are mere factors in the formula."""
    names = ("x", "input", "self_or_result")
    return next(i for i, p in enumerate(op.input_tensors) if p.python_name in names)


def worst_of(op, attributes, patterns, rng, outputs=("FLOAT",)):
    """For each dtype of the output its largest error in ULP, with the inputs and attributes."""
    x = patterns.astype(np.uint32).view(np.float32)
    inputs = [x if i == swept(op) else partner(rng, x.size) for i in range(len(op.input_tensors))]
    (expected,) = evaluate(op, inputs, attributes)
    for output in outputs:
        out = np.empty(x.shape, numpy_dtype(output))
        error = ulp_error(call(op, inputs, attributes, out), expected, output)
        at = int(np.argmax(error))
        yield float(error[at]), tuple(float(given[at]) for given in inputs), attributes


def worst_of_task(task):
    name, attributes, begin, seed = task
    openaclnn.set_num_threads(1)
    op = next(op for op in OPS if op.name == name)
    rng = np.random.default_rng([seed, begin >> 24])

    def worst_of_chunk(start):
        usual = draw_attributes(op, "FLOAT", rng, (near_one,)) if attributes is None else attributes
        (worst,) = worst_of(op, usual, np.arange(start, start + CHUNK, dtype=np.uint64), rng)
        return worst

    return max(map(worst_of_chunk, range(begin, begin + TASK, CHUNK)), key=error_of)


def error_of(found):
    return found[0]


def sweep(op, attributes, processes, report):
    """All patterns, shared among processes."""
    tasks = [(op.name, attributes, begin, SEED) for begin in range(0, ALL, TASK)]
    worst = (0.0, (), attributes)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done, found in enumerate(pool.imap_unordered(worst_of_task, tasks), 1):
            worst = max(worst, found, key=error_of)
            report(done, len(tasks), worst)
    return worst


def record(row, text):
    """The record with the row added, or replacing the one with its operator and attributes."""
    head, table, tail = re.split(r"(?<=\n)((?:\|.*\n)+)", text, maxsplit=1)
    lines = {tuple(cells(line)[:2]): line for line in table.splitlines()}
    lines[row[:2]] = f"| {' | '.join(row)} |"
    first, second, *others = lines.values()
    order = [op.python for op in OPS]
    others.sort(key=lambda line: order.index(cells(line)[0]))  # stable: sets stay as they came
    return head + "".join(f"{line}\n" for line in (first, second, *others)) + tail


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def plain(op):
    return op.pointwise and not op.inplace and "FLOAT" in op.dtypes


@pytest.mark.parametrize("op", rows(plain))
def test_a_slice_of_all_patterns(op):
    for attributes in REFERENCES[op.kernel].attributes:
        special = special_values(op, "FLOAT", attributes).view(np.uint32).astype(np.int64)
        near = (special[:, None] + np.arange(-300, 301)).reshape(-1) % ALL
        patterns = np.concatenate([np.arange(0, ALL, 16411), near])
        rng = np.random.default_rng(SEED)
        outputs = ("FLOAT", "FLOAT16", "BFLOAT16") if op.output == "castable" else ("FLOAT",)
        found = worst_of(op, attributes, patterns, rng, outputs)
        for output, (error, x, _) in zip(outputs, found, strict=True):
            limit = accuracy(op, "FLOAT", output)[1]
            what = f"{op.name}, {text(attributes)}, {output}, seed {SEED}: {error:.4f} ulp at {x}"
            assert error <= limit, what


def sweeps():
    """Row x attribute set; `first` is the set that people use, `drawn` are many."""
    return [
        pytest.param(op, attributes, id=f"{which}{op.python}-{label(attributes)}")
        for op in OPS
        if plain(op)
        for which, attributes in (
            ("drawn-", None),
            *(("" if i else "first-", a) for i, a in enumerate(REFERENCES[op.kernel].attributes)),
        )
    ]


def label(attributes):
    return "drawn" if attributes is None else text(attributes)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("op", "attributes"), sweeps())
def test_all_patterns(op, attributes, capsys):
    def report(done, tasks, worst):
        bar, end = "#" * (40 * done // tasks), "\n" if done == tasks else ""
        line = f"\r{op.python} {label(attributes)} seed {SEED} [{bar:40}] {worst[0]:.4f} ulp at "
        with capsys.disabled():
            print(f"{line}{worst[1]} {text(worst[2] or {})} ", end=end, file=sys.stderr, flush=True)

    processes = int(os.environ.get("PROCESSES", len(os.sched_getaffinity(0))))
    started = time.monotonic()
    error, x, worst = sweep(op, attributes, processes, report)
    seconds = processes * (time.monotonic() - started)
    limit = accuracy(op, "FLOAT", "FLOAT")[1]
    at = ", ".join(map(repr, x)) if error > 0 else ""
    at += f" with {text(worst)}" if error > 0 and attributes is None else ""
    kernels, today = openaclnn.config()["kernels"], datetime.now(UTC).date().isoformat()
    row = op.python, label(attributes), f"{error:.4f}", at, f"{limit:g}", f"{seconds:.0f}"
    if "SEED" not in os.environ:  # the record is that of one seed
        RECORD.write_text(record((*row, kernels, today), RECORD.read_text()))
    assert error <= limit, f"{error:.4f} ulp at {x}, {worst}, seed {SEED}"


@pytest.mark.parametrize(
    "page", ["docs/design/exactness.md", "CONTRIBUTING.md", "tests/operators/test_exhaustive.py"]
)
def test_what_pages_select(page):
    """With -k and one word: one sweep, or the first of every row, or the drawn one."""
    written = (RECORD.parents[2] / page).read_text()
    ids = [f"[{sweep.id}]" for sweep in sweeps()]
    words = re.findall(r"(?:exhaustive |`)-k (\[?\w[\w.-]*)", written)
    found = {word: sum(word in one for one in ids) for word in words}
    every = sum(map(plain, OPS))
    assert found == {w: every if w in ("first", "drawn") else 1 for w in found} != {}


def test_the_record():
    """Every row is in the record and kept its promise; a new figure replaces an old one."""
    lines = [cells(line) for line in RECORD.read_text().splitlines() if line.startswith("| ")][2:]
    for name, _, worst, _, promised, *_ in lines:
        op = next(op for op in OPS if op.python == name)
        assert float(promised) == accuracy(op, "FLOAT", "FLOAT")[1]
        assert float(worst) <= float(promised)
    assert {name for name, *_ in lines} >= {op.python for op in OPS if recorded(op)}
    new = record((*lines[0][:2], "0.25", *lines[0][3:]), RECORD.read_text())
    assert [cells(line)[2] for line in new.splitlines() if line.startswith("| ")][2] == "0.25"
    assert new.count("\n") == RECORD.read_text().count("\n")


def recorded(op):
    """Rows whose result is more than a choice or one rounded product."""
    return plain(op) and REFERENCES[op.kernel].ulp["FLOAT"] > 0.5
