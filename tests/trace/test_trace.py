# SPDX-License-Identifier: Apache-2.0
"""openaclnn trace: every function has a traced form; the text shows what was done."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.abi.abi import LIB, NAMES
from tests.trace.traces import LINE, NEEDS_COMPILER, built, command

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^(host|stream \d+) +(\w+) +(\d+) +\d+\.\d\d +\d+ %(?: +\d+\.\d\d){2}$", re.M)

pytestmark = NEEDS_COMPILER


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
        "but got 7; OPENACLNN_DEVICES=8 makes 8 devices",
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


def test_help_names_the_options():
    shown = command("trace", "--help").stdout
    for word in ("--output", "--text", "perfetto", "openaclnn docs trace"):
        assert word in shown
    missing = command("trace")
    assert missing.returncode == 2
    assert "the program to run is missing" in missing.stderr
