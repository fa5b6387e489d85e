# SPDX-License-Identifier: Apache-2.0
"""Python code that runs inside a call: conversions that raise, re-enter, or move the memory of
other arguments.

Memory is moved in its own process, this file as a program, where freed memory is overwritten:
a call that read an address before it ran such code computes something else, or dies.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from tests.support import SEED, all_rows, arguments, plan, same, sampled

import openaclnn
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs

NUMBERS = ("scalar", "double", "int64")


class Number:
    """A number that does something when it is converted."""

    def __init__(self, value, act):
        self.value, self.act = value, act

    def __float__(self):
        self.act()
        return float(self.value)

    def __index__(self):
        self.act()
        return int(self.value)


class Lender:
    """A DLPack producer that does something when it is asked."""

    def __init__(self, array, act, where):
        self.array, self.act, self.where = array, act, where

    def __dlpack_device__(self):
        if self.where == "__dlpack_device__":
            self.act()
        return 1, 0

    def __dlpack__(self, **options):
        if self.where == "__dlpack__":
            self.act()
        return self.array.__dlpack__(**options)


def actors(op, named, act):
    """(name, argument) of everything in a call that can run Python code."""
    for p in op.parameters:
        if p.kind in NUMBERS:
            yield p.name, Number(named[p.name], act)
        elif p.kind == "tensor" and p.role == "input":
            for where in ("__dlpack_device__", "__dlpack__"):
                yield p.name, Lender(named[p.name], act, where)


def call(op, named):
    """The Python function, with `out` where the row has one."""
    given = {p.python_name: named[p.name] for p in op.parameters if p.role != "output"}
    outs = [named[p.name] for p in op.parameters if p.role == "output"]
    if outs:
        given["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    return getattr(openaclnn, op.python)(**given)


# ---- exceptions ----


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, OverflowError])
@pytest.mark.parametrize("op", all_rows())
def test_exceptions_come_through(op, error):
    raised = error("mine")

    def act():
        raise raised

    for name, argument in actors(op, arguments(op), act):
        for run in (plan, call):
            with pytest.raises(error) as caught:
                run(op, arguments(op) | {name: argument})
            assert caught.value is raised


@pytest.mark.parametrize("op", all_rows())
def test_a_type_error_says_that_it_is_no_number(op):
    class Wrong:
        def __float__(self):
            return "1"

        def __index__(self):
            return "1"

        def __repr__(self):
            return "<wrong>"

    for p in op.parameters:
        if p.kind in NUMBERS:
            what = "an integer of at most 64 bits" if p.kind == "int64" else "a number"
            with pytest.raises(TypeError) as caught:
                plan(op, arguments(op) | {p.name: Wrong()})
            assert str(caught.value) == f"{op.name}: {p.name} must be {what}, but got <wrong>"
            assert "non-float" in (case := str(caught.value.__cause__)) or "non-int" in case


@pytest.mark.parametrize("op", all_rows())
def test_flags_do_not_ask_for_truth(op):
    class Truthful:
        def __bool__(self):
            raise AssertionError("asked")

    for p in op.parameters:
        if p.kind == "bool":
            with pytest.raises(TypeError, match=f"{p.name} must be True or False, but got <"):
                plan(op, arguments(op) | {p.name: Truthful()})


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_repr_that_fails(error):
    class Shy:
        def __repr__(self):
            raise error

    sentence = "Shy whose repr fails"
    expected = TypeError if error is ValueError else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        openaclnn.leaky_relu(np.ones(2, np.float32), Shy())
    assert expected is KeyboardInterrupt or str(caught.value).endswith(sentence)


def test_attributes_that_fail():
    class Guarded:
        @property
        def __dlpack__(self):
            raise KeyboardInterrupt

    class Meta(type):
        def __getattr__(cls, name):
            if name == "__dlpack_c_exchange_api__":
                raise KeyboardInterrupt
            raise AttributeError(name)

    class Masked(np.ndarray):
        @property
        def mask(self):
            raise KeyboardInterrupt

    for x in (Guarded(), np.ones(2, np.float32).view(Masked), Meta("Odd", (), {})()):
        with pytest.raises(KeyboardInterrupt):
            openaclnn.leaky_relu(x)


@pytest.mark.parametrize("op", all_rows())
def test_calls_inside_of_conversions(op):
    """A conversion that calls the same operator, the collector, and other products."""
    named, _, expected = sampled(op, op.dtypes[0], REFERENCES[op.kernel].attributes[0])

    def act():
        call(op, arguments(op))
        plan(op, arguments(op)).run()

    for name, argument in actors(op, named, act):
        fresh = {k: x.copy() if isinstance(x, np.ndarray) else x for k, x in named.items()}
        results = call(op, fresh | {name: argument})
        results = results if isinstance(results, tuple) else (results,)
        assert same(results, expected)


# ---- memory that moves; as a program ----


def move_numpy(x):
    """The same values elsewhere: the old memory is freed."""
    shape = x.shape
    x.resize((1 << 16,), refcheck=False)  # 256 KiB: its own mapping
    x.resize(shape, refcheck=False)


def move_torch(x):
    x.data = x.data.clone()


def swap_torch(x):
    x.set_(x.detach().clone())


def kinds_of_arrays():
    yield "numpy", lambda x: x.copy(), [move_numpy], lambda x: x
    if "torch" in sys.argv:
        import torch

        yield (
            "torch",
            lambda x: torch.from_numpy(x.copy()).clone(),
            [move_torch, swap_torch],
            (lambda x: x.numpy()),
        )


def check_moves() -> None:
    """Moves each array inside the conversion of each argument of each row; prints what differs."""
    calls = {"call": call, "plan": lambda op, given: plan(op, given).run()}
    moves_made = []
    for op in OPS:
        named, _, expected = sampled(op, "FLOAT", REFERENCES[op.kernel].attributes[0])
        arrays = [p.name for p in op.tensors]
        actors_of_row = [name for name, _ in actors(op, named, None)]
        for (kind, make, moves, back), which in product(
            kinds_of_arrays(), range(len(actors_of_row))
        ):
            name = actors_of_row[which]
            for target, move, run in product(arrays, moves, calls):
                if target == name:
                    continue
                given = {k: make(x) if k in arrays else x for k, x in named.items()}

                def act(move=move, x=given[target]):
                    move(x)
                    moves_made.append(x)

                calls[run](op, given | {name: list(actors(op, given, act))[which][1]})
                results = [back(given[p.name]) for p in op.outputs]
                if not same(results, expected):
                    case = f"{op.name}, {kind}, {run}: {name} moved {target} by {move.__name__}"
                    print(case, flush=True)
    print(len(moves_made) > 100, flush=True)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_memory_that_moves_inside_of_conversions(kind):
    if kind == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    scribble = {"MALLOC_PERTURB_": "165", "PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        [sys.executable, __file__, kind], env=os.environ | scribble, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


if __name__ == "__main__":
    faulthandler.enable()
    np.random.seed(SEED)
    check_moves()
