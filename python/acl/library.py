# SPDX-License-Identifier: Apache-2.0
"""The C library: what this process has loaded already, what the loader finds, or that of the
installation directory in which this module lies.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

NAME = "libascendcl.so"


def load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(NAME, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        beside = Path(__file__).absolute().parents[3] / "lib64" / NAME
        try:
            return ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ImportError(
                f"acl: {NAME} not found; start the program with `openaclnn run` or `openaclnn npu` "
                f"({error})"
            ) from None


LIBRARY = load()
