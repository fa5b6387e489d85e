# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels: built once with the compiler at hand and kept in the user's cache.

A build belongs to one torch, one openaclnn, one compiler and one set of sources; all of them are
in its file name. Processes that need it at the same time wait for the one that builds it.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ..settings import config, home
from .source import rows

NO_COMPILER = (
    "no C++ compiler was found (g++, clang++ or c++, or the one that CXX names); install one"
)


class BuildError(RuntimeError):
    """Why the kernels could not be compiled: one sentence."""


def cache() -> Path:
    """OPENACLNN_CACHE, or openaclnn in the user's cache folder."""
    if chosen := os.environ.get("OPENACLNN_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "openaclnn"


def sources() -> Path:
    """core/torch and the header that it needs, as installed."""
    return home() / "share" / "torch"


def compiler() -> list[str] | None:
    """The command of CXX, or the first compiler that is installed."""
    if chosen := os.environ.get("CXX"):
        words = shlex.split(chosen)
        return words if words and shutil.which(words[0]) else None
    found = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    return [found] if found else None


def _options() -> list[str]:
    root = Path(torch.__file__).parent
    abi = int(torch.compiled_with_cxx11_abi())
    return [
        *("-shared", "-fPIC", "-std=c++20", "-O2", "-DNDEBUG", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
        *("-fvisibility=hidden", "-w"),
        *(f"-I{sources()}", f"-I{home() / 'include'}"),
        *(f"-isystem{root / 'include'}", f"-isystem{root / 'include/torch/csrc/api/include'}"),
    ]


def _libraries() -> list[str]:
    """Found under their sonames among what the process has loaded: no path goes into the file."""
    torch_libraries = Path(torch.__file__).parent / "lib"
    return [
        *(f"-L{torch_libraries}", "-lc10", "-ltorch_cpu", "-ltorch"),
        *(f"-L{home() / 'lib64'}", "-lopenaclnn"),
    ]


def _key(command: list[str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(sources().rglob("*")):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(rows().encode())
    facts = (torch.__version__, torch.version.git_version, config()["version"], *command)
    digest.update("\0".join(map(str, facts)).encode())
    return digest.hexdigest()[:16]


def library() -> Path:
    """The file of the build that fits, whether it is there or not."""
    version = torch.__version__.split("+")[0]
    return cache() / f"torch-{version}-{_key(compiler() or [])}.so"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process that holds it
        yield


def _compile(command: list[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
        (Path(folder) / "rows.inc").write_text(rows())
        made = Path(folder) / target.name
        arguments = [*command, *_options(), f"-I{folder}", str(sources() / "library.cpp")]
        arguments += ["-o", str(made), *_libraries()]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True)
        except OSError as error:
            raise BuildError(f"the compiler {command[0]} could not be started: {error}") from None
        if done.returncode != 0:
            log = target.with_suffix(".log")
            log.write_text(f"{shlex.join(arguments)}\n{done.stdout}{done.stderr}")
            raise BuildError(f"the compiler {command[0]} failed; what it said is in {log}")
        os.replace(made, target)  # at once: nobody sees half a file


def build(tell: Callable[[str], None] = lambda text: print(text, file=sys.stderr)) -> Path:
    """The compiled kernels, compiled now if they are not in the cache. BuildError says why not."""
    command = compiler()
    target = library()
    if target.is_file():
        return target
    if command is None:
        raise BuildError(NO_COMPILER)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock")):
            if target.is_file():  # somebody built it while we waited
                return target
            tell(
                f"openaclnn: compiling the PyTorch operators for torch {torch.__version__} "
                f"with {command[0]}, once, about 15 seconds ..."
            )
            begin = time.monotonic()
            _compile(command, target)
            tell(f"openaclnn: compiled in {time.monotonic() - begin:.0f} s, kept in {target}")
    except OSError as error:
        raise BuildError(f"the cache {target.parent} cannot be written: {error}") from None
    return target
