# SPDX-License-Identifier: Apache-2.0
"""The trace file of `openaclnn trace -o`: tracks, arguments, arrows."""

from __future__ import annotations

import itertools
import json
import re

from tests.trace.traces import LINE, NEEDS_COMPILER, built, command
from tests.trace_format import check_trace

pytestmark = NEEDS_COMPILER


def events_of(tmp_path, program):
    """The trace of a C++ program."""
    source, out = tmp_path / "program.cpp", tmp_path / "trace.json"
    source.write_text(program)
    done = command("trace", "-o", str(out), str(built(tmp_path, source)))
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def test_trace_file(two_streams, tmp_path):
    out, text = tmp_path / "trace.json", tmp_path / "trace.txt"
    done = command("trace", "-o", str(out), "--text", str(text), str(two_streams))
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads(out.read_text())
    check_trace(events, rounding=2)
    work = [e for e in events if e["ph"] == "X"]
    lines = [match for match in LINE.finditer(text.read_text())]
    assert [(e["name"], e["pid"]) for e in work] == [
        (match[6], {"host": 1, "stream": 2}[match[2]]) for match in lines
    ]
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in work)
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {
        (1, 1): "thread 1, the main thread",
        (2, 1): "stream 1",
        (2, 2): "stream 2",
    }
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert processes == ["two_streams: calls of acl, by thread", "two_streams: work of streams"]
    submits = {e["id"]: e for e in events if (e["ph"], e.get("cat")) == ("s", "submits")}
    arrives = {e["id"]: e for e in events if (e["ph"], e.get("cat")) == ("f", "submits")}
    assert submits.keys() == arrives.keys()
    assert len(submits) == sum(e["pid"] == 2 and e["name"].startswith("aclnn") for e in work)
    for number, begin in submits.items():
        assert begin["ts"] <= arrives[number]["ts"]
    for tid in (1, 2):  # a stream does one thing at a time
        spans = sorted(
            (e["ts"], e["ts"] + e["dur"]) for e in work if e["pid"] == 2 if e["tid"] == tid
        )
        assert all(a[1] <= b[0] + 0.0011 for a, b in itertools.pairwise(spans))


def test_arguments_are_fields(two_streams, tmp_path):
    """Perfetto finds fields by name and value; numbers are numbers."""
    out = tmp_path / "trace.json"
    assert command("trace", "-o", str(out), str(two_streams)).returncode == 0
    events = [e for e in json.loads(out.read_text()) if e["ph"] == "X"]

    def fields(name: str, track: int) -> dict:
        return next(e["args"] for e in events if (e["name"], e["pid"]) == (name, track))

    copy = fields("aclrtMemcpy", 1)
    assert list(copy) == ["dst", "destMax", "src", "count", "kind", "returned"]
    assert (copy["count"], copy["kind"], copy["returned"]) == (
        524288, "ACL_MEMCPY_HOST_TO_DEVICE", 0,
    )  # fmt: skip
    assert fields("aclnnLeakyRelu", 1)["stream"] == "stream 1"
    work = fields("aclnnLeakyRelu", 2)
    assert list(work) == ["self", "negativeSlope", "out"]
    assert work["self"].startswith("FLOAT [131072] at 0x")
    for e in events:
        assert all(isinstance(value, int | str) for value in e["args"].values())


def test_arrows_lead_from_a_record_to_what_waits_for_it(two_streams, tmp_path):
    out = tmp_path / "trace.json"
    assert command("trace", "-o", str(out), str(two_streams)).returncode == 0
    events = json.loads(out.read_text())
    calls = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
    ends = {ph: {e["id"]: calls[e["pid"], e["tid"], e["ts"]] for e in events
                 if e["ph"] == ph and e["cat"] == "waits for"} for ph in "sf"}  # fmt: skip
    assert ends["s"].keys() == ends["f"].keys()
    pairs = [(ends["s"][i], ends["f"][i]) for i in ends["s"]]
    assert [(a["name"], b["name"]) for a, b in pairs] == [
        ("aclrtRecordEvent", "aclrtStreamWaitEvent"),
        ("aclrtRecordEvent", "aclrtSynchronizeEvent"),
    ]
    for record, wait in pairs:
        assert record["args"]["event"] == wait["args"]["event"]
        assert record["ts"] < wait["ts"]


