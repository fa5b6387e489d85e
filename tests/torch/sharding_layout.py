# SPDX-License-Identifier: Apache-2.0
"""Where the shards of each row's tensors should lie, from the shapes in the row."""

from __future__ import annotations

from torch.distributed.tensor import Partial, Replicate, Shard

from openaclnn.reference.evaluation import REFERENCES


def shape_of(op):
    """Uneven for two and four processes; of 5 rows the fourth process has none."""
    return (5, 8, 6) if op.pointwise else (7, *REFERENCES[op.kernel].example[1:])


def axes(op):
    """The named sizes of the first input, or all its dimensions."""
    return op.input_tensors[0].form.sizes or range(len(shape_of(op)))


def dim_of(op, p, axis):
    """The dimension of a tensor that an axis is, or that its divisor is (groups of channels)."""
    if op.shapes != "named":
        return axis
    names = {axis, op.multiples.get(axis)}
    return next((i for i, size in enumerate(p.form.sizes) if size in names), None)


def is_gathered(op, axis, attributes, processes):
    """Whether the axis cannot stay sharded: groups of channels can where all have whole ones."""
    divisor = [p for p in op.attributes if p.name == op.multiples.get(axis)]
    uneven = any(attributes[p.python_name] % processes != 0 for p in divisor)
    return uneven or not (op.pointwise or op.shapes == "named")


def placements(op, axis):
    """Returns those of the inputs and those of the outputs, where nothing is gathered."""

    def one(p, missing):
        dim = dim_of(op, p, axis)
        return missing if dim is None else Shard(dim)

    return [one(p, Replicate()) for p in op.input_tensors], [one(p, Partial()) for p in op.outputs]
