# SPDX-License-Identifier: Apache-2.0
"""What plans and streams keep alive, and for how long; arrays that change under a plan."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
from tests.support import all_rows, arguments, plan

import openaclnn

pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("frozen")]


class Array(np.ndarray):
    """One that can hold attributes, so that it can keep its own plan."""


def array(n=8, value=-4.0):
    return np.full(n, value, np.float32).view(Array)


def is_gone(reference) -> bool:
    gc.collect()
    return reference() is None


# ---- garbage ----


@pytest.mark.parametrize("op", all_rows())
def test_a_plan_kept_by_its_own_array(op):
    for p in op.tensors:
        named = arguments(op)
        named[p.name] = named[p.name].view(Array)
        named[p.name].plan = plan(op, named)
        watched = [weakref.ref(named[p.name]), weakref.ref(named[p.name].plan)]
        named.clear()
        gc.collect()
        assert [w() for w in watched] == [None, None]


def test_a_plan_kept_by_its_own_tensor():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = torch.ones(4), torch.ones(4)
    x.plan = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    y.plan = openaclnn.plan("aclnnInplaceLeakyRelu", y, 0.25)
    x.plan.run()
    y.plan.run()
    watched = weakref.ref(x.plan), weakref.ref(y.plan)
    del x, y
    assert all(is_gone(w) for w in watched)


def test_an_executor_kept_by_its_own_array():
    x = array()
    _, x.executor = openaclnn.aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)
    watched = weakref.ref(x)
    del x
    assert is_gone(watched)


@pytest.mark.parametrize("n", [8, 1 << 22])
def test_streams_in_cycles(n):
    """Work that is under way is finished, on arrays that still exist."""
    memory = np.full(n, -1024.0, np.float32)
    x = memory.view(Array)
    x.stream = openaclnn.Stream()
    x.plan = openaclnn.plan("aclnnInplaceLeakyRelu", x, 0.5)
    for _ in range(5):
        x.plan.run(x.stream)
    watched = weakref.ref(x.stream), weakref.ref(x.plan)
    del x
    assert is_gone(watched[0])
    assert is_gone(watched[1])
    assert (memory == -32).all()


def test_a_plan_that_a_stream_works_on_stays():
    stream = openaclnn.Stream()
    x, y = array(1 << 22), np.empty(1 << 22, np.float32)
    x.plan = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    x.plan.run(stream)
    watched = weakref.ref(x.plan)
    del x
    gc.collect()
    assert watched() is not None
    stream.synchronize()
    assert is_gone(watched)
    assert (y == -1).all()


CLEARED = """
import ctypes, numpy as np, openaclnn
plan = openaclnn.plan("aclnnInplaceLeakyRelu", np.ones(4, np.float32), 0.5)
slot = ctypes.pythonapi.PyType_GetSlot
slot.restype, slot.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
Py_tp_clear = 51
clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(slot(type(plan), Py_tp_clear))
assert clear(plan) == 0
try:
    plan.run()
except openaclnn.AclnnError as error:
    print(error)
"""


def test_a_plan_that_was_cleared():
    """The collector clears before it frees; code that runs meanwhile may reach the plan."""
    done = subprocess.run([sys.executable, "-c", CLEARED], capture_output=True, text=True)
    must = "aclnnInplaceLeakyRelu: a plan must not run after the garbage collector took its arrays"
    assert (done.stdout, done.stderr) == (f"{must}: plan again\n", "")


def test_types_are_forgotten():
    def meet():
        class Producer:
            def __dlpack__(self, **options):
                return np.ones(4, np.float32).__dlpack__(**options)

        class Number:
            def __float__(self):
                return 0.5

        assert (openaclnn.leaky_relu(Producer(), Number()) == 1).all()
        return [weakref.ref(Producer), weakref.ref(Number)]

    watched = [w for _ in range(10) for w in meet()]
    gc.collect()
    assert [w() for w in watched] == [None] * 20


# ---- the end of the process: no report of what is left, no crash ----

AT_THE_END = {
    "in globals": "",
    "in a cycle": "x.plan = plan",
    "in modules": "import sys; sys.kept = plan; np.kept = stream",
    "in a cache": "import functools; get = functools.lru_cache(lambda: plan); get(); del plan",
    "in a default": "def f(p=plan, s=stream): pass",
    "under way": "plan.run(stream)",
    "under way in a cycle": "plan.run(stream); x.kept = plan, stream; del plan, stream, x",
    "while it raises": "plan.run(stream); raise SystemExit",
    "in an exception": "try: plan.run(3)\nexcept TypeError as error: kept = error",
    "in a daemon": "from threading import Event, Thread\n"
    "Thread(target=lambda p: Event().wait(), args=(plan,), daemon=True).start()",
    "in a finaliser": "import weakref; weakref.finalize(np, plan.run)",
    "at exit": "import atexit; atexit.register(plan.run); atexit.register(stream.synchronize)",
    "in an executor": "kept = openaclnn.aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)",
}


@pytest.mark.parametrize("where", AT_THE_END)
def test_the_end_of_a_process(where):
    reports = where != "in a daemon"  # whose frame is never freed
    code = (
        "import numpy as np, openaclnn\n"
        f"openaclnn._core.report_leaks({reports})\n"
        "class Array(np.ndarray): pass\n"
        "x = np.ones(1 << 20, np.float32).view(Array)\n"
        "plan = openaclnn.plan('aclnnInplaceLeakyRelu', x, 0.5)\n"
        "stream = openaclnn.Stream()\n"
        f"{AT_THE_END[where]}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


# ---- arrays that change ----


def moved(op, p):
    return (
        f"{op.name}: {p.name} must keep its memory while a plan uses it, but was resized or given "
        "other data: plan again"
    )


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("op", all_rows())
def test_a_plan_whose_array_was_resized(op, size):
    for p in op.tensors:
        for view in (False, True):
            named = {
                k: x.copy() if isinstance(x, np.ndarray) else x for k, x in arguments(op).items()
            }
            memory = named[p.name]
            if view:
                named[p.name] = memory.reshape(memory.shape)[::1]
            planned = plan(op, named)
            planned.run()
            memory.resize((size,), refcheck=False)
            for run in (planned.run, lambda run=planned.run: run(openaclnn.Stream())):
                with pytest.raises(openaclnn.AclnnError) as caught:
                    run()
                assert (caught.value.status, str(caught.value)) == (161002, moved(op, p))


def test_a_plan_whose_array_was_reshaped():
    """The same memory: the plan goes on reading it as it was."""
    x, y = np.full((2, 3), -4.0, np.float32), np.empty((2, 3), np.float32)
    planned = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    x.resize((6,), refcheck=False)
    planned.run()
    assert (y == -1).all()


MOVES = {
    "resize_": lambda t: t.resize_(1 << 20),
    "set_": lambda t: t.set_(),
    "data": lambda t: setattr(t, "data", t.data.clone()),
    "swap": lambda t: setattr(t, "data", t.data[:1].clone()),
    "storage": lambda t: t.untyped_storage().resize_(0),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_plan_whose_tensor_moved(move):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for i, name in enumerate(("self", "out")):
        tensors = [torch.ones(4), torch.zeros(4)]
        planned = openaclnn.plan("aclnnLeakyRelu", tensors[0], 0.5, tensors[1])
        MOVES[move](tensors[i])
        with pytest.raises(openaclnn.AclnnError, match=f"{name} must keep its memory"):
            planned.run()
