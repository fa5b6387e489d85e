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

CHINESE = ".zh-CN"  # after the name of the page in English
# In the order of the site's navigation.
FOLDERS = ("start", "tutorials", "howto", "reference", "design", "contribute")


def folder() -> Path:
    """Where the pages are."""
    return home() / "share" / "docs"


def pages() -> dict[str, Path]:
    """The pages by name, folder after folder; the index first."""
    root = folder()
    places = [
        *sorted(root.glob("*.md")),
        *(p for name in FOLDERS for p in sorted((root / name).glob("*.md"))),
    ]
    return {path.name.removesuffix(".md"): path for path in places}


def title(page: Path) -> str:
    """The first heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))


def headings(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith(("## ", "### ")))


def in_language(known: dict[str, Path]) -> dict[str, Path]:
    """One page for each subject: the Chinese one if the locale is Chinese and there is one."""
    chinese = {name.removesuffix(CHINESE): name for name in known if name.endswith(CHINESE)}
    if not _reads_chinese():
        return {name: path for name, path in known.items() if not name.endswith(CHINESE)}
    subjects = dict.fromkeys(name.removesuffix(CHINESE) for name in known)
    return {name: known[chinese.get(name, name)] for name in subjects}


def show_list(known: dict[str, Path], paint: Paint) -> None:
    shown = in_language(known)
    wide = max(map(len, shown))
    print(f"{paint('index'.ljust(wide + 2), 'bold')}  {title(shown.pop('index'))}")
    for name, group in groupby(shown.items(), key=lambda item: item[1].parent.name):
        print(f"\n{name}")
        for page, path in group:
            print(f"  {paint(f'{page:{wide}}', 'bold')}  {title(path)}")
    print(f"\nThe pages are in {folder()}.")
    if not _reads_chinese():
        print("中文页面 (in Chinese):  openaclnn docs index.zh-CN")


def show_docs(arguments: argparse.Namespace, paint: Paint) -> int:
    known = pages()
    if arguments.page is None:
        show_list(known, paint)
        return 0
    name = Path(arguments.page).name.removesuffix(".md")
    if name not in known:
        meant = _meant(name, known)
        if len(meant) > 1:
            print(f"openaclnn docs: several pages have {arguments.page}:", file=sys.stderr)
            for page in meant:
                print(f"  {page:{max(map(len, meant))}}  {title(known[page])}", file=sys.stderr)
            return 2
        if not meant:
            hint = did_you_mean(near(name, known), "see:  openaclnn docs")
            print(f"openaclnn docs: there is no page {arguments.page}{hint}", file=sys.stderr)
            return 2
        name = meant[0]
    if _reads_chinese() and f"{name}{CHINESE}" in known:
        name = f"{name}{CHINESE}"
    _, text = known[name].read_text(encoding="utf-8").split("\n", 1)
    print(text, end="")
    return 0


def _reads_chinese() -> bool:
    """By the locale of messages."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return locale.startswith("zh")


def _meant(name: str, known: dict[str, Path]) -> list[str]:
    """Pages with this in their names, otherwise in their titles, otherwise in a heading; a subject
    once."""
    word = name.casefold()
    if not word:
        return []
    found = [page for page in known if word in page]
    for first in (title, headings):
        found = found or [page for page, path in known.items() if word in first(path).casefold()]
    return [p for p in found if not p.endswith(CHINESE) or p.removesuffix(CHINESE) not in found]


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command."""
    docs = command(
        "docs",
        show_docs,
        "list the pages of documentation, or print one",
        "Lists the pages that are installed with openaclnn, and says where they are. With a name,\n"
        "or a word that one name, title or heading has, prints that page, in Markdown; in Chinese\n"
        "if the locale is and the page is translated.\n\n"
        "  openaclnn docs\n"
        "  openaclnn docs check_mode | less",
    )
    docs.add_argument("page", nargs="?", metavar="PAGE", help="the page to print; otherwise a list")
