# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn verify` says of Python functions besides their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from openaclnn.commands.cli import main

pytestmark = pytest.mark.programs

RIGHT = """
import numpy as np

def leaky_relu(x, negative_slope):
    print("called with", x.dtype)
    wide = x.astype(float)
    return np.where(wide > 0, wide, wide * negative_slope).astype(x.dtype)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def verify(source, *words):
    Path("mine.py").write_text(source, encoding="utf-8")
    return main(["verify", "python:mine.py:leaky_relu", "--quiet", *words])


def test_what_a_function_prints_is_shown_for_a_single_case(capsys):
    assert verify(RIGHT, "--only", "leaky_relu/FLOAT/80") == 0
    assert "python:mine.py:leaky_relu printed:\ncalled with float32\n" in capsys.readouterr().err
    assert verify(RIGHT, "--dtype", "fp32") == 0
    assert "called with" not in "".join(capsys.readouterr())


def test_a_function_with_the_name_of_an_operator_is_judged_as_that(capsys):
    assert verify(RIGHT, "--dtype", "fp32") == 0
    shown = capsys.readouterr().out
    assert "leaky_relu" in shown
    assert "hardshrink" not in shown  # a row without results


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "import torch\ndef leaky_relu(x, negative_slope): return x.astype(float)",
            "'Tensor' object has no attribute 'astype'; arguments are arrays of torch, because",
        ),
        (
            "def leaky_relu(x, negative_slope, out): return 0",
            "the function must return out: None after writing them, but returned 0",
        ),
        (
            "def leaky_relu(x, negative_slope): return 0",
            "the function must return out: arrays, but returned 0",
        ),
    ],
    ids=("methods of NumPy", "a status", "a number"),
)
def test_mistakes_of_the_function(source, sentence, capsys):
    pytest.importorskip("torch")
    assert verify(source, "--dtype", "fp32") == 1
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "meant"),
    [("pyton:mine.py:elu", "python:mine.py:elu"), ("tourch", "torch"), ("mine.py", "python:mine")],
)
def test_a_misspelt_provider(word, meant, capsys):
    assert main(["verify", word]) == 2
    assert f"did you mean {meant}" in capsys.readouterr().err
