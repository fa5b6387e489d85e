# SPDX-License-Identifier: Apache-2.0
"""Many Python threads at once, and processes that fork while the library is at work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.support import SEED, all_rows, plan, same, sampled

import openaclnn
from openaclnn.reference.evaluation import REFERENCES

pytestmark = [
    pytest.mark.programs,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

SMALL, LARGE = 100, 300_000


def works(n=LARGE) -> bool:
    x = np.full(n, -4.0, np.float32)
    return bool((openaclnn.leaky_relu(x, 0.25) == -1).all())


def stream_works() -> bool:
    y = np.zeros(LARGE, np.float32)
    stream = openaclnn.Stream()
    openaclnn.plan("aclnnLeakyRelu", np.full(LARGE, -4.0, np.float32), 0.25, y).run(stream)
    stream.synchronize()
    return bool((y == -1).all())


def fork_and_try(check) -> bool:
    """Whether `check` is true in a child; a child that hangs is killed after 20 s."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("check", [works, stream_works])
def test_fork(check):
    openaclnn.set_num_threads(4)
    assert check()
    assert fork_and_try(check)
    assert fork_and_try(lambda: fork_and_try(check))  # a child of a child
    assert check()


@pytest.mark.parametrize("end", ["synchronize", "drop"])
def test_a_stream_from_before_the_fork(end):
    y = np.zeros(LARGE, np.float32)
    stream = openaclnn.Stream()
    planned = openaclnn.plan("aclnnLeakyRelu", np.full(LARGE, -4.0, np.float32), 0.25, y)
    planned.run(stream)
    stream.synchronize()
    holder = [stream]
    del stream

    def in_child() -> bool:
        y.fill(0)
        planned.run(holder[0])
        if end == "drop":
            holder.clear()
        else:
            holder[0].synchronize()
        return bool((y == -1).all())

    assert fork_and_try(in_child)


def test_submitting_while_another_thread_synchronizes():
    """The arrays of work that comes in during a synchronize stay alive."""
    stream = openaclnn.Stream()
    done = threading.Event()

    def wait():
        while not done.is_set():
            stream.synchronize()

    waiter = threading.Thread(target=wait)
    waiter.start()
    try:
        for _ in range(300):
            x = np.full(LARGE, -4.0, np.float32)
            openaclnn.plan("aclnnInplaceLeakyRelu", x, 0.25).run(stream)
            del x
    finally:
        done.set()
        waiter.join()


# Shapes whose runs overlap: many tiles, and for group norm sums in the workspace and u in dx.
@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_one_plan_on_threads_and_streams_at_once(op):
    """Runs of one plan take turns, because they share its workspace and its outputs."""
    openaclnn.set_num_threads(2)
    shape = (2, 16_000) if op.pointwise else (4, 32, 16, 33)
    attributes = REFERENCES[op.kernel].attributes[0]
    named, out, expected = sampled(op, op.dtypes[0], attributes, shape)
    planned = plan(op, named)
    start = threading.Barrier(4)

    def body(alone):
        stream = None if alone else openaclnn.Stream()
        start.wait()
        for _ in range(12):
            planned.run(stream)
        if stream is not None:
            stream.synchronize()

    for _ in range(20):
        for y in out:
            y.fill(7)
        with ThreadPoolExecutor(4) as executor:
            list(executor.map(body, [False, False, False, True]))
        assert same(out, expected), f"seed {SEED}"


def test_fork_while_a_plan_runs():
    """A child may run the plan, even if a thread of the parent was running it."""
    openaclnn.set_num_threads(1)
    x = np.full(40 * LARGE, -4.0, np.float32)
    y = np.zeros_like(x)
    planned = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    stream = openaclnn.Stream()

    def in_child() -> bool:
        y.fill(0)
        planned.run()
        return bool((y == -1).all())

    for _ in range(3):
        for _ in range(4):
            planned.run(stream)
        assert fork_and_try(in_child)
        stream.synchronize()


def test_fork_while_other_threads_work():
    openaclnn.set_num_threads(2)
    done = threading.Event()

    def load():
        while not done.is_set():
            works()
            stream_works()

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert all(fork_and_try(lambda: works() and stream_works()) for _ in range(20))
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_multiprocessing_fork():
    openaclnn.set_num_threads(2)
    assert works()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert all(pool.map(works, [SMALL, LARGE] * 4))


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_many_threads(n):
    def body(seed):
        x = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
        y = np.empty_like(x)
        expected = np.where(x > 0, x, x * np.float32(0.25))
        planned = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
        for _ in range(50):
            y.fill(0)
            planned.run()
            assert (y == expected).all(), f"seed {seed}"
            assert (openaclnn.leaky_relu(x, 0.25) == expected).all(), f"seed {seed}"
        return True

    with ThreadPoolExecutor(16) as executor:
        assert all(executor.map(body, range(16)))


def test_one_plan_many_threads():
    x = np.full(LARGE, -4.0, np.float32)
    y = np.zeros_like(x)
    planned = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: planned.run(), range(100)))
    assert (y == -1).all()


def test_errors_of_threads_do_not_mix():
    def body(rank):
        with pytest.raises(openaclnn.AclnnError) as caught:
            openaclnn.leaky_relu(np.ones((1,) * rank, np.float32))
        return str(caught.value)

    ranks = [9 + i % 15 for i in range(300)]
    with ThreadPoolExecutor(16) as executor:
        for rank, sentence in zip(ranks, executor.map(body, ranks), strict=True):
            assert sentence.endswith(f"at most 8 dimensions, but got {rank}")
