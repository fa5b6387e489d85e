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

VERSION = "2.13.0"  # the tests use it
OLDEST = "2.7.1"  # docs/reference/npu_coverage.md has figures from there to VERSION

# The libraries that the wheel names, without their lib and .so.
NEEDED = ("hccl", "ascendcl", "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel")
# The libraries that the wheel loads when it first needs one of their functions.
WANTED = ("hcomm",)
# The same, but only if lib64 under ASCEND_HOME_PATH has it.
WANTED_IN_HOME = ("mspti",)

WORKING = {
    "aclInit": "as for C programs, and says once that no NPU computes here",
    "aclopCompileAndExecute": "as for C programs; a failure is that of the stream",
    "aclopCompileAndExecuteV2": "the same",
    "aclrtSetStreamFailureMode": "accepts both modes; a stream goes on after a failure",
    "MsprofGetHashId": "the FNV-1a hash",
    "MsprofSysCycleTime": "the steady clock in nanoseconds",
}

REFUSED = """
aclError aclmdlInitDump()
aclError aclmdlFinalizeDump()
aclError aclmdlSetDump(const char* path)
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
    """A function that always refuses."""

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
