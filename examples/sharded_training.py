# SPDX-License-Identifier: Apache-2.0
"""A model that no process holds whole: FSDP2 over the batch, tensor parallel over the channels.

    torchrun --standalone --nproc-per-node 4 sharded_training.py

Processes stand in rows and columns. Each row takes a part of the batch; in a row, each process
computes some of the channels, and the norm and the activation between the two linear layers send
nothing, because every process has whole groups.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)

import openaclnn.torch as ot


class ChannelParallel(ParallelStyle):
    """Shards the weight and the bias of a norm over the channels."""

    def _apply(self, module, mesh):
        def shard(name, part, mesh):
            for key, value in list(part.named_parameters(recurse=False)):
                sharded = distribute_tensor(value.detach(), mesh, [Shard(0)])
                part.register_parameter(key, torch.nn.Parameter(sharded))

        return distribute_module(module, mesh, shard)


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(16, 64),
        ot.GroupNormSwish(8, 64),
        torch.nn.Linear(64, 16),
        ot.ELU(),
        torch.nn.Linear(16, 4),
    )


def train(model, x, y, rows=1):
    """The losses of ten steps over the whole batch; `rows` processes have a part each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    losses = []
    for _ in range(10):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    total = torch.stack(losses)
    if rows > 1:
        dist.all_reduce(total)
        total /= dist.get_world_size()
    return total


def main():
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    columns = 2 if size % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (size // columns, columns), mesh_dim_names=("rows", "columns"))
    model = make_model()  # the same in every process, as the batch is
    x, y = torch.randn(32, 16), torch.randn(32, 4)
    plan = {
        "0": ColwiseParallel(use_local_output=False),
        "1": ChannelParallel(),
        "2": RowwiseParallel(input_layouts=Shard(-1)),
    }
    parallelize_module(model, mesh["columns"], plan)
    h = model[0](x)
    with CommDebugMode() as sent:
        model[1](h)
    fully_shard(model, mesh=mesh["rows"])

    row, rows = mesh.get_local_rank("rows"), size // columns
    losses = train(model, x.chunk(rows)[row], y.chunk(rows)[row], rows)
    if dist.get_rank() == 0:
        alone = train(make_model(), x, y)
        held = sum(p.to_local().numel() for p in model.parameters())
        whole = sum(p.numel() for p in model.parameters())
        print(f"each of {size} processes holds {held / whole:.0%} of the parameters")
        print(f"messages of the norm: {sent.get_total_counts()}")
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
        print("as one process:", torch.allclose(losses, alone, rtol=1e-4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
