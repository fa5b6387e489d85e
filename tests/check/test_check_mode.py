# SPDX-License-Identifier: Apache-2.0
"""Check mode: the page shows the reports about wrong programs; right ones cause none."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from tests.check.check_mode import (
    KINDS,
    PAGE,
    PROGRAMS,
    REPORT,
    ROOT,
    TOOL,
    needs_compiler,
    openaclnn_command,
    reports,
)

import openaclnn

pytestmark = [pytest.mark.programs, needs_compiler]


EXAMPLES = sorted(
    path for suffix in ("c", "cpp") for path in (ROOT / "examples").glob(f"*.{suffix}")
)
REFUSED_ON_PURPOSE = {"leaky_relu.c"}  # it shows the error for a wrong shape


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_the_page_shows_what_is_reported(source, programs):
    """Compares word for word if addr2line is there, otherwise the kinds and the sentences."""
    text = TOOL["normal"]((reports(source, programs) / "text").read_text())
    assert {kind for kind, _ in REPORT.findall(text)} == {TOOL["kind_of"](source)}
    hint = "rewrite the page with: python tools/docs/check_mode_page.py"
    if shutil.which("addr2line") is not None:
        assert TOOL["section"](source, text) in PAGE, hint
    for kind, sentence in REPORT.findall(text):
        assert f"openaclnn check: {kind}: {sentence}\n" in PAGE, hint


def test_every_kind_is_on_the_page():
    assert len(KINDS) > 20
    assert set(KINDS) == {TOOL["kind_of"](source) for source in PROGRAMS}


SYNC = "must(aclrtSynchronizeStream(stream));\n  "
REPEATABLE = "must(aclSetAclOpExecutorRepeatable(executor));\n"
COPY_IN = "must(aclrtMemcpy(x, kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));\n"
DESTROY = "must(aclDestroyTensor(self));\n"
# What makes each program right.
CORRECTED = {
    "double_free": [("\n  aclrtFree(x);", "")],
    "executor_rerun": [
        ("must(aclnnLeakyRelu(", f"{REPEATABLE}  must(aclnnLeakyRelu("),
        ("  must(aclrtSync", "  must(aclDestroyAclOpExecutor(executor));\n  must(aclrtSync"),
    ],
    "free_in_use": [("must(aclrtFree(y));", SYNC + "must(aclrtFree(y));")],
    "host_access": [
        ("x[3] = 1.0f;", "float one = 1; must(aclrtMemcpy(x + 3, 4, &one, 4, ACL_MEMCPY_DEFAULT));")
    ],
    "leak": [("end();", "must(aclDestroyTensor(self));\n  must(aclrtFree(x));\n  end();")],
    "never_written": [
        ("float* y", "must(aclrtMemset(x, kBytes, 0, kBytes));\n  float* y"),
    ],
    "not_mapped": [("static_cast<char*>(base) + kGranule", "base")],
    "not_device_memory": [
        ("*y = ", "*x = device_memory(kBytes), *y = "),
        ("tensor(input)", "tensor(x)"),
        ("leaky_relu(", f"{COPY_IN}  leaky_relu("),
        ("must(aclrtFree(y));", "must(aclrtFree(x));\n  must(aclrtFree(y));"),
    ],
    "past_allocation": [("2 * kBytes, input, 2 * kBytes", "kBytes, input, kBytes")],
    "past_allocation_by_one": [("(kLength - 1) * sizeof(float)", "kBytes")],
    "read_before_sync": [("must(aclrtMemcpy(res", SYNC + "must(aclrtMemcpy(res")],
    "refused": [
        ("tensor(y, kLength / 2)", "tensor(y)"),
        ("must(aclDestroySc", "must(aclrtSynchronizeStream(nullptr));\n  must(aclDestroySc"),
    ],
    "refused_without_a_device": [
        ("must(aclInit(nullptr));", "must(aclInit(nullptr));\n  must(aclrtSetDevice(0));")
    ],
    "unknown_handle": [
        ("int not_a_stream = 0;\n", ""),
        ("= &not_a_stream;", "= make_stream();"),
        ("end();", "must(aclrtDestroyStream(stream));\n  end();"),
    ],
    "unsynchronised_streams": [
        ("leaky_relu(b,", "must(aclrtSynchronizeStream(first));\n  leaky_relu(b,")
    ],
    "use_after_destroy": [
        ("  must(aclDestroyTensor(self));\n", ""),
        ("&executor);", "&executor);\n  must(aclnnLeakyRelu(nullptr, size, executor, nullptr));"),
        ("must(aclDestroyTensor(out))", f"{DESTROY}  must(aclDestroyTensor(out))"),
        ("must(aclrtFree(x))", "must(aclrtSynchronizeStream(nullptr));\n  must(aclrtFree(x))"),
    ],
    "use_after_destroy_between_phases": [
        (f"  {DESTROY}", ""),
        ("must(aclDestroyTensor(out))", f"{DESTROY}  must(aclDestroyTensor(out))"),
    ],
    "use_after_finalize": [
        ("  must(aclFinalize());\n", ""),
        ("must(aclrtResetDevice(0));", "end();"),
    ],
    "use_after_free": [
        ("  must(aclrtFree(x));\n", ""),
        ("must(aclDestroyAclOpExecutor(executor))", "must(aclrtSynchronizeStream(nullptr))"),
        ("must(aclrtFree(y))", "must(aclrtFree(x));\n  must(aclrtFree(y))"),
    ],
    "view_outside_allocation": [
        ("device_memory(kLength)", "device_memory(kBytes)"),
        ("must(aclDestroyAclOpExecutor(executor))", "must(aclrtSynchronizeStream(nullptr))"),
    ],
    "view_outside_allocation_by_one": [("(kLength - 1) * sizeof(float)", "kBytes")],
    "workspace_overlap": [
        ("    must(aclnnGroupNormSwishGrad(workspace, b",
         "    must(aclrtSynchronizeStream(first));\n    must(aclnnGroupNormSwishGrad(workspace, b"),
    ],
    "workspace_too_small": [
        ("op.workspace_size / 2", "op.workspace_size"),
        ("must(aclDestroyAclOpExecutor(op.executor))", "must(aclrtSynchronizeStream(nullptr))"),
    ],
    "write_before_sync": [("must(aclrtMemcpy(x", SYNC + "must(aclrtMemcpy(x")],
    "wrong_device": [
        ("leaky_relu(", "must(aclrtSetDevice(0));\n  leaky_relu("),
        ("must(aclrtResetDevice(0));", "must(aclrtResetDevice(0));\n  must(aclrtResetDevice(0));"),
    ],
    "wrong_free": [("aclrtFree(pinned);\n", "")],
    "wrong_kind": [("ACL_MEMCPY_HOST_TO_DEVICE", "ACL_MEMCPY_DEVICE_TO_HOST")],
}  # fmt: skip


def test_every_mistake_has_a_correction():
    assert set(CORRECTED) == {source.stem for source in PROGRAMS}


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_of_the_corrected_program_nothing_is_reported(source, tmp_path):
    text = source.read_text()
    for wrong, right in CORRECTED[source.stem]:
        assert text.count(wrong) == 1, f"{wrong!r} is {text.count(wrong)} times in {source.name}"
        text = text.replace(wrong, right)
    corrected, built = tmp_path / source.name, tmp_path / source.stem
    corrected.write_text(text)
    done = openaclnn_command("cc", "-std=c++11", f"-I{TOOL['FOLDER']}", str(corrected), "-o",
                             str(built))  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = openaclnn_command("check", str(built))
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda path: path.name)
def test_right_programs_cause_no_report(source, tmp_path):
    home, built = openaclnn.home(), tmp_path / "program"
    compiler = "gcc" if source.suffix == ".c" else "g++"
    include = [f"-I{home}/include", f"-I{home}/include/aclnn", f"-I{home}/include/aclnnop"]
    link = [f"-L{home}/lib64", "-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase"]
    command = [compiler, source, *include, *link, "-pthread", "-o", built]
    subprocess.run(command, check=True)
    plain = subprocess.run(
        [built], env={**os.environ, "LD_LIBRARY_PATH": f"{home}/lib64"}, capture_output=True
    )
    done = openaclnn_command("check", "--exit-code", "0", str(built))
    if source.name in REFUSED_ON_PURPOSE:
        assert [kind for kind, _ in REPORT.findall(done.stderr)] == ["refused"]
    else:
        assert done.stderr == "openaclnn check: no mistakes\n"
    assert (done.returncode, len(done.stdout)) == (plain.returncode, len(plain.stdout))


def test_every_right_order_causes_no_report(tmp_path):
    """The program that orders work in every possible way."""
    home, built = openaclnn.home(), tmp_path / "program"
    source = ROOT / "tests" / "c" / "test_right_order.cpp"
    include = [f"-I{home}/include", f"-I{home}/include/aclnn", f"-I{home}/include/aclnnop"]
    link = [f"-L{home}/lib64", "-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase"]
    command = ["g++", "-std=c++17", source, *include, *link, "-pthread", "-o", built]
    subprocess.run(command, check=True)
    done = openaclnn_command("check", str(built))
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("streams.b, 20, kColumns", "streams.b, 19, kColumns", "unsynchronised_streams"),
        (
            "CHECK_EQ(aclrtStreamWaitEvent(streams.b, event), 0);",
            "",
            "unsynchronised_streams",
        ),
        ("const auto call =", "y.expect(-2); const auto call =", "read_before_sync"),
        ("CHECK_EQ(aclrtFreeWithDevSync(y.data), 0);", "aclrtFree(y.data);", "free_in_use"),
    ],
)
def test_each_order_is_needed(right, wrong, kind, tmp_path):
    """The same program with one call missing or too early."""
    folder = ROOT / "tests" / "c"
    text = (folder / "test_right_order.cpp").read_text()
    assert right in text
    source, built = tmp_path / "less.cpp", tmp_path / "less"
    source.write_text(text.replace(right, wrong))
    done = openaclnn_command("cc", "-std=c++17", f"-I{folder}", "-pthread", str(source), "-o",
                             str(built))  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = openaclnn_command("check", str(built))
    assert {found for found, _ in REPORT.findall(done.stderr)} == {kind}, done.stderr
