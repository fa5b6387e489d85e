# SPDX-License-Identifier: Apache-2.0
"""What products refuse of the functions that ATen computes: common mistakes in porting, each
refused with its sentence where a device refuses it, and accepted as product any.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.aten.aten_support import ROOT, alone, command
from tests.support import TITLES

from openaclnn.aten import products
from openaclnn.aten.products import text
from openaclnn.aten.prototypes import functions
from openaclnn.rows.table import PRODUCTS

HALVES = "FLOAT, FLOAT16 or BFLOAT16"
REALS = "FLOAT, FLOAT16, INT8, INT32, UINT8, INT16, INT64, DOUBLE, BOOL"
CONVOLUTION = (
    "'aclnnConvolution', np.ones((1, 1, 3, 3), {0}), np.ones((1, 1, 2, 2), {0}), None, (1, 1), "
    "(0, 0), (1, 1), False, (0, 0), 1, out(1, 1, 2, 2, dtype={0}), 0"
)
# The product, the call, the code, and the sentence: {} is the title of the product.
MISTAKES = [
    ("A2", "'aclnnMatmul', f64(2, 3), f64(3, 2), out(2, 2, dtype='float64'), 0", 161002,
     f"self must have dtype {HALVES} on {{}}, but got DOUBLE"),
    ("A2", CONVOLUTION.format("'int64'"), 161002,
     f"input must have dtype {HALVES} on {{}}, but got INT64"),
    ("910", "'aclnnAdd', bf16(2), bf16(2), 1, bf16(2)", 161002,
     f"self must have dtype {REALS}, COMPLEX64 or COMPLEX128 on {{}}, but got BFLOAT16"),
    ("A2", "'aclnnAbs', f32(*[1] * 9), out(*[1] * 9)", 161002,
     "self must have 0 to 8 dims on {}, but has shape [1, 1, 1, 1, 1, 1, 1, 1, 1]"),
    ("A2", "'aclnnNonzero', f32(2).astype('complex64'), out(2, 1, dtype='int64')", 161002,
     f"self must have dtype {REALS} or BFLOAT16 on {{}}, but got COMPLEX64"),
    ("A2", "'aclnnGelu', f64(2), out(2, dtype='float64')", 161002,
     f"self must have dtype {HALVES} on {{}}, but got DOUBLE"),
    ("A2", "'aclnnLayerNorm', f64(2, 3), [3], None, None, 1e-5, out(2, 3, dtype='float64'), "
     "out(2, 1, dtype='float64'), out(2, 1, dtype='float64')", 161002,
     f"input must have dtype {HALVES} on {{}}, but got DOUBLE"),
    ("A3", "'aclnnBatchMatMul', np.ones((1, 1, 2), 'int8'), np.ones((1, 2, 1), 'int8'), "
     "out(1, 1, 1, dtype='int8'), 0", 161002,
     f"self must have dtype {HALVES} on {{}}, but got INT8"),
    ("310P", "'aclnnSoftmax', bf16(2), 0, bf16(2)", 161002,
     "self must have dtype FLOAT, FLOAT16 or DOUBLE on {}, but got BFLOAT16"),
    ("A2", "'aclnnSoftmax', f32(2).astype('complex64'), 0, out(2, dtype='complex64')", 161002,
     "self must have dtype FLOAT, FLOAT16, DOUBLE or BFLOAT16 on {}, but got COMPLEX64"),
    # A strided weight; transposed ones are accepted.
    ("A2", "'aclnnQuantMatmulV4', np.ones((2, 3), 'int8'), np.ones((3, 8), 'int8')[:, ::2], "
     "np.ones(4, 'float32'), None, None, None, False, False, np.ones((2, 4), 'float16')", 161002,
     "x2 must be contiguous on {}, but has strides [8, 2] and shape [3, 4]"),
    ("A2", "'aclnnQuantMatmulV4', np.ones((2, 3), 'int8'), np.ones((3, 4), 'int8'), "
     "np.ones(4, 'float64'), None, None, None, False, False, np.ones((2, 4), 'float16')", 161002,
     "scale must have dtype FLOAT, INT64, UINT64 or BFLOAT16 on {}, but got DOUBLE"),
    # The dtype of another parameter; a tensor of a list.
    ("A2", "'aclnnKthvalue', f32(3), 1, 0, False, out(dtype='float64'), out(dtype='int64')",
     161002, "values must have the dtype of self FLOAT on {}, but got DOUBLE"),
    ("A2", "'aclnnForeachAbs', [f32(2), f64(2)], [out(2), out(2, dtype='float64')]", 161002,
     f"x[1] must have dtype {HALVES} on {{}}, but got DOUBLE"),
    ("A2", "'aclnnCumsum', np.ones(3, 'bool'), 0, 9, out(3, dtype='int64')", 161002,
     "COMPLEX64, COMPLEX128 or BFLOAT16 on {}, but got BOOL"),
    # Functions that a product lacks.
    ("310P", "'aclnnCelu', f32(2), 1.0, out(2)", 561003,
     f"the product must be {TITLES['910']}, {TITLES['A2']} or {TITLES['A3']}, but is {{}}"),
    ("A2", "'aclnnBucketize', f32(2), f32(2), False, False, out(2, dtype='int64')", 561003,
     "only Ascend 950 has this function; OPENACLNN_PRODUCT=any computes it, but the product is {}"),
]  # fmt: skip
KEYS = "[np.ones((1, 4, 16), 'float16')[:, ::2]]"
# What is easily taken for a mistake: dims of one element, placeholders, scalars of any dtype, views
# of keys and values.
ACCEPTED = [
    (
        "A2",
        f"'aclnnFusedInferAttentionScoreV2', np.ones((1, 2, 16), 'float16'), {KEYS}, {KEYS}, "
        "*[None] * 21, 1, 1.0, 9, 9, 'BSH', 0, 0, 0, 0, 0, False, 0, 0, "
        "np.ones((1, 2, 16), 'float16'), None",
    ),
    ("A2", "'aclnnIndex', f32(2, 3), [f32(0), i64(1, 0)], out(2, 2)"),
    ("910", "'aclnnAdd', f32(2), f32(2), 1, out(2)"),
    ("910", CONVOLUTION.format("'float32'")),
    (
        "A2",
        "'aclnnMaxPool2dWithMaskBackward', f32(1, 2, 2), f32(1, 4, 4), np.zeros((1, 4, 32), "
        "'int8'), [2, 2], [2, 2], [0, 0], [1, 1], False, out(1, 4, 4)",
    ),
    ("A2", "'aclnnAdd', bf16(2), bf16(2), 1.5, bf16(2)"),
    ("A2", "'aclnnSoftmax', f64(2), 0, out(2, dtype='float64')"),
    (
        "A2",
        "'aclnnQuantMatmulV4', np.ones((2, 3), 'int8'), np.ones((4, 3), 'int8').T, "
        "np.ones(4, 'float32'), None, None, None, False, False, np.ones((2, 4), 'float16')",
    ),
    # No entry: everything is accepted.
    ("A2", "'aclnnLessScalar', f64(2), 1.0, out(2, dtype='bool')"),
]


@pytest.fixture(scope="module")
def home() -> Path:
    done = command("home", "--aten")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def answers(home: Path, product: str, calls: list[str]) -> list[list]:
    words = [sys.executable, str(ROOT / "tests" / "aten" / "c_calls.py"), str(home)]
    done = subprocess.run(
        words, input="\n".join(f"call({call})" for call in calls), capture_output=True, text=True,
        env=alone(product), timeout=300,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(calls), done.stderr
    return found


@pytest.mark.programs
@pytest.mark.parametrize("product", sorted({product for product, *_ in MISTAKES}))
def test_a_product_refuses_what_the_device_refuses(home, product):
    cases = [case for case in MISTAKES if case[0] == product]
    found = answers(home, product, [call for _, call, _, _ in cases])
    for (_, call, code, sentence), (codes, message) in zip(cases, found, strict=True):
        assert codes == [code], (call, message)
        end = re.escape(sentence.format(TITLES[product]))
        hint = "" if code == 561003 else "; OPENACLNN_PRODUCT=any leaves it to ATen"
        name = call.split("'")[1]
        assert re.search(rf": {name}: .*{end}{hint}$", message), (call, message)


@pytest.mark.programs
def test_product_any_accepts_all_of_them(home):
    """Phase 1 does; ATen lacks the softmax of complex numbers, as on every device of PyTorch."""
    calls = [call for _, call, _, _ in MISTAKES]
    for call, (codes, answer) in zip(calls, answers(home, "any", calls), strict=True):
        if "complex64" in call and "Softmax" in call:
            assert codes == [0, 161002]
            assert "ATen has no kernel for these dtypes: self ComplexFloat [2]" in answer
        else:
            assert codes == [0, 0], (call, answer)


@pytest.mark.programs
@pytest.mark.parametrize("product", sorted({product for product, _ in ACCEPTED}))
def test_a_product_accepts_what_the_device_accepts(home, product):
    calls = [call for of, call in ACCEPTED if of == product]
    for answer in answers(home, product, calls):
        assert answer[0] == [0, 0], answer


@pytest.mark.programs
def test_the_default_is_a2(home):
    calls = [call for product, call, *_ in MISTAKES if product == "A2"]
    codes = {tuple(answer[0]) for answer in answers(home, "", calls)}
    assert codes == {(161002,), (561003,)}


@pytest.mark.programs
def test_strides_are_checked_of_shapes_that_passed(home):
    call = (
        "'aclnnQuantMatmulV4', np.ones((2, 4), 'int8'), {}, np.ones(4, 'float32'), None, None, "
        "None, False, False, np.ones((2, 4), 'float16')"
    )
    views = (
        "np.ones((4, 4), 'int8')",
        "np.ones((4, 4), 'int8').T",
        "np.ones((4, 8), 'int8')[:, ::2]",
    )
    codes = [codes for codes, _ in answers(home, "A2", [call.format(view) for view in views])]
    assert codes == [[0, 0], [0, 0], [161002]]


@pytest.mark.programs
def test_the_product_may_change_between_calls(home):
    """Calls that passed are remembered, by product."""
    call = "call('aclnnGelu', f64(2), out(2, dtype='float64'))"
    code = f"""
