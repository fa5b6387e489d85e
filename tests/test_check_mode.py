# SPDX-License-Identifier: Apache-2.0
"""Check mode: the page shows what is reported of wrong programs; of right ones nothing is."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import openaclnn
from openaclnn.watch import MISTAKES_MADE, NOTHING_CHECKED, WRONG_USE

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "check_mode_page.py"))
PAGE = TOOL["PAGE"].read_text()
PROGRAMS, KINDS = TOOL["PROGRAMS"], TOOL["KINDS"]
REPORT = re.compile(r"^openaclnn check: (\w+): (.*)$", re.M)
EXAMPLES = sorted(
    path for suffix in ("c", "cpp") for path in (ROOT / "examples").glob(f"*.{suffix}")
)

REFUSED_ON_PURPOSE = {"leaky_relu.c"}  # it shows what a wrong shape is told

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


# Reports without addr2line: only kinds and sentences, but a hundred times as fast.
WITHOUT_LINES = {**os.environ, "PATH": "/nowhere"}


def openaclnn_command(*words: str, **options) -> subprocess.CompletedProcess[str]:
    main = "import sys; from openaclnn.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("mistakes")


def program(source: Path, folder: Path) -> Path:
    built = folder / source.stem
    if not built.exists():
        TOOL["build"](source, built)
    return built


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_the_page_shows_what_is_told(source, programs):
    """With addr2line word for word, else the kinds and the sentences."""
    path = program(source, programs)
    done = openaclnn_command("check", str(path), cwd=TOOL["FOLDER"])
    assert done.returncode == 66, done.stderr
    told = TOOL["normal"](done.stderr)
    assert {kind for kind, _ in REPORT.findall(told)} == {TOOL["kind_of"](source)}
    hint = "write the page anew with: python tools/check_mode_page.py"
    if shutil.which("addr2line") is not None:
        assert TOOL["section"](source, told) in PAGE, hint
    for kind, sentence in REPORT.findall(told):
        assert f"openaclnn check: {kind}: {sentence}\n" in PAGE, hint


def test_every_kind_is_on_the_page():
    assert len(KINDS) > 20
    assert set(KINDS) == {TOOL["kind_of"](source) for source in PROGRAMS}


def test_the_number_of_kinds_is_the_same_everywhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    said = {
        str(page.relative_to(ROOT)): int(number)
        for page in pages
        for number in re.findall(r"(\d+) kinds of mistakes", page.read_text())
    }
    assert said, "no page says how many kinds of mistakes there are"
    assert set(said.values()) == {len(KINDS)}, said


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
def test_right_programs_are_told_nothing(source, tmp_path):
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


# ---- less usual ways ----

READ = r"the host read device memory at 0x\.\.\., "
CASES = {
    "read_behind": ["host_access: " + READ + r"12 bytes behind an allocation of 4000 bytes\."],
    "read_after_free": [
        "host_access: " + READ + r"0 bytes into an allocation of 4000 bytes, which was freed\."
    ],
    "read_in_libc": ["host_access: " + READ + "0 bytes into an allocation of 4000 bytes"],
    "write_in_thread": ["host_access: the host wrote device memory at"],
    "told_once": ["wrong_kind: aclrtMemcpy was told ACL_MEMCPY_HOST_TO_DEVICE"],
    "double_free_at_exit": ["double_free: aclrtFree got 0x..., which was freed before"],
    "free_inside": ["wrong_free: aclrtFree got 0x..., which lies 32 bytes inside an allocation"],
    "free_pinned_in_use": [
        r"free_in_use: aclrtFreeHost frees 0x... while aclrtMemcpyAsync may still write it \(dst\)"
    ],
    "leaks": [  # not the streams: they went with the device
        r"leak: 2 pieces of host memory are still alive at aclFinalize\.",
        r"leak: 3 pieces of device memory, 12000 bytes in all, are still alive at aclFinalize\.",
    ],
    "workspace_in_an_operand": [
        r"workspace_overlap: aclnnGroupNormSwishGrad got a workspace of \d+ bytes at 0x... "
        "that overlaps x at 0x"
    ],
    "workspace_size_too_small": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 255\."
    ],
    "no_workspace": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 0\."
    ],
    "workspace_promised_too_much": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 512 and the allocation has 256 left at workspace\."
    ],
    "workspace_one_byte_short": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"the allocation has 255 left at workspace\."
    ],
    "copied_back_uncomputed": [  # three times
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but none of them was ever "
    ],
    "half_computed": [
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but 2000 of them were "
        r"never given a value, the first at byte 2000\."
    ],
    "gaps_read": [
        r"never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x\.\.\., but 2000 of them were "
        r"never given a value, the first at byte 4\."
    ],
    "carried_by_a_copy": ["never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x"],
    "after_a_callback": ["never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x"],
    "memory_of_another_device": [
        r"wrong_device: aclnnLeakyRelu works on self at 0x\.\.\., memory of device 0, on stream "
        r"0x\.\.\. of device 1\."
    ],
    "fill_on_another_devices_stream": [
        r"wrong_device: aclrtMemsetAsync puts work on stream 0x\.\.\. of device 1 while device 0"
    ],
    "makers_of_nothing": [
        "refused: aclrtCreateStream returned 100000: stream must not be NULL",
        "refused: aclrtCreateStreamWithConfig returned 100000: stream must not be NULL",
    ],
    "reset_twice": [
        "refused: aclrtResetDevice returned 107000: device 0 must be set, but it was reset already"
    ],
    "result_of_a_refused_call": [
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must have the shape of self"
    ],
    "threads_without_a_device": [
        "refused: aclrtMalloc returned 107002: a device must be set for this thread"
    ],
    "freed_address_set": [
        r"use_after_free: aclnnLeakyRelu would work on self at 0x\.\.\., memory that was freed"
    ],
    "member_of_a_list": [
        r"double_free: aclDestroyTensor got tensor 0x\.\.\., an aclTensor that was destroyed before"
    ],
    "event_destroyed": [
        r"use_after_destroy: aclrtRecordEvent got event 0x\.\.\., an aclrtEvent that was destroyed"
    ],
    "event_of_another_stream": [
        "unsynchronised_streams: aclrtMemsetAsync writes devPtr, 4000 bytes at 0x..., on stream "
        r"0x...; aclnnLeakyRelu writes it \(out\) on stream 0x..., and nothing orders the two"
    ],
    "fork_and_free_twice": ["double_free: aclrtFree got 0x..., which was freed before"],
    "handles_of_other_kinds": [
        "unknown_handle: aclrtSynchronizeStream got stream 0x..., which is an aclrtEvent and no "
        r"aclrtStream\.",
        "unknown_handle: aclnnLeakyRelu got stream 0x..., which is an aclrtEvent and no ",
        "unknown_handle: aclrtSynchronizeStream got stream 0x..., which is device memory and no ",
    ],
    "one_missing_synchronisation": ["read_before_sync: aclrtMemcpy reads src"],
    "leaks_on_one_line": [
        r"leak: 1 aclTensor, FLOAT \[10\] at 0x\.\.\., is still alive at aclFinalize\.",
        r"leak: 1 aclTensor, FLOAT \[20\] at 0x\.\.\., is still alive at aclFinalize\.",
    ],
    "free_foreign": ["wrong_free: aclrtFree got 0x..., which is no device memory that acl alloc"],
    "refused_shape": [  # each place once
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must ",
    ],
    "refused_dtype": [
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must ",
    ],
    "executor_of_another_operator": [
        "refused: aclnnGroupNormSwishGrad returned 161002: executor must "
        "come from aclnnGroupNormSwishGradGetWorkspaceSize, but got one of another operator"
    ],
    "refused_objects": [
        "refused: aclCreateScalar returned NULL: value must not be NULL",
        "refused: aclCreateTensor returned NULL: viewDims must not be NULL",
        "refused: aclCreateIntArray returned NULL: value must not be NULL",
    ],
    "refused_runtime": [
        "refused: aclrtMemcpyAsync returned 100000: src must not be NULL",
        "refused: aclrtSetDevice returned 107001: deviceId must be",
    ],
}
# What is reported under them.
CONSEQUENCES = {
    "refused_shape": ["refused: aclnnLeakyRelu returned 161001: executor must not be NULL"],
    "refused_dtype": ["refused: aclnnLeakyRelu returned 161001: executor must not be NULL"],
    "makers_of_nothing": ["refused: aclrtDestroyStream returned 100000: stream must not be NULL"],
    "result_of_a_refused_call": [
        "refused: aclnnLeakyRelu returned 161001: executor must not be NULL",
        "never_written: aclrtMemcpy reads src, 4000 bytes",
    ],
    "threads_without_a_device": [
        "refused: aclrtMemset returned 100000: devPtr must not be NULL",
    ],
}


@pytest.fixture(scope="module")
def cases(programs) -> Path:
    built = programs / "cases"
    source = str(ROOT / "tests" / "check_mode_cases.cpp")
    done = openaclnn_command("cc", "-std=c++17", "-g", source, "-pthread", "-o", str(built))
    assert done.returncode == 0, done.stderr
    return built


@pytest.mark.parametrize("case", CASES)
def test_less_usual_ways(case, cases):
    done = openaclnn_command("check", str(cases), case)
    told = [": ".join(found) for found in REPORT.findall(TOOL["normal"](done.stderr))]
    assert len(told) == len(CASES[case]), done.stderr
    for report, pattern in zip(told, CASES[case], strict=True):
        assert re.match(pattern, report), report
    followed = re.findall(r"^    consequence: (.*) \(.*\)$", done.stderr, re.M)
    expected = CONSEQUENCES.get(case, [])
    assert len(followed) == len(expected), done.stderr
    for consequence, start in zip(followed, expected, strict=True):
        assert consequence.startswith(start), consequence
    assert done.returncode == 66


@pytest.mark.parametrize(
    "case",
    [
        "answers_that_are_no_mistakes",
        "gaps_copied_back",
        "gaps_of_broadcast_views",
        "written_in_a_callback",
        "two_devices",
        "workspace_larger_than_needed",
    ],
)
def test_right_cases(case, cases):
    done = openaclnn_command("check", str(cases), case)
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


# ---- bounds and values ----


def built_once(programs: Path, source: str) -> str:
    built = programs / Path(source).stem
    path = str(ROOT / "tests" / source)
    done = openaclnn_command("cc", "-std=c++17", "-O1", "-g", path, "-o", str(built))
    assert done.returncode == 0, done.stderr
    return str(built)


UNIT = 32  # of what is reserved


def reserved(allocator: str, size: int) -> int:
    """The runtime's rule (docs/check_mode.md)."""
    spare = UNIT if allocator in ("aclrtMalloc", "aclrtMallocCached") else 0
    return -(-size // UNIT) * UNIT + spare


def bounds_cases(text: str) -> list[tuple[str, str, int, int, int, list[str], str]]:
    """Of each case: allocator, way, bytes allocated and used, status, kinds, the sentence."""
    found, kinds = [], []
    for line in text.splitlines():
        if report := REPORT.match(line):
            kinds.append(report[1])
        elif line.startswith("case "):
            _, allocator, way, *numbers = line.split()
            found.append([allocator, way, *map(int, numbers), kinds, ""])
            kinds = []
        elif line.startswith("sentence "):
            found[-1][-1] = line
    return found


@pytest.mark.parametrize("checked", [True, False], ids=["check mode", "without"])
def test_bounds(checked, programs):
    """Sizes around the units of 32 bytes: exact in check mode, and otherwise what is reserved."""
    command = ["check", "--exit-code", "0"] if checked else ["run"]
    words = [] if checked else ["without operators"]
    path = built_once(programs, "check_mode_bounds.cpp")
    done = openaclnn_command(*command, path, *words, env=WITHOUT_LINES)
    ways = set()
    for allocator, way, size, used, status, kinds, sentence in bounds_cases(done.stderr):
        ways.add(way)
        operator, room = way.startswith("operator"), reserved(allocator, size)
        refusal = 161002 if operator else 107000
        case = f"{allocator} {way}: {used} of {size} bytes"
        assert status == (0 if used <= room else refusal), case
        kind = "view_outside_allocation" if operator else "past_allocation"
        assert kinds == ([kind] if checked and used > size else []), case
        if status == 107000:
            expected = f"at most {room}, the bytes reserved from "
            assert expected in sentence, sentence
            assert f"of which {size} were asked for" in sentence, sentence
            assert sentence.endswith(f"but got {used}"), sentence
    assert len(ways) == (10 if checked else 8), done.stderr


FIRST_SEED = int(os.environ.get("OPENACLNN_TEST_SEED", "1"))


def test_right_programs_read_only_what_was_written(programs):
    path = built_once(programs, "check_mode_values.cpp")
    done = openaclnn_command("check", path, str(FIRST_SEED), "300", "right", env=WITHOUT_LINES)
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_programs_that_read_what_was_never_written(programs):
    """The same bytes as a model with a flag for each."""
    path = built_once(programs, "check_mode_values.cpp")
    done = openaclnn_command("check", path, str(FIRST_SEED), "150", "wrong", env=WITHOUT_LINES)
    cases = re.split(r"^(?=seed )", done.stderr, flags=re.M)[1:]
    partly = 0
    for case in cases:
        seed, missing, size = re.match(r"seed (\d+) reads (\d+) of (\d+)\n", case).groups()  # type: ignore[union-attr]
        (report,) = REPORT.findall(case.partition("openaclnn check: 1 mistake\n")[0])
        none = "but none of them was ever given a value."
        some = f"but {missing} of them were never given a value, the first at byte "
        assert report[0] == "never_written", f"seed {seed}: {report}"
        assert f"reads self, {size} bytes" in report[1], f"seed {seed}: {report}"
        assert (none if missing == size else some) in report[1], f"seed {seed}: {report}"
        partly += missing != size
    assert len(cases) > 75
    assert partly > 25


# ---- crashes, forks, and the rest ----


def test_a_child_has_memory_and_mistakes_of_its_own(cases):
    done = openaclnn_command("check", "--json", "-", str(cases), "fork_and_free_twice")
    assert "the child ended with 66\nthe parent has 1\n" in done.stderr
    assert [r["kind"] for r in json.loads(done.stdout)["reports"]] == ["double_free"]


@pytest.mark.parametrize("case", ["crash", "crash_of_its_own", "sent_signal"])
def test_other_faults_are_as_without_check_mode(case, cases):
    done = openaclnn_command("check", str(cases), case, "with_memory")
    sentence = "openaclnn check: ended by signal 11: no mistakes until then\n"
    assert (done.returncode, done.stderr) == (128 + 11, sentence)
    done = openaclnn_command("check", str(cases), case)
    sentence = "openaclnn check: ended by signal 11: nothing was checked: "
    assert (done.returncode, done.stderr.startswith(sentence)) == (128 + 11, True)


def test_an_ignored_signal(cases):
    done = openaclnn_command("check", str(cases), "ignored_signal")
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_programs_that_do_not_finalise(cases):
    done = openaclnn_command("check", str(cases), "no_finalise")
    assert done.returncode == 0
    assert done.stderr == (
        "openaclnn check: aclFinalize was not called: leaks were not looked for\n"
        "openaclnn check: no mistakes\n"
    )


def test_advice_fits(cases):
    advice = {
        "free_foreign": "free what aclrtMalloc gave with aclrtFree, ",
        "free_inside": "free memory with the address that the allocation gave.",
    }
    for case, words in advice.items():
        assert f"to do: {words}" in openaclnn_command("check", str(cases), case).stderr


def test_handles_of_other_kinds_are_named_with_their_places(cases):
    done = openaclnn_command("check", str(cases), "handles_of_other_kinds")
    assert done.stderr.count("made by aclrtCreateEvent") == 2


# ---- the command ----


def test_json_and_exit_code(programs, tmp_path):
    source = next(p for p in PROGRAMS if p.stem == "read_before_sync")
    path = program(source, programs)
    out = tmp_path / "reports.json"
    done = openaclnn_command("check", "--json", str(out), "--exit-code", "7", str(path))
    assert done.returncode == 7
    document = json.loads(out.read_text())
    assert (document["program"], document["status"]) == ([str(path)], 7)
    (report,) = document["reports"]
    assert report["kind"] == "read_before_sync"
    assert f"{report['kind']}: {report['what']}\n" in done.stderr
    assert report["advice"] in done.stderr
    roles = [(place["role"], place["call"]) for place in report["places"]]
    assert roles == [
        ("here", "aclrtMemcpy"),
        ("the other is", "aclnnLeakyRelu"),
        ("memory made by", "aclrtMalloc"),
    ]
    if shutil.which("addr2line") is not None:
        (frame,) = report["places"][0]["frames"]
        assert (frame["function"], Path(frame["file"]).name) == ("main", source.name)
        assert "ACL_MEMCPY_DEVICE_TO_HOST" in source.read_text().splitlines()[frame["line"] - 1]


def test_json_to_standard_output(programs, cases):
    """Nothing else is there, whatever the program writes."""
    path = program(PROGRAMS[0], programs)
    done = openaclnn_command("check", "--json", "-", str(path))
    assert json.loads(done.stdout)["reports"]
    done = openaclnn_command("check", "--json", "-", "sh", "-c", "echo '{'; exit 3")
    document = json.loads(done.stdout)
    assert (document["status"], document["checked"], document["reports"]) == (3, False, [])
    assert "{\n" in done.stderr


def test_json_has_consequences_under_their_cause(programs):
    source = next(p for p in PROGRAMS if p.stem == "refused_without_a_device")
    done = openaclnn_command("check", "--json", "-", str(program(source, programs)))
    (report,) = json.loads(done.stdout)["reports"]
    assert len(report["consequences"]) == done.stderr.count("    consequence: ") > 3
    assert all(c["places"] and c["what"] in done.stderr for c in report["consequences"])


def test_a_program_that_never_calls_the_library():
    """It is not peace."""
    importing = (sys.executable, "-c", "import openaclnn")
    for words in (("true",), importing):
        done = openaclnn_command("check", *words)
        assert done.returncode == NOTHING_CHECKED
        assert done.stderr.startswith(f"openaclnn check: nothing was checked: {words[0]} ")
        assert openaclnn_command("check", "--exit-code", "0", *words).returncode == 0
    done = openaclnn_command("check", "false")
    assert (done.returncode, "nothing was checked" in done.stderr) == (1, True)


def test_refused_calls_of_python(tmp_path):
    """With the line of Python; each place once."""
    script = tmp_path / "refused.py"
    script.write_text(
        "import numpy, openaclnn\n"
        "def call(out):\n"
        "    try:\n"
        "        openaclnn.leaky_relu(numpy.float32([1, 2]), 0.5, out=out)\n"
        "    except openaclnn.AclnnError:\n"
        "        pass\n"
        "for _ in range(3): call(numpy.float32([1]))\n"
        "try: openaclnn.plan('leaky_relu', numpy.float32([1]), 0.5, numpy.int32([1]))\n"
        "except openaclnn.AclnnError: pass\n"
        "print('done')\n"
    )
    done = openaclnn_command("check", "--json", "-", sys.executable, str(script))
    assert (done.returncode, "done\n" in done.stderr) == (MISTAKES_MADE, True), done.stderr
    first, second = json.loads(done.stdout)["reports"]
    assert first["kind"] == second["kind"] == "refused"
    assert "aclnnLeakyRelu returned 161002: out must have the shape" in first["what"]
    assert "aclnnLeakyRelu returned 161002: out must have dtype" in second["what"]
    places = [(r["places"][0]["frames"][0]["function"], r["places"][0]["frames"][0]["line"])
              for r in (first, second)]  # fmt: skip
    assert places == [("call", 4), ("<module>", 8)]
    assert first["places"][0]["frames"][0]["file"] == str(script)


def test_exit_code_0_keeps_the_status_of_the_program(programs):
    leak = next(p for p in PROGRAMS if p.stem == "leak")
    done = openaclnn_command("check", "--exit-code", "0", str(program(leak, programs)))
    assert (done.returncode, len(REPORT.findall(done.stderr))) == (0, 2)


def test_environment_alone(programs, tmp_path):
    leak = next(p for p in PROGRAMS if p.stem == "leak")
    lines = tmp_path / "lines"
    variables = {
        "OPENACLNN_CHECK": "1",
        "OPENACLNN_CHECK_EXIT_CODE": "5",
        "OPENACLNN_CHECK_JSON": str(lines),
    }
    command = [program(leak, programs)]
    for _ in range(2):  # the file is appended to
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True)
        assert done.returncode == 5
    kinds = [json.loads(line)["kind"] for line in lines.read_text().splitlines()]
    assert kinds == ["leak"] * 4


