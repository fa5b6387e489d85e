# SPDX-License-Identifier: Apache-2.0
"""Which folder includes or imports which: no arrow climbs up, and none closes a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE, PACKAGE = ROOT / "core", ROOT / "src" / "openaclnn"

# The rooms of the families do not know each other.
FAMILIES = sorted(
    f"kernels/{path.name}"
    for path in (CORE / "kernels").iterdir()
    if path.is_dir() and path.name != "table"
)
# Each room of core with the rooms that its files may include; CONTRIBUTING.md says what they are.
MAY_INCLUDE = {
    "runtime": "",
    "kernels": "",
    **{family: "kernels" for family in FAMILIES},
    "kernels/table": " ".join(FAMILIES),
    "base": "runtime",
    "ops": " ".join(["runtime base kernels kernels/table", *FAMILIES]),
    "check": "runtime base",
    "npu": "runtime",
    "names": "",
    "torch": "ops",
    "jax": "ops",
    "torch/aten": "runtime base npu aten",
    "torch/aten/composites": "torch/aten",
    "torch/hccl": "runtime npu",
    "aten": "runtime base ops",
    "trace": "runtime base ops aten",
}

# A low room of the package knows none of those that people start.
LOW = ("schema", "language", "table", "shapes", "rules", "dtypes", "reference", "gradients",
       "layouts", "errors", "settings",
       *(path.stem for path in PACKAGE.glob("formulas*.py")))  # fmt: skip
HIGH = ("commands", "cli", "verify", "torch", "torch_npu", "jax", "npu")


def room_of(path: Path) -> str:
    return "/".join(path.parts[:-1])


def includes() -> Iterator[tuple[Path, Path]]:
    """Files of core and the files of core that they include, relative to core."""
    for path in sorted(CORE.rglob("*")):
        if path.suffix in {".h", ".cpp", ".inc"}:
            for name in re.findall(r'^#include "core/([^"]+)"', path.read_text("utf-8"), re.M):
                yield path.relative_to(CORE), Path(name)


def needed(node: ast.AST) -> Iterator[ast.ImportFrom]:
    """The relative imports of a module, those inside its functions too, but not those for types."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.ImportFrom) and node.level > 0:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from needed(child)


def imports() -> Iterator[tuple[str, str]]:
    """Modules of the package and the modules that they import."""
    names = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    for name, path in sorted(names.items()):
        if name == "__init__":
            continue
        inside = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in needed(ast.parse(path.read_text(encoding="utf-8"))):
            start = inside[: len(inside) - node.level + 1]
            base = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".strip(".")
                target = deeper if deeper in names else base
                if target in names and target != name:
                    yield name, target


def circle(edges: set[tuple[str, str]]) -> list[str]:
    """The places of one circle, or none: takes away what leads nowhere until nothing changes."""
    while True:
        left = {(a, b) for a, b in edges if any(b == start for start, _ in edges)}
        if left == edges:
            return sorted({a for a, _ in edges})
        edges = left


def test_includes_of_core_go_down():
    found = list(includes())
    assert len(found) > 300
    assert {room_of(path) for path, _ in found} <= set(MAY_INCLUDE)
    wrong = [
        f"core/{path} includes core/{name}"
        for path, name in found
        if room_of(path) != room_of(name)
        and room_of(name) not in MAY_INCLUDE[room_of(path)].split()
    ]
    assert wrong == []


def test_the_rooms_and_the_files_of_core_have_no_circle():
    allowed = {(room, other) for room, others in MAY_INCLUDE.items() for other in others.split()}
    assert circle(allowed) == []
    assert circle({(str(path), str(name)) for path, name in includes()}) == []


def test_the_package_imports_downwards_and_without_a_circle():
    found = set(imports())
    assert len(found) > 300
    wrong = [(a, b) for a, b in found if a in LOW and b.split(".")[0] in HIGH]
    assert wrong == []
    assert circle(found) == []


@pytest.mark.parametrize("edges", ["ab bc ca", "ab bc cb cd", "aa"])
def test_a_circle_is_found(edges):
    assert circle({(e[0], e[1]) for e in edges.split()})


def test_every_room_is_described():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = {path.name for path in CORE.iterdir() if path.is_dir()}
    assert rooms == set(re.findall(r"^core/(\w+)/ ", text, re.M))
