# SPDX-License-Identifier: Apache-2.0
"""The `openaclnn` command."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from .commands import bench, compare, demo, docs, installation, ops, plot, programs, verify, watch
from .settings import config
from .table import OPS
from .text_table import Paint
from .torch_npu import command as npu


class Command(argparse.ArgumentParser):
    """Refuses the words it does not know itself, so that its own usage is shown. All negative
    numbers are values; argparse takes -1e-3 and -inf for options."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        number = r"-((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf|infinity|nan)$"
        self._negative_number_matcher = re.compile(number, re.IGNORECASE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="openaclnn",
        description="The aclnn operator API without the NPU: on any CPU, from Python, C and C++.",
        epilog="Examples:\n"
        "  openaclnn demo\n"
        f"  openaclnn ops {OPS[0].name}\n"
        "  source $(openaclnn home)/set_env.sh",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"openaclnn {config()['version']}")
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=Command
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
            formatter_class=argparse.RawDescriptionHelpFormatter,
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
    programs.add_commands(command)
    watch.add_commands(command)
    npu.add_commands(command)
    docs.add_command(command)
    return top


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(given or ["--help"])
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # → on a terminal that has none
    status = 141  # what shells show for a command that its reader stopped
    try:
        status = arguments.run(arguments, Paint(sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, head or less, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


if __name__ == "__main__":
    sys.exit(main())
