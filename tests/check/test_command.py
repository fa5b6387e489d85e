# SPDX-License-Identifier: Apache-2.0
"""The command `openaclnn check`: options, exit codes, JSON, programs of Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.check.check_mode import (
    PROGRAMS,
    REPORT,
    needs_compiler,
    openaclnn_command,
    program,
)

from openaclnn.commands.check import MISTAKES_MADE, NOTHING_CHECKED
from openaclnn.commands.programs import WRONG_USE
from openaclnn.report.output import NOT_WRITTEN

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "howto" / "check_mode.md"

pytestmark = [pytest.mark.programs, needs_compiler]


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


def test_the_hint_to_build_with_lines(programs, tmp_path):
    source = next(p for p in PROGRAMS if p.stem == "read_before_sync")
    hint = "openaclnn check: build the program with -g to see its files and lines\n"
    bare = tmp_path / "bare"
    assert openaclnn_command("cc", str(source), "-o", str(bare)).returncode == 0
    assert openaclnn_command("check", str(bare)).stderr.count(hint) == 1
    assert hint not in openaclnn_command("check", str(program(source, programs))).stderr


def test_json_to_standard_output(programs):
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
    for words, who in ((("true",), "true"), (importing, "the program")):
        done = openaclnn_command("check", *words)
        assert done.returncode == NOTHING_CHECKED
        assert done.stderr.startswith(f"openaclnn check: nothing was checked: {who} ")
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


@pytest.mark.parametrize(
    ("words", "status"), [([], 66), (["--exit-code", "5"], 5), (["--exit-code", "0"], 139)]
)
def test_a_host_access_ends_the_program(programs, words, status):
    path = program(next(p for p in PROGRAMS if p.stem == "host_access"), programs)
    done = openaclnn_command("check", *words, str(path))
    assert done.returncode == status
    advice, total = done.stderr.splitlines()[-2:]
    assert advice.startswith("    to do: copy between host and device")
    assert total == "openaclnn check: 1 mistake"


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
    # The command appends to it too.
    environ = {**os.environ, "OPENACLNN_CHECK_JSON": str(lines)}
    words = [sys.executable, "-m", "openaclnn", "check", command[0]]
    subprocess.run(words, env=environ, capture_output=True)
    kinds = [json.loads(line)["kind"] for line in lines.read_text().splitlines()]
    assert kinds == ["leak"] * 6


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
    assert re.fullmatch(r"openaclnn check: --json .*/no/r\.json cannot be written: .*\n",
                        done.stderr)  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_reports_that_are_lost(option, programs):
    """The status of mistakes stays; without them it is not 0."""
    done = openaclnn_command("check", option, "/dev/full", str(program(PROGRAMS[0], programs)))
    assert done.returncode == MISTAKES_MADE
    sentence = "openaclnn check: /dev/full could not be written: No space left on device\n"
    assert sentence in done.stderr
    clean = openaclnn_command("check", option, "/dev/full", "--exit-code", "0", "true")
    assert clean.returncode == NOT_WRITTEN
    assert "Traceback" not in done.stderr + clean.stderr


def test_help_names_the_options():
    shown = openaclnn_command("check", "--help").stdout
    page = HOW_TO.read_text(encoding="utf-8")
    for word in ("--json", "--exit-code", "OPENACLNN_CHECK=1", "docs check_mode"):
        assert word in shown
    for number in (MISTAKES_MADE, NOTHING_CHECKED, WRONG_USE, NOT_WRITTEN, 126, 127):
        assert re.search(rf"\b{number}\b", shown), number
        assert re.search(rf"\b{number}\b", page), number
    for last_line in ("no mistakes", "nothing was checked: ", "ended by signal N", "consequences"):
        assert last_line in shown
        assert last_line in page


def test_python_works_in_check_mode():
    script = "import openaclnn, numpy; print(openaclnn.leaky_relu(numpy.float32([-2, 3]), 0.5))"
    done = openaclnn_command("check", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "[-1.  3.]\n"), done.stderr


HIDDEN = """
#include <acl/acl.h>
extern "C" __attribute__((visibility("default"), noinline)) int exported(int x) { return 3 * x; }
// Not exported, and behind exported(): the nearest name that a stripped library still has.
__attribute__((visibility("hidden"), noinline)) int hidden() {
  const int status = aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(99), 1);
  return exported(status);
}
extern "C" __attribute__((visibility("default"))) int (*entry)() = hidden;
"""
CALLER = """
#include <acl/acl.h>
extern "C" int (*entry)();
int main() { aclInit(nullptr); aclrtSetDevice(0); entry(); aclrtResetDevice(0); aclFinalize(); }
"""


@pytest.mark.parametrize(
    ("option", "name"), [("-s", "a function without a name"), ("-g", "hidden")]
)
def test_a_stripped_library_has_no_names(option, name, tmp_path):
    """Where only exported functions have names, none stands for a function that has lost its own;
    and the advice is that for a call of the runtime."""
    library, path = tmp_path / "libhidden.so", tmp_path / "caller"
    for source, text in (("hidden.cpp", HIDDEN), ("caller.cpp", CALLER)):
        (tmp_path / source).write_text(text)
    rpath = f"-Wl,-rpath,{tmp_path}"
    for words in (
        ("-shared", "-fPIC", "-O1", option, str(tmp_path / "hidden.cpp"), "-o", str(library)),
        (str(tmp_path / "caller.cpp"), str(library), rpath, "-o", str(path)),
    ):
        done = openaclnn_command("cc", *words)
        assert done.returncode == 0, done.stderr
    done = openaclnn_command("check", str(path))
    assert done.returncode == MISTAKES_MADE, done.stderr
    here = re.search(r"^    here aclrtSetSysParamOpt: (.*)$", done.stderr, re.M)
    assert here, done.stderr
    assert here[1].startswith(name)
    assert "exported" not in here[1]
    assert "    to do: correct what the message names; the call did nothing.\n" in done.stderr


WITHOUT_INIT = """
#include <acl/acl.h>
int main() { void* x; aclrtSetDevice(0); aclrtMalloc(&x, 4, ACL_MEM_MALLOC_HUGE_FIRST);
             aclrtFree(x); aclrtResetDevice(0); }
"""


def test_a_missing_aclinit_is_noticed(tmp_path):
    source, path = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(WITHOUT_INIT)
    done = openaclnn_command("cc", str(source), "-o", str(path))
    assert done.returncode == 0, done.stderr
    done = openaclnn_command("check", str(path))
    assert (done.returncode, done.stderr) == (
        0,
        "openaclnn check: aclInit was never called, which a device needs; leaks were not looked "
        "for\nopenaclnn check: no mistakes\n",
    )
