# SPDX-License-Identifier: Apache-2.0
"""`openaclnn npu --check`: what is installed, whether it fits, and whether it runs."""

from __future__ import annotations

import os
import subprocess
import sys

from ..aten import rows
from ..aten.installed import torch
from ..aten.library import library
from ..compiled import BuildError, compiler, is_whole
from ..report.text_table import Paint
from ..rows.table import OPS
from .environment import environment
from .installed import problem, torch_npu
from .names import OLDEST, VERSION

PROBE = (
    "import torch, torch_npu; x = torch.ones(3, device='npu') * 2; print(torch.npu.device_count(), "
    "torch.npu.get_device_name(), x.sum().item() == 6 and 'runs' or 'computes wrongly')"
)


def check(paint: Paint) -> int:
    own, wheel, command = torch(), torch_npu(), compiler()

    def line(name: str, value: str) -> None:
        print(f"{paint(f'{name:10}', 'bold')}  {value}")

    build = "" if own is None else f", a build for {own.accelerator or 'the CPU'}"
    line("torch", "not installed" if own is None else own.version + build)
    tested = "" if wheel in (None, VERSION) else f"; openaclnn works with {OLDEST} to {VERSION}"
    line("torch_npu", (wheel or "not installed") + tested)
    line("compiler", command[0] if command else "none; install g++ or clang++, or set CXX")
    if own is not None:
        made = library().target()
        line("operators", f"{made}{'' if is_whole(made) else ', compiled on first use'}")
    types = sum(row.is_type for row in rows())
    line(
        "reach",
        f"{len(OPS)} operators of openaclnn; {len(rows()) - types} functions and {types} types "
        "that ATen computes",
    )
    trouble = problem()
    if trouble is None:
        try:
            variables = environment({**os.environ, "OPENACLNN_NPU_NOTICE": "0"})
        except BuildError as error:
            trouble = str(error)
    if trouble is None:
        variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # it would hide why torch_npu fails
        done = subprocess.run(
            [sys.executable, "-c", PROBE], env=variables, capture_output=True, text=True
        )
        if done.returncode == 0:
            devices, name, verdict = done.stdout.strip().splitlines()[-1].split(" ", 2)
            line("device", f"{devices} of {name}: {verdict}")
            return 0 if verdict == "runs" else 1
        trouble = done.stderr.strip().splitlines()[-1]
    print(f"\nopenaclnn npu: {trouble}", file=sys.stderr)
    return 1
