# SPDX-License-Identifier: Apache-2.0
"""A small model trained on device npu and beside it on device cpu: `openaclnn npu --demo`."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from ..report.output import guarded

STEPS, SHOWN = 60, 10


def train(torch: Any, device: str) -> tuple[list[float], float]:
    """The loss of every step, and the seconds they took."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 64),
        torch.nn.LeakyReLU(0.1),
        torch.nn.LayerNorm(64),
        torch.nn.Linear(64, 64),
        torch.nn.ELU(),
        torch.nn.Linear(64, 4),
    )
    points = torch.randn(256, 16)
    labels = points[:, :4].argmax(1)
    model, points, labels = model.to(device), points.to(device), labels.to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    begin = time.perf_counter()
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(model(points), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, time.perf_counter() - begin


def main() -> int:
    torch: Any = importlib.import_module("torch")
    (npu, npu_seconds), (cpu, cpu_seconds) = train(torch, "npu"), train(torch, "cpu")
    print(f"device npu is {torch.npu.get_device_name()}, computed by this CPU\n")
    print("step   loss on npu   loss on cpu")
    for i in range(SHOWN - 1, STEPS, SHOWN):
        print(f"{i + 1:4}   {npu[i]:11.6f}   {cpu[i]:11.6f}")
    there, here = (seconds / STEPS * 1e3 for seconds in (npu_seconds, cpu_seconds))
    print(f"\n{there:.1f} ms a step on npu, {here:.1f} on cpu")
    distance = max(abs(a - b) / b for a, b in zip(npu, cpu, strict=True))
    print(f"largest distance of the losses: {distance:.1e} of their value")
    return 0 if distance < 1e-3 and npu[-1] < npu[0] / 10 else 1


if __name__ == "__main__":
    sys.exit(guarded("npu --demo", main))
