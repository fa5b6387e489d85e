# SPDX-License-Identifier: Apache-2.0
"""openaclnn.aclnn: both phases under the exact names of C."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.python.test_python_api import X
from tests.support import all_rows, arguments, plan

import openaclnn
from openaclnn import aclnn


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
