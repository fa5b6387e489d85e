# SPDX-License-Identifier: Apache-2.0
"""What each rank of test_sharding.py runs: launch.py RANKS sharding_cases.py FOLDER.

It writes RANK.json into the folder: what failed, by case. All collective calls of a case come
before its assertions, so that a process which fails does not leave the others waiting.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.support import SEED
from tests.torch.sharding_layout import axes, dim_of, is_gathered, placements, shape_of
from tests.torch.torch_support import (
    arguments,
    has_gradient,
    operator,
    same_bits,
    tensors,
    to_numpy,
    torch,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.placement_types import _StridedShard

import openaclnn
import openaclnn.torch as ot
from openaclnn.reference.evaluation import REFERENCES, absolute_terms, evaluate, scaled_error
from openaclnn.rows.gradients import differentiable
from openaclnn.rows.table import OPS

CASES = [f"{kind} {op.python}" for op in OPS for kind in ("values", "gradients")]
CASES += ["partial sums", "mixed placements", "gathered", "in place", "out", "mesh", "modules"]
CASES += ["captured"]

dist = torch.distributed


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def run(op, values):
    found = operator(op)(*values)
    return found if isinstance(found, tuple) else (found,)


def counted(mode):
    return {str(name): n for name, n in mode.get_comm_counts().items() if n}


class Cases:
    def __init__(self, mesh):
        self.mesh, self.size, self.count = mesh, mesh.size(), CommDebugMode
        self.distribute = partial(distribute_tensor, src_data_rank=None)  # all have the data

    def inputs(self, op, axis, attributes):
        plain = tensors(op, "FLOAT", attributes, shape_of(op))
        laid, expected = placements(op, axis)
        sharded = [self.distribute(x, self.mesh, [p]) for x, p in zip(plain, laid, strict=True)]
        return plain, sharded, expected

    def values(self, op):
        for axis in axes(op):
            for attributes in REFERENCES[op.kernel].attributes:
                plain, sharded, laid = self.inputs(op, axis, attributes)
                if op.inplace:
                    plain[0] = plain[0].clone()
                with self.count() as mode:
                    found = run(op, arguments(op, sharded, attributes))
                together = [whole(x) for x in found]
                judged = run(op, arguments(op, plain, attributes))
                what = op.python, axis, attributes, SEED
                if not is_gathered(op, axis, attributes, self.size):
                    assert counted(mode) == {}, what
                    for x, p in zip(found, laid, strict=True):
                        assert x is None or x.placements == (p,), what
                inputs = [to_numpy(x) for x in plain]
                for i, (a, b) in enumerate(zip(together, judged, strict=True)):
                    is_sum = a is not None and dim_of(op, op.outputs[i], axis) is None
                    assert self.sums(op, i, a, inputs, attributes) if is_sum else same_bits(a, b)

    def sums(self, op, i, found, inputs, attributes):
        """Each process beyond the first adds one rounding."""
        error = scaled_error(
            op,
            to_numpy(found),
            evaluate(op, inputs, attributes)[i],
            absolute_terms(op, inputs, attributes)[i],
        )
        return error <= 1 + (self.size - 1) * 2**-24 / 4e-7

    def gradients(self, op):
        """The gradients of a recorded call have the bits of one process and send nothing."""
        for axis in axes(op):
            attributes = next(a for a in REFERENCES[op.kernel].attributes if has_gradient(op, a))
            plain, sharded, _ = self.inputs(op, axis, attributes)
            found, ways = [], differentiable(op)
            for values in (plain, sharded):
                leaves = [x.detach().requires_grad_() for x in values]
                called = [leaves[0].clone(), *leaves[1:]] if op.inplace else leaves
                with self.count() as mode:
                    y = run(op, arguments(op, called, attributes))[0]
                    wanted = [i for i, p in enumerate(op.input_tensors) if p in ways]
                    given = [leaves[i] for i in wanted]
                    found.append(torch.autograd.grad(y, given, torch.ones_like(y)))
            together = [whole(x) for x in found[1]]
            if not is_gathered(op, axis, attributes, self.size):
                assert counted(mode) == {}, (op.python, axis, counted(mode), SEED)
            for i, a, b in zip(wanted, together, found[0], strict=True):
                if dim_of(op, op.input_tensors[i], axis) is None:
                    parts = self.gradients_of_parts(op, plain, attributes, i)
                    allowed = (self.size - 1) * 2**-24 * parts.abs().sum(0)
                    assert (a - parts.sum(0)).abs().le(allowed).all(), (i, SEED)
                else:
                    assert same_bits(a, b), (op.python, axis, i, SEED)

    def gradients_of_parts(self, op, plain, attributes, i):
        """Returns the gradients of input i, one from each part of the batch."""
        found = []
        for x in plain[0].chunk(self.size):
            leaves = [t.detach().requires_grad_() for t in (x, *plain[1:])]
            y = run(op, arguments(op, leaves, attributes))[0]
            found += torch.autograd.grad(y, leaves[i], torch.ones_like(y))
        return torch.stack(found).double()

    def partial_sums(self):
        """Gradient rows are linear in the incoming gradient: its sum is taken later, once."""
        g = torch.full((4, 6), 0.5)
        x = torch.linspace(-2, 2, 24).view(4, 6)
        parts = DTensor.from_local(g, self.mesh, [Partial()], run_check=False)
        with self.count() as mode:
            y = torch.ops.openaclnn.leaky_relu_backward(
                parts, self.distribute(x, self.mesh, [Replicate()]), 0.25
            )
        together = y.full_tensor()
        refused = DTensor.from_local(x, self.mesh, [Partial()], run_check=False)
        summed = ot.leaky_relu(refused, 0.25).full_tensor()
        assert counted(mode) == {}
        assert y.placements == (Partial(),)
        assert torch.equal(together, self.size * torch.where(x > 0, g, g * 0.25))
        assert torch.equal(summed, ot.leaky_relu(self.size * x, 0.25))
        with pytest.raises(RuntimeError, match=r"^leaky_relu_: x must have the placements of the"):
            ot.leaky_relu(refused, 0.25, inplace=True)

    def mixed_placements(self):
        """The saved input leads; what is replicated is cut, and nothing is gathered."""
        g, x = torch.randn(4, 8), torch.randn(4, 8)
        for cut, dim in ((g, 1), (x, 0), (x, 1)):
            values = [
                self.distribute(t, self.mesh, [Shard(dim) if t is cut else Replicate()])
                for t in (g, x)
            ]
            with self.count() as mode:
                y = torch.ops.openaclnn.hardshrink_backward(*values, 0.3)
            together = y.full_tensor()
            assert counted(mode) == {}
            assert y.placements == (Shard(dim),)
            assert torch.equal(together, torch.ops.openaclnn.hardshrink_backward(g, x, 0.3))
        row = self.distribute(x[0], self.mesh, [Replicate()])  # broadcast
        for dim in (0, 1):
            with self.count() as mode:
                y = torch.ops.openaclnn.leaky_relu_backward(
                    self.distribute(g, self.mesh, [Shard(dim)]), row, 0.3
                )
            together = y.full_tensor()
            assert counted(mode) == {}
            assert y.placements == (Shard(dim),)
            assert torch.equal(together, torch.ops.openaclnn.leaky_relu_backward(g, x[0], 0.3))

    def gathered(self):
        """A group has all positions; no process may have no sample or part of a group."""
        images, weight = torch.randn(self.size + 1, 6, 4, 4), torch.rand(6)
        ones = self.distribute(weight, self.mesh, [Replicate()])
        for x, dim in ((images, 2), (images[:1], 0), (images, 0), (images, 1)):
            cut = self.distribute(x, self.mesh, [Shard(dim)])
            together = ot.group_norm_swish(cut, 1, ones, ones).full_tensor()
            assert same_bits(together, ot.group_norm_swish(x, 1, weight, weight))

    def in_place(self):
        x = torch.randn(4, 8)
        y = self.distribute(x.clone(), self.mesh, [Shard(1)])
        local = y.to_local().data_ptr()
        with self.count() as mode:
            ot.elu(y, 1.5, inplace=True)
        together = y.full_tensor()
        assert counted(mode) == {}
        assert y.to_local().data_ptr() == local
        assert torch.equal(together, ot.elu(x, 1.5))

    def out(self):
        x = torch.randn(4, 8)
        sharded = self.distribute(x, self.mesh, [Shard(1)])
        y = self.distribute(torch.empty(4, 8), self.mesh, [Shard(1)])
        with self.count() as mode:
            torch.ops.openaclnn.elu(sharded, 1.5, out=y)
        together = y.full_tensor()
        assert counted(mode) == {}
        assert torch.equal(together, ot.elu(x, 1.5))
        other = self.distribute(torch.empty(4, 8), self.mesh, [Replicate()])
        with pytest.raises(RuntimeError, match=r"^elu: out must have the placements of the result"):
            torch.ops.openaclnn.elu(sharded, 1.5, out=other)

    def mesh_of_two_dimensions(self):
        """Batch by channels, and channels by channels: every process has its own groups."""
        mesh = init_device_mesh("cpu", (2, self.size // 2))
        x, weight, bias = torch.randn(4, 16, 3, 3), torch.rand(16), torch.rand(16)
        judged = ot.group_norm_swish(x, 8, weight, bias)
        for cut, vector in (
            ((Shard(0), Shard(1)), (Replicate(), Shard(0))),
            ((Shard(1), Shard(1)), (Shard(0), Shard(0))),
            ((Shard(0), Shard(0)), (Replicate(), Replicate())),
        ):
            w, b = (self.distribute(t, mesh, vector).requires_grad_() for t in (weight, bias))
            with self.count() as mode:
                y = ot.group_norm_swish(self.distribute(x, mesh, cut), 8, w, b)
                y.backward(torch.ones_like(y))
            together = y.full_tensor()
            assert counted(mode) == {}
            assert y.placements == cut
            assert same_bits(together, judged)
            expected = tuple(p if p.is_shard() else Partial() for p in vector)
            assert w.grad.placements == b.grad.placements == expected
        strided = _StridedShard(0, split_factor=2), Shard(0)  # as FSDP2 over tensor parallel has it
        parts = DTensor.from_local(x, mesh, strided, run_check=False)
        y = ot.elu(parts, 0.5)
        assert y.placements == strided
        assert same_bits(y.to_local(), ot.elu(x, 0.5))

    def modules(self):
        """A norm without weight and bias makes them beside the shards."""
        x = torch.randn(4, 8, 3, 3)
        sharded = self.distribute(x, self.mesh, [Shard(0)])
        with self.count() as mode:
            y = ot.GroupNormSwish(4, 8, affine=False)(sharded)
        together = y.full_tensor()
        assert counted(mode) == {}
        assert same_bits(together, ot.GroupNormSwish(4, 8, affine=False)(x))

    def captured(self):
        """torch.compile sees the sharded calls."""
        x = torch.randn(4, 8)
        sharded = self.distribute(x, self.mesh, [Shard(0)])
        step = torch.compile(lambda t: ot.elu(ot.leaky_relu(t, 0.2)), backend="aot_eager")
        together = step(sharded).full_tensor()
        assert torch.equal(together, ot.elu(ot.leaky_relu(x, 0.2)))

    def one(self, name):
        kind, _, row = name.partition(" ")
        op = next((op for op in OPS if op.python == row), None)
        torch.manual_seed(SEED)
        if name == "mesh":
            return self.mesh_of_two_dimensions()
        if op is None:
            return getattr(self, name.replace(" ", "_"))()
        if kind == "gradients" and not any(
            has_gradient(op, a) for a in REFERENCES[op.kernel].attributes
        ):
            return None
        return getattr(self, kind)(op)


def main(folder):
    openaclnn.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    cases = Cases(init_device_mesh("cpu", (dist.get_world_size(),)))
    failed = {}
    for name in CASES:
        try:
            cases.one(name)
        except Exception:
            failed[name] = traceback.format_exc()
    (Path(folder) / f"{dist.get_rank()}.json").write_text(json.dumps(failed))
    dist.destroy_process_group()
    # Threads of gloo may still hold tensors, and end the process with SIGABRT when they release one
    # while Python shuts down: one of 12 runs with torch 2.13.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
