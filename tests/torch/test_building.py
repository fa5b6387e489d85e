# SPDX-License-Identifier: Apache-2.0
"""How the operators get compiled, once, and what happens where they cannot be."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.torch.torch_support import torch

import openaclnn
from openaclnn import _core, compiled
from openaclnn.torch import building

pytestmark = pytest.mark.programs

# Stands in for the compiler: counts its runs and gives what was built for this session.
COMPILER = """#!/bin/sh
echo run >> {log}
sleep 1
while [ "$1" != -o ]; do shift; done
{act}
"""
IMPORT = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import openaclnn.torch as ot
from openaclnn.torch import registration
import torch
x = torch.tensor([-2.0, 3.0], requires_grad=True)
y = ot.leaky_relu(x, 0.5)
y.sum().backward()
print(registration.kind, y.tolist(), x.grad.tolist())
for warning in caught:
    if warning.category is RuntimeWarning:
        print(warning.message)
"""
COMPILED, PYTHON = "compiled [-1.0, 3.0] [0.5, 1.0]", "python [-1.0, 3.0] [0.5, 1.0]"
SLOWER = "openaclnn.torch: the operators run through Python, several times slower on small tensors"


def compiler(folder: Path, act: str | None = None) -> Path:
    path = folder / "c++"
    act = act or f'cp {building.library()} "$2"'
    path.write_text(COMPILER.format(log=folder / "runs", act=act))
    path.chmod(0o755)
    return path


def runs(folder: Path) -> int:
    log = folder / "runs"
    return log.read_text().count("run") if log.exists() else 0


