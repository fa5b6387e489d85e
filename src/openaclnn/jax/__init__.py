# SPDX-License-Identifier: Apache-2.0
"""The operators in JAX, on the CPU: jax.jit, jax.grad and jax.vmap know them.

    import openaclnn.jax as oj
    y = oj.elu(x, 1.5)                                   # every row, with its name of Python
    gradient = jax.grad(lambda x: oj.elu(x, 1.5).sum())(x)

The first import compiles custom calls for the jaxlib that is installed and keeps them in the user's
cache.
"""

from __future__ import annotations

from importlib import metadata

try:
    import jax.ffi  # noqa: F401
except ImportError as error:
    try:
        found = f"JAX {metadata.version('jax')} is installed and cannot be imported: {error}"
    except metadata.PackageNotFoundError:
        found = "JAX is not installed"
    raise ImportError(
        f"openaclnn.jax needs JAX 0.10 or newer (pip install -U jax), but {found}"
    ) from None

from ..compiled import BuildError
from ..rows.table import OPS
from .building import register
from .functions import function

try:
    register()
except BuildError as error:
    raise ImportError(f"openaclnn.jax needs its custom calls compiled, but {error}") from None
except OSError as error:  # of the loader
    raise ImportError(
        f"openaclnn.jax: the compiled custom calls cannot be loaded: {error}"
    ) from None

__all__ = [op.python for op in OPS]
globals().update({op.python: function(op) for op in OPS})
del metadata, register, function
