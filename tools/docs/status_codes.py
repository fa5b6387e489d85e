# SPDX-License-Identifier: Apache-2.0
"""The pages of the status codes that calls return: names and numbers are those of the headers.

python tools/docs/status_codes.py > docs/reference/status_codes.md
python tools/docs/status_codes.py zh-CN > docs/reference/status_codes.zh-CN.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openaclnn.rows.refused import GROUPS

ROOT = Path(__file__).resolve().parents[2]

# By name without ACL_ERROR_ or ACLNN_ERR_: what happened, and what to do; in Chinese too.
CAUSES = {
    "PARAM_NULLPTR": ("a required argument is NULL", "必需的参数为 NULL"),
    "PARAM_INVALID": (
        "an argument is refused: dtype, shape, memory, a handle that is not alive",
        "参数校验失败：数据类型、形状、内存有误，或句柄已失效；按报错信息修改",
    ),
    "RUNTIME_ERROR": (
        "phase 2: the stream is not alive, or no device is set",
        "第二段接口：stream 已失效，或没有设置设备",
    ),
    "INNER": (
        "out of memory; too many objects; or PyTorch is missing or another than at the build: "
        "`openaclnn home --aten`",
        "内存不足；对象过多；PyTorch 没有安装，或与编译时不同：执行 `openaclnn home --aten`",
    ),
    "INNER_FIND_KERNEL_ERROR": (
        "the product lacks the operator; the sentence names those with it",
        "当前产品（`OPENACLNN_PRODUCT`）不支持该算子；报错信息列出支持它的产品",
    ),
    "INNER_CREATE_EXECUTOR": (
        "2^20 executors are alive; run or destroy them",
        "未释放的 executor 达到 2^20 个；请执行或销毁它们",
    ),
    "INNER_NULLPTR": ("a call on an executor got NULL", "操作 executor 的接口收到 NULL"),
    "INVALID_PARAM": (
        "an argument is NULL, or an enumerator is out of range",
        "参数为 NULL，或枚举值超出范围",
    ),
    "REPEAT_INITIALIZE": (
        "aclInit was called already; programs may ignore it",
        "重复调用 aclInit；程序可以忽略",
    ),
    "INVALID_FILE": ("aclInit cannot read its file", "aclInit 无法读取配置文件"),
    "PARSE_FILE": ("the file of aclInit is not JSON", "aclInit 的配置文件不是 JSON"),
    "OP_NOT_FOUND": (
        "aclopCompileAndExecute: there is no such type of operator",
        "aclopCompileAndExecute：没有这种算子类型",
    ),
    "INVALID_MODEL_ID": (
        "no model has this number; .om models cannot be loaded here",
        "没有这个编号的模型；本库不能加载 .om 模型",
    ),
    "REPEAT_SUBSCRIBE": (
        "the stream has a thread for callbacks already",
        "stream 已有处理回调的线程",
    ),
    "STREAM_NOT_SUBSCRIBE": ("no thread is subscribed to the stream", "没有线程订阅该 stream"),
    "THREAD_NOT_SUBSCRIBE": ("the thread is not subscribed", "该线程没有订阅"),
    "WAIT_CALLBACK_TIMEOUT": ("no callback arrived in time", "等待回调超时"),
    "REPEAT_FINALIZE": (
        "aclFinalize without aclInit, or called already",
        "没有调用 aclInit 就调用 aclFinalize，或重复调用",
    ),
    "PROF_ALREADY_RUN": ("profiling runs already", "性能分析已在运行"),
    "PROF_NOT_RUN": ("profiling was not initialised or started", "性能分析没有初始化，或没有启动"),
    "DUMP_NOT_RUN": ("no dump was started", "没有启动 dump"),
    "RT_PARAM_INVALID": ("a value is refused", "参数值被拒绝；按报错信息修改"),
    "RT_INVALID_DEVICEID": (
        "there is no such device, or it is not the current one",
        "设备不存在，或不是当前设备；设备数由 `OPENACLNN_DEVICES` 决定",
    ),
    "RT_CONTEXT_NULL": (
        "no device is set; call aclrtSetDevice in this thread",
        "没有设置设备；在本线程中调用 aclrtSetDevice",
    ),
    "RT_STREAM_CONTEXT": (
        "the stream belongs to another context, or to one that is gone",
        "stream 属于另一个 context，或其 context 已销毁",
    ),
    "RT_STREAM_MODEL": (
        "the stream is not bound to the model, or the model is built already",
        "stream 没有绑定到该模型，或模型已经构建",
    ),
    "RT_LABEL_CONTEXT": (
        "the label was not set on a stream of the model",
        "没有在模型的 stream 上设置该 label",
    ),
    "RT_EVENT_TIMESTAMP_INVALID": ("an event has no time", "event 没有时间戳"),
    "RT_EVENT_TIMESTAMP_REVERSAL": (
        "the end was reached before the start",
        "终点 event 早于起点 event",
    ),
    "RT_STREAM_SUBSCRIBE": (
        "a thread is subscribed to the stream for host functions already",
        "stream 已有处理主机函数（host function）的线程",
    ),
    "RT_THREAD_SUBSCRIBE": (
        "the thread is not subscribed for host functions",
        "该线程没有订阅主机函数",
    ),
    "RT_INVALID_HANDLE": ("the handle was destroyed, or never created", "句柄已销毁，或从未创建"),
    "RT_WAIT_TIMEOUT": ("a wait for an event took too long", "等待 event 超时"),
    "RT_TASK_TIMEOUT": ("a wait for a notification took too long", "等待 notify 超时"),
    "RT_SYSPARAMOPT_NOT_SET": ("the option was never set", "从未设置该选项"),
    "RT_STREAM_ABORT": (
        "the work of the stream was dropped while the call waited for it",
        "等待期间，stream 中的任务被丢弃",
    ),
    "RT_CAPTURE_DEPENDENCY": (
        "capture: the event is of work outside; use ACL_EVENT_EXTERNAL",
        "捕获：event 记录的是捕获之外的任务；请使用 ACL_EVENT_EXTERNAL",
    ),
    "RT_STREAM_UNJOINED": (
        "capture: the origin does not wait for a stream that joined",
        "捕获：起始 stream 没有等待某个加入捕获的 stream",
    ),
    "RT_MODEL_CAPTURED": ("the graph is still being captured", "图仍在捕获中"),
    "RT_STREAM_CAPTURED": ("the stream is being captured already", "stream 已在捕获中"),
    "RT_EVENT_CAPTURED": (
        "the event marks work of a capture; use another",
        "event 记录的是捕获中的任务；请换一个",
    ),
    "RT_STREAM_NOT_CAPTURED": ("the stream is not being captured", "stream 不在捕获中"),
    "RT_CAPTURE_MODE_NOT_SUPPORT": ("a capture forbids this call", "捕获期间不允许这一调用"),
    "RT_STREAM_CAPTURE_IMPLICIT": (
        "the default stream cannot take part in a capture",
        "默认 stream 不能参与捕获",
    ),
    "STREAM_CAPTURE_CONFLICT": ("the event is of another capture", "event 属于另一次捕获"),
    "STREAM_TASK_GROUP_STATUS": (
        "a task group is open, or is not, or has another number of tasks",
        "任务组已打开或没有打开，或任务数不符",
    ),
    "STREAM_TASK_GROUP_INTR": (
        "another stream of the capture has an open task group",
        "同一捕获的另一个 stream 有打开的任务组",
    ),
    "RT_STREAM_CAPTURE_UNMATCHED": (
        "the capture began on another stream; end it there",
        "捕获是在另一个 stream 上开始的；请在那里结束",
    ),
    "RT_MODEL_RUNNING": ("the graph is destroyed while it runs", "图正在执行时被销毁"),
    "RT_INSUFFICIENT_INPUT_ARRAY": (
        "the array has less room than there are streams or tasks",
        "数组小于 stream 数或任务数",
    ),
    "RT_MODEL_UPDATE_FAILED": ("the graph is updated while it runs", "图正在执行时被更新"),
    "RT_STREAM_CAPTURE_WRONG_THREAD": (
        "another thread began the capture; end it there",
        "捕获是由另一个线程开始的；请在那里结束",
    ),
    "RT_CAPTURE_MODE_BLOCK_ASYNC": (
        "a copy of a graph needs memory of acl, or aclrtHostRegister",
        "图中的拷贝要求使用 acl 分配的内存，或经 aclrtHostRegister 注册的内存",
    ),
    "RT_SUB_ACLGRAPH_IS_CAPTURING": (
        "a model of a condition is still being captured",
        "条件分支的模型仍在捕获中",
    ),
    "BAD_ALLOC": ("out of memory of the host", "主机内存不足"),
    "API_NOT_SUPPORT": (
        "a CPU does not have this; the sentence says what to do instead",
        "CPU 没有这一功能；报错信息给出替代办法",
    ),
    "FEATURE_UNSUPPORTED": (
        "not in this state; the sentence says which call is missing",
        "当前状态下不能调用；报错信息指出缺少哪个调用",
    ),
    "RT_FEATURE_NOT_SUPPORT": (
        "this value of an argument does not exist here",
        "不支持参数的这个取值",
    ),
    "RT_MEMORY_ALLOCATION": (
        "out of device memory (OPENACLNN_DEVICE_MEMORY), or addresses in use",
        "设备内存不足（`OPENACLNN_DEVICE_MEMORY`），或地址已被占用",
    ),
    "RT_MEMORY_FREE": ("the system refuses to unmap memory", "系统拒绝取消内存映射"),
    "RT_NO_STREAM_RESOURCE": (
        "no threads, streams, contexts or events are left",
        "线程、stream、context 或 event 已用尽",
    ),
    "RT_NO_NOTIFY_RESOURCE": ("no notifications are left", "notify 已用尽"),
    "RT_QUEUE_EMPTY": ("the channel or queue is empty", "通道或队列为空"),
    "RT_QUEUE_FULL": ("the channel or queue is full", "通道或队列已满"),
    "RT_FEATURE_NOT_SUPPORT_UPDATE_OP": (
        "an update of a task group submitted another operator",
        "更新任务组时提交了另一个算子",
    ),
    "FAILURE": ("the channel or queue was stopped or destroyed", "通道或队列已停止或已销毁"),
    "PROFILING_FAILURE": (
        "the folder of a profile cannot be made or written",
        "无法创建或写入性能分析的目录",
    ),
    "RT_INTERNAL_ERROR": ("a collective failed", "集合通信失败"),
    "RT_TASK_TYPE_NOT_SUPPORT": ("a task group holds operators only", "任务组中只能有算子"),
    "RT_REPORT_TIMEOUT": ("no host function arrived in time", "等待主机函数超时"),
    "RT_STREAM_SYNC_TIMEOUT": (
        "a synchronisation with a stream or device took too long",
        "同步 stream 或设备超时",
    ),
    "RT_EVENT_SYNC_TIMEOUT": ("a synchronisation with an event took too long", "同步 event 超时"),
    "RT_STREAM_CAPTURE_INVALIDATED": (
        "an earlier call made the capture invalid",
        "捕获已因之前的调用失效",
    ),
    "HOST_MEMORY_ALREADY_REGISTERED": ("the memory is registered already", "内存已注册"),
    "HOST_MEMORY_NOT_REGISTERED": ("the memory is not registered", "内存没有注册"),
}
NAME = re.compile(r"\b(?:ACL_ERROR|ACLNN_ERR)_\w+")
ENGLISH = (
    """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/docs/status_codes.py -->
