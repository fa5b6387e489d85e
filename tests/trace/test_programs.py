# SPDX-License-Identifier: Apache-2.0
"""openaclnn trace of programs that make no call or fork, and files that cannot be written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.trace.traces import LINE, NEEDS_COMPILER, built, command

pytestmark = NEEDS_COMPILER


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