TASKS = """
#include "acl/acl.h"
void host(void*) {}
int main() {
  aclrtSetDevice(0);
  aclrtNotify notify = nullptr;
  void* p = nullptr;
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  aclrtCreateNotify(&notify, 0);
  aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(p, 64, 0, 64);
  aclrtReduceAsync(p, p, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, nullptr);
  aclrtLaunchHostFunc(stream, host, nullptr);
  aclrtValueWrite(p, 1, 0, stream);
  aclrtRecordNotify(notify, stream);
  aclrtWaitAndResetNotify(notify, stream, 0);
  aclrtSynchronizeStream(stream);
  aclrtDestroyNotify(notify);
  aclrtFree(p);
  aclrtDestroyStream(stream);
  return aclrtResetDevice(0);
}
"""


def test_tasks_beyond_copies_and_operators(tmp_path):
    events = events_of(tmp_path, TASKS)
    work = {e["name"]: e["args"] for e in events if e["ph"] == "X" and e["pid"] == 2}
    names = ("aclrtReduceAsync", "aclrtLaunchHostFunc", "aclrtValueWrite")
    assert {*names, "aclrtWaitAndResetNotify"} <= set(work)
    assert work["aclrtReduceAsync"]["kind"] == "ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM"
    arrows = [e["cat"] for e in events if e["ph"] == "s"]
    assert arrows.count("submits") == 4
    assert arrows.count("waits for") == 1


NEVER_TOLD = """
#include <pthread.h>
#include "acl/acl.h"
int main() {
  aclrtStream stream = nullptr;
  void* x = nullptr;
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  if (aclrtMalloc(&x, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 2;
  char y[64] = {};
  if (aclrtMemcpyAsync(x, 64, y, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream) != 0) return 3;
  if (aclrtMemcpyAsync(x, 64, y, 48, ACL_MEMCPY_HOST_TO_DEVICE, stream) != 0) return 4;
  if (aclrtSubscribeReport(pthread_self(), stream) != 0) return 5;
  const auto nothing = [](void*) {};
  if (aclrtLaunchCallback(nothing, &y[1], ACL_CALLBACK_NO_BLOCK, stream) != 0) return 6;
  if (aclrtProcessReport(1000) != 0) return 7;
  if (aclrtLaunchCallback(nothing, &y[2], ACL_CALLBACK_BLOCK, stream) != 0) return 8;
  if (aclrtProcessReport(1000) != 0) return 9;
  if (aclrtSynchronizeStream(stream) != 0) return 10;
  return 0;
}
"""


def test_work_belongs_to_its_own_call(tmp_path):
    """Callbacks that do not block, and empty copies, are not work of the stream."""
    source = tmp_path / "never_reported.cpp"
    source.write_text(NEVER_TOLD)
    out = tmp_path / "trace.json"
    done = command("trace", "-o", str(out), str(built(tmp_path, source)))
    assert done.returncode == 0, done.stderr
    work = [match[5] for match in LINE.finditer(done.stderr) if match[2] == "stream"]
    assert [re.search(r"count: \d+|blockType: \w+", w)[0] for w in work] == [
        "count: 48",
        "blockType: ACL_CALLBACK_BLOCK",
    ]
    events = json.loads(out.read_text())
    ids = {ph: {e["id"] for e in events if e["ph"] == ph} for ph in "sf"}
    assert len(ids["s"]) == 2
    assert ids["s"] == ids["f"]


REPLAYED = """
#include "acl/acl.h"
int main() {
  aclrtStream stream = nullptr;
  void* x = nullptr;
  aclmdlRI graph = nullptr;
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  if (aclrtMalloc(&x, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 2;
  if (aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) != 0) return 3;
  if (aclrtMemsetAsync(x, 64, 1, 16, stream) != 0) return 4;
  if (aclrtMemsetAsync(x, 64, 2, 32, stream) != 0) return 5;
  if (aclmdlRICaptureEnd(stream, &graph) != 0) return 6;
  for (int i = 0; i < 2; ++i) {
    if (aclmdlRIExecuteAsync(graph, stream) != 0) return 7;
    if (aclrtMemsetAsync(x, 64, 3, 48, stream) != 0) return 8;
  }
  if (aclrtSynchronizeStream(stream) != 0) return 9;
  return aclmdlRIDestroy(graph);
}
"""


def test_a_replay_has_the_arguments_of_the_capture(tmp_path):
    events = events_of(tmp_path, REPLAYED)
    work = sorted((e for e in events if e["ph"] == "X" and e["pid"] == 2), key=lambda e: e["ts"])
    assert [e["args"]["count"] for e in work] == [16, 32, 48] * 2
    assert check_trace(events, rounding=2) == 4  # the first work of each replay, and each fill
    ends = {e["ts"] for e in events if e["ph"] == "f"}
    assert [e["args"]["count"] for e in work if e["ts"] in ends] == [16, 48] * 2
