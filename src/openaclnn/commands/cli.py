# SPDX-License-Identifier: Apache-2.0
"""The `openaclnn` command."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import _core
from ..report.output import guarded
from ..report.text_table import Paint
from ..rows.suggestions import did_you_mean, near
from . import (
    bench,
    cc,
    check,
    compare,
    completion,
    demo,
    docs,
    installation,
    npu,
    ops,
    plot,
    programs,
    trace,
    verify,
)
from .arguments import ATTRIBUTE, attribute_options

WIDTH = 98


class Parser(argparse.ArgumentParser):
    """Help that cannot be written is an error; argparse ignores it."""

    def error(self, message: str) -> NoReturn:
        """One line; argparse prints the usage before it."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if not isinstance(action, Commands):  # which says more
            super()._check_value(action, value)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
        elif message:
            file.write(message)


class Help(argparse.RawDescriptionHelpFormatter):
    """As wide everywhere as the descriptions, which are wrapped by hand."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=WIDTH)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """Attributes of operators, which are many, count as one word."""
        others = [a for a in actions if not a.dest.startswith(ATTRIBUTE)]
        if len(others) < len(actions):
            others.append(argparse.Action(["[ATTRIBUTES]"], "", nargs=0, required=True))
        return super()._format_usage(usage, others, groups, prefix)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        """A program and its arguments; argparse writes three dots."""
        if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)

    def _format_action(self, action: argparse.Action) -> str:
        """The commands without a line above them."""
        if not isinstance(action, Commands):
            return super()._format_action(action)
        named = list(action._get_subactions())
        wide = max(len(one.dest) for one in named)
        return "".join(f"  {one.dest:{wide}}  {one.help}\n" for one in named)


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Names the command that was probably meant."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if values[0] not in self.choices:
            hint = did_you_mean(near(values[0], self.choices), "see:  openaclnn --help")
            parser.error(f"there is no command {values[0]}{hint}")
        super().__call__(parser, namespace, values, option_string)


class Command(Parser):
    """Refuses the words it does not know itself, in its own name. All negative
    numbers are values; argparse takes -1e-3 and -inf for options."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        number = r"-((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf|infinity|nan)$"
        self._negative_number_matcher = re.compile(number, re.IGNORECASE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [option for option in self._option_string_actions if option.startswith("--")]
            options = [word for word in unknown if word.startswith("-")]
            meant = next(filter(None, (_near_option(word, known) for word in options)), None)
            hint = did_you_mean(meant, self._hint(unknown[0], list(args)))
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def _hint(self, word: str, given: list[str]) -> str:
        before = given[given.index(word) - 1] if word in given[1:] else ""
        option = self._option_string_actions.get(before)
        if option is not None and option.nargs == 0:
            return f"{before} takes no argument"
        if "--cases" in self._option_string_actions and word in attribute_options():
            return "attributes are those of the cases: --cases FILE.json takes your own"
        return f"see:  {self.prog} --help"


def _near_option(word: str, known: Sequence[str]) -> str | None:
    """Without the dashes, which all have in common."""
    meant = near(word.lstrip("-").partition("=")[0], [option[2:] for option in known])
    return f"--{meant}" if meant else None


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="openaclnn",
        usage="openaclnn [--help | --version] COMMAND ...",
        description="The aclnn operator API without the NPU: on any CPU, from Python, C and C++.",
        epilog="Begin with  openaclnn demo.  More:  openaclnn COMMAND --help,  openaclnn docs",
        formatter_class=Help,
        add_help=False,
    )
    top.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    version = f"openaclnn {_core.version}"
    top.add_argument("--version", action="version", version=version, help=argparse.SUPPRESS)
    commands = top.add_subparsers(
        title="commands",
        prog="openaclnn",
        metavar="COMMAND",
        required=True,
        parser_class=Command,
        action=Commands,
    )

    def command(
        name: str, run: Any, summary: str, detail: str, forwards: str | None = None
    ) -> argparse.ArgumentParser:
        """`forwards`: all words after the name, also options, are for another program."""
        theirs: dict[str, Any] = {
            "prefix_chars": "\0",
            "add_help": False,
            "usage": f"openaclnn {name} {forwards}",
        }
        sub = commands.add_parser(
            name,
            help=summary,
            description=detail,
            formatter_class=Help,
            **(theirs if forwards is not None else {}),
        )
        sub.set_defaults(run=run)
        return sub

    demo.add_command(command)
    installation.add_commands(command)
    ops.add_command(command)
    plot.add_command(command)
    compare.add_command(command)
    verify.add_command(command)
    bench.add_command(command)
    cc.add_command(command)
    programs.add_command(command)
    check.add_command(command)
    trace.add_command(command)
    npu.add_commands(command)
    completion.add_command(command, commands)
    docs.add_command(command)
    return top


def main(argv: list[str] | None = None) -> int:
    given = (sys.argv[1:] if argv is None else argv) or ["--help"]

    def run() -> int:
        arguments = parser().parse_args(given)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # → on a terminal that has none
        status: int = arguments.run(arguments, Paint(sys.stdout))
        return status

    return guarded("" if given[0].startswith("-") else given[0], run)


if __name__ == "__main__":
    sys.exit(main())
