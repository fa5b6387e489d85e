# SPDX-License-Identifier: Apache-2.0
"""Functions of the hand-written headers that a CPU cannot have: their C is generated. Each checks
its pointers, sets its results to zero and returns a status with a sentence.

A group: the status, what its functions lack, and patterns of their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOT_SUPPORTED = "ACL_ERROR_API_NOT_SUPPORT"


@dataclass(frozen=True)
class Group:
    status: str
    sentence: str
    patterns: str

    def has(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self.patterns.split())


GROUPS = (
    Group(
        NOT_SUPPORTED,
        "kernels compiled for an NPU cannot run on a CPU; call an aclnn function instead",
        "aclrt(Create|Destroy)Binary aclrtBinary(?!SetException).* aclrtGetFunc(?!HandleFrom).* "
        "aclrtFunction.* aclrtLaunchKernel.* aclrtKernelArgs.* aclrtRegisterCpuFunc "
        "aclrtGetHardwareSyncAddr aclopCreateKernel aclop(Un)?[Rr]egisterCompileFunc "
        "aclopSetKernelArgs aclopUpdateParams",
    ),
    Group(
        "ACL_ERROR_INVALID_MODEL_ID",
        "no model has this number: .om models hold kernels of an NPU, and none can be loaded here",
        "aclmdl(Execute.*|Unload|GetDesc|SetInputDynamicDims|SetDynamic(Batch|HW)Size|[SG]etAttribute"
        "|BundleUnload(Model)?|BundleGetModel(Id|Num)|SetInputAIPP|SetAIPPByInputIndex|GetAippType"
        "|GetFirstAippInfo|BundleLoadModel.*|CreateAndGetOpDesc) aclprofModel(Un)?Subscribe",
    ),
    Group(
        NOT_SUPPORTED,
        ".om models hold kernels of an NPU and cannot be loaded; run the model in PyTorch, where "
        "`openaclnn npu` gives device npu",
        "aclmdl(Load|Query|GetDescFrom|Bundle).* aclRecoverAllHcclTasks",
    ),
    Group(
        NOT_SUPPORTED,
        "images are prepared by hardware that a CPU lacks; prepare them on the host",
        "aclmdl.*(AIPP|Aipp).*",
    ),
    Group(
        NOT_SUPPORTED,
        "not supported; call aclnnMatmul, aclnnMv or another aclnn function",
        "aclblas.*",
    ),
    Group(NOT_SUPPORTED, "not supported; call aclnnCast", "aclopCast"),
    Group(
        NOT_SUPPORTED,
        "graphs of operators do not exist here, so none can be written",
        "aclGenGraphAndDumpForOp",
    ),
)


def group(name: str) -> Group | None:
    return next((g for g in GROUPS if g.has(name)), None)
