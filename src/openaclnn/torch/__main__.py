# SPDX-License-Identifier: Apache-2.0
"""python -m openaclnn.torch: compiles the PyTorch operators ahead of their first use."""

from __future__ import annotations

import sys

from ..report.output import guarded
from . import registration
from .building import BuildError, build


def main() -> int:
    try:
        print(build())
    except BuildError as error:
        print(f"openaclnn.torch: {error}", file=sys.stderr)
        return 1
    return 0 if registration.kind == "compiled" else 1


if __name__ == "__main__":
    sys.exit(guarded("torch", main))
