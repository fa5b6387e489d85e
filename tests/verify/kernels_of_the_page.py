# SPDX-License-Identifier: Apache-2.0
"""The kernels and commands of docs/tutorials/own_kernel.md, and how tests judge them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from openaclnn.commands.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs/tutorials/own_kernel.md").read_text("utf-8")
NUMPY, TRITON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
LEAKY, C = re.findall(r"^```c\n(.*?)^```$", PAGE, re.M | re.S)
GROUP_NORM, COMPARE = re.findall(r"^```py\n(.*?)^```$", PAGE, re.M | re.S)
FIRST, THIRD, SECOND = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)


def edited(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


def verified(provider: str, op: str, *options: str) -> tuple[int, list[dict[str, object]]]:
    command = ["verify", provider, "--op", op, "--quiet", "--json", "report.json", *options]
    status = main([*command, "--timeout", "10"])
    return status, json.loads(Path("report.json").read_text(encoding="utf-8"))["findings"]


def check(found, kind, cause):
    causes = [f["cause"] for f in found if kind in (None, f["kind"])]
    assert causes, found
    if cause is not None:
        assert any(re.search(cause, text) for text in causes), causes
