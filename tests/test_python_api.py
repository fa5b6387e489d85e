# SPDX-License-Identifier: Apache-2.0
"""The Python package: kinds of arrays, functions, plans, streams, settings, errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support import SEED, arguments, bits, call, plan, rows

import openaclnn
from openaclnn import aclnn
from openaclnn.errors import NAMES
from openaclnn.reference import REFERENCES, dtype_name, sample
from openaclnn.table import OPS, PRODUCTS

X = np.array([[-2.0, -0.0, 3.0], [1.0, -4.0, 0.5]], np.float32)
Y = np.array([[-0.5, -0.0, 3.0], [1.0, -1.0, 0.5]], np.float32)  # leaky_relu(X, 0.25)


class Producer:
    """An array of a library that knows DLPack and nothing else."""

    def __init__(self, array):
        self.array = np.from_dlpack(array)

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Standard(Producer):
    """The same with the array API standard's way to its namespace."""

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=Standard)


# ---- kinds ----


@pytest.mark.parametrize("op", rows())
def test_numpy_in_numpy_out(op):
    for dtype in op.dtypes:
        inputs = sample(op, (3, 5), dtype, SEED)
        result = call(op, inputs, REFERENCES[op.kernel].attributes[0])
        assert type(result) is np.ndarray
        assert (dtype_name(result.dtype), result.shape) == (dtype, (3, 5))


def test_results_keep_the_memory_order():
    for order in ("C", "F"):
        result = openaclnn.leaky_relu(np.asarray(X, order=order), 0.25)
        assert result.flags[f"{order}_CONTIGUOUS"]
    permuted = openaclnn.leaky_relu(np.zeros((2, 3, 4, 5), np.float32).transpose(0, 3, 1, 2))
    assert permuted.transpose(0, 2, 3, 1).flags.c_contiguous


def test_rank_0_stays_an_array():
    result = openaclnn.leaky_relu(np.array(-2.0), 0.25)
    assert type(result) is np.ndarray
    assert (result.shape, result.item()) == ((), -0.5)


def test_dlpack_in_numpy_out():
    result = openaclnn.leaky_relu(Producer(X), 0.25)
    assert type(result) is np.ndarray
    assert (result == Y).all()


def test_dlpack_in_its_own_kind_out():
    result = openaclnn.leaky_relu(Standard(X), 0.25)
    assert type(result) is Standard
    assert (result.array == Y).all()


def test_dlpack_views_are_read_in_place():
    backwards = Producer(X[::-1, ::-1])
    assert (openaclnn.leaky_relu(backwards, 0.25) == Y[::-1, ::-1]).all()
    source = X.copy()
    out = np.empty_like(X)
    later = openaclnn.plan("aclnnLeakyRelu", Producer(source), 0.25, out)
    source *= 2
    later.run()
    assert (out == 2 * Y).all()


def test_dlpack_is_not_written():
    with pytest.raises(openaclnn.AclnnError, match="out must be a NumPy array or a torch tensor"):
        openaclnn.leaky_relu(X, out=Producer(X.copy()))


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


def test_in_place_returns_its_argument():
    x = X.copy()
    view = x[:, ::2]
    assert openaclnn.leaky_relu_(view, 0.25) is view
    assert (x[:, ::2] == Y[:, ::2]).all()
    assert (x[:, 1] == X[:, 1]).all()


@pytest.mark.parametrize("op", rows())
def test_defaults_and_keywords(op):
    named = {p.python_name: np.ones(3, np.float32) for p in op.inputs_}
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


@pytest.mark.parametrize("op", rows())
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
    refused(ValueError, f"no operator 'aclnnLeekyRelu'; there are {known}", "aclnnLeekyRelu")
    name = "aclnnLeakyRelu"
    refused(TypeError, f"{name} takes 3 arguments, but got 4", name, X, 1, X, X)
    has = "it has self, negativeSlope, out"
    refused(TypeError, f"{name} has no parameter 'slope'; {has}", name, X, slope=1)
    refused(TypeError, f"{name} got 'self' twice", name, X, x=X)
    refused(TypeError, f"{name} got 'self' twice", name, x=X, self=X)


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


def test_masked_arrays_are_not_read_as_plain_ones():
    with pytest.raises(openaclnn.AclnnError, match=r"but is a masked one: pass x.filled"):
        openaclnn.leaky_relu(np.ma.masked_array(X, X > 0))


def test_an_out_array_is_returned_as_it_is():
    out = np.empty_like(X)
    assert openaclnn.leaky_relu(Standard(X), 0.25, out=out) is out


# ---- the exact C names ----


@pytest.mark.parametrize("op", rows())
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
        (executor, 161002, "executor must come from aclnnLeakyReluGetWorkspaceSize, but is of"),
        (None, 161001, "executor must not be NULL"),
        ("x", 161002, "executor must come from phase 1, but is 'x'"),
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
    with pytest.raises(openaclnn.AclnnError, match="but was already run or destroyed"):
        aclnn.aclnnInplaceLeakyRelu(None, size, executor)
    aclnn.aclDestroyAclOpExecutor(executor)


# ---- streams ----


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


# ---- settings and errors ----


def test_config():
    config = openaclnn.config()
    assert config["version"] == openaclnn.__version__
    assert config["product"] == "A2"
    assert config["kernels"] in ("v2", "v3", "v4", "native")
    assert config["streaming_bytes"] > 0
    openaclnn.set_num_threads(3)
    openaclnn.set_product("910")
    assert (openaclnn.config()["threads"], openaclnn.config()["product"]) == (3, "910")
    for part in ("include/acl/acl.h", "lib64/libascendcl.so", "set_env.sh", "bin/setenv.bash"):
        assert (openaclnn.home() / part).is_file(), part
    assert openaclnn.products() == PRODUCTS


def test_settings_out_of_range():
    with pytest.raises(ValueError, match="count must be at least 1, but got 0"):
        openaclnn.set_num_threads(0)
    with pytest.raises(openaclnn.AclnnError) as caught:
        openaclnn.set_product("A9")
    assert caught.value.status == 161002
    sentence = 'set_product: product must be 910, A2, A3, 310P or 310B, but got "A9"'
    assert str(caught.value) == sentence


def test_the_exception():
    for status, name in NAMES.items():
        error = openaclnn.AclnnError(status, "a sentence")
        twin = pickle.loads(pickle.dumps(error))
        assert isinstance(twin, ValueError)
        assert (twin.status, twin.name, str(twin)) == (status, name, "a sentence")
    assert openaclnn.AclnnError(7, "").name == "ACL_ERROR_7"


def test_import_brings_nothing_but_numpy_and_the_standard_library():
    program = (
        "import sys, numpy; before = set(sys.modules); import openaclnn;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"openaclnn"}


def test_public_names():
    assert {op.python for op in OPS} <= set(openaclnn.__all__)
    for name in openaclnn.__all__:
        assert getattr(openaclnn, name).__doc__ or name == "OPS", f"{name} needs a docstring"
