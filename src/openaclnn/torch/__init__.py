# SPDX-License-Identifier: Apache-2.0
"""The operators as ordinary citizens of PyTorch: they record, compile, export, batch, shard.

    import openaclnn.torch as ot
    y = ot.group_norm_swish(x, 32, norm.weight, norm.bias)     # functions of torch.nn.functional
    print(ot.replace(model))                                   # in an existing model
    torch.compile(model, options={"pre_grad_custom_pass": ot.fuse_pass})
    torch.ops.openaclnn.elu_backward(g, 1.0, 1.0, 1.0, False, x)   # every row as an operator

The first import compiles the kernels for the torch that is installed and keeps them in the user's
cache; `python -m openaclnn.torch` does so ahead of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import torch
except RuntimeError as error:
    if "torch_npu" not in str(error):
        raise
    raise ImportError(
        "torch loads the torch_npu that is installed beside it, which finds no libraries of CANN: "
        "start with  openaclnn npu --  in front, import openaclnn.npu first, or set "
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0"
    ) from error

from ..rows.suggestions import did_you_mean as _did_you_mean
from ..rows.suggestions import near as _near
from .building import build, cache
from .functions import elu, group_norm_swish, hardshrink, leaky_relu, logit
from .modules import ELU, GroupNormSiLU, GroupNormSwish, Hardshrink, LeakyReLU
from .recording import start
from .registration import register
from .replacement import Replacement
from .replacing import register_replacement, replace

if TYPE_CHECKING:
    from .graph_pass import fuse_pass

register()
start()
del register, start, torch


def __getattr__(name: str) -> Any:
    """Imports `fuse_pass` when it is asked for, as it takes seconds to import Inductor."""
    if name == "fuse_pass":
        from .graph_pass import fuse_pass

        return fuse_pass
    hint = _did_you_mean(_near(name, __all__))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


__all__ = [
    "ELU",
    "GroupNormSiLU",
    "GroupNormSwish",
    "Hardshrink",
    "LeakyReLU",
    "Replacement",
    "build",
    "cache",
    "elu",
    "fuse_pass",
    "group_norm_swish",
    "hardshrink",
    "leaky_relu",
    "logit",
    "register_replacement",
    "replace",
]
