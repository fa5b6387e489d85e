# SPDX-License-Identifier: Apache-2.0
"""C++ on the headers of another package, such as torch: compiled once with the compiler at hand and
kept in the user's cache.

A build belongs to one version of that package, one openaclnn, one compiler, one kind of CPU and
one set of sources; all of them are in the name of its file. Processes that need it at the same time
wait for the one that builds it. Beside the file stands its digest: one that was cut off or emptied
since would end the process that loads it. The package itself is not imported: where it lies and its
version are enough.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .settings import config, home

NO_COMPILER = (
    "no C++ compiler was found (g++, clang++ or c++, or the one that CXX names); install one"
)
_FLAGS = (
    *("-fPIC", "-std=c++20", "-O2", "-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1"),
    *("-fvisibility=hidden", "-w"),
)


class BuildError(RuntimeError):
    """Why something could not be compiled: one sentence."""


@dataclass(frozen=True)
class Package:
    """The package that a build belongs to."""

    name: ClassVar[str]
    seconds: ClassVar[int]  # that a build takes, about
    linked: ClassVar[tuple[str, ...]]  # its libraries, as options

    folder: Path
    version: str  # "2.13.0+cpu"
    git: str

    @property
    def release(self) -> str:
        return self.version.partition("+")[0]

    @property
    def include(self) -> tuple[Path, ...]:
        """Folders of headers."""
        return (self.folder / "include",)


class Torch(Package):
    """PyTorch."""

    name = "torch"
    seconds = 15
    linked = ("-lc10", "-ltorch_cpu", "-ltorch")

    @property
    def include(self) -> tuple[Path, ...]:
        include = self.folder / "include"
        return include, include / "torch/csrc/api/include"


class Jaxlib(Package):
    """The compiled half of JAX. What is built on it receives all that it calls in a table of
    functions, so nothing of it is linked."""

    name = "jaxlib"
    seconds = 4
    linked = ()


def cache() -> Path:
    """OPENACLNN_CACHE, or openaclnn in the user's cache folder."""
    if chosen := os.environ.get("OPENACLNN_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "openaclnn"


def compiler() -> list[str] | None:
    """The command of CXX, or the first compiler that is installed, by its path: what one of them
    has built is not built again by the other."""
    first, *rest = shlex.split(os.environ.get("CXX", "")) or [""]
    names = [first] if first else ["g++", "clang++", "c++"]
    found = next(filter(None, map(shutil.which, names)), None)
    return [found, *rest] if found else None


def digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def digest_file(target: Path) -> Path:
    """Where the digest of a build is kept."""
    return target.with_suffix(".sha256")


def is_whole(target: Path) -> bool:
    """Whether the build exists as it was made."""
    try:
        return digest_file(target).read_text() == digest_of(target)
    except OSError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process that holds it
        yield


@dataclass(frozen=True)
class Library:
    """A shared library of generated files, which may include what lies in `sources`."""

    what: str  # "the PyTorch operators"
    package: Package
    sources: Path
    generated: Mapping[str, str]  # by file name; those that end in .cpp are compiled
    soname: str | None = None  # the name under which a loader looks for it
    declarations: Sequence[str] = ()  # folders of `sources` that stand in for headers of others

    def target(self) -> Path:
        """The file of the build that fits, whether or not it exists."""
        digest = hashlib.sha256()
        for path in sorted(self.sources.rglob("*")):
            if path.is_file():
                name = str(path.relative_to(self.sources))
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
        package = self.package
        facts = [package.name, package.version, package.git, config()["version"]]
        facts += [platform.machine()]  # a home may be shared by machines of several kinds
        facts += [*(compiler() or []), *_FLAGS, *package.linked]
        facts += [*self.declarations, self.soname or ""]
        facts += [part for item in self.generated.items() for part in item]
        digest.update("\0".join(facts).encode())
        name = f"{package.name}-{package.release}-{digest.hexdigest()[:16]}"
        return cache() / name / self.soname if self.soname else cache() / f"{name}.so"

    def _options(self) -> list[str]:
        return [
            *(*_FLAGS, f"-I{self.sources}", f"-I{home() / 'include'}"),
            *(f"-isystem{folder}" for folder in self.package.include),
            *(f"-isystem{self.sources / folder}" for folder in self.declarations),
        ]

    def _link_options(self) -> list[str]:
        """Libraries are found under their sonames among what the process has loaded."""
        return [
            *("-shared", *([f"-Wl,-soname,{self.soname}"] if self.soname else [])),
            *(f"-L{self.package.folder / 'lib'}", f"-L{home() / 'lib64'}"),
            *(*self.package.linked, "-lopenaclnn"),
        ]

    def _run(self, command: Sequence[str], log: Path) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise BuildError(f"the compiler {command[0]} could not be started: {error}") from None
        if done.returncode != 0:
            log.write_text(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
            raise BuildError(f"the compiler {command[0]} failed; its output is in {log}")

    def _compile(self, command: Sequence[str], target: Path) -> None:
        """Under the lock. An interrupted build leaves its folder, and the next has its objects."""
        log, folder = target.with_suffix(".log"), target.with_suffix(".build")
        folder.mkdir(exist_ok=True)
        for name, text in self.generated.items():
            (folder / name).write_text(text)
        options = [*self._options(), f"-I{folder}"]

        def compiled(file: Path) -> str:
            made, part = file.with_suffix(".o"), file.with_suffix(".part")
            if not made.exists():
                self._run([*command, *options, "-c", str(file), "-o", str(part)], log)
                os.replace(part, made)
            return str(made)

        units = sorted(folder.glob("*.cpp"))
        if len(units) == 1:  # compiled and linked by one command
            parts = [*options, str(units[0])]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                parts = []
                for part in threads.map(compiled, units):
                    parts.append(part)
                    progress = f"{len(parts)} of {len(units)} files compiled"
                    print(f"openaclnn: {progress}", file=sys.stderr)
        made, digest = folder / target.name, folder / "digest"
        self._run([*command, *parts, "-o", str(made), *self._link_options()], log)
        digest.write_text(digest_of(made))
        os.replace(made, target)  # at once: nobody sees half a file
        os.replace(digest, digest_file(target))
        shutil.rmtree(folder)

    def build(self) -> Path:
        """The library, compiled now if the cache does not have it whole. BuildError says why
        not."""
        command, target = compiler(), self.target()
        if is_whole(target):
            return target
        if command is None:
            raise BuildError(NO_COMPILER)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _locked(target.with_suffix(".lock")):
                if is_whole(target):  # somebody built it while we waited
                    return target
                damaged = f"{target} is damaged; " if target.exists() else ""
                print(
                    f"openaclnn: {damaged}compiling {self.what} for {self.package.name} "
                    f"{self.package.version} with {command[0]}, once, about "
                    f"{self.package.seconds} seconds on two free cores ...",
                    file=sys.stderr,
                )
                begin = time.monotonic()
                self._compile(command, target)
                took = time.monotonic() - begin
                print(f"openaclnn: compiled in {took:.0f} s, kept in {target}", file=sys.stderr)
        except OSError as error:
            raise BuildError(f"the cache {target.parent} cannot be written: {error}") from None
        return target
