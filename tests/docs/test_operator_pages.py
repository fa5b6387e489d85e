# SPDX-License-Identifier: Apache-2.0
"""The pages of the operators (tools/docs/pages): their examples in Python and C run and print the
same, their tables are true."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import openaclnn
from openaclnn.reference.evaluation import (
    REFERENCES,
    absolute_terms,
    accuracy,
    evaluate,
    scaled_error,
    ulp_error,
)
from openaclnn.rows.schema import Op
from openaclnn.rows.table import ANY, OPS, PRODUCTS

sys.path += [str(Path(__file__).parents[2] / "tools" / room) for room in ("docs", "build")]
from pages import examples, operators

pytestmark = pytest.mark.programs

HOME = openaclnn.home()
each_row = pytest.mark.parametrize("op", OPS, ids=lambda op: op.python)


def shown(text: str) -> dict[str, list[float]]:
    """The numbers behind each name that an example prints."""
    lines = (line.split(":") for line in text.splitlines())
    return {name: [float(word) for word in values.split()] for name, values in lines}


@each_row
def test_the_example_in_python_prints_what_the_formula_gives(op: Op) -> None:
    inputs = examples.inputs_of(op)
    attributes = examples.attributes_of(op)
    expected = evaluate(op, inputs, attributes)
    printed = shown(operators.printed(op))
    assert list(printed) == [p.name for p in op.outputs]
    for values, exact in zip(printed.values(), expected, strict=True):
        np.testing.assert_allclose(values, exact.ravel(), rtol=1e-5, atol=1e-6)  # six digits


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
@each_row
def test_the_example_in_c_prints_the_same(op: Op, tmp_path: Path) -> None:
    source, program = tmp_path / f"{op.python}.c", tmp_path / op.python
    source.write_text(examples.c_example(op))
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    link = [f"-L{HOME}/lib64", "-lopapi_nn", "-lascendcl", "-lnnopbase"]
    subprocess.run(
        ["cc", *strict, source, "-o", program, f"-I{HOME}/include", *link,
         f"-Wl,-rpath,{HOME}/lib64"], check=True,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == operators.printed(op)


def number(text: str) -> np.float32:
    return np.float32(text.strip("` "))


@each_row
def test_special_values_are_those_of_the_formula(op: Op) -> None:
    """Each table: an input's first element, and the first of each output."""
    attributes = examples.attributes_of(op)
    tables = operators.edges(op).split("\n\n")
    assert len(tables) == len(op.input_tensors)
    for i, table in enumerate(tables):
        assert f"`{op.input_tensors[i].name}`" in table.splitlines()[0]
        for row in table.splitlines()[2:]:
            value, *results = map(number, row.strip("|").split("|"))
            inputs = operators.base_of(op)
            inputs[i].flat[0] = value
            expected = evaluate(op, inputs, attributes)
            terms = absolute_terms(op, inputs, attributes)
            for k, (result, exact) in enumerate(zip(results, expected, strict=True)):
                got, want = np.array([result]), exact.ravel()[:1]
                if terms is None:
                    dtype, ulp = accuracy(op, "FLOAT", "FLOAT")
                    assert ulp_error(got, want, dtype)[0] <= ulp, row
                elif np.isfinite(terms[k].flat[0]) and terms[k].flat[0] < 1e38:
                    assert scaled_error(op, got, want, terms[k].ravel()[:1]) <= 1, row


@each_row
def test_dtypes_are_marked_for_each_product(op: Op) -> None:
    table = operators.dtypes_by_product(op)
    for product in (*PRODUCTS, ANY):
        (row,) = re.findall(rf"^\| {product.key}: .*$", table, re.M)
        assert row.count("yes") == len(op.accepted(product))


@each_row
def test_the_page_has_every_part_in_order(op: Op) -> None:
    page = operators.page(op)
    assert page.startswith(f"# {op.name}\n")
    assert all(part in page for part in op.formula.split("; "))
    titles = ["Formula", "Example", "Function and derivative", "Special values", "Parameters",
              "Dtypes by product", "Example in C"]  # fmt: skip
    assert re.findall(r"^## (.*)$", page, re.M) == titles
    assert page.index(f"{op.name}GetWorkspaceSize(") < page.index("\n## Formula\n")
    assert f"]({op.python}.svg)" in page
    assert f"]({op.python}.md)" in operators.overview()
    assert REFERENCES[op.kernel].attributes
