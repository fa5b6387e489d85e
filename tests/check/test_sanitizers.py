# SPDX-License-Identifier: Apache-2.0
"""Programs with sanitizers under `openaclnn check` and `openaclnn trace`, and ones whose operators
the installation directory lacks."""

from __future__ import annotations

import subprocess

import pytest
from tests.check.check_mode import needs_compiler, openaclnn_command

from openaclnn.commands.cc import compile_command
from openaclnn.commands.programs import NOT_FOUND, aten_hint

pytestmark = [pytest.mark.programs, needs_compiler]

LEAK = """
#include "acl/acl.h"
int main() {
  void* memory;
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  return aclFinalize();
}
"""

REFUSED = """
#include "aclnnop/aclnn_leaky_relu.h"
int main() { return aclnnLeakyReluGetWorkspaceSize(NULL, NULL, NULL, NULL, NULL) == 0; }
"""


def built(folder, source, *options):
    path = folder / "program"
    path.with_suffix(".c").write_text(source, encoding="utf-8")
    words = [str(path.with_suffix(".c")), "-o", str(path), "-g", *options]
    done = subprocess.run(compile_command(words, {}), capture_output=True, text=True)
    if done.returncode != 0 and "-fsanitize" in " ".join(options):
        pytest.skip("the compiler lacks this sanitizer")
    assert done.returncode == 0, done.stderr
    return str(path)


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_frames_are_those_of_the_program(sanitizer, tmp_path):
    """The sanitizer's own backtrace is not taken for the program's call."""
    path = built(tmp_path, LEAK, f"-fsanitize={sanitizer}")
    done = openaclnn_command("check", path)
    assert "made by aclrtMalloc: main" in done.stderr
    assert "interceptor" not in done.stderr
    assert "openaclnn::" not in done.stderr


def test_trace_of_a_program_with_asan(tmp_path):
    done = openaclnn_command("trace", built(tmp_path, LEAK, "-fsanitize=address"))
    assert "aclFinalize() = 0" in done.stderr


def test_trace_in_check_mode_names_the_phase_that_was_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENACLNN_CHECK", "1")
    done = openaclnn_command("trace", built(tmp_path, REFUSED))
    assert "refused: aclnnLeakyReluGetWorkspaceSize returned 161001" in done.stderr, done.stderr


def test_a_missing_symbol_is_not_peace(tmp_path):
    """The loader ends a program with 127 at the first call of a function that it does not find."""
    source = LEAK.replace("return aclFinalize();", "return 127;")
    done = openaclnn_command("check", built(tmp_path, source))
    assert done.returncode == NOT_FOUND
    assert done.stderr.rstrip().endswith(
        "ended with status 127: no mistakes until then" + aten_hint("check", NOT_FOUND, False)
    )
