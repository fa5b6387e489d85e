# SPDX-License-Identifier: Apache-2.0
"""acl.mdl: offline models. Datasets and descriptions are objects; loading a model is refused."""

from .call import functions

_functions = functions("mdl")
globals().update(_functions)
__all__ = [*_functions]
