# SPDX-License-Identifier: Apache-2.0
"""Regions on torch's threads: who runs them, and where torch's threads must not be used.

Each test runs in its own process: which threads run a region depends on what the process did
before.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

pytest.importorskip("torch")

PRELUDE = """
import os, threading, time
import numpy as np
import torch
import openaclnn
torch.set_num_threads(2)
openaclnn.set_num_threads(2)
N = 1 << 20
x = np.random.default_rng(1).standard_normal(N, np.float32)
expected = np.where(x > 0, x, x * np.float32(0.1))
def threads():
    return len(os.listdir("/proc/self/task"))
def ours():
    y = openaclnn.leaky_relu(x, 0.1)
    assert np.array_equal(y, expected)
def torchs():
    torch.add(torch.from_numpy(x), 1.0)
def torch_threads():
    time.sleep(0.02)  # the library looks for torch every 10 ms
    return openaclnn.config()["torch_threads"]
torchs()  # its team stands
before = threads()
"""


def run(code, prelude=PRELUDE, **environment):
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_region_of_the_main_thread_starts_no_thread():
    run("""
        assert torch_threads() == 2
        for _ in range(10): ours()
        assert threads() == before, (threads(), before)
        """)


def test_without_torchs_threads_the_pool_has_its_own():
    run(
        """
        assert torch_threads() == 0
        ours()
        assert threads() == before + 1, (threads(), before)
        """,
        OPENACLNN_TORCH_THREADS="0",
    )


def test_torch_that_is_loaded_later_is_found():
    run(
        """
        import os, sys, time
        import numpy as np
        import openaclnn
        assert openaclnn.config()["torch_threads"] == 0
        import torch
        torch.set_num_threads(3)
        time.sleep(0.02)
        assert openaclnn.config()["torch_threads"] == 3
        """,
        prelude="",
    )


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_set_num_threads_of_torch_holds(count):
    """40: more threads than a region has shares."""
    run(f"""
        openaclnn.set_num_threads(64)
        torch.set_num_threads({count})
        torchs()
        before = threads()
        assert torch_threads() == {count}
        for _ in range(5): ours()
        assert threads() == before, (threads(), before)
        """)


def test_set_num_threads_of_openaclnn_holds():
    run("""
        openaclnn.set_num_threads(1)
        torch.set_num_threads(8)
        ours()
        assert threads() == before, (threads(), before)  # torch's team would have eight
        """)


def test_only_threads_that_call_torch_have_a_team():
    run("""
        found = {}
        def numpy_only():
            ours()
            found["numpy"] = torch_threads()
        def with_torch():
            openaclnn.leaky_relu(torch.from_numpy(x), 0.1)
            found["torch"] = torch_threads()
        for target in (numpy_only, with_torch):
            thread = threading.Thread(target=target)
            thread.start(), thread.join()
        assert found == {"numpy": 0, "torch": 2}, found
        """)


def test_a_forked_child_has_its_own_threads():
    """torch's OpenMP hangs in the child of a process that has used it."""
    run("""
        ours()
        assert torch_threads() == 2
        child = os.fork()
        if child == 0:
            ours()
            assert torch_threads() == 0
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        ours()
        assert torch_threads() == 2
        """)


def test_a_forked_child_that_loads_the_library_first():
    run(
        """
        import os, sys, time
        import numpy as np, torch
        torch.set_num_threads(2)
        x = np.ones(1 << 20, np.float32)
        torch.add(torch.from_numpy(x), 1.0)
        child = os.fork()
        if child == 0:
            import openaclnn
            openaclnn.set_num_threads(2)
            assert openaclnn.leaky_relu(-x, 0.5).sum() == -x.size / 2
            time.sleep(0.02)
            assert openaclnn.leaky_relu(-x, 0.5).sum() == -x.size / 2
            assert openaclnn.config()["torch_threads"] == 0
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        prelude="",
    )


def test_streams_have_the_pool():
    run("""
        stream = openaclnn.Stream()
        y = np.empty_like(x)
        plan = openaclnn.plan("aclnnLeakyRelu", x, 0.1, y)
        for _ in range(20): plan.run(stream)
        torchs()
        stream.synchronize()
        assert np.array_equal(y, expected)
        """)


def test_inside_a_region_of_torch():
    """A nested region is done by the thread that starts it."""
    run("""
        import ctypes
        libtorch = ctypes.CDLL("libtorch_cpu.so", mode=os.RTLD_NOLOAD)
        failed = []
        PART = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        def part(begin, end, _):
            try:
                for _ in range(begin, end): ours()
            except BaseException as error:
                failed.append(error)
        fixed = (ctypes.c_int64(0), ctypes.c_int64(8), ctypes.c_int64(1))
        for _ in range(5):
            assert libtorch.torch_parallel_for(*fixed, PART(part), None) == 0
        assert not failed, failed
        """)


def test_backward_of_torch():
    """A function of autograd whose backward calls us, also from several threads at once."""
    run("""
        class Leaky(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                ctx.save_for_backward(t)
                return openaclnn.leaky_relu(t.detach(), 0.1)
            @staticmethod
            def backward(ctx, g):
                return openaclnn.leaky_relu_backward(g, ctx.saved_tensors[0].detach(), 0.1, False)
        failed = []
        def train():
            try:
                for _ in range(10):
                    t = torch.from_numpy(x).requires_grad_()
                    Leaky.apply(t).sum().backward()
                    assert torch.equal(t.grad, torch.where(t > 0, 1.0, 0.1))
            except BaseException as error:
                failed.append(error)
        workers = [threading.Thread(target=train) for _ in range(4)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        assert not failed, failed
        """)


def test_the_same_bits_as_from_one_thread():
    """Every row and dtype, on two to five threads of torch."""
    run("""
        from openaclnn.reference.evaluation import REFERENCES
        from tests.support import SEED, all_rows, results, sample, same
        openaclnn.set_num_threads(64)
        for row in all_rows():
            op, reference = row.values[0], REFERENCES[row.values[0].kernel]
            for dtype in op.dtypes:
                attributes = reference.attributes[0]
                shape = (64, 2053) if op.pointwise else (4, 32, 40, 50)
                inputs = sample(op, shape, dtype, SEED, attributes)
                torch.set_num_threads(1)
                expected = results(op, inputs, attributes)
                for threads in (2, 3, 5):
                    torch.set_num_threads(threads)
                    found = results(op, inputs, attributes)
                    assert same(found, expected), f"{op.name} {dtype}, {threads} threads"
        """)
