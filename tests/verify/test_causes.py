# SPDX-License-Identifier: Apache-2.0
"""Causes of wrong results that are made in this process: what a finding says is so."""

from __future__ import annotations

import math
import re
import zlib

import numpy as np
import pytest
from tests.verify.spoiled import found, times, where, with_others
from tests.verify.verify_page_support import good

import openaclnn
from openaclnn.reference.evaluation import (
    REFERENCES,
    evaluate,
    rounded,
    sample,
)
from openaclnn.rows.catalogue import find_operator
from openaclnn.verify.conditions import of_values
from openaclnn.verify.finding import Rank
from openaclnn.verify.provider import Outcome


def swapped(a):
    return {"scale": a["input_scale"], "input_scale": a["scale"]}


def test_right_results_have_none():
    assert found("elu", good) == []


@pytest.mark.parametrize(
    ("op", "value"),
    [("logit", math.nan), ("logit", 0), ("logit_grad", math.nan), ("hardshrink", 0)],
)
def test_one_value_is_no_formula(op, value):
    """Many formulas make it, with one attribute or another."""
    causes = [x.cause for x in found(op, where(lambda x, i: x == x, value))]
    assert not any("as if" in text for text in causes), causes


def test_cancellation():
    def spoil(case, inputs, made):
        x, a = inputs[0].astype(np.float32), case.attributes
        with np.errstate(all="ignore"):
            power = np.exp(np.float32(a["input_scale"]) * x)
            low = np.float32(a["scale"] * a["alpha"]) * (power - 1)
            return Outcome((np.where(x > 0, np.float32(a["scale"]) * x, low).astype(made.dtype),))

    causes = [x.cause for x in found("elu", spoil)]
    assert any("where almost equal numbers are subtracted" in text for text in causes[:2]), causes
    assert any("off by little" in text for text in causes), causes


def test_flushed_results_are_no_cancellation():
    causes = [x.cause for x in found("leaky_relu", where(lambda x, i: np.abs(x) < 1e-6, 0))]
    assert not any("almost equal" in text for text in causes), causes


def test_a_factor_beside_another_mistake():
    def spoil(case, inputs, made):
        (exact,) = evaluate(case.op, inputs, case.attributes)
        y = rounded(exact * 1.25, case.dtype)
        y.reshape(-1)[y.size - y.size % 16 :] = 7
        return Outcome((y,))

    causes = [x.cause for x in found("logit", spoil)]
    assert any("its result is the right one times 1.25" in text for text in causes), causes
    assert any("past the last full block of 16" in text for text in causes), causes


def test_every_output_is_named():
    def spoil(case, inputs, made):
        rng = np.random.default_rng(zlib.crc32(case.id.encode()))
        exact = evaluate(case.op, inputs, case.attributes)
        pairs = zip(exact, case.output_dtypes, strict=True)
        return Outcome(tuple(rounded(x + rng.normal(0, 1, x.shape), dtype) for x, dtype in pairs))

    first, *_ = found("group_norm_swish", spoil)
    assert all(re.search(rf"\b{name}\b", first.cause) for name in ("y", "mean", "rstd"))


@pytest.mark.parametrize(
    ("op", "change", "text"),
    [
        ("group_norm_swish", {"eps": 0.0}, "as if eps were 0"),
        ("group_norm_swish", {"activate_swish": False}, "as if activate_swish were False"),
        ("group_norm_swish", {"swish_scale": 1.0}, "as if swish_scale were 1"),
        ("group_norm_swish_grad", {"swish_scale": 1.0}, "as if swish_scale were 1"),
    ],
)
def test_attributes_of_group_norms(op, change, text):
    first, *others = found(op, with_others(lambda a: change))
    assert text in first.cause
    assert not others


@pytest.mark.parametrize(
    ("op", "spoil", "cause"),
    [
        ("elu", with_others(lambda a: {"scale": 1.0}), "as if scale were 1"),
        ("elu", with_others(swapped), "as if scale and input_scale were swapped"),
        ("elu", with_others(lambda a: {"alpha": float(rounded(np.array(a["alpha"]), "FLOAT16"))}),
         "as if alpha were rounded to FLOAT16"),
        ("elu_backward", with_others(lambda a: {"is_result": not a["is_result"]}),
         "as if is_result were inverted"),
        ("elu_backward", with_others(lambda a: {"is_result": False}), "as if is_result were False"),
        ("logit", with_others(lambda a: {"eps": 0.1}), "as if eps were 0.1"),
        ("logit_grad", with_others(lambda a: {}, lambda xs: [*reversed(xs)]),
         "as if x and dy were swapped"),
        ("logit", times(1 / math.log(2)), "its result is the right one times 1.44"),
        ("leaky_relu", where(lambda x, i: np.isnan(x), 0), "x is NaN; all such elements are wrong"),
        ("leaky_relu", where(lambda x, i: i >= x.size - x.size % 16, 7),
         "it lies past the last full block of 16 elements"),
    ],
)  # fmt: skip
def test_the_only_cause(op, spoil, cause):
    (only,) = found(op, spoil)
    assert cause in only.cause
    assert not only.cause.startswith(("most", "some"))


@pytest.mark.parametrize(("sign", "text"), [(True, "x is -0"), (False, "x is +0")])
def test_single_values_of_a_tensor(sign, text):
    """A zero of the other sign beside it is right, and in the sample."""

    def one(x, i):
        return (x == 0) & (np.signbit(x) == sign)

    (only,) = found("leaky_relu", where(one, 5))
    assert only.cause.endswith(f"{text}; all such elements are wrong")


