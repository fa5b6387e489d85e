# SPDX-License-Identifier: Apache-2.0
"""The names under which programs link the library: CMake, the generators and commands ask here."""

from __future__ import annotations

# A library: what it has, of `runtime` (include/acl), `base` (include/aclnn) and `operators`.
LIBRARIES = {
    "ascendcl": "runtime",
    "acl_rt": "runtime",
    "nnopbase": "base",
    "opapi": "operators",
    "opapi_nn": "operators",
    "opapi_math": "",
    "acl_op_compiler": "",
}
# What a program links that names no version of CANN in particular.
LINK_LINE = ("opapi_nn", "opapi_math", "ascendcl", "nnopbase")
