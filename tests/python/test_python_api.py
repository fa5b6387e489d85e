# SPDX-License-Identifier: Apache-2.0
"""The Python package: functions, plans, the exact C names, streams."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.support import SEED, all_rows, arguments, bits, call, plan, rows

import openaclnn
from openaclnn import _core, aclnn
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
    for near in ("aclnnLeakyRelux", "LeakyRelu", "leakyrelu"):
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


# ---- the exact C names ----


@pytest.mark.parametrize("op", all_rows())
def test_c_names(op):
    named = arguments(op)
    phase1 = getattr(aclnn, op.name + "GetWorkspaceSize")
    workspace_size, executor = phase1(*(named[p.name] for p in op.parameters))
    getattr(aclnn, op.name)(None, workspace_size, executor)
    expected = arguments(op)
    plan(op, expected).run()
    assert (named[op.outputs[0].name] == expected[op.outputs[0].name]).all()
    assert {op.name, op.name + "GetWorkspaceSize"} <= set(dir(aclnn))


def test_c_names_that_do_not_fit():
    with pytest.raises(AttributeError, match="has no attribute 'aclnnLeekyRelu'"):
        _ = aclnn.aclnnLeekyRelu
    size, executor = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(X.copy(), 0.25)
    for wrong, status, sentence in (
        (executor, 161002, "executor belongs to aclnnInplaceLeakyRelu; pass that of aclnnLeaky"),
        (None, 161001, "executor must not be None"),
        ("x", 161002, "executor must be one of phase 1, but got 'x'"),
    ):
        with pytest.raises(openaclnn.AclnnError, match=f"aclnnLeakyRelu: {sentence}") as caught:
            aclnn.aclnnLeakyRelu(None, size, wrong)
        assert caught.value.status == status


def test_c_executors_run_once_unless_repeatable():
    x = np.full(3, -4.0, np.float32)
    size, executor = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    assert (x == -1).all()
    executor.repeatable = False
    aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    with pytest.raises(openaclnn.AclnnError, match="executor was already run or destroyed"):
        aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    aclnn.aclDestroyAclOpExecutor(executor)


def test_a_phase_2_that_is_refused_consumes_nothing():
    x = np.full(3, -4.0, np.float32)
    size, executor = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)
    with pytest.raises(TypeError, match="stream must be a Stream or None, but got 'x'"):
        aclnn.aclnnInplaceLeakyRelu(None, size, executor, "x")
    with pytest.raises(openaclnn.AclnnError, match="executor belongs to aclnnInplaceLeakyRelu"):
        aclnn.aclnnElu(None, size, executor)
    aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    assert (x == -2).all()
    with pytest.raises(openaclnn.AclnnError, match="executor was already run or destroyed"):
        aclnn.aclnnInplaceLeakyRelu(None, size, executor, "x")


def test_c_executors_that_are_no_longer_alive():
    """One that was run may be destroyed any number of times, one that was destroyed may not."""

    def refused(function, executor, ended):
        sentence = f"{function.__name__}: executor was already {ended}"
        with pytest.raises(openaclnn.AclnnError, match=f"^{sentence}$") as caught:
            function(executor)
        assert caught.value.status == 161002

    repeatable, destroy = aclnn.aclSetAclOpExecutorRepeatable, aclnn.aclDestroyAclOpExecutor
    size, run = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(X.copy(), 0.5)
    aclnn.aclnnInplaceLeakyRelu(None, size, run)
    refused(repeatable, run, "run")
    destroy(run)
    destroy(run)
    _, destroyed = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(X.copy(), 0.5)
    destroy(destroyed)
    refused(destroy, destroyed, "destroyed")
    refused(repeatable, destroyed, "destroyed")


def test_one_of_several_threads_runs_an_executor():
    def outcome(executor):
        try:
            aclnn.aclnnInplaceLeakyRelu(None, 0, executor)
        except openaclnn.AclnnError as error:
            return error.status
        return 0

    with ThreadPoolExecutor(4) as threads:
        for _ in range(100):
            x = np.full(3, -4.0, np.float32)
            _, executor = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)
            assert sorted(threads.map(outcome, [executor] * 4)) == [0, *[161002] * 3]
            assert (x == -2).all()


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
