# SPDX-License-Identifier: Apache-2.0
"""A row that lacks something fails here with the sentence that says what to add."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import FLOATS, RULES, SEED, all_rows, rows

from openaclnn.bench.baseline_table import BASELINES
from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.schema import Op
from openaclnn.rows.table import OPS, PRODUCTS

ROOT = Path(__file__).resolve().parents[2]


def text_of(folder: str, suffix: str) -> str:
    return "".join(path.read_text() for path in sorted((ROOT / folder).glob(f"*{suffix}")))


KERNELS = set(re.findall(r"^struct (\w+) {", text_of("core/kernels/elementwise", ".h"), re.M))
FAMILIES = set(re.findall(r"^Status plan_(\w+)\(", text_of("core/ops", ".cpp"), re.M))
CORE_RULES = set(re.findall(r"^Status (\w+)\(", (ROOT / "core/ops/rules.h").read_text(), re.M))
# What the fuzzer knows of pointwise kernels: ULP of FLOAT results, and what they may lose besides.
FUZZED = {
    kernel: (float(ulp), float.fromhex(lost or "0"))
    for kernel, ulp, lost in re.findall(
        r'^    \{"(\w+)", ([\d.]+),[^"]*?\}(?:,\s+(0x[\w.-]+))?\},$',
        (ROOT / "tests/fuzz/formulas.h").read_text(),
        re.M,
    )
}


def lacks_of_reference(op: Op) -> list[str]:
    reference = REFERENCES.get(op.kernel)
    if reference is None:
        return [f'add an entry "{op.kernel}" to REFERENCES in src/openaclnn/reference/formulas.py']
    lacks = []
    if len(reference.domain) != len(op.input_tensors):
        lacks.append(f"give its reference a domain for each of its {len(op.input_tensors)} inputs")
    names = {p.python_name for p in op.attributes}
    if any(set(attributes) != names for attributes in reference.attributes):
        lacks.append(f"give the attribute sets of its reference the names {sorted(names)}")
    if len(reference.attributes) < (5 if names else 1):
        lacks.append("give its reference at least 5 attribute sets")
    computes = {"DOUBLE" if dtype == "DOUBLE" else "FLOAT" for dtype in op.dtypes}
    judged = set() if reference.terms else {*computes, "half"}
    if reference.terms and set(reference.bound) != {"FLOAT", "DOUBLE"}:
        lacks.append("give its reference a bound for FLOAT and DOUBLE")
    for key in sorted(judged - set(reference.ulp)):
        lacks.append(f'give the ulp of its reference a tolerance for "{key}"')
    return lacks


FUNCTIONS = {"average", "exp", "expm1", "ln", "max", "mean", "min", "sqrt", "sum", "variance"}


def undefined(op: Op) -> list[str]:
    """The names in the formula that are no parameters, functions or definitions of `where`."""
    defined = [re.fullmatch(r"(\w+)(?:\((\w+)\))? = .+", text) for text in op.where]
    assert all(defined), f"{op.name}: a definition of where is written as name = formula"
    known = {*FUNCTIONS, "NaN"} | {p.name for p in op.parameters} | {m[1] for m in defined if m}
    used = re.findall(r"[A-Za-z]\w*", " ".join([op.formula, *op.where]))
    return sorted(set(used) - known)


def lacks(op: Op) -> list[str]:
    """What has to be added before this row is complete."""
    found = lacks_of_reference(op)
    if op.pointwise and op.kernel not in KERNELS:
        found.append(f"write struct {op.kernel} in a header of core/kernels/elementwise")
    if op.pointwise and op.kernel not in FUZZED:
        found.append(f'add an entry "{op.kernel}" to tests/fuzz/formulas.h')
    if op.family not in FAMILIES:
        found.append(f"write plan_{op.family} in a file of core/ops")
    if not (ROOT / f"tests/fuzz/families/{op.family}.cpp").is_file():
        found.append(f"write what the fuzzer checks in tests/fuzz/families/{op.family}.cpp")
    if op.python not in BASELINES:
        file = f"src/openaclnn/bench/{op.family}_baselines.py"
        found.append(f'add an entry "{op.python}" to BASELINES in {file}')
    if not re.fullmatch(r"[A-Z][^\n]*\.", op.doc):
        found.append("give the row a doc line: one sentence with a capital and a full stop")
    if not op.formula:
        found.append("give the row its formula")
    for letter in undefined(op):
        found.append(f'define {letter} of the formula, where="{letter} = ..."')
    for rule in op.rules:
        if rule not in CORE_RULES:
            found.append(f"write the rule {rule} in core/ops/rules.cpp")
        if rule not in RULES:
            found.append(f"say how to break the rule {rule} in RULES of tests/support.py")
    for key in sorted(set(op.products) - {p.key for p in PRODUCTS}):
        found.append(f"add the product {key} to PRODUCTS in src/openaclnn/rows/table.py")
    for dtype in sorted(set(op.dtypes) - set(FLOATS)):
        found.append(f"teach src/openaclnn/reference/evaluation.py the dtype {dtype}")
    return found


@pytest.mark.parametrize("op", all_rows())
def test_complete(op):
    assert not lacks(op), f"{op.name}: " + "; ".join(lacks(op))


def test_what_is_lacking_is_named():
    bare = replace(
        OPS[0],
        kernel="frob",
        family="frobs",
        python="frob",
        doc="",
        rules=("frobs",),
        formula="self > 0 ? self : self * s + c",
        where=("s = negativeSlope",),
    )
    assert lacks(bare) == [
        'add an entry "frob" to REFERENCES in src/openaclnn/reference/formulas.py',
        "write plan_frobs in a file of core/ops",
        "write what the fuzzer checks in tests/fuzz/families/frobs.cpp",
        'add an entry "frob" to BASELINES in src/openaclnn/bench/frobs_baselines.py',
        "give the row a doc line: one sentence with a capital and a full stop",
        'define c of the formula, where="c = ..."',
        "write the rule frobs in core/ops/rules.cpp",
        "say how to break the rule frobs in RULES of tests/support.py",
    ]
    assert lacks(replace(OPS[0], kernel="frob", python="frob")) == [
        'add an entry "frob" to REFERENCES in src/openaclnn/reference/formulas.py',
        "write struct frob in a header of core/kernels/elementwise",
        'add an entry "frob" to tests/fuzz/formulas.h',
        'add an entry "frob" to BASELINES in src/openaclnn/bench/elementwise_baselines.py',
    ]


def test_nothing_is_left_over():
    assert set(REFERENCES) == {op.kernel for op in OPS}
    assert set(BASELINES) == {op.python for op in OPS}
    named = {rule for op in OPS for rule in op.rules}
    assert set(RULES) == named == CORE_RULES


def test_the_fuzzer_promises_what_the_references_promise():
    kernels = {op.kernel for op in OPS if op.pointwise}
    promised = {k: (REFERENCES[k].ulp["FLOAT"], REFERENCES[k].lost) for k in kernels}
    assert promised == FUZZED
    for op in (op for op in OPS if not op.pointwise):
        source = (ROOT / f"tests/fuzz/families/{op.family}.cpp").read_text()
        (bound,) = re.findall(r"\bkBound = ([\d.e-]+)L;", source)
        assert float(bound) == REFERENCES[op.kernel].bound["FLOAT"], op.name


def test_names_are_unique():
    for names in ([op.name for op in OPS], [op.python for op in OPS]):
        assert len(set(names)) == len(names)
    for op in OPS:
        spellings = [p.python_name for p in op.parameters]
        assert len(set(spellings)) == len(spellings), op.name


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_an_in_place_form_follows_its_plain_form(op):
    plain = next(p for p in OPS if p.name == op.name.replace("Inplace", ""))
    for field in ("kernel", "products", "dtypes", "rules", "header"):
        assert getattr(op, field) == getattr(plain, field), field
    assert op.python == plain.python + "_"
    assert [p.name for p in op.attributes] == [p.name for p in plain.attributes]
    assert [p.default for p in op.attributes] == [p.default for p in plain.attributes]


@pytest.mark.parametrize("op", rows())
def test_samples_repeat(op):
    for dtype in op.dtypes:
        once, again = (sample(op, (50,), dtype, SEED) for _ in range(2))
        assert [x.tobytes() for x in once] == [x.tobytes() for x in again]
        assert [x.shape for x in once] == [(50,)] * len(op.input_tensors)


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_row_of_more_outputs_than_there_is_room_for_does_not_compile(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "build" / "generate.py", tmp_path], check=True)
    rows_as_cpp = (tmp_path / "generated" / "operators.cpp").read_text()
    row = max(OPS, key=lambda op: len(op.outputs))
    known = re.search(rf'constexpr Parameter {row.name}_parameters.*?"raise.*?;', rows_as_cpp, re.S)
    assert known is not None
    output = re.search(r"\{\"\w+\", \"\w+\", Kind::tensor, Role::output.*?\},\n", known[0])
    assert output is not None
    source = tmp_path / "row.cpp"
    command = ["g++", "-std=c++20", "-fsyntax-only", source, f"-I{ROOT}", f"-I{ROOT}/include"]
    command += [f"-I{tmp_path}", f"-I{tmp_path}/include"]
    for more, refused in ((0, False), (1, True)):
        text = known[0].replace(output[0], output[0] * (1 + more))
        head = '#include "core/ops/operator.h"\n'
        source.write_text(head + "namespace openaclnn {\n" + text + "\n}\n")
        compiled = subprocess.run(command, capture_output=True, text=True)
        assert (compiled.returncode != 0) == refused, compiled.stderr
        assert ("raise kMaxParameters or kMaxOutputs" in compiled.stderr) == refused
