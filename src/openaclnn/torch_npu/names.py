# SPDX-License-Identifier: Apache-2.0
"""The C functions that the torch_npu wheel needs beside those that C programs use.

WORKING are written by hand in core/npu. REFUSED are there because the wheel does not load without
them: tools/build/generate.py writes them, each sets its results (marked !) to zero and returns
ACL_ERROR_API_NOT_SUPPORT with a sentence that names it. A function that the wheel only looks up
when it is wanted is in neither list unless it works: without it, the wheel says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VERSION = "2.13.0"

# The libraries that the wheel names, without their lib and .so.
NEEDED = ("hccl", "ascendcl", "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel")
# The libraries that the wheel loads when it first needs one of their functions.
WANTED = ("hcomm",)

WORKING = {
    "aclInit": "as for C programs, and says once that no NPU computes here",
    "aclCreateTensorDesc": "",
    "aclDestroyTensorDesc": "",
    "aclGetTensorDescDimV2": "",
    "aclGetTensorDescFormat": "",
    "aclGetTensorDescType": "",
    "aclGetTensorDescNumDims": "",
    "aclSetTensorDescName": "",
    "aclSetTensorFormat": "",
    "aclSetTensorShape": "",
    "aclSetTensorPlaceMent": "",
    "aclCreateDataBuffer": "",
    "aclDestroyDataBuffer": "",
    "aclopCreateAttr": "",
    "aclopDestroyAttr": "",
    "aclopSetAttrBool": "",
    "aclopSetAttrInt": "",
    "aclopSetAttrFloat": "",
    "aclopSetAttrDataType": "",
    "aclopSetAttrString": "",
    "aclopSetAttrListBool": "",
    "aclopSetAttrListInt": "",
    "aclopSetAttrListFloat": "",
    "aclopSetAttrListListInt": "",
    "aclopCompileAndExecute": "Identity, and what ATen computes; others are refused by name",
    "aclopCompileAndExecuteV2": "the same",
    "aclSetCompileopt": "keeps the option; nothing is compiled",
    "aclGetCompileoptSize": "",
    "aclGetCompileopt": "",
    "aclrtSetDeviceSatMode": "accepts infinities and NaN; refuses saturation",
    "aclrtGetDeviceSatMode": "",
    "aclrtSetStreamOverflowSwitch": "keeps the switch; an overflow is an infinity in the result",
    "aclrtGetStreamOverflowSwitch": "",
    "aclrtSetOpExecuteTimeOutV2": "accepts every time limit and enforces none",
    "aclGetDeviceCapability": "cores are threads, the L2 cache is the last cache of the CPU",
    "aclGetCannAttribute": "infinities and NaN: yes; bfloat16: yes; compilation at run time: no",
    "aclsysGetCANNVersion": "8.5.0, whose interface this is; there is no driver",
    "aclrtDeviceGetUuid": '"openaclnn CPU" and the number of the device',
    "aclrtDeviceGetBareTgid": "the number of the process",
    "aclmdlRICaptureGetInfo": "says that no stream is being captured",
    "aclAppLog": "prints errors to the terminal if ASCEND_SLOG_PRINT_TO_STDOUT is 1",
    "MsprofGetHashId": "the FNV-1a hash",
    "MsprofSysCycleTime": "the steady clock in nanoseconds",
    "HcclGetRootInfo": "",
    "HcclCommInitRootInfo": "",
    "HcclCommInitRootInfoConfig": "keeps the communicator's name; other settings have no effect",
    "HcclCommDestroy": "waits until what was sent is received",
    "HcclGetCommName": "",
    "HcclGetCommAsyncError": "",
    "HcclGetCommConfigCapability": "returns 3",
    "HcclSetConfig": "has no effect: results are always deterministic",
    "HcclAllReduce": "",
    "HcclBroadcast": "",
    "HcclAllGather": "",
    "HcclAllGatherV": "",
    "HcclReduceScatter": "",
    "HcclReduceScatterV": "",
    "HcclReduce": "",
    "HcclScatter": "",
    "HcclAlltoAll": "",
    "HcclAlltoAllV": "",
    "HcclSend": "does not wait for the receiver",
    "HcclRecv": "",
    "HcclBatchSendRecv": "",
    "HcclGroupStart": "",
    "HcclGroupEnd": "",
}

REFUSED = """
aclError aclmdlInitDump()
aclError aclmdlFinalizeDump()
aclError aclmdlSetDump(const char* path)
aclError aclrtMemExportToShareableHandle(void* memory, int type, uint64_t flags, uint64_t* handle!)
aclError aclrtMemImportFromShareableHandle(uint64_t handle, int32_t device, void** memory!)
aclError aclrtMemSetPidToShareableHandle(uint64_t handle, int32_t* processes, size_t count)
int32_t MsprofRegisterCallback(uint32_t module, void* callback)
int32_t MsprofReportAdditionalInfo(uint32_t always, const void* data, uint32_t length)
int32_t MsprofReportApi(uint32_t always, const void* api)
int32_t MsprofReportCompactInfo(uint32_t always, const void* data, uint32_t length)
int32_t rtDevBinaryRegister(const void* binary, void** handle!)
int32_t rtFunctionRegister(void* binary, const void* function, const char* name,
    const void* kernel, uint32_t mode)
int32_t rtGetC2cCtrlAddr(uint64_t* address!, uint32_t* length!)
int32_t rtKernelLaunch(const void* function, uint32_t blocks, void* arguments, uint32_t size,
    void* description, void* stream)
"""


# Of these, torch_npu ignores the status: their sentence goes to stderr, once.
IGNORED = {"aclmdlInitDump", "aclmdlSetDump"}


@dataclass(frozen=True)
class Refused:
    """One function that is there to be refused."""

    returns: str
    name: str
    parameters: tuple[tuple[str, str, bool], ...]  # type, name, whether it is a result


def refused() -> list[Refused]:
    found = []
    for line in filter(None, re.sub(r"\n +", " ", REFUSED).splitlines()):
        match = re.fullmatch(r"(\w+) (\w+)\((.*)\)", line)
        assert match is not None, line
        parameters = []
        for text in filter(None, match[3].split(", ")):
            kind, name = text.rsplit(" ", 1)
            parameters.append((kind, name.rstrip("!"), name.endswith("!")))
        found.append(Refused(match[1], match[2], tuple(parameters)))
    return found
