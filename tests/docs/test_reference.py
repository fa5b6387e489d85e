# SPDX-License-Identifier: Apache-2.0
"""The site's pages of the Python API and of the command line name everything that there is."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import openaclnn
from openaclnn.commands.arguments import ATTRIBUTE
from openaclnn.rows.table import OPS

sys.path += [str(Path(__file__).parents[2] / "tools" / room) for room in ("docs", "build")]
from pages import command_line, python_api


def sections(page: str, mark: str) -> dict[str, str]:
    """The text below each heading."""
    parts = re.split(rf"^{mark} (.*)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def api() -> dict[str, str]:
    return sections(python_api.page(), "##")


def test_every_name_of_the_package_is_on_the_page(api):
    """With its docstring; operators are in a table."""
    found = sections(api["openaclnn"], "###")
    named = set(openaclnn.__all__) - {op.python for op in OPS}
    assert set(found) == {*named, "Operators", *python_api.RESULTS}
    assert [name for name, text in found.items() if len(text.split()) < 5] == []
    for part, module in ((found["Operators"], "openaclnn"), (api["openaclnn.jax"], "jax")):
        rows = re.findall(r"^\| \[`(\w+)\(", part, re.M)
        assert rows == [op.python for op in OPS], module
    for name in dir(openaclnn.aclnn):
        assert f"`{name}`" in api["openaclnn.aclnn"], name


def test_every_name_of_openaclnn_torch_is_on_the_page(api):
    found = sections(api["openaclnn.torch"], "###")
    assert sorted(found) == sorted(python_api.torch_names())
    assert [name for name, text in found.items() if "None" in text.split()[:1]] == []
    assert [name for name, text in found.items() if len(text.split()) < 5] == []


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_the_names_of_openaclnn_torch_are_those_that_it_has():
    import openaclnn.torch as ot

    assert python_api.torch_names() == ot.__all__
    for name in ot.__all__:
        assert getattr(ot, name).__doc__, name


def test_every_command_and_option_is_on_the_page():
    page = command_line.page()
    found = sections(page, "##")
    commands = command_line.commands()
    assert list(found) == list(commands)
    assert len(commands) > 10
    for name, command in commands.items():
        assert f"| [{name}](#{name}) | " in page
        for action in command._actions:
            if action.dest != "help" and not action.dest.startswith(ATTRIBUTE):
                for option in action.option_strings:
                    assert f"`{option}" in found[name] or f", {option}" in found[name], option
