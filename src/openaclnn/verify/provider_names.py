# SPDX-License-Identifier: Apache-2.0
"""The words by which people name what computes the cases.

openaclnn           this library, one provider for each instruction set of this CPU
openaclnn:v3        one of them
torch               eager PyTorch on the CPU
torch:compiled      what torch.compile makes of it
library:PATH        a shared library with the aclnn C interface, in a child process
python:FILE:NAME    a Python function, in a child process
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..rows.catalogue import find_operator
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean, near
from ..settings import config, home
from .library import LibraryProvider
from .provider import BadProvider, Provider
from .python_provider import PythonProvider
from .torch_compiled import CompiledProvider
from .torch_provider import TorchProvider

LEVELS = ("v2", "v3", "v4")
KINDS = ("openaclnn", "torch", "library", "python")


def levels() -> list[str]:
    """The instruction sets that this CPU has, oldest first."""
    newest = str(config()["kernels"])
    return list(LEVELS[: LEVELS.index(newest) + 1]) if newest in LEVELS else [newest]


def named(word: str, timeout: float, ops: Iterable[Op] = ()) -> list[Provider]:
    """The providers of a word; `ops`: what they will be asked for."""
    if word == "torch":
        return [TorchProvider()]
    if word == "torch:compiled":
        return [CompiledProvider()]
    kind, _, rest = word.partition(":")
    if kind == "library" and rest:
        if not Path(rest).is_file():
            raise BadProvider(f"library:{rest}: no such file")
        return [LibraryProvider(word, str(Path(rest).resolve()), timeout, dict(os.environ))]
    if kind == "python" and rest:
        return [_python(word, rest, timeout, list(ops))]
    if kind == "openaclnn":
        known = levels()
        if rest and rest not in known:
            raise BadProvider(f"{word} must be one of {', '.join(known)} on this CPU")
        chosen = [rest] if rest else known
        # The oldest has one thread: the same bits show that neither number counts.
        return [_ours(level, timeout, alone=i == 0 and not rest) for i, level in enumerate(chosen)]
    raise BadProvider(
        "a provider must be openaclnn, openaclnn:LEVEL, torch, torch:compiled, library:PATH or "
        f"python:FILE:FUNCTION, but is {word!r}{_meant(word)}"
    )


def _meant(word: str) -> str:
    """The provider whose first word was misspelt or forgotten."""
    kind, _, rest = word.partition(":")
    if meant := near(kind, KINDS):
        return did_you_mean(f"{meant}:{rest}" if rest else meant)
    if ".py:" in word or word.endswith(".py"):
        return did_you_mean(f"python:{word if ':' in word else f'{word}:FUNCTION'}")
    return did_you_mean(f"library:{word}" if ".so" in Path(word).suffixes else None)


def _ours(level: str, timeout: float, alone: bool) -> Provider:
    variables = os.environ | {"OPENACLNN_ISA": level, "OPENACLNN_PRODUCT": config()["product"]}
    if alone:
        variables["OPENACLNN_NUM_THREADS"] = "1"
    path = str(home() / "lib64" / "libopapi_nn.so")
    return LibraryProvider(f"openaclnn:{level}", path, timeout, variables)


def _python(word: str, rest: str, timeout: float, ops: list[Op]) -> Provider:
    file, _, function = rest.rpartition(":")
    if not file or not function.isidentifier():
        raise BadProvider(f"{word} must name a file and a function: python:FILE:FUNCTION")
    if not Path(file).is_file():
        raise BadProvider(f"{word}: no such file")
    op = ops[0] if len(ops) == 1 else find_operator(function)
    return PythonProvider(word, str(Path(file).resolve()), function, timeout, op)
