# SPDX-License-Identifier: Apache-2.0
"""DTensor: how the results of an operator are placed when its inputs are sharded.

Every row follows one of its inputs, the leader: where the leader is sharded along an axis that the
row keeps apart, all tensors that have this axis are sharded along it, the others are replicated,
and an output without it is a partial sum. A pointwise row keeps all dimensions apart. A row with
named sizes keeps those apart, and no others: a size that an attribute divides (channels by groups)
where every process has whole groups, any other (the batch) where every process has a part. Any
other row keeps none apart: its inputs are gathered.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..rows.calling import argument_name, given
from ..rows.gradients import gradient_row, sources
from ..rows.schema import Op, Parameter
from ..rows.table import OPS

Axes = tuple[Any, ...]  # the name of each dimension; None where shards must be gathered


def linear_input(op: Op) -> Parameter | None:
    """A gradient row is linear in its incoming gradient: partial sums give partial sums."""
    for source in (s for other in OPS if gradient_row(other) is op for s in sources(other)):
        if source.kind == "incoming":
            return source.parameter
    return None


def _activations(op: Op) -> list[Parameter]:
    """The inputs of any number of dimensions."""
    return [p for p in op.input_tensors if p.form.rest]


def _parts(n: int, processes: int) -> set[int]:
    """Returns the sizes of the shards; DTensor rounds all up but the last ones."""
    part = -(-n // processes)
    return {max(0, min(part, n - i * part)) for i in range(processes)}


def _axes(op: Op, p: Parameter, shape: Sequence[int], whole: Sequence[int]) -> Axes:
    if op.shapes == "named":
        # there are groups of channels, so whole groups lie where their channels lie
        divided = {divisor: size for size, divisor in op.multiples.items()}
        sizes = tuple(divided.get(size, size) for size in p.form.sizes)
        return (*sizes, *(None,) * (len(shape) - len(sizes))) if p.form.rest else sizes
    if not op.pointwise:
        return (None,) * len(shape)
    first = len(whole) - len(shape)
    return tuple(first + i if n == whole[first + i] else None for i, n in enumerate(shape))


class Rule:
    """DTensor calls the rule of an overload for the placements of its inputs and outputs."""

    def __init__(self, op: Op, overload: Any, whole_groups: bool) -> None:
        from torch.distributed.tensor import Partial, Replicate, Shard
        from torch.distributed.tensor._op_schema import OpSpec, OpStrategy

        self.op, self.overload, self.whole_groups = op, overload, whole_groups
        self.linear = linear_input(op)
        self.Partial, self.Replicate, self.Shard = Partial, Replicate, Shard
        self.OpSpec, self.OpStrategy = OpSpec, OpStrategy

    def __call__(self, schema: Any) -> Any:
        named: dict[str, Any] = {p.name: p.default for p in given(self.op)}
        named |= {p.name: x for p, x in zip(given(self.op), schema.args_schema, strict=False)}
        specs = {p.name: named[p.name].strategies[0].output_spec for p in self.op.input_tensors}
        whole = self._whole(specs)
        laid = {
            p.name: _axes(self.op, p, specs[p.name].shape, whole) for p in self.op.input_tensors
        }
        chosen = self._chosen(specs, laid, named)
        partial = self._partial(specs, chosen)
        like = next(iter(specs.values()))

        def spec(placements: list[Any], meta: Any = None) -> Any:
            return type(like)(like.mesh, tuple(placements), tensor_meta=meta)

        inputs = []
        for p in self.op.input_tensors:
            placements = self._placements(laid[p.name], chosen, self.Replicate())
            if p is self.linear:
                placements = [a or b for a, b in zip(partial, placements, strict=True)]
            inputs.append(spec(placements, specs[p.name].tensor_meta))
        outputs: list[Any] = []
        for p in self.op.outputs:
            if p.condition is not None and not named[p.condition]:
                outputs.append(None)
                continue
            own = _axes(self.op, p, whole, whole) if p.role == "output" else laid[p.name]
            placements = self._placements(own, chosen, self.Partial("sum"))
            outputs.append(spec([a or b for a, b in zip(partial, placements, strict=True)]))
        self._check(schema, specs, outputs)
        results = outputs[0] if len(outputs) == 1 else tuple(outputs)
        return self.OpStrategy([self.OpSpec(output_specs=results, input_specs=inputs)])

    def _whole(self, specs: dict[str, Any]) -> tuple[int, ...]:
        if self.op.shapes == "named":
            return tuple(specs[_activations(self.op)[0].name].shape)
        return tuple(torch.broadcast_shapes(*(s.shape for s in specs.values())))

    def _leader(self, specs: dict[str, Any]) -> str:
        """The most sharded activation leads; among equals the largest, then the saved one."""
        linear = self.linear.name if self.linear else None
        return max(
            (p.name for p in _activations(self.op)),
            key=lambda n: (specs[n].num_shards, math.prod(specs[n].shape), n != linear),
        )

    def _chosen(self, specs: dict[str, Any], laid: dict[str, Axes], named: dict[str, Any]) -> Any:
        """Chooses axis and placement for each dimension of the mesh; None replicates all."""
        leader = self._leader(specs)
        mesh = specs[leader].mesh
        groups = {size: named[divisor] for size, divisor in self.op.multiples.items()}
        parts = {
            axis: {n}
            for axis, n in zip(laid[leader], specs[leader].shape, strict=True)
            if isinstance(axis, str) and axis not in groups
        }
        chosen: list[Any] = []
        for i, placement in enumerate(specs[leader].placements):
            axis = laid[leader][placement.dim] if hasattr(placement, "dim") else None
            if axis is not None and type(placement) is not self.Shard:
                # a strided shard (FSDP over tensor parallel) names the same elements only where
                # the axis is the same dimension everywhere
                places = {own.index(axis) for own in laid.values() if axis in own}
                axis = axis if places == {placement.dim} and axis not in (*parts, *groups) else None
            if axis in parts:
                smaller = set().union(*(_parts(n, mesh.size(i)) for n in parts[axis]))
                axis, parts[axis] = (None, parts[axis]) if 0 in smaller else (axis, smaller)
            elif axis in groups and self.whole_groups and groups[axis] % mesh.size(i) == 0:
                groups[axis] //= mesh.size(i)
            elif axis in groups:
                axis = None
            chosen.append(None if axis is None else (axis, placement))
        return chosen

    def _placements(self, own: Axes, chosen: Any, without: Any) -> list[Any]:
        """Places a tensor; it gets `without` where it lacks the axis of the shards."""
        placements: list[Any] = []
        for one in chosen:
            if one is None:
                placements.append(self.Replicate())
                continue
            axis, placement = one
            if axis not in own:
                placements.append(without)
            elif own.index(axis) == placement.dim:
                placements.append(placement)
            else:
                placements.append(self.Shard(own.index(axis)))
        return placements

    def _partial(self, specs: dict[str, Any], chosen: Any) -> list[Any]:
        """The incoming gradient stays a partial sum where nothing is sharded."""
        if self.linear is None:
            return [None] * len(chosen)
        return [
            p if one is None and p.is_partial() and p.reduce_op in ("sum", "avg") else None
            for p, one in zip(specs[self.linear.name].placements, chosen, strict=True)
        ]

    def _check(self, schema: Any, specs: dict[str, Any], outputs: list[Any]) -> None:
        """A tensor of the caller cannot move, so it must lie as the result does."""
        for p, result in zip(self.op.outputs, outputs, strict=True):
            if p.role == "inout":
                written = specs[p.name]
            elif argument_name(self.op, p) in schema.kwargs_schema and result is not None:
                written = schema.kwargs_schema[argument_name(self.op, p)].strategies[0].output_spec
            else:
                continue
            if tuple(written.placements) != tuple(result.placements):
                raise ValueError(
                    f"{self.op.python}: {argument_name(self.op, p)} must have the placements of "
                    f"the result {tuple(result.placements)}, but got {tuple(written.placements)}"
                )


def _local_groups(op: Op) -> Callable[[Any, Any], Any]:
    """Returns what replaces each number of groups by that of one process."""
    activation = _activations(op)[0]
    which = op.input_tensors.index(activation)
    positions = {p.name: i for i, p in enumerate(given(op))}

    def adjust(inputs: Any, schema: Any) -> Any:
        x, arguments = inputs[which], list(schema.args_schema)
        for size, divisor in op.multiples.items():
            dim = activation.form.sizes.index(size)
            shards = (x.mesh.size(i) for i, p in enumerate(x.placements) if p.is_shard(dim))
            arguments[positions[divisor]] //= math.prod(shards)
        return type(schema)(schema.op, tuple(arguments), schema.kwargs_schema)

    return adjust


def register_sharding() -> None:
    """Gives the rules to DTensor, whose module must be imported."""
    from torch.distributed.tensor import DTensor

    try:
        from torch.distributed.tensor._op_schema import RuntimeSchemaInfo

        propagator = DTensor._op_dispatcher.sharding_propagator
        # torch 2.13 brought adjusters; without them group norm gathers sharded channels
        adjusters = getattr(propagator, "op_to_scalar_shape_adjuster", None)
        for op in OPS:
            packet = getattr(torch.ops.openaclnn, op.python)
            for overload in (packet.default, *(() if op.inplace else (packet.out,))):
                rule = Rule(op, overload, adjusters is not None)
                # the placements depend on tensors, and on attributes that count groups
                attributes = [i for i, p in enumerate(given(op)) if p.kind != "tensor"]
                outs = [argument_name(op, p) for p in op.outputs if p.role == "output"]
                counted = op.shapes == "named"
                known = RuntimeSchemaInfo(attributes[0] if counted else len(given(op)), outs)
                propagator.register_op_strategy(overload, rule, known)
                if op.multiples and adjusters is not None:
                    adjusters[overload] = _local_groups(op)
    except (ImportError, AttributeError, TypeError) as error:
        warnings.warn(
            f"openaclnn.torch: DTensor has no sharding rules for its operators, because torch "
            f"{torch.__version__} has another interface for them: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
