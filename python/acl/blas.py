# SPDX-License-Identifier: Apache-2.0
"""acl.blas: refused, in favour of aclnnMatmul."""

from .call import functions

_functions = functions("blas")
globals().update(_functions)
__all__ = [*_functions]
