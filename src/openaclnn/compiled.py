# SPDX-License-Identifier: Apache-2.0
"""C++ on torch's headers: compiled once with the compiler at hand and kept in the user's cache.

A build belongs to one torch, one openaclnn, one compiler and one set of sources; all of them are
in the name of its folder. Processes that need it at the same time wait for the one that builds it.
torch itself is not imported: its version is enough.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .settings import config, home

NO_COMPILER = (
    "no C++ compiler was found (g++, clang++ or c++, or the one that CXX names); install one"
)


class BuildError(RuntimeError):
    """Why something could not be compiled: one sentence."""


def cache() -> Path:
    """OPENACLNN_CACHE, or openaclnn in the user's cache folder."""
    if chosen := os.environ.get("OPENACLNN_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "openaclnn"


def sources() -> Path:
    """core/torch and the headers that it needs, as installed."""
    return home() / "share" / "torch"


def compiler() -> list[str] | None:
    """The command of CXX, or the first compiler that is installed."""
    if chosen := os.environ.get("CXX"):
        words = shlex.split(chosen)
        return words if words and shutil.which(words[0]) else None
    found = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    return [found] if found else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process that holds it
        yield


class Library:
    """A shared library of generated C++, which may include what lies in core/torch."""

    def __init__(
        self, name: str, torch: Path, version: str, git: str, generated: Mapping[str, str]
    ) -> None:
        self.name, self.torch, self.version, self.git = name, torch, version, git
        self.generated = generated

    def target(self) -> Path:
        """The file of the build that fits, whether it is there or not."""
        digest = hashlib.sha256()
        for path in sorted(sources().rglob("*")):
            if path.is_file():
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        facts = [
            self.version,
            self.git,
            config()["version"],
            *(compiler() or []),
            *self.generated.values(),
        ]
        digest.update("\0".join(facts).encode())
        release = self.version.partition("+")[0]
        return cache() / f"torch-{release}-{digest.hexdigest()[:16]}" / f"lib{self.name}.so"

    def _options(self) -> list[str]:
        return [
            *("-fPIC", "-std=c++20", "-O2", "-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1"),
            *("-fvisibility=hidden", "-w", f"-I{sources()}", f"-I{home() / 'include'}"),
            *("-isystem", f"{self.torch / 'include'}"),
            *("-isystem", f"{self.torch / 'include/torch/csrc/api/include'}"),
            *("-isystem", f"{sources() / 'core' / 'torch' / 'hccl' / 'declarations'}"),
        ]

    def _link_options(self) -> list[str]:
        """Libraries are found under their sonames among what the process has loaded."""
        return [
            *("-shared", f"-Wl,-soname,lib{self.name}.so"),
            *(f"-L{self.torch / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch"),
            *(f"-L{home() / 'lib64'}", "-lopenaclnn"),
        ]

    def _run(self, command: Sequence[str], log: Path) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise BuildError(f"the compiler {command[0]} could not be started: {error}") from None
        if done.returncode != 0:
            log.write_text(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
            raise BuildError(f"the compiler {command[0]} failed; what it said is in {log}")

    def _compile(self, command: list[str], target: Path) -> None:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
            for name, text in self.generated.items():
                (Path(folder) / name).write_text(text)

            def compiled(file: Path) -> str:
                made = str(Path(folder) / f"{file.stem}.o")
                log = target.with_suffix(".log")
                self._run([*command, *self._options(), "-c", str(file), "-o", made], log)
                return made

            with ThreadPoolExecutor(os.cpu_count()) as threads:
                objects = list(threads.map(compiled, sorted(Path(folder).glob("*.cpp"))))
            made = Path(folder) / target.name
            self._run(
                [*command, *objects, "-o", str(made), *self._link_options()],
                target.with_suffix(".log"),
            )
            os.replace(made, target)  # at once: nobody sees half a file

    def build(self) -> Path:
        """The library, compiled now if it is not in the cache. BuildError says why not."""
        command, target = compiler(), self.target()
        if target.is_file():
            return target
        if command is None:
            raise BuildError(NO_COMPILER)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _locked(target.with_suffix(".lock")):
                if target.is_file():  # somebody built it while we waited
                    return target
                print(
                    f"openaclnn: compiling {target.name} for torch {self.version} with "
                    f"{command[0]}, once, about 15 seconds ...",
                    file=sys.stderr,
                )
                begin = time.monotonic()
                self._compile(command, target)
                took = time.monotonic() - begin
                print(f"openaclnn: compiled in {took:.0f} s: {target}", file=sys.stderr)
        except OSError as error:
            raise BuildError(f"the cache {target.parent} cannot be written: {error}") from None
        return target
