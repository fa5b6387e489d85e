# SPDX-License-Identifier: Apache-2.0
"""What the words of `openaclnn compare` stand for: files of arrays and tensors, numbers, lists."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..aten import Parameter, Row
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean, near
from .arguments import WrongUse

NOTHING = "-"  # a result that was not computed, or NULL
TORCH = (".pt", ".pth")


def load(path: str) -> Any:
    """The array or tensor of a file; None for -."""
    if path == NOTHING:
        return None
    return _tensor(path) if path.endswith(TORCH) else _array(path)


def _array(path: str) -> Any:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        with Path(path).open("rb") as file:
            is_one = file.read(6) == b"\x93NUMPY"
        why = error if is_one else "it does not begin as one"  # NumPy takes it for a pickle
        raise WrongUse(f"{path} is not a .npy file: {why}") from None
    if not isinstance(array, np.ndarray):
        raise WrongUse(f"{path} is an archive; pass a .npy file with one array")
    return array


def _tensor(path: str) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise WrongUse(f"{path}: .pt files need PyTorch (pip install torch)") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror or error}") from None
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        why = str(error).strip().splitlines()
        raise WrongUse(
            f"{path} is not a file of torch.save: {why[0] if why else 'empty'}"
        ) from None
    if not isinstance(found, torch.Tensor):
        raise WrongUse(f"{path} must hold one tensor, but holds a {type(found).__name__}")
    return found


def results(names: Sequence[str], files: Sequence[str]) -> Any:
    """As `compare` takes them: a tuple where there are several."""
    arrays = [load(path) for path in files[: len(names)]]
    return arrays[0] if len(names) == 1 else tuple(arrays)


def of_operator(op: Op, files: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The results, and the inputs by name."""
    outputs = [p.result_name for p in op.outputs]
    names = [p.python_name for p in op.input_tensors]
    if len(files) != len(outputs) + len(names):
        raise WrongUse(
            f"{op.python} takes {len(outputs) + len(names)} files ({', '.join(outputs + names)}), "
            f"but got {len(files)}"
        )
    inputs = dict(zip(names, files[len(outputs) :], strict=True))
    for name, path in inputs.items():
        if path == NOTHING:
            raise WrongUse(
                f"{name} must be a file, but is -, which stands for a result that was not computed"
            )
    return results(outputs, files), {name: load(path) for name, path in inputs.items()}


def of_function(row: Row, words: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The results, and the arguments of the C function by name. Each word stands for the next
    parameter, or NAME=WORD for one by name."""
    outputs = [p.name for p in row.given if p.written]
    taken = {p.name: p for p in row.given if not p.written}
    takes = f"{row.name} takes {', '.join(outputs)}, then {', '.join(taken)}"
    if len(words) < len(outputs):
        raise WrongUse(f"{takes}, but got {len(words)} words")
    given: dict[str, str] = {}
    for word in words[len(outputs) :]:
        name, equals, value = word.partition("=")
        if equals and name not in taken and (meant := near(name, taken)):
            raise WrongUse(f"{takes}, but got {word}{did_you_mean(f'{meant}={value}')}")
        if not equals or name not in taken:
            left = [own for own in taken if own not in given]
            if not left:
                raise WrongUse(f"{takes}, but got {word}, too")
            name, value = left[0], word
        elif name in given:
            raise WrongUse(f"{takes}, but got {name} twice")
        given[name] = value
    return results(outputs, words), {name: argument(taken[name], w) for name, w in given.items()}


def argument(p: Parameter, word: str) -> Any:
    """x.npy, [x.npy,y.pt], 0.5, [1,2], true, FLOAT; - is NULL."""
    if word == NOTHING:
        return None
    if p.kind == "tensor":
        if not Path(word).is_file():
            raise WrongUse(f"{p.name} must be a file, but there is no file {word}")
        return load(word)
    if p.kind == "tensors":
        if not (word.startswith("[") and word.endswith("]")):
            raise WrongUse(f"{p.name} must be files in brackets, as [a.npy,b.npy], but is {word}")
        return [load(path) for path in filter(None, word[1:-1].split(","))]
    return word if p.kind in ("text", "dtype") else _number(p, word)


def _number(p: Parameter, word: str) -> Any:
    try:
        return json.loads(word.lower())
    except ValueError:
        pass
    try:
        return float(word)  # inf, nan
    except ValueError:
        what = "a list, as [1,2]" if p.kind.endswith("s") else "a number, true or false"
        raise WrongUse(f"{p.name} must be {what}, but is {word}") from None
