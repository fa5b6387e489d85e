# SPDX-License-Identifier: Apache-2.0
"""The C functions that the published torch_npu wheels link, by version, without torch.

`python -m tests.npu.wheels FOLDER` downloads the wheels that FOLDER lacks (40 MB each), reads their
symbols with nm and writes wheels.txt: a line for each function, with the versions that link it, or
"all".
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSIONS = (
    "2.7.1", "2.7.1.post4", "2.7.1.post11", "2.8.0.post2", "2.8.0.post5", "2.9.0", "2.9.0.post2",
    "2.9.0.post9", "2.10.0.post2", "2.10.0.post4", "2.10.0.post7", "2.11.0", "2.11.0.post3",
    "2.12.0", "2.12.0.post3", "2.13.0", "2.14.0",
)  # fmt: skip
TABLE = Path(__file__).with_name("wheels.txt")
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Written by python -m tests.npu.wheels.\n"
# What the wheel loads at import; others, for graphs and for ATB, are loaded on demand.
LIBRARIES = re.compile(r"torch_npu/(lib/lib(torch_npu|tensorpipe|npu_profiler)\.so|_C\..*\.so)")
FUNCTIONS = re.compile(r" U ((?:acl|Hccl|rt[A-Z]|Msprof)\w+)$", re.M)


def linked_by(file: Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", "-u", file], capture_output=True, text=True, check=True)
    return set(FUNCTIONS.findall(listed.stdout))


def linked(wheel: Path) -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as file, tempfile.TemporaryDirectory() as folder:
        for name in filter(LIBRARIES.fullmatch, file.namelist()):
            found |= linked_by(Path(file.extract(name, folder)))
    return found


def table() -> dict[str, list[str]]:
    """The versions that link each function."""
    lines = TABLE.read_text().removeprefix(HEAD).splitlines()
    read = {name: versions for name, *versions in map(str.split, lines)}
    return {n: list(VERSIONS) if v == ["all"] else v for n, v in read.items()}


def download(version: str, folder: Path) -> Path:
    pattern = f"torch_npu-{version}-*.whl"
    if not list(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*pip, f"torch_npu=={version}"], check=True)
    (wheel,) = folder.glob(pattern)
    return wheel


def main(folder: Path) -> None:
    found: dict[str, list[str]] = {}
    for version in VERSIONS:
        names = linked(download(version, folder))
        print(f"{version}: {len(names)} functions", flush=True)
        for name in names:
            found.setdefault(name, []).append(version)
    lines = [
        f"{name} {'all' if len(found[name]) == len(VERSIONS) else ' '.join(found[name])}\n"
        for name in sorted(found)
    ]
    TABLE.write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
