# SPDX-License-Identifier: Apache-2.0
"""`openaclnn docs`: the pages of documentation that are installed with the package."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from ..report.text_table import Paint
from ..rows.suggestions import did_you_mean, near
from ..settings import home

# In the order of the site's navigation.
FOLDERS = ("start", "tutorials", "howto", "reference", "design", "contribute")


def folder() -> Path:
    """Where the pages are."""
    return home() / "share" / "docs"


def pages() -> dict[str, Path]:
    """The pages by name, folder after folder; the index first."""
    root = folder()
    places = [
        root / "index.md",
        *(p for name in FOLDERS for p in sorted((root / name).glob("*.md"))),
    ]
    return {path.stem: path for path in places}


def title(page: Path) -> str:
    """The first heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))


def show_docs(arguments: argparse.Namespace, paint: Paint) -> int:
    known = pages()
    if arguments.page is None:
        wide = max(map(len, known))
        print(f"{paint('index'.ljust(wide + 2), 'bold')}  {title(known['index'])}")
        rest = (item for item in known.items() if item[0] != "index")
        for name, group in groupby(rest, key=lambda item: item[1].parent.name):
            print(f"\n{name}")
            for page, path in group:
                print(f"  {paint(f'{page:{wide}}', 'bold')}  {title(path)}")
        print(f"\nThe pages are in {folder()}.")
        return 0
    name = Path(arguments.page).name.removesuffix(".md")
    if name not in known:
        hint = did_you_mean(" or ".join(_meant(name, known)), "see:  openaclnn docs")
        print(f"openaclnn docs: there is no page {arguments.page}{hint}", file=sys.stderr)
        return 2
    if _reads_chinese() and f"{name}.zh-CN" in known:
        name = f"{name}.zh-CN"
    _, text = known[name].read_text(encoding="utf-8").split("\n", 1)
    print(text, end="")
    return 0


def _reads_chinese() -> bool:
    """By the locale of messages."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return locale.startswith("zh")


def _meant(name: str, known: dict[str, Path]) -> list[str]:
    """Pages whose name or title has this in it, or that are spelt nearly so."""
    word = name.casefold()
    if not word:
        return []
    within = [page for page in known if word in page]
    titled = [page for page, path in known.items() if word in title(path).casefold()]
    return within or titled or [page for page in [near(name, known)] if page]


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command."""
    docs = command(
        "docs",
        show_docs,
        "list the pages of documentation, or print one",
        "Lists the pages that are installed with openaclnn, and says where they are. With a name,\n"
        "prints that page, in Markdown; in Chinese if the locale is and the page is translated.\n\n"
        "  openaclnn docs\n"
        "  openaclnn docs check_mode | less",
    )
    docs.add_argument("page", nargs="?", metavar="PAGE", help="the page to print; otherwise a list")
