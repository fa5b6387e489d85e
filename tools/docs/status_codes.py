# SPDX-License-Identifier: Apache-2.0
"""The page of the status codes that calls return: names and numbers are those of the headers.

python tools/docs/status_codes.py > docs/reference/status_codes.md
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# By name without ACL_ERROR_ or ACLNN_ERR_: what happened, and what to do.
CAUSES = {
    "PARAM_NULLPTR": "a required argument is NULL",
    "PARAM_INVALID": "an argument is refused: dtype, shape, memory, a handle that is not alive",
    "RUNTIME_ERROR": "phase 2: the stream is not alive, or no device is set",
    "INNER": "out of memory, too many objects, or ATen's library is missing",
    "INNER_FIND_KERNEL_ERROR": "the product lacks the operator; the sentence names those with it",
    "INNER_CREATE_EXECUTOR": "2^20 executors are alive; run or destroy them",
    "INNER_NULLPTR": "a call on an executor got NULL",
    "INVALID_PARAM": "an argument is NULL, or an enumerator is out of range",
    "REPEAT_INITIALIZE": "aclInit was called already; programs may ignore it",
    "INVALID_FILE": "aclInit cannot read its file",
    "PARSE_FILE": "the file of aclInit is not JSON",
    "OP_NOT_FOUND": "aclopCompileAndExecute: there is no such type of operator",
    "REPEAT_SUBSCRIBE": "the stream has a thread for callbacks already",
    "STREAM_NOT_SUBSCRIBE": "no thread is subscribed to the stream",
    "THREAD_NOT_SUBSCRIBE": "the thread is not subscribed",
    "WAIT_CALLBACK_TIMEOUT": "no callback arrived in time",
    "REPEAT_FINALIZE": "aclFinalize without aclInit, or called already",
    "PROF_ALREADY_RUN": "profiling runs already",
    "PROF_NOT_RUN": "profiling was not initialised or started",
    "DUMP_NOT_RUN": "no dump was started",
    "RT_PARAM_INVALID": "a value is refused",
    "RT_INVALID_DEVICEID": "there is no such device, or it is not the current one",
    "RT_CONTEXT_NULL": "no device is set; call aclrtSetDevice in this thread",
    "RT_STREAM_CONTEXT": "the stream belongs to another context, or to one that is gone",
    "RT_STREAM_MODEL": "the stream is not bound to the model, or the model is built already",
    "RT_LABEL_CONTEXT": "the label was not set on a stream of the model",
    "RT_EVENT_TIMESTAMP_INVALID": "an event has no time",
    "RT_EVENT_TIMESTAMP_REVERSAL": "the end was reached before the start",
    "RT_STREAM_SUBSCRIBE": "a thread is subscribed to the stream for host functions already",
    "RT_THREAD_SUBSCRIBE": "the thread is not subscribed for host functions",
    "RT_INVALID_HANDLE": "the handle was destroyed, or never created",
    "RT_WAIT_TIMEOUT": "a wait for an event took too long",
    "RT_TASK_TIMEOUT": "a wait for a notification took too long",
    "RT_SYSPARAMOPT_NOT_SET": "the option was never set",
    "RT_STREAM_ABORT": "the work of the stream was dropped while the call waited for it",
    "RT_CAPTURE_DEPENDENCY": "capture: the event is of work outside; use ACL_EVENT_EXTERNAL",
    "RT_STREAM_UNJOINED": "capture: the origin does not wait for a stream that joined",
    "RT_MODEL_CAPTURED": "the graph is still being captured",
    "RT_STREAM_CAPTURED": "the stream is being captured already",
    "RT_EVENT_CAPTURED": "the event marks work of a capture; use another",
    "RT_STREAM_NOT_CAPTURED": "the stream is not being captured",
    "RT_CAPTURE_MODE_NOT_SUPPORT": "a capture forbids this call",
    "RT_STREAM_CAPTURE_IMPLICIT": "the default stream cannot take part in a capture",
    "STREAM_CAPTURE_CONFLICT": "the event is of another capture",
    "STREAM_TASK_GROUP_STATUS": "a task group is open, or is not, or has another number of tasks",
    "STREAM_TASK_GROUP_INTR": "another stream of the capture has an open task group",
    "RT_STREAM_CAPTURE_UNMATCHED": "the capture began on another stream; end it there",
    "RT_MODEL_RUNNING": "the graph is destroyed while it runs",
    "RT_INSUFFICIENT_INPUT_ARRAY": "the array has less room than there are streams or tasks",
    "RT_MODEL_UPDATE_FAILED": "the graph is updated while it runs",
    "RT_STREAM_CAPTURE_WRONG_THREAD": "another thread began the capture; end it there",
    "RT_CAPTURE_MODE_BLOCK_ASYNC": "a copy of a graph needs memory of acl, or aclrtHostRegister",
    "RT_SUB_ACLGRAPH_IS_CAPTURING": "a model of a condition is still being captured",
    "BAD_ALLOC": "out of memory of the host",
    "API_NOT_SUPPORT": "a CPU does not have this; the sentence says what to do instead",
    "FEATURE_UNSUPPORTED": "not in this state; the sentence says which call is missing",
    "RT_FEATURE_NOT_SUPPORT": "this value of an argument does not exist here",
    "RT_MEMORY_ALLOCATION": "out of device memory (OPENACLNN_DEVICE_MEMORY), or addresses in use",
    "RT_MEMORY_FREE": "the system refuses to unmap memory",
    "RT_NO_STREAM_RESOURCE": "no threads, streams, contexts or events are left",
    "RT_NO_NOTIFY_RESOURCE": "no notifications are left",
    "RT_QUEUE_EMPTY": "the channel or queue is empty",
    "RT_QUEUE_FULL": "the channel or queue is full",
    "RT_FEATURE_NOT_SUPPORT_UPDATE_OP": "an update of a task group submitted another operator",
    "FAILURE": "the channel or queue was stopped or destroyed",
    "PROFILING_FAILURE": "the folder of a profile cannot be made or written",
    "RT_INTERNAL_ERROR": "a collective failed",
    "RT_TASK_TYPE_NOT_SUPPORT": "a task group holds operators only",
    "RT_REPORT_TIMEOUT": "no host function arrived in time",
    "RT_STREAM_SYNC_TIMEOUT": "a synchronisation with a stream or device took too long",
    "RT_EVENT_SYNC_TIMEOUT": "a synchronisation with an event took too long",
    "RT_STREAM_CAPTURE_INVALIDATED": "an earlier call made the capture invalid",
    "HOST_MEMORY_ALREADY_REGISTERED": "the memory is registered already",
    "HOST_MEMORY_NOT_REGISTERED": "the memory is not registered",
}
NAME = re.compile(r"\b(?:ACL_ERROR|ACLNN_ERR)_\w+")
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/docs/status_codes.py -->
# Status codes

Numbers and names are those of CANN. Each comes with a sentence that says what is wrong and what \
to do: `aclGetRecentErrMsg()` in C, the text of `AclnnError` in Python.

| code | name | cause |
| --- | --- | --- |
"""
FOOT = """
Operators return those of `ACLNN_ERR`, the [runtime](runtime.md) the others. Collectives (`Hccl*`) \
have their own, from 0 (`HCCL_SUCCESS`) to 25.
"""


def values() -> dict[str, int]:
    """Every code of the headers."""
    found: dict[str, int] = {}
    for header in sorted((ROOT / "include").rglob("*.h")):
        text = header.read_text(encoding="utf-8")
        for name, code in re.findall(rf"({NAME.pattern})\s*=?\s*(\d{{6}})\b", text):
            found[name] = int(code)
    return found


def returned() -> set[str]:
    """The codes that the library names, so returns."""
    files = (p for p in (ROOT / "core").rglob("*") if p.suffix in (".cpp", ".h"))
    return {name for p in files for name in NAME.findall(p.read_text(encoding="utf-8"))}


def short(name: str) -> str:
    return re.sub(r"^(ACL_ERROR|ACLNN_ERR)_", "", name)


def page() -> str:
    codes = values()
    rows = sorted((codes[name], name) for name in returned() if name in codes)
    order = sorted(rows, key=lambda row: (not row[1].startswith("ACLNN"), row))
    lines = (f"| {code} | `{name}` | {CAUSES[short(name)]} |\n" for code, name in order)
    return HEAD + "".join(lines) + FOOT


if __name__ == "__main__":
    print(page(), end="")
