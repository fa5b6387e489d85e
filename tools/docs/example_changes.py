# SPDX-License-Identifier: Apache-2.0
"""Builds the project with all that the guides docs/contribute/add_*.md add, and tests it.

    python tools/docs/example_changes.py FOLDER

FOLDER, which must not exist, gets the sources with the diffs of all guides, and an environment that
sees the packages of this one. The tests that a guide names must accept its change. Then Softmax is
made wrong by three times its bound, and the tests of the rows, the fuzzer and the demo must all
report it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "contribute").glob("add_*.md"))
WRONG = ("falling_exp(x[i] - most) / sum[0]", "falling_exp(x[i] - most) / sum[0] * (1 + 3e-7)")
# GCC with 37 s of CPU instead of 112 for ATen's composites, two thirds of its library; nothing here
# is timed. The other files call functions of the core that only the optimiser removes.
UNOPTIMISED = """#!/bin/sh
case "$*" in *composites.cpp*) set -- "$@" -O0 ;; esac
exec {} "$@"
"""
FUZZ_SECONDS = "12"
TIMEOUT = 1200  # seconds for one command


def diffs(guide: Path) -> list[str]:
    """The changes by hand; those in README.md and the snapshot are written by refresh.py."""
    found = re.findall(r"^```diff\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.M | re.S)
    return [diff for diff in found if "+++ README.md" not in diff]


def copy_to(folder: Path) -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in files.rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def apply(diff: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Applies a diff as it stands; the folder may lie inside a repository."""
    outside = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(
        ["git", "apply", "-p0", "--verbose", "-"],
        cwd=folder, env=outside, input=diff, capture_output=True, text=True,
    )  # fmt: skip


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        sys.exit(f"{file} must have {old}, which this script replaces by {new}")
    file.write_text(text.replace(old, new))


class Trial:
    """The copy, and commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.venv = folder, folder / "venv"
        self.compiler = folder / "build" / "unoptimised"
        self.environment = os.environ | {
            "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
            "CCACHE_BASEDIR": str(folder),
            "OPENACLNN_CACHE": str(folder / "compiled"),
        }
        self.python = str(self.venv / "bin" / "python")

    def status(self, *words: str, **variables: str) -> int:
        print("+", *words, flush=True)
        begin = time.monotonic()
        environment = self.environment | variables
        done = subprocess.run(words, cwd=self.folder, env=environment, timeout=TIMEOUT)
        print(f"  {time.monotonic() - begin:.1f} s", flush=True)
        return done.returncode

    def run(self, *words: str) -> None:
        if status := self.status(*words):
            sys.exit(f"{words[0]} failed with status {status}")

    def test(self, *words: str) -> int:
        """A command that may compile ATen's library."""
        return self.status(self.python, *words, CXX=str(self.compiler))

    def make_environment(self) -> None:
        self.run(sys.executable, "-m", "venv", str(self.venv))
        (site,) = self.venv.glob("lib/python*/site-packages")
        seen = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (site / "first_environment.pth").write_text("\n".join(seen) + "\n")
        self.compiler.parent.mkdir()
        self.compiler.write_text(UNOPTIMISED.format(os.environ.get("CXX") or "g++"))
        self.compiler.chmod(0o755)

    def install(self) -> None:
        level = "import openaclnn; print(openaclnn.config()['kernels'])"
        found = subprocess.run([sys.executable, "-c", level], capture_output=True, text=True)
        levels = found.stdout.strip() or "v2;v3;v4"
        settings = [f"cmake.define.OPENACLNN_LEVELS={levels}", "build-dir=build/python"]
        options = [f"--config-settings={setting}" for setting in settings]  # pip 23.0 has no -C
        if util.find_spec("scikit_build_core") and util.find_spec("nanobind"):
            options.append("--no-build-isolation")
        self.run(self.python, "-m", "pip", "install", "-q", "--no-deps", *options, ".")
        tests = [f"-DOPENACLNN_LEVELS={levels}", "-DOPENACLNN_TESTS=ON"]
        self.run("cmake", "-S", ".", "-B", "build/c", "-G", "Ninja", *tests)
        self.run("cmake", "--build", "build/c", "--target", "fuzz")

    def pytest(self, *words: str) -> int:
        return self.test("-m", "pytest", "-q", "-rs", "--tb=short", *words)

    def first_failure(self, *checks: Callable[[], int]) -> int:
        return next((status for check in checks if (status := check())), 0)

    def check_rows(self) -> int:
        names = "oftmax or oftsign or test_house or test_registry"
        # test_golden: functions that ATen computes, as Softmax no longer is.
        chosen = f"({names}) and not the_diff_of_a_guide and not test_golden"
        return self.pytest("-m", "not programs", "-x", "-k", chosen)

    def check_fuzz(self) -> int:
        return self.status("build/c/tests/fuzz/fuzz", "--seconds", FUZZ_SECONDS)

    def check_demo(self) -> int:
        return self.status(str(self.venv / "bin" / "openaclnn"), "demo")

    def check_aten(self) -> int:
        if util.find_spec("torch") is None:
            print("torch is not installed: the operators that ATen computes are not tested")
            return 0
        tests = "composites or values or every_function or every_call_is or how_many_functions"
        files = ("tests/aten/test_refusals.py", "tests/aten/test_rounding.py")
        rounding = ("-m", "tests.aten.aten_rounding")
        fuzz = ("-m", "tests.aten.fuzz", "--seconds", "3", "--only")
        return self.first_failure(
            lambda: self.pytest(*files, "tests/docs/test_docs.py", "-k", tests),
            lambda: self.test(*rounding, "aclnnXlog1py", "aclnnFatreluMul"),
            lambda: self.test(*fuzz, "^aclnn(Xlog1py|FatreluMul)$"),
        )

    def check_command(self) -> int:
        return self.pytest("tests/cli/test_header_command.py", "tests/cli/test_output.py", "-k",
                           "header or has_words")  # fmt: skip

    def check_mistake(self) -> int:
        right = "every_right_order or only_what_was_written"  # programs that cause no report
        chosen = f"unrecorded_event or every_kind or every_mistake or {right}"
        return self.first_failure(
            lambda: self.status(self.python, "tools/docs/check_mode_page.py"),
            lambda: self.pytest("tests/check", "-k", chosen),
        )


def main(folder: Path) -> None:
    if folder.exists():
        sys.exit(f"{folder} must not exist")
    copy_to(folder)
    for guide in GUIDES:
        for diff in diffs(guide):
            if (done := apply(diff, folder)).returncode:
                sys.exit(f"{guide.name}: {done.stderr}")
    trial = Trial(folder)
    trial.make_environment()
    trial.install()
    trial.run(trial.python, "tools/docs/refresh.py")
    of_softmax = {"rows": trial.check_rows, "fuzz": trial.check_fuzz, "demo": trial.check_demo}
    others = {"aten": trial.check_aten, "command": trial.check_command,
              "mistake": trial.check_mistake}  # fmt: skip
    if refused := [name for name, check in (others | of_softmax).items() if check()]:
        sys.exit(f"the changes of the guides do not pass: {', '.join(refused)}")
    replace(folder / "core/kernels/softmax/softmax.cpp", *WRONG)
    trial.install()
    if accepted := [name for name, check in of_softmax.items() if not check()]:
        sys.exit(f"a Softmax that is wrong by three times its bound passes: {', '.join(accepted)}")
    print("all guides pass; the rows, the fuzzer and the demo report a wrong Softmax")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
