# SPDX-License-Identifier: Apache-2.0
"""The names under which programs link the library: CMake, the generators and commands ask here."""

from __future__ import annotations

# A library: the headers whose functions it has, as the beginning of their path below include/.
# "aclnnop/" are the operators; "" is a name on link lines without any function that exists here.
LIBRARIES = {
    "ascendcl": "acl/",
    "acl_rt": "acl/",
    "acl_rt_impl": "acl/rt/",
    "nnopbase": "aclnn/",
    "opapi": "aclnnop/",
    "opapi_nn": "aclnnop/",
    "opapi_math": "aclnnop/",
    "opapi_cv": "aclnnop/",
    "opapi_transformer": "aclnnop/",
    "acl_op_compiler": "acl/acl_op_compiler.h",
    "acl_op_executor": "acl/acl_op.h",
    "acl_mdl": "acl/acl_mdl.h",
    "acl_cblas": "acl/ops/acl_cblas.h",
    "acl_tdt_channel": "acl/acl_tdt.h",
    "acl_tdt_queue": "acl/acl_tdt_queue.h",
    "ascend_dump": "acl/acl_dump.h",
    "msprofiler": "acl/acl_prof.h",
    "hccl": "hccl/",
    "hcomm": "hccl/",
    "ascend_hal": "",
    "c_sec": "",
    "op_common": "",
    "platform": "",
    "profapi": "",
    "runtime": "",
}
# What a program links that names no version of CANN in particular.
LINK_LINE = ("opapi_nn", "opapi_math", "ascendcl", "nnopbase")
# Those whose operators, with `openaclnn home --aten`, are also the ones that ATen computes.
OPERATORS = tuple(name for name, headers in LIBRARIES.items() if headers == "aclnnop/")
