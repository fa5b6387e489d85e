# SPDX-License-Identifier: Apache-2.0
"""Check mode: the page shows what the programs are told; right programs are told nothing."""

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

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "check_mode_page.py"))
PAGE = TOOL["PAGE"].read_text()
PROGRAMS = TOOL["PROGRAMS"]
REPORT = re.compile(r"^openaclnn check: (\w+): (.*)$", re.M)
EXAMPLES = sorted(
    path for suffix in ("c", "cpp") for path in (ROOT / "examples").glob(f"*.{suffix}")
)

REFUSED_ON_PURPOSE = {"leaky_relu.c"}  # it shows what a wrong shape is told

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


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
    assert source.stem in [kind for kind, _ in REPORT.findall(told)]
    hint = "write the page anew with: python tools/check_mode_page.py"
    if shutil.which("addr2line") is not None:
        assert TOOL["section"](source, told) in PAGE, hint
    for kind, sentence in REPORT.findall(told):
        assert f"openaclnn check: {kind}: {sentence}\n" in PAGE, hint


def test_every_kind_is_on_the_page():
    sources = "".join(path.read_text() for path in (ROOT / "core" / "check").glob("*.cpp"))
    kinds = set(re.findall(r'"(\w+)"', "".join(re.findall(r"Report report\(([^;]*);", sources))))
    assert kinds == {source.stem for source in PROGRAMS}


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
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace and was "
        r"promised 255, but workspaceSize says 255\."
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
        "refused: aclnnLeakyReluGetWorkspaceSize answered 161002: aclnnLeakyRelu: out must ",
        "refused: aclnnLeakyRelu answered 161001: aclnnLeakyRelu: executor must not be NULL",
    ],
    "refused_dtype": [
        "refused: aclnnLeakyReluGetWorkspaceSize answered 161002: aclnnLeakyRelu: out must ",
        "refused: aclnnLeakyRelu answered 161001: aclnnLeakyRelu: executor must not be NULL",
    ],
    "executor_of_another_operator": [
        "refused: aclnnGroupNormSwishGrad answered 161002: aclnnGroupNormSwishGrad: executor must "
        "come from aclnnGroupNormSwishGradGetWorkspaceSize, but got one of another operator"
    ],
    "refused_objects": [
        "refused: aclCreateScalar answered NULL: aclCreateScalar: value must not be NULL",
        "refused: aclCreateTensor answered NULL: aclCreateTensor: viewDims must not be NULL",
        "refused: aclCreateIntArray answered NULL: aclCreateIntArray: value must not be NULL",
    ],
    "refused_runtime": [
        "refused: aclrtMemcpyAsync answered 100000: aclrtMemcpyAsync: src must not be NULL",
        "refused: aclrtSetDevice answered 107001: aclrtSetDevice: deviceId must be",
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
    assert done.returncode == 66


def test_answers_that_are_no_mistakes(cases):
    done = openaclnn_command("check", str(cases), "answers_that_are_no_mistakes")
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_a_child_has_memory_and_mistakes_of_its_own(cases):
    done = openaclnn_command("check", "--json", "-", str(cases), "fork_and_free_twice")
    lines, _, document = done.stdout.partition("{")
    assert lines == "the child ended with 66\nthe parent has 1\n"
    assert [r["kind"] for r in json.loads("{" + document)["reports"]] == ["double_free"]


@pytest.mark.parametrize("case", ["crash", "crash_of_its_own", "sent_signal"])
def test_other_faults_are_as_without_check_mode(case, cases):
    done = openaclnn_command("check", str(cases), case)
    sentence = "openaclnn check: ended by signal 11: no mistakes until then\n"
    assert (done.returncode, done.stderr) == (128 + 11, sentence)


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


def test_json_to_standard_output(programs):
    path = program(PROGRAMS[0], programs)
    done = openaclnn_command("check", "--json", "-", str(path))
    assert json.loads(done.stdout)["reports"]


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
