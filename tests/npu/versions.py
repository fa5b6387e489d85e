# SPDX-License-Identifier: Apache-2.0
"""What runs on the device npu with each published pair of torch and torch_npu.

    python -m tests.npu.versions FOLDER                    all of VERSIONS of wheels.py: 3 GB each
    python -m tests.npu.versions FOLDER 2.10.0.post4       one of them

A virtual environment for each pair lies in FOLDER and is used again. Both packages come from plain
`pip install`; openaclnn is built once, as a wheel. For each pair: `openaclnn npu --check`, the
tests in tests/npu/device, and PyTorch's first samples of each operator in float32. The counts go
into the table of docs/reference/npu_coverage.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from xml.etree import ElementTree

from .wheels import VERSIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "npu_coverage.md"
START, END = "<!-- versions: python -m tests.npu.versions -->\n", "<!-- end of versions -->\n"
HEAD = "| torch_npu | torch | tests/npu/device | PyTorch's samples, float32 |\n|---|---|---|---|\n"
PACKAGES = ("pyyaml", "pytest", "pytest-xdist", "ml_dtypes", "expecttest", "hypothesis")


@dataclass(frozen=True)
class Found:
    wheel: str
    torch: str
    device: str
    samples: str

    @property
    def line(self) -> str:
        return f"| {' | '.join(astuple(self))} |\n"


def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    print("+", *words, flush=True)
    return subprocess.run([*map(str, words)], text=True, cwd=ROOT, **options)  # type: ignore[call-overload]


def prepared(version: str, folder: Path, own: Path) -> Path:
    """The interpreter of the pair's environment."""
    environment = folder / version
    python = environment / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", environment, check=True)
        release = version.partition(".post")[0]
        install = (python, "-m", "pip", "install", "-q")
        run(*install, f"torch=={release}", *PACKAGES, check=True)
        run(*install, "--no-deps", f"torch_npu=={version}", check=True)  # some want torch==…+cpu
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", own, check=True)
    return python


def device_tests(npu: list[str | Path], file: Path) -> str:
    """ "546 passed, 2 skipped"; torch's own warnings differ between versions."""
    run(*npu, "-m", "pytest", "-q", "-n", "auto", "-W", "ignore", f"--junitxml={file}",
        "tests/npu/device")  # fmt: skip
    suite = ElementTree.parse(file).getroot()[0].attrib
    skipped, bad = int(suite["skipped"]), int(suite["failures"]) + int(suite["errors"])
    counts = {"passed": int(suite["tests"]) - skipped - bad, "failed": bad, "skipped": skipped}
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


def samples(npu: list[str | Path], file: Path) -> str:
    """ "forward 500 of 507, backward 340 of 345": operators that equal the CPU's."""
    run(*npu, "-m", "tests.npu.opinfo", "--dtype", "float32", "--json", file)
    found = json.loads(file.read_text())["tables"]["float32"]
    parts = []
    for direction in ("forward", "backward"):
        results = list(found[direction].values())
        parts.append(f"{direction} {results.count(None)} of {len(results)}")
    return ", ".join(parts)


def measured(version: str, folder: Path, own: Path) -> Found:
    python = prepared(version, folder, own)
    scripts = python.parent
    os.environ["PATH"] = f"{scripts}:{os.environ['PATH']}"
    asked = "from importlib.metadata import version; print(version('torch'))"
    torch = run(python, "-c", asked, capture_output=True, check=True).stdout.strip()
    checked = run(scripts / "openaclnn", "npu", "--check", capture_output=True)
    if checked.returncode != 0:
        return Found(version, torch, checked.stderr.strip().splitlines()[-1], "")
    npu = [scripts / "openaclnn", "npu", "--", python]
    device = device_tests(npu, folder / f"{version}.xml")
    return Found(version, torch, device, samples(npu, folder / f"{version}.json"))


def known() -> dict[str, str]:
    """The lines of the page, by version."""
    table = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    return {line.split(" | ")[0].strip("| "): line for line in table.splitlines(True)[2:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, check=True)
    own = max(folder.glob("openaclnn-*.whl"), key=lambda path: path.stat().st_mtime)
    lines = known()
    for version in arguments.versions:
        lines[version] = measured(version, folder, own).line
        print(lines[version], flush=True)
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(START)[0], text.partition(END)[2]
        table = "".join(lines[v] for v in VERSIONS if v in lines)
        PAGE.write_text(before + START + HEAD + table + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
