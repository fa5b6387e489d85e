# SPDX-License-Identifier: Apache-2.0
"""Runs a few operators and a training step on device npu under valgrind, and fails if memcheck
finds an error of openaclnn's libraries: one whose innermost frame lies in them, or a read or write
outside an allocation with one of them anywhere on the stack. Leaks are not looked for: check mode
and the address sanitizer do that. Takes about two minutes.

    openaclnn npu -- python tests/npu/valgrind.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

OURS = re.compile(r"/openaclnn/|libopenaclnn|libopapi|libascendcl|libaclnn_math|libnnopbase")
# What their code calls to move bytes.
BYTES = re.compile(r"/libc[.-]|/vgpreload_")
# malloc is where memcheck sees the ends of allocations. The CPUs of valgrind have no AVX-512.
VARIABLES = {
    "PYTHONMALLOC": "malloc",
    "OPENACLNN_ISA": "v3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def work() -> None:
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    drawn = torch.randn(33, 7)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = drawn.to(dtype).npu().requires_grad_()
        y = F.elu(x, 0.7) + F.leaky_relu(x, -0.3) + F.hardshrink(x, 0.2) + F.selu(x)
        (y + torch.logit(x.sigmoid(), 0.1)).float().square().sum().backward()
        z = x.detach()
        F.leaky_relu_(z.t()[1:], 0.1)
        F.elu_(z[:, ::2])
        z[z > 1] = 0
        print(z[z > 0].sum().item(), torch.nonzero(z).shape, z[:, [0, 3]].sum().item())
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(2, 8, 3), torch.nn.GroupNorm(4, 8), torch.nn.SiLU()),
        *(torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(72, 16)),
        *(
            torch.nn.LayerNorm(16),
            torch.nn.Dropout(0.3),
            torch.nn.PReLU(16),
            torch.nn.Linear(16, 3),
        ),
    ).npu()
    optimiser = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(5, 2, 8, 8).npu(), torch.randint(3, (5,)).npu()
    for _ in range(2):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
    print(loss.item())
    layer = torch.nn.LSTM(7, 5).npu()
    layer(drawn.reshape(11, 3, 7).npu())[0].sum().backward()
    try:
        images.flatten(1) @ images.flatten(1)
    except RuntimeError as refused:
        print(str(refused).splitlines()[-1])
    with torch.npu.stream(torch.npu.Stream()):
        ordered = torch.cat([x.detach(), x.detach()]).sort()[0]
    there = drawn.pin_memory().to("npu", non_blocking=True)
    torch.npu.synchronize()
    print(ordered.sum().item(), torch.equal(there.cpu(), drawn))


def is_ours(error: ElementTree.Element) -> bool:
    stack = error.find("stack")
    objects = [frame.findtext("obj", "") for frame in stack] if stack is not None else []
    if "Invalid" in error.findtext("kind", ""):
        return any(OURS.search(path) for path in objects)
    own = [path for path in objects if not BYTES.search(path)]
    return bool(own and OURS.search(own[0]))


def main() -> int:
    if sys.argv[1:] == ["work"]:
        work()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        done = subprocess.run(
            ["valgrind", "--xml=yes", f"--xml-file={report}", "--leak-check=no",
             "--error-limit=no", "--num-callers=30",
             sys.executable, "-W", "ignore", __file__, "work"],
            env={**os.environ, **VARIABLES},
        )  # fmt: skip
        errors = ElementTree.parse(report).getroot().findall("error")
    ours = [error for error in errors if is_ours(error)]
    for error in ours:
        print(ElementTree.tostring(error, encoding="unicode"))
    kinds = Counter(error.findtext("kind") for error in errors if not is_ours(error))
    elsewhere = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"valgrind: {len(ours)} errors of openaclnn's libraries; elsewhere: {elsewhere}")
    return 1 if ours or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
