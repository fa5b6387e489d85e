# SPDX-License-Identifier: Apache-2.0
"""Which folder may include or import which, for the whole repository: no arrow climbs, none closes
a circle, and no folder stands outside the matrix."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from os.path import normpath
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "openaclnn"

# C and C++: a folder and the folders whose headers it may include. Kernels of families do not know
# each other. CONTRIBUTING.md says what the folders are.
FAMILIES = sorted(
    f"core/kernels/{path.name}"
    for path in (ROOT / "core" / "kernels").iterdir()
    if path.is_dir() and path.name != "table"
)
# What torch's gloo declares, of which the wheel has no headers.
GLOO = [f"core/torch/hccl/declarations/gloo{room}" for room in ("", "/common", "/rendezvous",
                                                               "/transport")]  # fmt: skip
RUNTIME = "core/support core/runtime"
MAY_INCLUDE = {
    "core/support": "",
    "core/runtime": "core/support",
    "core/memory": RUNTIME,
    "core/tasks": f"{RUNTIME} core/memory",
    "core/kernels": "",
    **{family: "core/kernels" for family in FAMILIES},
    "core/kernels/table": " ".join(FAMILIES),
    "core/base": f"{RUNTIME} core/memory",
    "core/ops": " ".join(
        [RUNTIME, "core/base", "core/kernels", "core/kernels/table", *FAMILIES]
    ),
    "core/check": f"{RUNTIME} core/memory core/base",
    "core/acl": RUNTIME,
    "core/hccl": f"{RUNTIME} core/acl",
    "core/npu": RUNTIME,
    "core/mspti": RUNTIME,
    "core/smi": "",
    "core/names": "",
    "core/torch": "core/ops",
    "core/jax": "core/ops",
    "core/aten": f"{RUNTIME} core/base core/ops",
    "core/trace": f"{RUNTIME} core/base core/ops core/aten",
    "core/torch/aten": f"{RUNTIME} core/base core/ops core/acl core/npu core/aten core/torch",
    "core/torch/aten/composites": "core/runtime core/hccl core/torch/aten core/torch/hccl",
    "core/torch/hccl": f"{RUNTIME} core/hccl",
    **dict.fromkeys(GLOO, ""),
    "src/openaclnn/binding": f"{RUNTIME} core/memory core/base core/ops core/trace",
    "src/openaclnn/bench": "",
    "tests/fuzz": f"{RUNTIME} core/memory core/base",
    "tests/fuzz/families": "tests/fuzz",
    "tests/check": "examples/mistakes",
    "tests/core": f"{RUNTIME} core/base core/ops",
    **{
        folder: ""
        for folder in (
            "tests/c", "tests/trace", "tests/bits", "tests/abi/styles", "tests/aten/programs",
            "tests/aten/fuzz",
            "tests/npu/device", "tests/verify", "examples", "examples/aten",
            "examples/mistakes", "include", "tools/release/wheel", "benchmarks",
        )
    },
}  # fmt: skip

# Python: a room of the package and the rooms that it may import; "top" are the public modules.
MAY_IMPORT = {
    "rows": "",
    "report": "",
    "binding": "",
    "top": "rows aten",
    "reference": "rows report top",
    "plotting": "rows report reference",
    "demo": "rows report reference plotting top",
    "bench": "rows report reference plotting top",
    "verify": "rows report reference top",
    "aten": "rows report top",
    "golden": "rows report reference verify aten top",
    "torch_npu": "rows report aten top",
    "triton": "rows",
    "torch": "rows report triton top",
    "jax": "rows top",
    "commands": "rows report reference plotting demo bench verify aten golden torch_npu top",
}
# Modules that people start or import for what they do: they stand above the rooms they use.
ENTRANCES = {"__init__": "golden", "__main__": "commands", "npu": "torch_npu", "plan": "aten"}


def needed(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a module, those inside its functions too, but not those for types."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from needed(child)


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
        if "home" not in path.relative_to(PACKAGE).parts
    }


@cache
def imports() -> tuple[tuple[str, str], ...]:
    """Modules of the package and the modules that they import."""
    return tuple(parsed_imports())


def parsed_imports() -> Iterator[tuple[str, str]]:
    names = modules()
    for name, path in sorted(names.items()):
        inside = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        inside = [] if name == "__init__" else inside
        for node in needed(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) or node.level == 0:
                continue
            start = inside[: len(inside) - node.level + 1]
            base = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".strip(".")
                target = deeper if deeper in names else base
                if target in names and target != name:
                    yield name, target


def room_of(module: str) -> str:
    first = module.split(".")[0]
    return first if (PACKAGE / first).is_dir() else "top"


def sources() -> Iterator[Path]:
    """C and C++ of the repository."""
    for folder in ("core", "include", "src", "tests", "tools", "benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT)
            if path.suffix in {".h", ".c", ".cpp", ".inc"} and "home" not in inside.parts:
                yield inside


def includes() -> Iterator[tuple[Path, Path]]:
    """Files, and those of the repository that they include by their whole path or from beside."""
    for path in sources():
        for name in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text("utf-8"), re.M):
            for found in (name, path.parent / name, path.parent.parent / name):
                target = Path(normpath(found))
                if target.parts[0] != ".." and (ROOT / target).is_file():
                    yield path, target
                    break


def circle(edges: set[tuple[str, str]]) -> list[str]:
    """The nodes of circles, or none: drops what leads nowhere until nothing changes."""
    while True:
        left = {(a, b) for a, b in edges if any(b == start for start, _ in edges)}
        if left == edges:
            return sorted({a for a, _ in edges})
        edges = left


def test_every_folder_of_c_and_cpp_is_in_the_matrix():
    assert {str(path.parent) for path in sources() if path.parts[0] != "include"} <= {*MAY_INCLUDE}


def test_includes_go_down():
    found = list(includes())
    assert len(found) > 500
    wrong = [
        f"{path} includes {name}"
        for path, name in found
        if name.parts[0] != "include"
        and path.parent != name.parent
        and str(name.parent) not in MAY_INCLUDE[str(path.parent)].split()
    ]
    assert wrong == []


def test_folders_and_files_of_cpp_have_no_circle():
    allowed = {(room, other) for room, others in MAY_INCLUDE.items() for other in others.split()}
    assert circle(allowed) == []
    assert circle({(str(path), str(name)) for path, name in includes()}) == []


def test_every_room_of_the_package_is_in_the_matrix():
    assert {room_of(name) for name in modules()} == set(MAY_IMPORT)


def test_the_package_imports_downwards():
    found = set(imports())
    assert len(found) > 300
    wrong = [
        f"{a} imports {b}"
        for a, b in found
        if room_of(a) != room_of(b)
        and room_of(b) not in (*MAY_IMPORT[room_of(a)].split(), ENTRANCES.get(a))
    ]
    assert wrong == []


def test_the_modules_of_the_package_have_no_circle():
    assert circle({(a, b) for a, b in imports() if a != "__init__"}) == []


def program_imports(folder: str) -> Iterator[tuple[str, str]]:
    """Python files of a folder and those that they import: by the path from the folder, from the
    repository, or from beside."""
    files = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py")]
    names = {".".join(path.with_suffix("").parts) for path in files}
    for path in files:
        name = ".".join(path.with_suffix("").parts)
        for node in needed(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            wanted = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                wanted = [module, *(f"{module}.{one}".strip(".") for one in wanted)]
            for one in wanted:
                for start in ("", f"{folder}.", f"{'.'.join(path.parent.parts)}."):
                    if f"{start}{one}" in names:
                        yield name, f"{start}{one}"


@pytest.mark.parametrize(("folder", "least"), [("benchmarks", 30), ("tools", 10), ("tests", 200)])
def test_programs_have_no_circle(folder, least):
    found = set(program_imports(folder))
    assert len(found) > least
    assert circle(found) == []


def test_rows_need_nothing_but_the_standard_library():
    for path in (PACKAGE / "rows").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] in sys.stdlib_module_names, path


def test_msprof_needs_nothing_but_the_standard_library():
    """torch_npu starts it with whatever Python comes first."""
    paths = sorted((ROOT / "python" / "msprof").glob("*.py"))
    own = {path.stem for path in paths}
    assert len(paths) == 4
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] in {*sys.stdlib_module_names, *own}, path


def test_pyacl_needs_nothing_but_the_standard_library_and_numpy():
    """It runs in every Python that `openaclnn run` starts."""
    paths = sorted((ROOT / "python" / "acl").glob("*.py"))
    assert len(paths) > 10
    paths += (ROOT / "python").glob("*.py")
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
                assert names <= {*sys.stdlib_module_names, "numpy", "openaclnn_imports"}, path
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] in sys.stdlib_module_names, path


def test_the_package_knows_neither_tests_nor_tools():
    outside = re.compile(r"^\s*(?:from|import) (tests|tools|benchmarks)\b", re.M)
    for path in modules().values():
        assert not outside.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("edges", ["ab bc ca", "ab bc cb cd", "aa"])
def test_a_circle_is_found(edges):
    assert circle({(e[0], e[1]) for e in edges.split()})


def test_every_room_is_described():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()}
    assert rooms == set(re.findall(r"^core/(\w+)/ ", text, re.M))
    described = set(re.findall(r"^ +(\w+)/ ", text.partition("src/openaclnn/")[2], re.M))
    assert set(MAY_IMPORT) - {"top"} <= described
