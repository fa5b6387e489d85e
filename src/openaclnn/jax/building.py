# SPDX-License-Identifier: Apache-2.0
"""The compiled custom calls of the operators, and their names in XLA."""

from __future__ import annotations

import ctypes
from pathlib import Path

import jax
import jaxlib.version

from ..compiled import Jaxlib, Library
from ..rows.table import OPS
from ..settings import home


def sources() -> Path:
    """core/jax and the header that it needs, as installed."""
    return home() / "share" / "jax"


def generated() -> dict[str, str]:
    """The files by name: a handler of XLA is a symbol, so there is one for each row."""
    rows = "".join(f"ROW({op.name});\n" for op in OPS)
    return {
        "names.inc": f"// SPDX-License-Identifier: Apache-2.0\n{rows}",
        "calls.cpp": '#include "library.cpp"\n',
    }


def library() -> Library:
    """The build that fits, whether or not it exists."""
    own = Jaxlib(Path(jax.ffi.include_dir()).parent, str(jaxlib.version.__version__), "")
    return Library("the JAX operators", own, sources(), generated())


def target(name: str) -> str:
    """The name of a row in XLA's programs."""
    return f"openaclnn.{name}"


def register() -> None:
    """Compiles the custom calls if they are not in the cache, and registers them with XLA.
    BuildError says why they cannot be had."""
    calls = ctypes.CDLL(str(library().build()))
    for op in OPS:
        capsule = jax.ffi.pycapsule(getattr(calls, f"openaclnn_jax_{op.name}"))
        jax.ffi.register_ffi_target(target(op.python), capsule, platform="cpu")
