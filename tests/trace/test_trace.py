# SPDX-License-Identifier: Apache-2.0
"""openaclnn trace: every function has a traced form; text and trace file show what was done."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.abi.abi import LIB, NAMES
from tests.support import once

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^ *(\d+\.\d{3}) µs  (host|stream) +(\d+) +(\d+\.\d{3}) µs  ((\w+).*)$", re.M)
ROW = re.compile(r"^(host|stream \d+) +(\w+) +(\d+) +\d+\.\d\d +\d+ %(?: +\d+\.\d\d){2}$", re.M)

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    main = "import sys; from openaclnn.commands.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", main, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def built(folder: Path, source: Path) -> Path:
    def build(made: Path) -> None:
        done = command("cc", "-std=c++17", str(source), "-o", str(made), "-pthread")
        assert done.returncode == 0, done.stderr

    return once(folder / source.stem, build)


@pytest.fixture(scope="module")
def leaky_relu(programs) -> Path:
    return built(programs, ROOT / "examples" / "leaky_relu.cpp")


@pytest.fixture(scope="module")
def two_streams(programs) -> Path:
    return built(programs, ROOT / "examples" / "two_streams.cpp")


def symbols(library: Path) -> list[str]:
    words = ["nm", "-D", "--defined-only", "--format=posix", str(library)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[0] for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_is_traced(name):
    traced = LIB / "trace" / f"lib{name}.so"
    assert symbols(traced) == symbols(LIB / f"lib{name}.so")
    forms = set(symbols(LIB / "trace" / "libopenaclnn_trace.so"))
    variadic = {"aclAppLog"}  # its arguments cannot be handed on
    assert {f"openaclnn_trace_{s}" for s in symbols(traced) if s not in variadic} <= forms


def test_text(leaky_relu):
    done = command("trace", str(leaky_relu))
    assert done.returncode == 0
    assert done.stdout.startswith("result[0] = -0.3\n")
    assert done.stderr.startswith(LINE.search(done.stderr)[0])
    calls = [match[5] for match in LINE.finditer(done.stderr)]
    assert calls[0] == "aclInit(configPath: NULL) = 0"
    assert calls[-1] == "aclFinalize() = 0"
    shown = done.stderr
    assert re.search(r"aclrtMalloc\(devPtr: &0x\w+, size: 32, policy: ACL_MEM_MALLOC_HUGE_F", shown)
    assert re.search(
        r"destMax: 32, src: 0x\w+, count: 32, kind: ACL_MEMCPY_DEVICE_TO_HOST\)", shown
    )
    assert "viewDims: [4, 2], viewDimsNum: 2, dataType: ACL_FLOAT, stride: [2, 1]" in shown
    work = r"self: FLOAT \[4, 2\] at 0x\w+, negativeSlope: FLOAT 0.1, out: FLOAT \[4, 2\] at 0x\w+"
    assert re.search(rf"GetWorkspaceSize\({work}, workspaceSize: &0, executor: &0x\w+\) = 0", shown)
    assert re.search(rf"stream  1 +[\d.]+ µs  aclnnLeakyRelu\({work}\)$", shown, re.M)
    rows = {(track, name): int(count) for track, name, count in ROW.findall(shown)}
    assert rows["stream 1", "aclnnLeakyRelu"] == rows["host", "aclnnLeakyRelu"] == 1
    assert rows["host", "aclrtMemcpy"] == 3
    names = [match[6] for match in LINE.finditer(shown) if match[2] == "host"]
    assert {name: names.count(name) for name in names} == {
        name: count for (track, name), count in rows.items() if track == "host"
    }


def test_the_page_shows_this_program(leaky_relu):
    page = (ROOT / "docs" / "howto" / "trace.md").read_text().partition("## Python programs")[0]
    shown = command("trace", str(leaky_relu)).stderr

    def normal(text: str) -> list[str]:
        return [re.sub(r"0x\w+", "0x", match[5]) for match in LINE.finditer(text)]

    assert normal(page) == normal(shown)


def test_trace_file(two_streams, tmp_path):
    out, text = tmp_path / "trace.json", tmp_path / "trace.txt"
    done = command("trace", "-o", str(out), "--text", str(text), str(two_streams))
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads(out.read_text())
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
    source = tmp_path / "tasks.cpp"
    source.write_text(TASKS)
    out = tmp_path / "trace.json"
    done = command("trace", "-o", str(out), str(built(tmp_path, source)))
    assert done.returncode == 0, done.stderr
    events = json.loads(out.read_text())
    work = {e["name"]: e["args"] for e in events if e["ph"] == "X" and e["pid"] == 2}
    names = ("aclrtReduceAsync", "aclrtLaunchHostFunc", "aclrtValueWrite")
    assert {*names, "aclrtWaitAndResetNotify"} <= set(work)
    assert work["aclrtReduceAsync"]["kind"] == "ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM"
    arrows = [e["cat"] for e in events if e["ph"] == "s"]
    assert arrows.count("submits") == 4
    assert arrows.count("waits for") == 1


def test_the_table_begins_with_what_took_longest(two_streams):
    shown = command("trace", str(two_streams)).stderr
    rows = [row.split() for row in shown.splitlines() if ROW.match(row)]
    tracks = [row[1] if row[0] == "stream" else "host" for row in rows]
    assert tracks == sorted(tracks)  # "1", "2", "host"
    for _, same in itertools.groupby(rows, lambda row: row[: 2 if row[0] == "stream" else 1]):
        same = list(same)
        totals = [float(row[-5]) for row in same]
        assert totals == sorted(totals, reverse=True)
        assert abs(sum(int(row[-4]) for row in same) - 100) <= len(same) / 2  # the shares


REFUSED = """
#include <cstring>
#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"
int main() {
  uint64_t size = 1;
  aclOpExecutor* executor = nullptr;
  if (aclrtSetDevice(7) != 107001) return 1;
  if (aclnnLeakyReluGetWorkspaceSize(nullptr, nullptr, nullptr, &size, &executor) != 161001)
    return 2;
  if (aclnnLeakyRelu(nullptr, 0, nullptr, nullptr) != 161001) return 3;
  if (aclrtStreamQuery(nullptr, nullptr) != 100000) return 4;
  if (aclCreateScalar(nullptr, ACL_FLOAT) != nullptr) return 5;
  const char* pending = aclGetRecentErrMsg();  // the program still gets them
  return std::strstr(pending, "value must not be NULL") != nullptr ? 9 : 6;
}
"""


def test_refused_calls_and_the_exit_status(tmp_path):
    source = tmp_path / "refused.cpp"
    source.write_text(REFUSED)
    done = command("trace", "-o", str(tmp_path / "trace.json"), str(built(tmp_path, source)))
    assert done.returncode == 9, done.stderr
    calls = [match[5] for match in LINE.finditer(done.stderr)][:-1]
    assert calls == [
        "aclrtSetDevice(deviceId: 7) = 107001: aclrtSetDevice: deviceId must be in [0, 1), "
        "but got 7",
        "aclnnLeakyReluGetWorkspaceSize(self: NULL, negativeSlope: NULL, out: NULL, "
        "workspaceSize: not written, executor: not written) = 161001: "
        "aclnnLeakyRelu: self must not be NULL",
        "aclnnLeakyRelu(workspace: NULL, workspaceSize: 0, executor: NULL, stream: NULL) = 161001: "
        "aclnnLeakyRelu: executor must not be NULL",
        "aclrtStreamQuery(stream: NULL, status: not written) = 100000: "
        "aclrtStreamQuery: status must not be NULL",
        "aclCreateScalar(value: NULL, dataType: ACL_FLOAT) = NULL: "
        "aclCreateScalar: value must not be NULL",
    ]
    assert not [e for e in json.loads((tmp_path / "trace.json").read_text()) if e["ph"] in "sf"]


def test_with_check_mode(leaky_relu):
    done = command("trace", str(leaky_relu), OPENACLNN_CHECK="1")
    assert done.returncode == 0
    assert "openaclnn check" not in done.stderr


def test_programs_that_make_no_call(tmp_path):
    out = tmp_path / "trace.json"
    done = command("trace", "-o", str(out), sys.executable, "-c", "raise SystemExit(3)")
    sentence = f"openaclnn trace: {sys.executable} made no call of acl\n"
    assert (done.returncode, done.stderr, out.exists()) == (3, sentence, False)
    assert command("trace", str(tmp_path / "missing")).returncode == 127
    done = command("trace", sys.executable, "-c", "raise SystemExit(127)")  # as the loader
    assert done.stderr == sentence.replace(
        "\n", "; with operators that ATen computes, use  openaclnn trace --aten\n"
    )


FORKS = """
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <thread>
#include "acl/acl.h"
int main() {
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 1;
  std::atomic<bool> done = false;
  std::thread other([&] {  // holds the locks of the trace most of the time
    int32_t device = 0;
    while (!done) (void)aclrtGetDevice(&device);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      uint32_t count = 0;
      std::exit(aclrtGetDeviceCount(&count));
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) return 2;
  }
  done = true;
  other.join();
  return aclFinalize();
}
"""


def test_forked_children_leave_the_files_alone(tmp_path):
    source = tmp_path / "forks.cpp"
    source.write_text(FORKS)
    out, text = tmp_path / "trace.json", tmp_path / "trace.txt"
    program = built(tmp_path, source)
    done = command("trace", "-o", str(out), "--text", str(text), str(program))
    assert (done.returncode, done.stderr) == (0, "")
    events = [e for e in json.loads(out.read_text()) if e["ph"] == "X"]
    names = [match[6] for match in LINE.finditer(text.read_text())]
    assert [e["name"] for e in events] == names
    assert names.count("aclFinalize") == names.count("aclInit") == 1
    assert "aclrtGetDeviceCount" not in names
    assert text.read_text().count("total µs") == 1


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


def test_files_that_cannot_be_written(leaky_relu, tmp_path):
    for option in ("-o", "--text"):
        done = command("trace", option, str(path := tmp_path / "no" / "t"), str(leaky_relu))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"openaclnn trace: {option} {path} cannot be written")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["-o", "--text"])
def test_a_trace_that_is_lost(leaky_relu, option):
    done = command("trace", option, "/dev/full", str(leaky_relu))
    assert done.returncode == 74
    sentence = "openaclnn trace: /dev/full could not be written: No space left on device"
    assert sentence in done.stderr.splitlines()


def test_help_names_the_options():
    shown = command("trace", "--help").stdout
    for word in ("--output", "--text", "perfetto", "openaclnn docs trace"):
        assert word in shown
    missing = command("trace")
    assert missing.returncode == 2
    assert "the program to run is missing" in missing.stderr
