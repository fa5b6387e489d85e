# SPDX-License-Identifier: Apache-2.0
"""Training on all ranks equals training of one process on the joined batch."""

from __future__ import annotations

import copy

import torch
import torch.distributed as dist
from ranks import RANK, RANKS, check, equal
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 3, 8
# Sums of gradients in another order, three steps: a few units in the last place of the largest.
WITHIN = 32 * torch.finfo(torch.float32).eps


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    draw = lambda width: torch.randn(BATCH * RANKS, width, generator=generator)  # noqa: E731
    return [(draw(12), draw(4)) for _ in range(STEPS)]


def train(trained: nn.Module, mine: slice) -> list[float]:
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x, y in batches():
        loss = nn.functional.mse_loss(trained(x[mine].to("npu")), y[mine].to("npu"))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def together() -> dict[str, torch.Tensor]:
    alone = model().to("npu")
    train(alone, slice(None))
    return {name: value.detach().cpu() for name, value in alone.named_parameters()}


OWN = slice(RANK * BATCH, (RANK + 1) * BATCH)


def agrees(found: dict[str, torch.Tensor]) -> None:
    before = dict(model().named_parameters())
    for name, wanted in together().items():
        assert not torch.equal(wanted, before[name])  # it was trained
        distance = float((found[name].detach().cpu() - wanted).abs().max())
        assert distance <= WITHIN * max(1.0, float(wanted.abs().max())), (name, distance)


@check
def distributed_data_parallel() -> None:
    ours = DistributedDataParallel(model().to("npu"))
    train(ours, OWN)
    agrees(dict(ours.module.named_parameters()))


@check
def gradients_accumulated_without_synchronisation() -> None:
    ours = DistributedDataParallel(model().to("npu"))
    (x, y), _, _ = batches()
    halves = [slice(OWN.start, OWN.start + BATCH // 2), slice(OWN.start + BATCH // 2, OWN.stop)]
    with ours.no_sync():
        nn.functional.mse_loss(ours(x[halves[0]].to("npu")), y[halves[0]].to("npu")).backward()
    nn.functional.mse_loss(ours(x[halves[1]].to("npu")), y[halves[1]].to("npu")).backward()
    alone = model().to("npu")
    (2 * nn.functional.mse_loss(alone(x.to("npu")), y.to("npu"))).backward()
    for a, b in zip(ours.parameters(), alone.parameters(), strict=True):
        assert float((a.grad - b.grad).abs().max()) <= WITHIN


@check
def fully_sharded() -> None:
    ours = model().to("npu")
    for layer in (ours[0], ours[3]):
        fully_shard(layer)
    fully_shard(ours)
    train(ours, OWN)
    assert all(isinstance(value, DTensor) for value in ours.parameters())
    agrees({name: value.full_tensor() for name, value in ours.named_parameters()})


@check
def tensor_parallel() -> None:
    mesh = init_device_mesh("npu", (RANKS,))
    ours = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 4)).to("npu")
    for value in ours.parameters():
        dist.broadcast(value.data, 0)
    alone = copy.deepcopy(ours)
    parallelize_module(ours, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x, y = (part.to("npu") for part in batches()[0])
    for one in (ours, alone):
        nn.functional.mse_loss(one(x), y).backward()
    for a, b in zip(ours.parameters(), alone.parameters(), strict=True):
        assert float((a.grad.full_tensor() - b.grad).abs().max()) <= WITHIN


@check
def distributed_tensors() -> None:
    mesh = init_device_mesh("npu", (RANKS,))
    whole = torch.randn(RANKS * 2, 4, generator=torch.Generator().manual_seed(2))
    rows = distribute_tensor(whole.to("npu"), mesh, [Shard(0)])
    assert rows.to_local().shape == (2, 4)
    equal(rows.to_local(), whole[2 * RANK : 2 * RANK + 2])
    equal(rows.redistribute(mesh, [Replicate()]).to_local(), whole)
    product = rows @ distribute_tensor(whole.t().contiguous().to("npu"), mesh, [Replicate()])
    torch.testing.assert_close(product.full_tensor().cpu(), whole @ whole.t())
    torch.testing.assert_close(rows.sum().full_tensor().cpu(), whole.sum())


if RANKS == 4:

    @check
    def hybrid_sharded() -> None:
        mesh = init_device_mesh("npu", (2, 2), mesh_dim_names=("replica", "shard"))
        ours = model().to("npu")
        fully_shard(ours, mesh=mesh)
        train(ours, OWN)
        agrees({name: value.full_tensor() for name, value in ours.named_parameters()})
