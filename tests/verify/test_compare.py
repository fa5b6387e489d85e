# SPDX-License-Identifier: Apache-2.0
"""openaclnn.compare passes what the library computes, and reports what was made wrong."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from tests.support import SEED, all_rows, call, cases, grid, results, rows

import openaclnn
from openaclnn.reference.dtypes import dtype_of
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype, sample

ELU = next(op for op in openaclnn.OPS if op.name == "aclnnElu")


def inputs_of(op, inputs):
    return {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}


def compare(op, inputs, attributes, got, **options):
    mine = got[0] if len(got) == 1 else got
    return openaclnn.compare(mine, op.python, **inputs_of(op, inputs), **attributes, **options)


@pytest.mark.parametrize(("op", "dtype", "attributes"), cases())
def test_ours_passes_and_a_wrong_element_does_not(op, dtype, attributes):
    """Every row: one element moved by 8 units in the last place is found, by index and bits."""
    shape = REFERENCES[op.kernel].example
    inputs = sample(op, shape, dtype, SEED, attributes)
    got = results(op, inputs, attributes)
    found = compare(op, inputs, attributes, got)
    assert found, str(found)
    for which, x in enumerate(got):
        near = [o for o in found.outputs if o.output.name == op.outputs[which].result_name]
        if not near or not x.size:
            continue
        numbers = np.argwhere(np.isfinite(x) & (np.abs(x.astype(np.float64)) > 1e-3))
        if not len(numbers):
            continue
        at = tuple(numbers[len(numbers) // 2])
        wrong = [y.copy() for y in got]
        kept = near[0].output.terms
        terms = 1.0 if kept is None else float(kept[at])
        digits = np.finfo(x.dtype).nmant if dtype != "BFLOAT16" else 7
        off = max(abs(float(x[at])), terms) * 2.0 ** (3 - digits) * (16 if dtype == "FLOAT" else 1)
        wrong[which][at] = (float(x[at]) + off) if kept is not None else float(x[at]) * 1.5
        verdict = compare(op, inputs, attributes, tuple(wrong))
        assert not verdict
        failed = next(o for o in verdict.outputs if o.output.name == near[0].output.name)
        assert failed.worst[0].index == tuple(map(int, at))
        value, bits = failed.worst[0].got
        assert value == float(wrong[which][at])
        assert int(bits, 16) == int(wrong[which][at].view(f"u{x.dtype.itemsize}"))
        assert sum(failed.histogram.values()) == x.size


@pytest.mark.parametrize("op", rows())
def test_special_values_are_reported_by_kind(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = grid(op, "FLOAT", attributes)
    got = call(op, inputs, attributes)
    assert compare(op, inputs, attributes, (got,))
    changes = {
        "NaN instead of a number": (np.isfinite(got), math.nan),
        "a number instead of NaN": (np.isnan(got), 1.0),
        "infinite instead of finite": (np.isfinite(got) & (np.abs(got) < 1e30), math.inf),
        "finite instead of infinite": (np.isinf(got), 1.0),
        "zero of the other sign": ((got == 0) & ~np.signbit(got), -0.0),
    }
    for kind, (where, value) in changes.items():
        places = np.argwhere(where)
        if not len(places):
            continue
        wrong = got.copy()
        wrong[tuple(places[0])] = value
        verdict = compare(op, inputs, attributes, (wrong,))
        assert not verdict
        assert verdict.outputs[0].mismatches.get(kind) == 1, kind
        assert f"1 x {kind}" in str(verdict)


X = np.linspace(-4, 4, 1000, dtype=np.float32)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.float16, "FLOAT16"), ("bf16", "BFLOAT16"), ("BFLOAT16", "BFLOAT16"),
        ("ACL_FLOAT16", "FLOAT16"), ("torch.bfloat16", "BFLOAT16"), ("fp32", "FLOAT"),
        (np.dtype("<f8"), "DOUBLE"), ("<f2", "FLOAT16"), ("half", "FLOAT16"), (float, "DOUBLE"),
    ],
)  # fmt: skip
def test_dtypes_as_people_write_them(given, name):
    assert dtype_of(given) == name


def test_dtypes_of_ml_dtypes_and_torch():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert dtype_of(ml_dtypes.bfloat16) == "BFLOAT16"
    assert dtype_of(np.dtype(ml_dtypes.bfloat16)) == "BFLOAT16"
    torch = pytest.importorskip("torch")
    for kind, name in (
        (torch.bfloat16, "BFLOAT16"),
        (torch.half, "FLOAT16"),
        (torch.float, "FLOAT"),
    ):
        assert dtype_of(kind) == name


@pytest.mark.parametrize("given", ["int8", np.int32, "complex64", "", object(), None, "fp8"])
def test_other_dtypes_are_refused(given):
    with pytest.raises(ValueError, match=r"^dtype must be a float dtype \(.*\), but got "):
        dtype_of(given)


def test_raw_bits_and_wide_arrays():
    """bfloat16 files as NumPy reads them, bits in integers, 16-bit results in float32."""
    half = X.astype(numpy_dtype("BFLOAT16"))
    y = openaclnn.elu(half)
    for raw in ("V2", np.uint16, np.int16):
        assert openaclnn.compare(y.view(raw), "elu", half.view(raw), dtype="bf16")
    assert openaclnn.compare(y.astype(np.float32), "elu", half, dtype="bf16")
    with pytest.raises(ValueError, match=r"^x must have a float dtype, but has uint16; raw bits"):
        openaclnn.compare(y, "elu", half.view(np.uint16))
    with pytest.raises(ValueError, match=r"^mine must hold values of FLOAT16, but has 0.1"):
        openaclnn.compare(np.full(1000, 0.1, np.float32), "elu", X.astype(np.float16), dtype="fp16")
    assert openaclnn.compare(openaclnn.elu(X).astype(">f4"), "elu", X.astype(">f4"))


@pytest.mark.parametrize("op", all_rows())
def test_tensors_of_torch(op):
    torch = pytest.importorskip("torch")
    attributes = REFERENCES[op.kernel].attributes[0]
    for dtype in ("FLOAT", "BFLOAT16"):
        inputs = sample(op, REFERENCES[op.kernel].example, dtype, SEED, attributes)
        got = results(op, inputs, attributes)

        def tensor(x):
            plain = x.view(np.int16) if x.dtype.itemsize == 2 else x
            made = torch.from_numpy(plain.copy())
            return made.view(torch.bfloat16) if x.dtype.itemsize == 2 else made

        assert compare(op, [tensor(x) for x in inputs], attributes, tuple(map(tensor, got)))


# ---- what people read, and mistakes ----


def test_the_report_and_the_data():
    x = X.astype(np.float16)
    y = openaclnn.elu(x)
    y[7] = np.nan
    found = openaclnn.compare(y, "elu", x)
    text = str(found)
    assert text.startswith("FAILED aclnnElu, the accuracy that openaclnn promises\n")
    assert "out [1000] FLOAT16: FAILED: 1 of 1,000 elements are off by more than 0.501 ulp" in text
    assert re.search(
        r"^ +\[7\] +-3\.\d+ \(0xc\w{3}\) +-0\.\d+ \(0x\w{4}\) +nan \(0x7e00\)", text, re.M
    )
    data = json.loads(json.dumps(found.as_data(), allow_nan=False))
    (output,) = data["outputs"]
    assert (data["operator"], data["passed"], output["wrong"]) == ("aclnnElu", False, 1)
    assert output["worst"][0]["index"] == [7]
    assert output["worst"][0]["got"] == {"value": "nan", "bits": "0x7e00"}
    assert sum(output["histogram"].values()) == 1000
    x[7], y[7] = -np.nan, 0
    found = openaclnn.compare(y, "elu", x)
    assert found.outputs[0].worst[0].nearest[1] == "0x7e00"  # not the sign of the input


def test_arguments_in_the_order_of_the_function():
    y = openaclnn.elu_backward(X, 1.0, 1.0, 1.0, False, X)
    assert openaclnn.compare(y, "elu_backward", X, 1.0, 1.0, 1.0, False, X)
    assert openaclnn.compare(
        y, "aclnnEluBackward", X, 1.0, 1.0, 1.0, is_result=False, self_or_result=X
    )
    changed = X.copy()
    openaclnn.leaky_relu_(changed, 0.1)
    assert openaclnn.compare(changed, "leaky_relu_", X, 0.1)


def test_nothing_compared_is_not_passed():
    empty = np.zeros((0, 3), np.float32)
    for options in ({}, {"standard": "allclose"}, {"standard": "peer", "benchmark": empty}):
        found = openaclnn.compare(empty, "elu", empty, **options)
        assert not found
        lines = str(found).splitlines()
        assert lines[0].startswith("NOTHING COMPARED aclnnElu, ")
        assert lines[-1] == "out [0, 3] FLOAT: there are no elements"
        data = found.as_data()
        assert not data["passed"]
        assert not data["outputs"][0]["passed"]


def norm_that_overflows(dtype):
    """Inputs and attributes of a group norm: y beyond 65504 in fp16, rstd beyond fp32."""
    attributes = {"num_groups": 2, "data_format": None, "eps": 1e-5, "activate_swish": False}
    attributes["swish_scale"] = 1.0
    rng = np.random.default_rng(SEED)
    if dtype == np.float16:
        x, gamma = rng.normal(0, 1, (2, 4, 64)), rng.choice([-6e4, 6e4], 4)
    else:
        x, gamma = np.zeros((2, 4, 64)), np.ones(4)
        attributes["eps"] = 1e-80
    return [z.astype(dtype) for z in (x, gamma, np.zeros(4))], attributes


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sums_that_overflow(dtype):
    """An infinity is the right result where the formula's value is beyond the dtype, and wrong
    where it is not or has the other sign."""
    op = next(op for op in openaclnn.OPS if op.python == "group_norm_swish")
    inputs, attributes = norm_that_overflows(dtype)
    got = results(op, inputs, attributes)
    assert any(np.isinf(x).any() for x in got)
    assert compare(op, inputs, attributes, got)
    for which, x in enumerate(got):
        over = np.isinf(x)
        for wrong in (np.where(over, -x, x), np.where(over, 1, x), np.full_like(x, np.inf)):
            changed = [*got[:which], wrong.astype(dtype), *got[which + 1 :]]
            same = np.array_equal(changed[which], x, equal_nan=True)
            assert compare(op, inputs, attributes, tuple(changed)).passed == same, which


def test_none_is_not_judged():
    op = next(op for op in openaclnn.OPS if op.python == "group_norm_swish")
    inputs, attributes = norm_that_overflows(np.float16)
    y, _, rstd = results(op, inputs, attributes)
    found = compare(op, inputs, attributes, (y, None, rstd))
    assert found.passed
    assert [judged.output.name for judged in found.outputs] == ["y", "rstd"]
    assert not compare(op, inputs, attributes, (y, None, rstd + 1))


NORMED = (np.ones((2, 6, 4), np.float32), np.ones(6, np.float32), np.ones(6, np.float32))
GROUPS = (NORMED[0], None, None)
GN = "group_norm_swish"


@pytest.mark.parametrize(
    ("given", "named", "kind", "sentence"),
    [
        ((X, "elu"), {}, TypeError, "compare: elu takes x, alpha, .*, but x is missing"),
        ((X, "elu", X), {"slope": 1}, TypeError, "compare: elu takes .*, but got 'slope'"),
        ((X, "elu", X), {"x": X}, TypeError, "compare: elu takes .*, but got 'x' twice"),
        ((X, "elu", X), {"alpha": X}, TypeError, r"compare: elu takes .*; alpha must be a number, "
         r"but is an array of shape \[1000\]: is an attribute missing before it\?"),
        ((X, GN, *NORMED[:2], 2), {}, TypeError, "compare: .*; beta must be an array or a tensor, "
         "but is the number 2: is beta missing?"),
        ((X, GN, X), {}, TypeError, "compare: .*, but gamma and beta and num_groups are missing"),
        ((X, "eluu", X), {}, ValueError, "no operator 'eluu'; did you mean elu"),
        ((X, "elu", None), {}, TypeError, "x must be an array or a tensor, but got None"),
        ((None, "elu", X), {}, TypeError, "out must be an array or a tensor, but got None"),
        (("elu", X), {}, TypeError, "compare takes the results before the name: compare"),
        ((X, "leaky_relu_backward", X, 0.01), {}, TypeError, "compare: leaky_relu_backward takes "
         "grad_output, x, negative_slope, self_is_result; x must be an array or a tensor, but is "
         "the number 0.01: is x missing?"),
        ((X, "elu", np.float32(1)), {}, TypeError, "compare: elu takes .*; x must be an array"),
        ((X[1:], "elu", X), {}, ValueError, r"out must have the shape \[1000\], but got \[999\]"),
        ((X > 0, "elu", X), {}, ValueError, "mine must be a float|mine must have a float dtype"),
        ((X, "elu", X), {"standard": "best"}, ValueError, "standard must be one of ours, float"),
        ((X, "elu", X), {"worst": -1}, ValueError, "worst must be a number of elements"),
        ((X, "elu", X), {"ulp": -1.0}, ValueError, "ulp must be at least 0, but got -1.0"),
        ((X, "elu", X), {"rtol": 1.0}, ValueError, "rtol must come with standard allclose, but"),
        ((X, "elu", X), {"benchmark": X}, ValueError, "benchmark must come with standard double"),
        ((X, "aclnnRelu", X), {"atol": 1.0}, ValueError, "atol must come with standard allclose"),
        ((X, "aclnnRelu", X), {"standard": "ours"}, ValueError, "standard ours needs ulp for a"),
        ((X, "elu", X), {"rtol": math.nan}, ValueError, "rtol must be at least 0, but got nan"),
        ((X, "elu", X), {"atol": -1.0}, ValueError, "atol must be at least 0, but got -1.0"),
        ((X, "logit_grad", X, X[1:]), {}, ValueError, "logit_grad: dy must have the shape of x"),
        (((X, X), GN, X, X, X), {"num_groups": 1}, ValueError, f"{GN}: x must have 2 to 8 dimens"),
        ((GROUPS, GN, *NORMED, 4), {}, ValueError, f"{GN}: num_groups must divide the 6 channels"),
        ((GROUPS, GN, *NORMED, 0), {}, ValueError, f"{GN}: num_groups must be greater than 0, but"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(given, named, kind, sentence):
    with pytest.raises(kind, match=f"^{sentence}"):
        openaclnn.compare(*given, **named)


def test_values_beyond_the_range_of_double(recwarn):
    """The formula of DOUBLE is in long double: no cast to float64 overflows on the way."""
    x = np.array([-1e300, 2e300, 1.0])
    assert openaclnn.compare(np.array([-np.inf, 2e300, 1.0]), "leaky_relu", x, 1e30)
    found = openaclnn.compare(
        np.full(3, 1e308), "leaky_relu", np.array([-1e-300, -1e300, 1.0]), 1e30
    )
    assert -np.inf in [element.nearest[0] for element in found.outputs[0].worst]
    assert "the worst is a number of the other sign" in str(found)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