def start(code=IMPORT, **environment):
    kept = {k: v for k, v in os.environ.items() if k != "OPENACLNN_TORCH"}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=kept | {k: str(v) for k, v in environment.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process) -> tuple[list[str], str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.splitlines(), err


def test_two_processes_at_once_compile_once(tmp_path):
    cache = tmp_path / "cache"
    environment = {"OPENACLNN_CACHE": cache, "CXX": compiler(tmp_path)}
    started = [start(**environment) for _ in range(2)]
    ended = [finish(process) for process in started]
    assert [out for out, _ in ended] == [[COMPILED]] * 2
    assert runs(tmp_path) == 1
    assert sum("compiling the PyTorch operators" in err for _, err in ended) == 1
    assert finish(start(**environment)) == ([COMPILED], "")  # and later ones say nothing
    assert runs(tmp_path) == 1
    assert [path.suffix for path in sorted(cache.iterdir())] == [".lock", ".sha256", ".so"]


def test_a_build_that_was_damaged_is_compiled_again(tmp_path):
    """A file that was cut off ended the process with SIGBUS, each time; an empty one meant Python
    for ever."""
    environment = {"OPENACLNN_CACHE": tmp_path / "cache", "CXX": compiler(tmp_path)}
    finish(start(**environment))
    (file,) = (tmp_path / "cache").glob("*.so")
    whole = file.read_bytes()
    damaged = (b"", whole[: len(whole) // 2], bytes(len(whole)))
    for content in damaged:
        file.write_bytes(content)
        out, err = finish(start(**environment))
        assert out == [COMPILED]
        assert err.startswith(f"openaclnn: {file} is damaged; compiling the PyTorch")
        assert file.read_bytes() == whole
    assert finish(start(**environment)) == ([COMPILED], "")
    assert runs(tmp_path) == 1 + len(damaged)


def test_an_interrupted_build_goes_on_with_the_files_that_are_done(tmp_path, monkeypatch):
    script, log, may_go_on = (tmp_path / name for name in ("c++", "log", "may_go_on"))
    script.write_text(f"""#!/bin/sh
echo "$*" >> {log}
case "$*" in *b.cpp*) [ -e {may_go_on} ] || exit 1 ;; esac
while [ "$1" != -o ]; do shift; done
echo > "$2"
""")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("OPENACLNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "sources").mkdir()
    package, files = building._library().package, {"a.cpp": "", "b.cpp": ""}
    library = compiled.Library("two files", package, tmp_path / "sources", files)
    with pytest.raises(compiled.BuildError):
        library.build()
    may_go_on.touch()
    assert library.build().exists()
    compilations = [line for line in log.read_text().splitlines() if " -c " in line]
    assert sorted("a.cpp" in line for line in compilations) == [False, False, True]
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_a_compiler_that_fails(tmp_path):
    environment = {"OPENACLNN_CACHE": tmp_path, "CXX": compiler(tmp_path, "echo no luck; exit 1")}
    out, _ = finish(start(**environment))
    log = next(tmp_path.glob("*.log"))
    assert "no luck" in log.read_text()
    because = f"because the compiler {tmp_path / 'c++'} failed; its output is in {log}"
    assert out == [PYTHON, f"{SLOWER}, {because}"]


def test_no_compiler(tmp_path):
    out, _ = finish(start(OPENACLNN_CACHE=tmp_path, CXX="/nowhere/c++"))
    assert out == [PYTHON, f"{SLOWER}, because {building.NO_COMPILER}"]


def test_a_cache_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    out, _ = finish(start(OPENACLNN_CACHE=file / "cache"))
    assert out[0] == PYTHON
    assert out[1].startswith(f"{SLOWER}, because the cache {file / 'cache'} cannot be written: ")


def test_a_broken_file_in_the_cache(tmp_path):
    environment = {"OPENACLNN_CACHE": tmp_path, "CXX": compiler(tmp_path, 'echo x > "$2"')}
    out, _ = finish(start(**environment))
    assert out[0] == PYTHON
    assert "because the compiled operators cannot be loaded: " in out[1]


def test_ahead_of_time(tmp_path):
    environment = os.environ | {"OPENACLNN_CACHE": str(tmp_path), "CXX": str(compiler(tmp_path))}
    command = [sys.executable, "-m", "openaclnn.torch"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == tmp_path
    assert runs(tmp_path) == 1
    done = subprocess.run(
        command, env=environment | {"CXX": "/nowhere/c++"}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.endswith(f"openaclnn.torch: {building.NO_COMPILER}\n")


def test_a_build_belongs_to_its_compiler_and_its_sources(monkeypatch):
    here = building.library()
    assert here.is_file()
    assert here.parent == building.cache()
    monkeypatch.setenv("CXX", "g++ -O1")
    assert building.library() != here
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert building.library() != here
    monkeypatch.undo()
    monkeypatch.setattr(building, "schemas", lambda: "")
    assert building.library() != here
    monkeypatch.undo()
    monkeypatch.setattr(torch, "__version__", "2.13.1+cpu")
    assert building.library() != here


def test_the_sources_are_complete():
    """All that library.cpp includes of ours is installed, and nothing else."""
    names = {path.name for path in building.sources().rglob("*.[ch]*")}
    source = Path(__file__).resolve().parents[2] / "core" / "torch"
    own = {path.name for path in source.iterdir() if path.is_file()}
    assert names == own | {"direct.h", "parameter.h"}


# ---- the operators through Python ----

FALLBACK = """
import torch, openaclnn, openaclnn.torch as ot
from openaclnn.rows.gradients import gradient_dtypes
from openaclnn.torch.dtypes import TORCH
from torch.library import opcheck
o = torch.ops.openaclnn
def refusal(function, *arguments):
    try:
        function(*arguments)
    except (ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("was not refused")

x, w = torch.randn(2, 6, 4), torch.rand(6)
cases = [
    (o.leaky_relu, (x, 0.1)), (o.leaky_relu_, (x.clone(), 0.1)), (o.elu, (x,)),
    (o.elu_backward, (x, 1.0, 1.0, 1.0, False, x)), (o.hardshrink, (x,)),
    (o.logit, (x.sigmoid(),)), (o.group_norm_swish, (x, w, w, 3)),
]
for function, arguments in cases:
    opcheck(function.default, arguments)
def loss(x, w):
    y = ot.elu(ot.group_norm_swish(x, 3, w, w), inplace=True)
    ot.leaky_relu(y[:, :2], 0.2, inplace=True)
    return ot.hardshrink(y, 0.05).square().sum()
def expected(x, w):
    F = torch.nn.functional
    y = F.elu(F.silu(F.group_norm(x, 3, w, w)))
    y = torch.cat([F.leaky_relu(y[:, :2], 0.2), y[:, 2:]], 1)
    return F.hardshrink(y, 0.05).square().sum()
x.requires_grad_(), w.requires_grad_()
for f in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
    found = torch.autograd.grad(f(x, w), (x, w))
    for a, b in zip(found, torch.autograd.grad(expected(x, w), (x, w))):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
many = torch.stack([x.detach(), 2 * x.detach()])
got = torch.vmap(torch.func.grad(loss, 1), (0, None))(many, w)
for g, one in zip(got, many):
    torch.testing.assert_close(g, torch.func.grad(expected, 1)(one, w), rtol=1e-4, atol=1e-4)
t = torch.randn(5, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda t: o.leaky_relu(t, 0.1), (t,))
assert torch.autograd.gradgradcheck(lambda t: o.leaky_relu(t, 0.1), (t,))
print(refusal(torch.func.jvp, ot.elu, (x,), (x,)))
print(refusal(torch.func.jvp, lambda x: ot.elu(x * 1, inplace=True), (x,), (x,)))
print(refusal(lambda: o.elu(x, out=torch.empty(2, 6, 4))))
for op in openaclnn.OPS:
    for dtype in set(op.dtypes) - set(gradient_dtypes(op)) if op.gradient else ():
        y = torch.rand(2, dtype=TORCH[dtype], requires_grad=True)
        assert "where a gradient is recorded, but got" in refusal(getattr(o, op.python), y * 1)
print(refusal(lambda: o.group_norm_swish(x, w, w, 3, None, 1e-5, False)))
print(refusal(lambda: o.group_norm_swish(x, w, w, 4)))
print(refusal(lambda: o.leaky_relu(x.int())))
jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
print(refusal(lambda: ot.elu(jagged)))
g, = torch.autograd.grad(ot.elu(x).sum(), x, create_graph=True)
print(refusal(lambda: g.sum().backward()))
y = o.group_norm_swish(x, w, w, 3)[0]
g, = torch.autograd.grad(y.square().sum(), w, create_graph=True)
print(refusal(lambda: (g.square().sum() + w.sum()).backward()))
"""
FORWARD_MODE = "there is no forward-mode derivative without the compiled operators"
REFUSALS = f"""
NotImplementedError: elu: {FORWARD_MODE}
NotImplementedError: elu_: {FORWARD_MODE}
ValueError: elu: tensors of a call with out= must not require a gradient or carry a tangent
ValueError: group_norm_swish: activate_swish must be True where a gradient is recorded
ValueError: group_norm_swish: num_groups must divide the 6 channels of x, but got 4
ValueError: leaky_relu: x must have dtype float32, float16, float64 or bfloat16 on Atlas A2 \
training / Atlas 800I A2 inference, but got int32
ValueError: elu: input must be a dense tensor in CPU or CUDA memory, but is a nested one
NotImplementedError: elu_backward: there is no gradient by self_or_result, a second derivative
NotImplementedError: group_norm_swish_grad: there is no gradient by dy
"""


def test_without_a_compiler_all_is_the_same_but_slower():
    out, _ = finish(start(FALLBACK, OPENACLNN_TORCH="python", PYTHONWARNINGS="ignore"))
    assert out == REFUSALS.strip().splitlines()


def test_sentences_of_the_library_in_the_names_of_python():
    op = next(op for op in openaclnn.OPS if op.name == "aclnnEluBackward")
    text = "aclnnEluBackward: selfOrResult must have dtype FLOAT or BFLOAT16, but got INT32"
    assert _core.python_sentence(openaclnn.OPS.index(op), text) == (
        "elu_backward: self_or_result must have dtype float32 or bfloat16, but got int32"
    )


def test_a_read_only_installation_is_enough():
    """Nothing is written beside the package."""
    folder = Path(openaclnn.home()).parent
    assert building.cache() not in [folder, *folder.parents]
    assert folder not in building.cache().parents
