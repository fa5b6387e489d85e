# SPDX-License-Identifier: Apache-2.0
"""The page of the command line, from the parser: every command with its description and options."""

from __future__ import annotations

import argparse

from openaclnn.commands.arguments import ATTRIBUTE
from openaclnn.commands.cli import Commands, parser


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (action for action in parser()._actions if isinstance(action, Commands))
    return dict(found.choices)


def summaries() -> dict[str, str]:
    (found,) = (action for action in parser()._actions if isinstance(action, Commands))
    return {choice.dest: choice.help or "" for choice in found._choices_actions}


def arguments(sub: argparse.ArgumentParser) -> list[argparse.Action]:
    """Without the attributes of operators, which are many, and --help."""
    return [
        a for a in sub._actions
        if not a.dest.startswith(ATTRIBUTE) and a.dest != "help" and a.help != argparse.SUPPRESS
    ]  # fmt: skip


def usage(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return value
    takes = "" if action.nargs == 0 else f" {value}"
    if action.choices is not None and action.metavar is None:
        takes = " {" + ",".join(map(str, action.choices)) + "}"
    return ", ".join(f"{option}{takes}" for option in action.option_strings)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def table(sub: argparse.ArgumentParser) -> str:
    rows = [f"| `{cell(usage(a))}` | {cell((a.help or '') % vars(a))} |" for a in arguments(sub)]
    if any(a.dest.startswith(ATTRIBUTE) for a in sub._actions):
        rows.append("| `--alpha NUMBER` … | attributes of the operator, by Python name |")
    return "\n".join(["| argument | meaning |", "| --- | --- |", *rows, ""]) if rows else ""


def page() -> str:
    text = "# Command line\n\nWhat `openaclnn --help` and `openaclnn COMMAND --help` print.\n\n"
    text += "| command | what it does |\n| --- | --- |\n"
    about = summaries()
    text += "".join(f"| [{name}](#{name}) | {cell(about.get(name, ''))} |\n" for name in commands())
    for name, sub in commands().items():
        text += f"\n## {name}\n\n```text\n{(sub.description or '').strip()}\n```\n\n{table(sub)}"
    return text
