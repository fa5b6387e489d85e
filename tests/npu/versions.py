# SPDX-License-Identifier: Apache-2.0
"""What runs on the device npu with each published pair of torch and torch_npu.

    python -m tests.npu.versions FOLDER                    all of VERSIONS of wheels.py: 3 GB each
    python -m tests.npu.versions FOLDER 2.10.0.post4       one of them
    python -m tests.npu.versions FOLDER 2.9.0.post2 --wheel openaclnn-….whl      already built

A virtual environment for each pair lies in FOLDER and is used again. Both packages come from plain
`pip install`; openaclnn is built once, as a wheel. For each pair: `openaclnn npu --check`, the
tests in tests/npu/device as product A2, and PyTorch's first samples of each operator in float32 as
product any. docs/reference/npu_coverage.md gets the day, the counts and, for each pair, what its
tests skip and why, what fails, and the samples that fail with this pair but are not in
opinfo/known.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

from openaclnn.rows.table import ANY

from .opinfo.known import known_failures
from .wheels import VERSIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "npu_coverage.md"
START, END = "<!-- versions: python -m tests.npu.versions -->\n", "<!-- end of versions -->\n"
HEAD = (
    "| torch_npu | torch | run on | tests/npu/device | PyTorch's samples, float32 |\n"
    "|---|---|---|---|---|\n"
)
REFUSED = "openaclnn npu: "  # of `openaclnn npu --check`, before why a pair cannot run
PACKAGES = (
    "pyyaml", "pytest", "pytest-xdist", "ml_dtypes", "expecttest", "hypothesis", "accelerate",
    "transformers", "diffusers",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    wheel: str
    torch: str
    device: str
    samples: str
    notes: tuple[str, ...] = ()
    day: date = field(default_factory=date.today)

    @property
    def line(self) -> str:
        cells = (self.wheel, self.torch, f"{self.day}", self.device, self.samples)
        return f"| {' | '.join(cells)} |\n"

    @property
    def note(self) -> str:
        return f"* {self.wheel}: {'; '.join(self.notes)}\n" if self.notes else ""


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


def reason(skip: ElementTree.Element) -> str:
    """Why a test or a file was skipped; refusals of a product by their rule."""
    text = skip.attrib["message"]
    if text == "collection skipped":
        text = (skip.text or "").rpartition("Skipped: ")[2].rstrip("'\")")
    return re.sub(r"^\[PID:.*?\): aclnn\w+: ([^;]+).*", r"\1", text, flags=re.DOTALL)


def device_tests(npu: list[str | Path], file: Path) -> tuple[str, list[str]]:
    """ "846 passed, 2 skipped", and why; torch's own warnings differ between versions."""
    run(*npu, "-m", "pytest", "-q", "-n", "auto", "-W", "ignore", f"--junitxml={file}",
        "tests/npu/device", env={**os.environ, "OPENACLNN_PRODUCT": "A2"})  # fmt: skip
    suite = ElementTree.parse(file).getroot()[0]
    skipped, failed = Counter[str](), []
    for case in suite.iter("testcase"):
        if (skip := case.find("skipped")) is not None:
            skipped[reason(skip)] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"`{case.attrib['name']}`")
    bad, total = len(failed), int(suite.attrib["tests"])
    counts = {"passed": total - skipped.total() - bad, "failed": bad, "skipped": skipped.total()}
    notes = [f"{n} skipped: {why}" for why, n in skipped.items()]
    if failed:
        notes.append(f"failed: {', '.join(failed)}")
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n), notes


def samples(npu: list[str | Path], file: Path) -> tuple[str, list[str]]:
    """ "forward 500 of 507, backward 340 of 345": operators that equal the CPU's; and failures
    that are not known of the pair whose failures known.txt lists."""
    run(*npu, "-m", "tests.npu.opinfo", "--dtype", "float32", "--json", file,
        env={**os.environ, "OPENACLNN_PRODUCT": ANY.key})  # fmt: skip
    found = json.loads(file.read_text())["tables"]["float32"]
    known = known_failures(ANY.key)
    parts, notes = [], []
    for direction in ("forward", "backward"):
        results = list(found[direction].values())
        parts.append(f"{direction} {results.count(None)} of {len(results)}")
        new = [
            f"`{name}`"
            for name, why in found[direction].items()
            if why is not None and name not in known[f"float32 {direction}"]
        ]
        if new:
            notes.append(f"samples, {direction}: {', '.join(new)}")
    return ", ".join(parts), notes


def measured(version: str, folder: Path, own: Path) -> Found:
    python = prepared(version, folder, own)
    scripts = python.parent
    os.environ["PATH"] = f"{scripts}:{os.environ['PATH']}"
    asked = "from importlib.metadata import version; print(version('torch'))"
    torch = run(python, "-c", asked, capture_output=True, check=True).stdout.strip()
    checked = run(scripts / "openaclnn", "npu", "--check", capture_output=True)
    if checked.returncode != 0:
        why = checked.stderr.strip().splitlines()[-1]
        if not why.startswith(REFUSED):
            raise SystemExit(checked.stderr)  # the environment's fault, not the pair's
        return Found(version, torch, f"not run: {why.removeprefix(REFUSED)}", "not run")
    npu: list[str | Path] = [scripts / "openaclnn", "npu", "--", python]
    device, skipped = device_tests(npu, folder / f"{version}.xml")
    compared, failed = samples(npu, folder / f"{version}.json")
    return Found(version, torch, device, compared, (*skipped, *failed))


def known() -> dict[str, tuple[str, str]]:
    """The line and the note of the page, by version."""
    text = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    notes = {v: line for line, v in re.findall(r"^(\* (\S+): .*\n)", text, re.M)}
    return {
        v: (line, notes.get(v, "")) for line, v in re.findall(r"^(\| (\d\S+) \|.*\n)", text, re.M)
    }


def written(lines: dict[str, tuple[str, str]]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(START)[0], text.partition(END)[2]
    rows, notes = zip(*(lines[v] for v in VERSIONS if v in lines), strict=True)
    listed = "\n" + "".join(notes) if any(notes) else ""
    PAGE.write_text(before + START + HEAD + "".join(rows) + listed + END + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--wheel", type=Path, help="of openaclnn; without it, one is built")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    own = arguments.wheel
    if own is None:
        build = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT)
        run(*build, check=True)
        own = max(folder.glob("openaclnn-*.whl"), key=lambda path: path.stat().st_mtime)
    for version in arguments.versions:
        found = measured(version, folder, own.resolve())
        print(found.line, found.note, sep="", flush=True)
        written(known() | {version: (found.line, found.note)})


if __name__ == "__main__":
    main()