def test_a_part_of_the_elements_is_not_called_every():
    """A clamp, and elements here and there."""

    def spoil(case, inputs, made):
        drawn = np.random.default_rng(7).random(made.shape) < 0.1
        return Outcome((np.where(drawn | (inputs[0] > 10), np.float32(3), made),))

    first, *_ = found("leaky_relu", spoil)
    assert "x is above 10" not in first.cause or first.cause.startswith(("most", "some"))


def test_one_close_element_among_many_that_are_far_off():
    """Flushed subnormals are not "off by little", nor is the one beside them."""

    def spoil(case, inputs, made):
        least = np.finfo(made.dtype).tiny
        wrong = np.where(np.abs(made) < least, 0, made).astype(made.dtype)
        flat = wrong.reshape(-1)
        if flat.size and abs(flat[0]) < 1e30:
            flat[0] = np.nextafter(flat[0], np.float32(np.inf))
        return Outcome((wrong,))

    causes = [x.cause for x in found("leaky_relu", spoil)]
    assert any("is subnormal" in text for text in causes), causes
    assert "off by little" not in causes[0]


def test_zeros_of_either_sign_in_random_results_are_no_cause():
    def spoil(case, inputs, made):
        if case.layout == "transposed":
            made = made.reshape(-1)[::-1].reshape(made.shape)
        return Outcome((made,))

    (only,) = found("hardshrink", spoil, every=1)
    assert only.cause.startswith("only with layout transposed")


def test_what_no_cause_explains():
    """Its example is no element that a finding before it has."""

    def spoil(case, inputs, made):
        rng = np.random.default_rng(zlib.crc32(case.id.encode()))
        if rng.random() < 0.2:  # elements here and there, off by several factors
            drawn = rng.random(made.shape) < 0.1
            made = np.where(drawn, made / rng.uniform(2, 9, made.shape), made)
        return Outcome((np.where(np.isnan(inputs[0]), 0, made).astype(made.dtype),))

    first, rest = found("leaky_relu", spoil)
    assert "x is NaN" in first.cause
    assert (rest.cause, rest.rank) == ("other cases", Rank.REST)
    assert not any(math.isnan(r.element.inputs["x"][0]) for r in rest.results)


def test_cases_of_other_findings_count():
    """NaN becomes 0 everywhere, and alpha is ignored: cases that have both fail once."""

    def spoil(case, inputs, made):
        (exact,) = evaluate(case.op, inputs, {**case.attributes, "alpha": 1.0})
        return Outcome((rounded(np.where(np.isnan(inputs[0]), 0, exact), case.dtype),))

    causes = [x.cause for x in found("elu", spoil)]
    assert any("computed as if alpha were 1" in text for text in causes), causes
    assert any("x is NaN" in text for text in causes), causes


@pytest.mark.parametrize(
    ("bad", "others", "text"),
    [
        ([2, 1e30, "nan"], [0, 1], "with n above 1 or NaN"),
        ([-2, 0.1], [0.5, math.inf], "with n below 0.5"),
        ([-2, 2, 3], [0, 1], "with n outside [0, 1]"),
        ([-2, 2, "nan"], [0, 1], "with n outside [0, 1] or NaN"),
        ([0, 1, 2], [math.inf, "nan"], "with a finite n"),
        ([2, 0.5], [0, 1], "with n = 0.5 or 2"),
        (["mean", "sum", 1], [0], "where n is not 0"),
    ],
)
def test_values_of_an_attribute(bad, others, text):
    assert of_values("n", bad, others).text == text


def test_compare_calls_outputs_swapped_only_where_both_are_wrong():
    op = find_operator("group_norm_swish_grad")
    attributes = REFERENCES[op.kernel].usual
    inputs = sample(op, REFERENCES[op.kernel].example, "FLOAT", 1, attributes)
    dx, dgamma, dbeta = (x.astype(np.float32) for x in evaluate(op, inputs, attributes))

    def of_dgamma(*mine):
        given = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
        return openaclnn.compare(mine, op.python, **given, **attributes).outputs[1].common

    assert of_dgamma(dx, dbeta, dgamma).endswith("as if dgamma and dbeta were swapped")
    assert of_dgamma(dx, dbeta, dbeta).endswith("as if dgamma were sum(u)")


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_cancellation_among_many_results_in_order(scale):
    """The first wrong ones are off by a few ulp only."""
    x = np.linspace(-4, 4, 100_000, dtype=np.float32)
    y = np.float32(scale) * np.where(x > 0, x, np.exp(x) - np.float32(1))
    found = openaclnn.compare(y, "elu", x, scale=scale)
    assert "as where almost equal numbers are subtracted" in str(found)


def test_results_in_float_that_are_cut_to_16_bits():
    """FLOAT rounds some of them to numbers of 16 bits, which stay."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.linspace(-4, 4, 1000).astype(ml_dtypes.bfloat16)
    y = np.where(x > 0, x, x.astype(np.float32) * np.float32(0.01)).astype(np.float32)
    cut = (y.view(np.uint32) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)
    found = openaclnn.compare(cut, "leaky_relu", x, negative_slope=0.01)
    assert "the exact value cut toward 0 instead of rounded to nearest" in str(found)
