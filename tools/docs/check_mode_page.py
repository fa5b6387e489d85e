# SPDX-License-Identifier: Apache-2.0
"""Rewrites mistakes.md: examples/mistakes are built with the installed package and run,
and their reports are put where the page shows them.

    python tools/docs/check_mode_page.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import openaclnn
from openaclnn.rows.libraries import LINK_LINE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "mistakes"
PAGE = ROOT / "docs" / "reference" / "mistakes.md"
OUTSIDE = ("  begin();", "  end();")  # which every program has
PROGRAMS = sorted(FOLDER.glob("*.cpp"))
KINDS = sorted(
    {
        kind
        for path in (ROOT / "core" / "check").glob("*.cpp")
        for report in re.findall(r"Report report\(([^;]*);", path.read_text())
        for kind in re.findall(r'"(\w+)"', report)
    }
)


def kind_of(source: Path) -> str:
    """The kind of its mistake, with which its name begins."""
    (kind,) = (k for k in KINDS if f"{source.stem}_".startswith(f"{k}_"))
    return kind


def build(source: Path, program: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++") or "g++"
    home = openaclnn.home()
    include = [f"-I{home}/include", f"-I{home}/include/aclnn", f"-I{home}/include/aclnnop"]
    libraries = [f"-l{name}" for name in LINK_LINE]
    link = [f"-L{home}/lib64", *libraries, f"-Wl,-rpath,{home}/lib64"]
    # With DWARF 5, addr2line of binutils 2.40 names the source file for functions of a header.
    flags = ["-std=c++11", "-gdwarf-4", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [compiler, *flags, source.name, *include, *link, "-o", str(program)]
    subprocess.run(command, cwd=FOLDER, check=True)


def normal(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)


def report_of(source: Path, folder: Path) -> str:
    """What check mode reports of the program, which runs in the folder of its source."""
    program = folder / source.stem
    build(source, program)
    done = subprocess.run(
        ["openaclnn", "check", str(program)], cwd=FOLDER, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 66, f"{source.name} ended with {done.returncode}\n{done.stderr}"
    return normal(done.stderr)


def section(source: Path, report: str) -> str:
    """Heading, mistake, the lines between begin() and end(), report."""
    text = source.read_text()
    (comment,) = re.findall(r"\A// SPDX[^\n]*\n// ([^\n]*)\n", text)
    link = f"[{source.name}](../../examples/mistakes/{source.name})"
    lines = [f"{i:2} {line}" for i, line in enumerate(text.splitlines(), 1)]
    begin = next(i for i, line in enumerate(lines) if line.endswith("int main() {"))
    program = "\n".join(line for line in lines[begin + 1 : -1] if not line.endswith(OUTSIDE))
    blocks = f"```text\n{program}\n```\n\n```text\n{report}```\n"
    return f"## {source.stem}\n\n{comment} ({link})\n\n{blocks}"


def page(shown: str, sections: str) -> str:
    """The page with other sections between its markers."""
    begin, end = "<!-- reports: tools/docs/check_mode_page.py -->\n", "<!-- /reports -->"
    before, rest = shown.split(begin)
    return before + begin + "\n" + sections + "\n" + end + rest.split(end)[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sections = "\n".join(section(p, report_of(p, Path(folder))) for p in PROGRAMS)
    PAGE.write_text(page(PAGE.read_text(), sections))


if __name__ == "__main__":
    main()
