# SPDX-License-Identifier: Apache-2.0
"""The Python package: functions, plans, the exact C names, streams."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.support import SEED, all_rows, arguments, bits, call, rows

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.table import OPS

X = np.array([[-2.0, -0.0, 3.0], [1.0, -4.0, 0.5]], np.float32)
Y = np.array([[-0.5, -0.0, 3.0], [1.0, -1.0, 0.5]], np.float32)  # leaky_relu(X, 0.25)


# ---- functions ----


@pytest.mark.parametrize("op", rows())
def test_out_is_written_and_returned(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, (3, 5), op.dtypes[0], SEED)
    out = np.zeros_like(inputs[0])
    assert call(op, inputs, attributes, out) is out
    assert (bits(out) == bits(call(op, inputs, attributes))).all()


@pytest.mark.parametrize("op", rows())
def test_inputs_are_left_alone(op):
    if op.inplace:
        return
    inputs = sample(op, (3, 5), op.dtypes[0], SEED)
    before = copy.deepcopy(inputs)
    result = call(op, inputs, REFERENCES[op.kernel].attributes[0])
    for x, same in zip(inputs, before, strict=True):
        assert (bits(x) == bits(same)).all()
        assert not np.shares_memory(result, x)


# What every function calls; CPython hands it whatever it is given.
@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ((), TypeError, "launch needs the index of an operator"),
        (("x",), TypeError, "'str' object cannot be interpreted as an integer"),
        ((-1,), IndexError, "no such operator"),
        ((len(OPS),), IndexError, "no such operator"),
        ((1 << 70,), OverflowError, "too large"),
        ((0,), TypeError, "wrong number of arguments"),
        ((0, X, 0.1, None, None), TypeError, "wrong number of arguments"),
    ],
)
def test_launch_checks_what_it_is_given(given, error, sentence):
    with pytest.raises(error, match=sentence):
        _core.launch(*given)


def test_in_place_returns_its_argument():
    x = X.copy()
    view = x[:, ::2]
    assert openaclnn.leaky_relu_(view, 0.25) is view
    assert (x[:, ::2] == Y[:, ::2]).all()
    assert (x[:, 1] == X[:, 1]).all()


@pytest.mark.parametrize("op", rows())
def test_defaults_and_keywords(op):
    named = {p.python_name: np.ones(3, np.float32) for p in op.input_tensors}
    defaults = {p.python_name: p.default for p in op.attributes if p.default is not None}
    function = getattr(openaclnn, op.python)
    needed = (p for p in op.attributes if p.default is None)
    required = {p.python_name: True if p.kind == "bool" else 1.0 for p in needed}
    plain = function(**copy.deepcopy(named), **required)
    assert (plain == function(**copy.deepcopy(named), **required, **defaults)).all()
    assert function.__doc__.startswith(op.doc)


@pytest.mark.parametrize("number", [1, True, 0.25, np.float32(0.25), np.float64(0.25), np.int64(2)])
def test_scalars_are_any_number(number):
    assert (openaclnn.leaky_relu(-X, number) == np.where(X < 0, -X, -X * float(number))).all()


# ---- plans ----


def test_a_plan_reads_and_writes_its_arrays_each_time():
    x, y = X.copy(), np.empty_like(X)
    p = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    p.run()
    assert (y == Y).all()
    x *= 4
    p.run()
    assert (y == 4 * Y).all()
    assert (p.name, p.workspace_size) == ("aclnnLeakyRelu", 0)


def test_a_plan_keeps_its_arrays_alive():
    y = np.empty(100_000, np.float32)
    p = openaclnn.plan("aclnnLeakyRelu", np.full(100_000, -4.0, np.float32), 0.25, y)
    _junk = [np.zeros(100_000, np.float32) for _ in range(8)]  # would take the place of lost input
    p.run()
    assert (y == -1).all()


@pytest.mark.parametrize("op", all_rows())
def test_both_spellings(op):
    results = []
    for spell in (lambda p: p.name, lambda p: p.python_name):
        named = arguments(op)
        openaclnn.plan(op.name, **{spell(p): named[p.name] for p in op.parameters}).run()
        results.append(named[op.outputs[0].name])
    assert (results[0] == results[1]).all()


def test_misspelt_calls():
    def refused(kind, sentence, *given, **named):
        with pytest.raises(kind) as caught:
            openaclnn.plan(*given, **named)
        assert caught.value.args == (sentence,)

    known = ", ".join(op.name for op in OPS)
    refused(ValueError, f"no operator 'frobnicate'; there are {known}", "frobnicate")
    python = "no operator 'leakyrelu'; did you mean leaky_relu?"
    refused(ValueError, python, "leakyrelu")
    for near in ("aclnnLeakyRelux", "LeakyRelu"):
        refused(ValueError, f"no operator {near!r}; did you mean aclnnLeakyRelu?", near)
    refused(TypeError, "plan: name must be a string, but got []", [])
    refused(TypeError, "plan: name must be a string, but got an array", X)
    meant = "no operator 'softmax'; did you mean aclnnSoftmax, which ATen computes?"
    refused(ValueError, meant, "softmax")
    aten = "no operator 'aclnnMatmul' here: ATen computes it, for C and torch_npu"
    refused(ValueError, aten, "aclnnMatmul")
    name = "aclnnLeakyRelu"
    refused(TypeError, f"{name} takes 3 arguments, but got 4", name, X, 1, X, X)
    has = "it has self, negativeSlope, out"
    refused(TypeError, f"{name} has no parameter 'slope'; {has}", name, X, slope=1)
    refused(TypeError, f"{name} got 'self' twice", name, X, x=X)
    refused(TypeError, f"{name} got 'self' twice", name, x=X, self=X)
    takes = f"{name} takes self, negativeSlope, out, but"
    refused(TypeError, f"{takes} out is missing", name, X)
    refused(TypeError, f"{takes} self is missing", name, out=X)
    refused(TypeError, f"{takes} self and out are missing", name)


@pytest.mark.parametrize("op", all_rows())
def test_what_is_missing_is_named(op):
    for p in op.parameters:
        named = arguments(op)
        del named[p.name]
        if p.has_default:
            openaclnn.plan(op.name, **named).run()
            continue
        with pytest.raises(TypeError, match=f"^{op.name} takes .*, but {p.name} is missing$"):
            openaclnn.plan(op.name, **named)
        if p.condition:
            for false in (False, np.False_):
                openaclnn.plan(op.name, **named | {p.condition: false}).run()
            for true in (True, np.True_):
                with pytest.raises(TypeError, match=f"but {p.name} is missing$"):
                    openaclnn.plan(op.name, **named | {p.condition: true})


def test_attributes_of_the_wrong_type():
    def refused(sentence, *given):
        with pytest.raises(TypeError) as caught:
            openaclnn.leaky_relu_backward(X, X, *given)
        assert str(caught.value) == f"aclnnLeakyReluBackward: {sentence}"

    for wrong in ("yes", 2, [], None, 0.0):
        refused(f"selfIsResult must be True or False, but got {wrong!r}", 0.1, wrong)
    refused("negativeSlope must be a number, but got 'x'", "x", False)
    long = "1" + "0" * 56
    refused(f"negativeSlope must be an integer of at most 64 bits, but got {long}...", 10**400)
    assert openaclnn.leaky_relu_backward(X, X, 0.1, np.True_) is not None


# ---- streams ----


def test_what_is_no_stream():
    p = openaclnn.plan("aclnnLeakyRelu", X, 0.25, np.empty_like(X))
    bare = openaclnn.Stream.__new__(openaclnn.Stream)
    for wrong in (3, "stream", openaclnn.Stream, bare):
        with pytest.raises(TypeError) as caught:
            p.run(wrong)
        shown = repr(wrong)[:57] + "..." if len(repr(wrong)) > 60 else repr(wrong)
        message = f"aclnnLeakyRelu: stream must be a Stream or None, but got {shown}"
        assert str(caught.value) == message
    with pytest.raises(TypeError, match=r"^Stream takes no arguments, but got 3$"):
        openaclnn.Stream(3)
    with pytest.raises(TypeError, match=r"^Stream takes no arguments, but got {'device': 0}$"):
        openaclnn.Stream(device=0)
    with pytest.raises(TypeError, match=r"^Plan: __init__ must be called before run$"):
        openaclnn.Plan.__new__(openaclnn.Plan).run()


@pytest.mark.parametrize("n", [8, 1 << 20])
def test_a_stream_keeps_the_order(n):
    x, y = np.full(n, -1.0, np.float32), np.empty(n, np.float32)
    stream = openaclnn.Stream()
    copy = openaclnn.plan("aclnnLeakyRelu", x, 1.0, y)
    halve = openaclnn.plan("aclnnInplaceLeakyRelu", x, 0.5)
    for _ in range(10):
        halve.run(stream)
    copy.run(stream)
    halve.run(stream)
    stream.synchronize()
    assert (y == -(0.5**10)).all()
    assert (x == -(0.5**11)).all()


def test_streams_keep_what_they_use_alive():
    y = np.zeros(1 << 20, np.float32)
    for streams in range(4):
        stream = openaclnn.Stream()
        for _ in range(4):
            x = np.full(1 << 20, -4.0 * (streams + 1), np.float32)
            openaclnn.plan("aclnnLeakyRelu", x, 0.25, y).run(stream)
            del x
        if streams % 2:
            stream.synchronize()
        del stream  # waits for its work
        assert (y == -(streams + 1)).all()


def test_a_plan_says_what_it_is():
    x = np.ones(3, np.float32)
    plan = openaclnn.plan("aclnnLeakyRelu", x, 0.1, np.empty_like(x))
    assert repr(plan) == "<openaclnn.Plan aclnnLeakyRelu, workspace 0 bytes>"
