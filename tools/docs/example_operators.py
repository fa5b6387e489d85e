# SPDX-License-Identifier: Apache-2.0
"""Builds the project with the operators that docs/add_an_operator.md adds, and tests them.

    python tools/docs/example_operators.py FOLDER

FOLDER, which must not exist, gets the sources with the diffs of the page, and an environment that
sees the packages of this one. The tests of the rows, the fuzzer and the demo must accept the
operators. Then Softmax is made wrong by three times its bound, and all three must report it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add_an_operator.md"
WRONG = ("falling_exp(x[i] - most) / sum[0]", "falling_exp(x[i] - most) / sum[0] * (1 + 3e-7)")
FUZZ_SECONDS = "6"
TIMEOUT = 1200  # seconds for one command


def diffs() -> list[str]:
    """The changes by hand; those in README.md and the snapshot are written by refresh.py."""
    found = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
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


class Trial:
    """The copy, and commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.venv = folder, folder / "venv"
        self.environment = os.environ | {
            "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
            "CCACHE_BASEDIR": str(folder),
        }
        self.python = str(self.venv / "bin" / "python")

    def status(self, *words: str) -> int:
        print("+", *words, flush=True)
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, timeout=TIMEOUT
        ).returncode

    def run(self, *words: str) -> None:
        if status := self.status(*words):
            sys.exit(f"{words[0]} failed with status {status}")

    def make_environment(self) -> None:
        self.run(sys.executable, "-m", "venv", str(self.venv))
        (site,) = self.venv.glob("lib/python*/site-packages")
        seen = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (site / "first_environment.pth").write_text("\n".join(seen) + "\n")

    def install(self) -> None:
        level = "import openaclnn; print(openaclnn.config()['kernels'])"
        found = subprocess.run([sys.executable, "-c", level], capture_output=True, text=True)
        levels = found.stdout.strip() or "v2;v3;v4"
        option = f"--config-settings=cmake.define.OPENACLNN_LEVELS={levels}"
        self.run(self.python, "-m", "pip", "install", "-q", "--no-deps", option, ".")
        tests = [f"-DOPENACLNN_LEVELS={levels}", "-DOPENACLNN_TESTS=ON"]
        self.run("cmake", "-S", ".", "-B", "build/c", "-G", "Ninja", *tests)
        self.run("cmake", "--build", "build/c", "--target", "fuzz")

    def check_pytest(self) -> int:
        names = "oftmax or oftsign or test_house or test_registry"
        chosen = ["-k", f"({names}) and not the_diff_of_a_new_operator", "-x", "--tb=short"]
        return self.status(self.python, "-m", "pytest", "-q", "-m", "not programs", *chosen)

    def check_fuzz(self) -> int:
        return self.status("build/c/tests/fuzz/fuzz", "--seconds", FUZZ_SECONDS)

    def check_demo(self) -> int:
        return self.status(str(self.venv / "bin" / "openaclnn"), "demo")


def main(folder: Path) -> None:
    if folder.exists():
        sys.exit(f"{folder} must not exist")
    copy_to(folder)
    for diff in diffs():
        if (done := apply(diff, folder)).returncode:
            sys.exit(done.stderr)
    trial = Trial(folder)
    trial.make_environment()
    trial.install()
    trial.run(trial.python, "tools/docs/refresh.py")
    checks = {"pytest": trial.check_pytest, "fuzz": trial.check_fuzz, "demo": trial.check_demo}
    if refused := [name for name, check in checks.items() if check()]:
        sys.exit(f"the new operators do not pass: {', '.join(refused)}")
    kernel = folder / "core/kernels/softmax/softmax.cpp"
    right = kernel.read_text()
    if WRONG[0] not in right:
        sys.exit(f"{kernel} must have {WRONG[0]}, which this script makes wrong")
    kernel.write_text(right.replace(*WRONG))
    trial.install()
    if accepted := [name for name, check in checks.items() if not check()]:
        sys.exit(f"a Softmax that is wrong by three times its bound passes: {', '.join(accepted)}")
    print("Softsign and Softmax pass; pytest, the fuzzer and the demo report a wrong Softmax")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
