# SPDX-License-Identifier: Apache-2.0
"""The aclnn operator API without the NPU.

One function per operator (`openaclnn.leaky_relu(x, 0.1)`), the two-phase object (`openaclnn.plan`)
and the exact C names (`openaclnn.aclnn`). Arrays are NumPy arrays, torch CPU tensors or DLPack
producers; nothing is copied on the way in.
"""

from typing import TYPE_CHECKING, Any

from . import _core, aclnn
from ._core import Plan, Stream
from .errors import AclnnError
from .functions import *
from .functions import __all__ as _functions
from .plan import plan
from .rows.table import OPS
from .settings import config, home, products, set_num_threads, set_product

if TYPE_CHECKING:
    from .golden.compare import compare

__version__: str = _core.version


def __getattr__(name: str) -> Any:
    """Imports `compare` when it is asked for: it needs the references, which operators do not."""
    if name == "compare":
        from .golden.compare import compare

        globals()[name] = compare
        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, `compare` among them."""
    return sorted([*__all__, "__version__"])


__all__ = [
    "OPS",
    "AclnnError",
    "Plan",
    "Stream",
    "aclnn",
    "compare",
    "config",
    "home",
    "plan",
    "products",
    "set_num_threads",
    "set_product",
    *_functions,
]
