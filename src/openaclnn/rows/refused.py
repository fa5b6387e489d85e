# SPDX-License-Identifier: Apache-2.0
"""Functions of the hand-written headers that a CPU cannot have: their C is generated. Each checks
its pointers and its communicator, sets its results to zero and returns a status with a sentence.

A group: the status, what its functions lack, and patterns of their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOT_SUPPORTED = "ACL_ERROR_API_NOT_SUPPORT"
HCCL_NOT_SUPPORTED = "HCCL_E_NOT_SUPPORT"


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
        "aclrtFunction.* aclrtLaunch(SIMT)?Kernel.* aclrtKernelArgs.* aclrtRegisterCpuFunc "
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
    Group(
        "ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
        "a process cannot save its device; all state is on the host, where tools such as CRIU "
        "save processes",
        "aclrtSnapShot.*",
    ),
    Group(
        HCCL_NOT_SUPPORTED,
        "rank tables are not supported; call HcclCommInitRootInfo",
        "HcclCommInitClusterInfo(Config)?",
    ),
    Group(
        HCCL_NOT_SUPPORTED,
        "a communicator is not suspended or resumed on a CPU; destroy it and create another",
        "HcclComm(Suspend|Resume)",
    ),
    Group(
        HCCL_NOT_SUPPORTED,
        "a CPU has no network cards of NPUs to choose from",
        "HcclCommWorkingDevNicSet",
    ),
    Group(
        HCCL_NOT_SUPPORTED,
        "collectives do not exchange addresses, as on Atlas A2; they take any device memory",
        "HcclComm(Set|Unset)MemoryRange HcclComm(Activate|Deactivate)CommMemory",
    ),
    Group(
        HCCL_NOT_SUPPORTED,
        "ranks do not reach each other's memory; use HcclSend and HcclRecv",
        "HcclComm(Register|Deregister|ExchangeMem)",
    ),
)


def group(name: str) -> Group | None:
    return next((g for g in GROUPS if g.has(name)), None)
