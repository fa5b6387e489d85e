# SPDX-License-Identifier: Apache-2.0
"""How the custom calls of openaclnn.jax get compiled, what happens where they cannot be, and
docs/howto/jax.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.jax import jax_support  # noqa: F401  # skips without JAX or a compiler

from openaclnn.compiled import NO_COMPILER, cache
from openaclnn.jax import building

pytestmark = pytest.mark.programs

jaxlib = pytest.importorskip("jaxlib")

ROOT = Path(__file__).resolve().parents[2]


def start(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {k: str(v) for k, v in environment.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refusal(code="", **environment) -> str:
    """The sentence of an import that must fail."""
    process = start(f"{code}\nimport openaclnn.jax", **environment)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    return err.splitlines()[-1].removeprefix("ImportError: ")


COMPUTE = "import openaclnn.jax as oj; print(oj.leaky_relu([-2.0, 3.0], 0.5).tolist())"
# Stands in for the compiler: counts its runs and gives what was built for this session.
COMPILER = """#!/bin/sh
echo run >> {log}
sleep 1
while [ "$1" != -o ]; do shift; done
{act}
"""


def compiler(folder: Path, act: str | None = None) -> Path:
    path = folder / "c++"
    act = act or f'cp {building.library().target()} "$2"'
    path.write_text(COMPILER.format(log=folder / "runs", act=act))
    path.chmod(0o755)
    return path


def test_two_processes_at_once_compile_once(tmp_path):
    environment = {"OPENACLNN_CACHE": tmp_path / "cache", "CXX": compiler(tmp_path)}
    for expected in (1, 0):  # messages: the first two processes have one between them
        started = [start(COMPUTE, **environment) for _ in range(2)]
        ended = [process.communicate(timeout=300) for process in started]
        assert [out for out, _ in ended] == ["[-1.0, 3.0]\n"] * 2, ended
        said = "compiling the JAX operators for jaxlib"
        assert sum(said in err for _, err in ended) == expected
    assert (tmp_path / "runs").read_text().count("run") == 1


def test_a_build_belongs_to_its_compiler_its_sources_and_its_jaxlib(monkeypatch):
    here = building.library().target()
    assert here.is_file()
    assert here.parent == cache()
    assert here.name.startswith(f"jaxlib-{jaxlib.version.__version__}-")
    monkeypatch.setenv("CXX", "g++ -O1")
    assert building.library().target() != here
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(building, "generated", lambda: {"calls.cpp": ""})
    assert building.library().target() != here
    monkeypatch.undo()
    monkeypatch.setattr(jaxlib.version, "__version__", "0.10.3")
    assert building.library().target() != here
    monkeypatch.undo()
    assert building.library().target() == here


def test_the_sources_are_complete():
    """All that library.cpp includes of ours is installed, and nothing else."""
    names = {path.name for path in building.sources().rglob("*.[ch]*")}
    own = {path.name for path in (ROOT / "core" / "jax").iterdir()}
    assert names == own | {"direct.h", "parameter.h"}


def test_no_compiler(tmp_path):
    why = refusal(OPENACLNN_CACHE=tmp_path, CXX="/nowhere/c++")
    assert why == f"openaclnn.jax needs its custom calls compiled, but {NO_COMPILER}"


def test_a_compiler_that_fails(tmp_path):
    why = refusal(OPENACLNN_CACHE=tmp_path, CXX=compiler(tmp_path, "echo no luck; exit 1"))
    log = next(tmp_path.glob("*.log"))
    assert "no luck" in log.read_text()
    assert why.endswith(f"but the compiler {tmp_path / 'c++'} failed; its output is in {log}")


def test_a_broken_file_in_the_cache(tmp_path):
    why = refusal(OPENACLNN_CACHE=tmp_path, CXX=compiler(tmp_path, 'echo x > "$2"'))
    assert why.startswith("openaclnn.jax: the compiled custom calls cannot be loaded: ")


HIDDEN = """
import sys
from importlib import metadata
def version(name, found={found!r}):
    if found is None:
        raise metadata.PackageNotFoundError(name)
    return found
metadata.version = version
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.parametrize(
    ("name", "found", "sentence"),
    [
        ("jax", None, "JAX is not installed"),
        ("jaxlib", "0.10.2", "JAX 0.10.2 is installed and cannot be imported: "),
        ("jax.ffi", "0.4.20", "JAX 0.4.20 is installed and cannot be imported: "),
    ],
)
def test_a_jax_that_does_not_fit(name, found, sentence):
    needs = "openaclnn.jax needs JAX 0.10 or newer (pip install -U jax)"
    assert refusal(HIDDEN.format(name=name, found=found)).startswith(f"{needs}, but {sentence}")


def test_the_package_is_imported_without_jax():
    done = subprocess.run(
        [sys.executable, "-c", "import openaclnn, sys; assert 'jax' not in sys.modules"]
    )
    assert done.returncode == 0


def test_the_page_runs():
    """docs/howto/jax.md: its Python runs from top to bottom and prints what the page says."""
    text = (ROOT / "docs" / "howto" / "jax.md").read_text(encoding="utf-8")
    blocks = {
        language: re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        for language in ("python", "text")
    }
    process = start("\n".join(blocks["python"]))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out == "".join(blocks["text"])
