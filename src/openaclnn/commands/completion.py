# SPDX-License-Identifier: Apache-2.0
"""`openaclnn completion`: a script with which a shell completes commands, options and names."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterator

from ..report.text_table import Paint
from ..rows.table import OPS
from .docs import pages

BASH = """\
_openaclnn() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words=
  case "$COMP_CWORD ${{COMP_WORDS[1]}} $prev $cur" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _openaclnn openaclnn
"""
ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"
SHELLS = ("bash", "zsh", "fish")


def takes_value(action: argparse.Action | None) -> bool:
    return action is not None and action.nargs != 0


def words_of(action: argparse.Action) -> list[str]:
    """The values that an argument takes; none: files."""
    known = {
        "OPERATOR": [name for op in OPS for name in (op.python, op.name)],
        "DTYPE": ["fp16", "bf16", "fp32", "fp64"],
        "PAGE": list(pages()),
        "SHELL": list(SHELLS),
    }
    return known.get(str(action.metavar or action.dest.upper()), [])


def options(sub: argparse.ArgumentParser) -> list[tuple[str, argparse.Action | None]]:
    """Long options; those of commands that forward their words are in the usage alone."""
    own = {o: a for a in sub._actions for o in a.option_strings if o.startswith("--")}
    found = re.findall(r"--[a-z]+", sub.usage or "")
    return [*own.items(), *((option, None) for option in found)]


def bash(commands: dict[str, argparse.ArgumentParser]) -> str:
    cases = [('"1 "*', [*commands, "--help", "--version"])]
    for name, sub in commands.items():
        known = options(sub)
        cases += [(f'*" {name} {o} "*', words_of(a)) for o, a in known if a and takes_value(a)]
        cases.append((f'*" {name} "*" -"*', [o for o, _ in known]))
        named = [w for a in sub._actions if not a.option_strings for w in words_of(a)]
        cases.append((f'*" {name} "*', named))
    lines = [f'    {pattern}) words="{" ".join(words)}" ;;' for pattern, words in cases]
    return BASH.format(cases="\n".join(lines))


def fish(commands: dict[str, argparse.ArgumentParser], summaries: dict[str, str]) -> Iterator[str]:
    first = "complete -c openaclnn -n __fish_use_subcommand"
    yield f"{first} -l help\n{first} -l version"
    for name, sub in commands.items():
        yield f"{first} -f -a {name} -d {shlex.quote(summaries[name])}"
        here = f"complete -c openaclnn -n '__fish_seen_subcommand_from {name}'"
        for option, action in options(sub):
            takes = " -r" if takes_value(action) else ""
            if action and (values := words_of(action)):
                takes = f" -x -a '{' '.join(values)}'"
            about = f" -d {shlex.quote(action.help)}" if action and action.help else ""
            yield f"{here} -l {option[2:]}{takes}{about}"
        for action in sub._actions:
            if not action.option_strings and (values := words_of(action)):
                yield f"{here} -f -a '{' '.join(values)}'"


def run(arguments: argparse.Namespace, _: Paint) -> int:
    made = arguments.commands
    if arguments.shell == "fish":
        summaries = {a.dest: a.help or "" for a in made._choices_actions}
        print("\n".join(fish(made.choices, summaries)))
    else:
        print(ZSH * (arguments.shell == "zsh") + bash(made.choices), end="")
    return 0


def add_command(command: Callable[..., argparse.ArgumentParser], commands: argparse.Action) -> None:
    sub = command(
        "completion",
        run,
        "print a script that completes commands in your shell",
        "Prints a script for bash, zsh or fish that completes commands, options, operators and\n"
        "pages. For every new shell, put the line into its start file:\n\n"
        '  eval "$(openaclnn completion bash)"       ~/.bashrc\n'
        '  eval "$(openaclnn completion zsh)"        ~/.zshrc\n'
        "  openaclnn completion fish | source        ~/.config/fish/config.fish",
    )
    sub.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    sub.set_defaults(commands=commands)
