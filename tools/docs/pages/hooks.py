# SPDX-License-Identifier: Apache-2.0
"""What mkdocs adds to docs/: the READMEs and their like from where they are, a page for every
operator, one for all that ATen computes, the Python API, the command line, the tables of the
benchmarks, and a page for every file of the repository that a page links to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / room) for room in ("tools/docs", "tools/build", "benchmarks")]

import page as benchmarks_page  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from pages import command_line, python_api  # noqa: E402
from pages.landing import DOORS, with_doors  # noqa: E402
from pages.operators import overview, page  # noqa: E402
from reference_pages import aten_page  # noqa: E402
from suites import SUITES  # noqa: E402

from openaclnn.plotting.curves import curves, first_attributes  # noqa: E402
from openaclnn.plotting.picture import svg  # noqa: E402
from openaclnn.rows.table import OPS  # noqa: E402

# Pages outside docs/, and that of docs/ whose name the front page has.
PAGES = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh.md",
    "docs/index.md": "documentation.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "tests.md",
    "benchmarks/README.md": "benchmarks.md",
}
RECORDS = {f"benchmarks/records/{name}.jsonl": name for name in SUITES}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
NOT_FOUND = "---\nsearch:\n  exclude: true\n---\n"
FIRST = "---\nsearch:\n  boost: 4\n---\n"  # among the results of a search
LANGUAGES = {".py": "python", ".cpp": "cpp", ".c": "c", ".h": "c", ".json": "json"}


def source_of(uri: str) -> str | None:
    """The path in the repository of a page of the site, if it is a file there."""
    by_uri = {site: path for path, site in PAGES.items()}
    found = by_uri.get(uri, f"docs/{uri}")
    return found if (ROOT / found).is_file() else None


def uri_of(path: str) -> str:
    """Where the site has a file or folder of the repository."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in RECORDS:
        return f"reference/measurements/{RECORDS[path]}.md"
    return f"files/{path}.md"


def targets(text: str, source: str) -> set[str]:
    """The paths in the repository that a page links to."""
    here = source.rpartition("/")[0]
    links = (match[2].partition("#")[0] for match in LINK.finditer(without_code(text)))
    return {normpath(f"{here}/{link}" if here else link) for link in links if is_path(link)}


def is_path(link: str) -> bool:
    return bool(link) and not re.match(r"[a-z]+:|#|/", link)


def without_code(text: str) -> str:
    return re.sub(r"^(```+).*?^\1$", "", text, flags=re.M | re.S)


def file_page(path: str) -> str:
    """A file as code; of a folder its files."""
    place = ROOT / path
    if place.is_dir():
        listed = subprocess.run(
            ["git", "ls-files", path], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        rows = "".join(f"* `{line.removeprefix(path + '/')}`\n" for line in listed.splitlines())
        return f"# {path}/\n\n{rows}"
    return f"# {path}\n\n````{LANGUAGES.get(place.suffix, 'text')}\n{place.read_text()}````\n"


def on_config(config: Any) -> Any:
    for entry in config.nav:
        if "Operators" in entry:
            entry["Operators"] = ["operators/index.md"] + [
                {op.name.removeprefix("aclnn"): f"operators/{op.python}.md"} for op in OPS
            ]
            entry["Operators"].append({"Computed by ATen": "operators/aten.md"})
    return config


def on_files(files: Files, *, config: Any) -> Files:
    def add(uri: str, content: str) -> None:
        files.append(File.generated(config, uri, content=content))

    files.remove(files.src_uris["index.md"])
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    add("operators/index.md", overview())
    for op in OPS:
        add(f"operators/{op.python}.md", FIRST + page(op))
        add(f"operators/{op.python}.svg", svg(curves(op, first_attributes(op))))
    for path, name in RECORDS.items():
        add(uri_of(path), benchmarks_page.section(name))
    add("operators/aten.md", aten_page().replace("../../docs/", "../"))
    add("reference/python_api.md", python_api.page())
    add("reference/command_line.md", command_line.page())
    pages = [ROOT / (source_of(f.src_uri) or "") for f in files.documentation_pages()]
    for text_page in [p for p in pages if p.is_file()]:
        for path in targets(text_page.read_text(), str(text_page.relative_to(ROOT))):
            uri = uri_of(path)
            if uri.startswith("files/") and (ROOT / path).exists() and uri not in files.src_uris:
                add(uri, NOT_FOUND + file_page(path))
    for file in files:
        if file.src_uri.startswith(("files/", "reference/measurements/")):
            file.inclusion = type(file.inclusion).NOT_IN_NAV
    return files


def in_chinese(page: Any) -> bool:
    uri: str = page.file.src_uri
    return uri == "zh.md" or uri.endswith(".zh-CN.md")


def on_nav(nav: Any, **_: Any) -> Any:
    """Previous and next stay within a language."""
    for one in nav.pages:
        if one.next_page is not None and in_chinese(one) != in_chinese(one.next_page):
            one.next_page.previous_page = one.next_page = None
    return nav


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links between files of the repository become links between pages of the site. Without the
    comment before it, the first heading is the title in the navigation."""
    markdown = re.sub(r"\A(<!--.*?-->\n)+", "", markdown)
    if page.file.src_uri in DOORS:
        markdown = with_doors(markdown, page.file.src_uri)
    source = source_of(page.file.src_uri)
    if source is None:
        return markdown
    folder = source.rpartition("/")[0]
    own = page.file.src_uri.rpartition("/")[0]

    def moved(match: re.Match[str]) -> str:
        link, hash_, anchor = match[2].partition("#")
        if not is_path(link):
            return match[0]
        uri = uri_of(normpath(f"{folder}/{link}" if folder else link))
        return f"{match[1]}{relpath(uri, own or '.')}{hash_}{anchor}{match[3]}"

    parts = re.split(r"(^(?:```+).*?^```+$)", markdown, flags=re.M | re.S)
    return "".join(p if p.startswith("```") else LINK.sub(moved, p) for p in parts)


def on_page_context(context: Any, *, page: Any, config: Any, **_: Any) -> Any:
    """Search, contents, previous and next in the language of the page."""
    config.theme["language"] = "zh" if in_chinese(page) else "en"
    return context


def on_page_content(html: str, **_: Any) -> str:
    r"""In a table `\|` is a bar: GitHub shows it so in code, too, Python-Markdown with its mark."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.S)
