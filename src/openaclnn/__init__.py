# SPDX-License-Identifier: Apache-2.0
"""The aclnn operator API without the NPU.

One function per operator (`openaclnn.leaky_relu(x, 0.1)`), the two-phase object (`openaclnn.plan`)
and the exact C names (`openaclnn.aclnn`). Arrays are NumPy arrays, torch CPU tensors or DLPack
producers; nothing is copied on the way in.
"""

from . import aclnn
from ._core import Plan, Stream
from .errors import AclnnError
from .functions import *
from .functions import __all__ as _functions
from .plan import plan
from .settings import config, home, products, set_num_threads, set_product
from .table import OPS

__version__: str = config()["version"]

__all__ = [
    "OPS",
    "AclnnError",
    "Plan",
    "Stream",
    "aclnn",
    "config",
    "home",
    "plan",
    "products",
    "set_num_threads",
    "set_product",
    *_functions,
]