import sys
sys.argv = ["c_calls.py", {str(home)!r}]
from tests.aten.c_calls import *
import openaclnn
call = Calls(sys.argv[1])
for product in ("any", "A2", None):
    openaclnn.set_product(product)
    print({call}[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.stdout == "[0, 0]\n[161002]\n[0, 0]\n", done.stderr


# ---- the files ----


def test_entries_name_functions_and_tensors_that_exist():
    for name, entry in products.entries().items():
        row = functions()[name]
        known = {p.name: p for p in row.parameters}
        # An in-place function shares the entry of one with out.
        plain = functions().get(name.replace("aclnnInplace", "aclnn"), row)
        both = known | {p.name: p for p in plain.parameters}
        for parameter, rule in entry.rules.items():
            assert both[parameter].kind in ("tensor", "tensors"), (name, parameter)
            if rule.like is not None:
                assert known[rule.like].kind == "tensor", (name, parameter)
            assert rule.dtypes != frozenset(), (name, parameter)


def test_an_entry_is_read_as_it_is_written():
    for name, entry in products.entries().items():
        line = name + text.entry_text(entry)
        assert dict(products.parse(line)) == {name: entry}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("aclnnAbs on A2 A9: self = float", "no products: A9"),
        ("aclnnAbs on A2: self = flota FLOAT99", "no dtypes: FLOAT99, flota"),
        ("aclnnAbs on A2: self = float, contiguously", "neither a rank nor products: contiguously"),
        ("aclnnAbs on A2: self = float, ranks 2", "neither a rank nor products: ranks 2"),
        ("aclnnAbs = float", "not an entry: aclnnAbs = float"),
    ],
)
def test_a_line_that_is_no_entry_is_refused(line, problem):
    with pytest.raises(ValueError, match=problem):
        list(products.parse(line))