# Status codes

Numbers and names are those of CANN. Each comes with a sentence that says what is wrong and what \
to do: `aclGetRecentErrMsg()` in C, the text of `AclnnError` in Python.

`aclGetRecentErrMsg()` returns the messages of this thread since it was last called, at most four, \
the newest first, and clears them. Each is a line that begins with `[PID:…]`, the time and CANN's \
error code; the sentence follows.

| code | name | cause |
| --- | --- | --- |
""",
    """
Operators return those of `ACLNN_ERR`, the [runtime](runtime.md) the others. Collectives (`Hccl*`) \
have their own, from 0 (`HCCL_SUCCESS`) to 25.
""",
)
CHINESE = (
    """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/docs/status_codes.py -->
# 状态码

0 表示成功；其余状态码的数值和名称与 CANN 相同。出错时还有一句报错信息，说明错在哪里、应当如何\
处理：C 中由 `aclGetRecentErrMsg()` 返回，Python 中是 `AclnnError` 的文本。

`aclGetRecentErrMsg()` 返回本线程自上次调用以来的报错信息，最多四条，\
新的在前，返回后清空。每条一行，以 `[PID:…]`、时间和 CANN 的错误码开头，后面是说明。

| 状态码 | 名称 | 原因和处理办法 |
| --- | --- | --- |
""",
    """
以 `ACLNN_ERR` 开头的由算子返回，其余由[运行时](runtime.md)（英文）返回。集合通信（`Hccl*`）\
另有自己的返回码，从 0（`HCCL_SUCCESS`）到 25。
""",
)


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
    written = {name for p in files for name in NAME.findall(p.read_text(encoding="utf-8"))}
    return written | {group.status for group in GROUPS}


def short(name: str) -> str:
    return re.sub(r"^(ACL_ERROR|ACLNN_ERR)_", "", name)


def page(mark: str = "") -> str:
    """In English, or in Chinese for zh-CN."""
    head, foot = CHINESE if mark else ENGLISH
    codes = values()
    rows = sorted((codes[name], name) for name in returned() if name in codes)
    order = sorted(rows, key=lambda row: (not row[1].startswith("ACLNN"), row))
    lines = (f"| {code} | `{name}` | {CAUSES[short(name)][bool(mark)]} |\n" for code, name in order)
    return head + "".join(lines) + foot


if __name__ == "__main__":
    print(page(*sys.argv[1:]), end="")