def test_programs_that_cannot_be_checked(tmp_path):
    missing = openaclnn_command("check", str(tmp_path / "missing"))
    assert missing.returncode == 127
    assert missing.stderr.startswith("openaclnn check: ")
    assert missing.stderr.count("\n") == 1
    foreign = openaclnn_command("check", sys.executable, "-c", "raise SystemExit(9)")
    assert foreign.returncode == 9
    assert foreign.stderr.endswith("did not load openaclnn\n")
    killed = openaclnn_command("check", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert killed.returncode == 128 + 9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check"], "the program to run is missing"),
        (["check", "--exit-code", "256", "true"], "must be a number from 0 to 255, but is 256"),
    ],
)
def test_wrong_options(words, sentence):
    done = openaclnn_command(*words)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_files_that_cannot_be_written(programs, tmp_path):
    path = program(PROGRAMS[0], programs)
    done = openaclnn_command("check", "--json", str(tmp_path / "no" / "r.json"), str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"openaclnn check: --json must be a file .*/no/r\.json is not: .*\n",
                        done.stderr)  # fmt: skip


def test_help_names_the_options():
    shown = openaclnn_command("check", "--help").stdout
    for word in ("--json", "--exit-code", "OPENACLNN_CHECK=1", "docs/check_mode.md"):
        assert word in shown
    for number in (MISTAKES_MADE, NOTHING_CHECKED, WRONG_USE, 126, 127):
        assert re.search(rf"\b{number}\b", shown), number
        assert re.search(rf"\b{number}\b", PAGE.partition("## How it knows")[0]), number
    for last_line in ("no mistakes", "nothing was checked: ", "ended by signal N", "consequences"):
        assert last_line in shown
        assert last_line in PAGE


def test_python_works_in_check_mode():
    script = "import openaclnn, numpy; print(openaclnn.leaky_relu(numpy.float32([-2, 3]), 0.5))"
    done = openaclnn_command("check", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "[-1.  3.]\n"), done.stderr


def test_every_right_order_is_told_nothing(tmp_path):
    """The program that orders work in all the ways there are."""
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
    """The same program with one thing less, or too early."""
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