def test_an_entry_of_several_products():
    line = (
        "aclnnCeil Inplace aclnnFloor on 910 A2: self out = float INT8, rank 1,3-4, on 910 int "
        "-INT16; indices = self, contiguous; nondeterministic"
    )
    found = dict(products.parse(line))
    assert set(found) == {"aclnnCeil", "aclnnInplaceCeil", "aclnnFloor"}
    entry = found["aclnnCeil"]
    assert (entry.products, entry.deterministic) == (("910", "A2"), False)
    rule = entry.rules["out"]
    by_key = {p.key: rule.accepted(p) for p in PRODUCTS}
    assert by_key["A2"] == {"FLOAT", "FLOAT16", "BFLOAT16", "INT8"}
    assert by_key["310P"] == {"FLOAT", "FLOAT16", "INT8"}  # has no BFLOAT16
    assert by_key["910"] == {"INT8", "INT32", "INT64", "UINT8"}
    assert rule.ranks == {1, 3, 4}
    assert (entry.rules["indices"].like, entry.rules["indices"].contiguous) == ("self", True)
    assert not rule.contiguous


def test_the_commands_show_them():
    shown = command("ops", "aclnnConvolutionBackward").stdout
    assert re.search(r"\n +products +910, A2, A3, 310P\n", shown)
    assert re.search(r"\n +input +float, rank any\n", shown)
    assert re.search(r"\n +results +may differ from run to run", shown)
    data = json.loads(command("ops", "--aten", "aclnnMatmul", "--json").stdout)["product_rules"]
    assert data["parameters"]["self"]["ranks"] == "1-6"
    assert data["parameters"]["self"]["dtypes"]["910"] == ["FLOAT", "FLOAT16"]
    page = command("ops", "--aten", "aclnnMatmul", "--markdown").stdout
    assert "| product rules | |\n| --- | --- |\n| products | 910, A2, A3, 310P |\n" in page
    assert "Devices" not in command("ops", "--aten", "aclnnLessScalar").stdout
