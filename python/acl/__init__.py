# SPDX-License-Identifier: Apache-2.0
"""pyACL on openaclnn: the runtime, data buffers, descriptions and operators by type, for Python.

    import acl

    ret = acl.init()
    ret = acl.rt.set_device(0)
    pointer, ret = acl.rt.malloc(1024, 0)

Names, arguments and results are those of pyACL: results come first, and the status `ret` comes
last. Addresses and handles are integers. `acl.get_recent_err_msg()` says why a call failed. A wrong
type or a number that does not fit raises TypeError or ValueError. Every function is a row of
table.py. What needs an NPU, such as offline models, returns 200001 or raises NotImplementedError.
"""

from __future__ import annotations

from . import blas, mdl, media, op, rt, util
from .call import functions

__all__ = ["blas", "mdl", "media", "op", "rt", "util"]

globals().update(functions(""))
__all__ += functions("")
