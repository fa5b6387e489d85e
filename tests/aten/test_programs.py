# SPDX-License-Identifier: Apache-2.0
"""C and C++ programs that use operators that ATen computes: `openaclnn home --aten`, and the
commands that accept `--aten`.

tests/aten has the calls of a plain C++ client, each compared with its own numbers.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.aten.aten_support import CXX, EXAMPLE, ROOT, alone, command, run

import openaclnn
from openaclnn.aten import prototypes
from openaclnn.commands.programs import environment
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs

CALLS = Path(__file__).parent / "programs" / "client_calls.txt"


@pytest.fixture(scope="module")
def home() -> Path:
    done = command("home", "--aten")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


# ---- the calls of the client ----


def pairs() -> set[tuple[str, str]]:
    """(header, function) of programs/client_calls.txt."""
    lines = (line.split() for line in CALLS.read_text(encoding="utf-8").splitlines())
    return {(header, name) for header, *names in lines if header != "#" for name in names}


def verdicts(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, verdict in re.findall(r"^(aclnn\w+) (good|WRONG) ", text, re.M):
        found.setdefault(name, set()).add(verdict)
    return found


def test_every_call_has_the_values_of_its_own_computation(aten_calls):
    seed = random.SystemRandom().randrange(1 << 31)
    done = run(aten_calls, seed)
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    found = verdicts(done.stdout)
    assert {name for _, name in pairs()} == set(found)
    assert all(verdict == {"good"} for verdict in found.values())


def test_the_comparison_of_every_call_can_fail(aten_calls):
    done = run(aten_calls, 1, "distorted")
    found = verdicts(done.stdout)
    assert done.returncode == 1
    plain = {name for names in prototypes.PLAIN.values() for name in names}
    plain &= {name for _, name in pairs()}
    assert {name for name, verdict in found.items() if verdict != {"WRONG"}} == plain


def test_the_pairs_are_those_of_the_headers(home):
    own = {op.name: op.header for op in OPS}
    assert len(pairs()) > 100
    for header, name in pairs():
        given = (home / "include" / "aclnnop" / header).read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\(|\b{name}GetWorkspaceSize\(", given), (header, name)
        known = name in own or name in prototypes.functions() or header in prototypes.PLAIN
        assert known, name


@pytest.mark.parametrize(
    "words", [("cc", "-std=c11"), ("c++", "-std=c++11"), ("c++", "-std=c++20")]
)
def test_all_headers_are_without_warnings(home, words, tmp_path):
    source = tmp_path / ("all.c" if words[0] == "cc" else "all.cpp")
    files = sorted(path.name for path in (home / "include" / "aclnnop").glob("*.h"))
    source.write_text("".join(f'#include "aclnnop/{file}"\n' for file in files))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    include = [f"-I{home}/include", f"-I{home}/include/aclnn", f"-I{home}/include/aclnnop"]
    done = subprocess.run([*words, *strict, *include, source], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ---- the example ----


def test_the_layer_and_the_convolution_are_those_of_aten(aten_layer):
    import torch

    done = run(aten_layer)
    assert (done.returncode, done.stderr) == (0, "")
    printed = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    expected = the_example_in_torch(torch)
    assert printed.keys() == expected.keys()
    for title, tensor in expected.items():
        got = torch.tensor([float(x) for x in printed[title]]).reshape(tensor.shape)
        # The products of the same kernels, with as many threads or not.
        assert torch.equal(got, tensor) or torch.allclose(got, tensor, rtol=1e-6, atol=2e-6), title


def the_example_in_torch(torch) -> dict:
    tokens, heads, size, inner = 6, 4, 8, 48
    width = heads * size
    libm = ctypes.CDLL("libm.so.6")
    for name in ("cosf", "sinf"):
        getattr(libm, name).restype = ctypes.c_float
        getattr(libm, name).argtypes = [ctypes.c_float]

    def numbers(*shape: int, seed: int):
        i = torch.arange(int(torch.tensor(shape).prod()))
        return (((i * i * 7 + i * 13 + seed * 31) % 129 - 64) / 64).float().reshape(shape)

    def rms(x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gamma

    x, gamma = numbers(tokens, width, seed=1), numbers(width, seed=2)
    wq, wk, wv, wo = (numbers(width, width, seed=seed) for seed in (3, 4, 5, 6))
    normed = rms(x)
    i = torch.arange(tokens * size)
    angles = (i // size).float() / (1 + i % (size // 2)).float()
    cos, sin = (
        torch.tensor([f(a) for a in angles.tolist()]).reshape(1, tokens, 1, size)
        for f in (libm.cosf, libm.sinf)
    )

    def turned(v):
        a, b = v.chunk(2, -1)
        return v * cos + torch.cat([-b, a], -1) * sin

    q, k, v = ((normed @ w).reshape(1, tokens, heads, size) for w in (wq, wk, wv))
    scores = turned(q)[0].transpose(0, 1) @ turned(k)[0].permute(1, 2, 0)
    soft = (scores + torch.full((tokens, tokens), -torch.inf).triu(1)).softmax(-1)
    mixed = (soft @ v[0].transpose(0, 1)).transpose(0, 1).reshape(tokens, width)
    attention = mixed @ wo + x
    gate, value = (rms(attention) @ numbers(width, 2 * inner, seed=7)).chunk(2, -1)
    out = torch.nn.functional.silu(gate) * value @ numbers(inner, width, seed=8) + attention
    picture, kernel = numbers(1, 3, 9, 8, seed=9), numbers(4, 3, 3, 3, seed=10)
    convolved = torch.conv2d(picture, kernel, numbers(4, seed=11), stride=2, padding=1)
    return {"attention": attention, "layer": out, "convolution": convolved}


def test_the_environment_is_that_of_set_env(home):
    base = {"PATH": os.environ["PATH"]}
    script = f". '{home}/set_env.sh' && env -0"
    lines = subprocess.run(["bash", "-c", script], env=base, capture_output=True, check=True)
    set_env = dict(e.split("=", 1) for e in lines.stdout.decode().split("\0") if "=" in e)
    for name, value in environment(base, home).items():
        assert set_env[name] == value
        assert str(home) in value


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_pkg_config_finds_the_directory(home):
    variables = {**os.environ, "PKG_CONFIG_PATH": f"{home}/share/pkgconfig"}
    words = ["pkg-config", "--variable=libdir", "openaclnn"]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).resolve() == (home / "lib64").resolve()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_finds_the_component(home, aten_layer, tmp_path):
    def configured(prefix: Path) -> subprocess.CompletedProcess[str]:
        words = ["cmake", "-S", EXAMPLE, "-B", tmp_path / prefix.name]
        return subprocess.run(
            [*words, f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True
        )

    assert configured(home).returncode == 0
    built = tmp_path / home.name
    assert subprocess.run(["cmake", "--build", built], capture_output=True).returncode == 0
    assert run(built / "transformer_layer").stdout == run(aten_layer).stdout
    without = configured(openaclnn.home())
    assert without.returncode != 0
    sentence = " ".join(without.stderr.split())
    assert "must have the component aten, but does not" in sentence


# ---- what is missing ----


def test_without_torch_the_call_says_so(home, aten_layer, tmp_path):
    """A directory like that of home --aten, whose link to torch leads nowhere."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy, symlinks=True)
    (copy / "lib64" / "torch").unlink()
    (copy / "lib64" / "torch").symlink_to(tmp_path / "nowhere")
    program = tmp_path / "layer"
    libraries = ["-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase", "-o", program]
    search = [f"-I{copy}/include", f"-L{copy}/lib64", f"-Wl,-rpath,{copy}/lib64"]
    subprocess.run([CXX, EXAMPLE / "transformer_layer.cpp", *search, *libraries], check=True)
    done = run(program)
    assert done.returncode == 1
    assert "aclnnRmsNorm: PyTorch not found (" in done.stderr
    assert "openaclnn home --aten" in done.stderr


def test_without_the_option_nothing_changes(tmp_path):
    """Neither headers nor libraries, and no torch in the process."""
    source = tmp_path / "relu.c"
    source.write_text('#include "aclnnop/aclnn_relu.h"\nint main(void) { return 0; }\n')
    done = command("cc", source, "-o", tmp_path / "relu")
    assert done.returncode != 0
    hint = "aclnn_relu.h has operators that ATen computes: build with  openaclnn cc --aten"
    assert done.stderr.startswith(f"openaclnn cc: {hint}\n")
    for name in ("opapi", "opapi_nn", "opapi_math"):
        library = ctypes.CDLL(str(openaclnn.home() / "lib64" / f"lib{name}.so"))
        assert not hasattr(library, "aclnnRelu")


def test_an_own_operator_loads_no_torch(home, tmp_path):
    source, program = ROOT / "examples" / "leaky_relu.cpp", tmp_path / "own"
    assert command("cc", "--aten", source, "-o", program).returncode == 0
    environment = {**alone(), "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "files")}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    loaded = "".join(path.read_text() for path in tmp_path.glob("files.*"))
    assert "libopenaclnn.so" in loaded
    assert "libtorch_cpu" not in loaded


REFUSALS = """
import ctypes
acl = ctypes.CDLL("{home}/lib64/libascendcl.so")
ops = ctypes.CDLL("{home}/lib64/libopapi.so")
base = ctypes.CDLL("{home}/lib64/libnnopbase.so")
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
base.aclCreateTensor.restype = base.aclCreateScalar.restype = ctypes.c_void_p
acl.aclrtSetDevice(0)
def tensor(*shape, dtype=0):
    dims = (ctypes.c_int64 * len(shape))(*shape)
    memory = ctypes.c_void_p()
    acl.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(1024), 0)
    return ctypes.c_void_p(base.aclCreateTensor(dims, ctypes.c_uint64(len(shape)), dtype, None,
        ctypes.c_int64(0), 2, dims, ctypes.c_uint64(len(shape)), memory))
a, b, out = tensor(2, 3), tensor(4, 5), tensor(2, 5)
gone = tensor(2, 5)
base.aclDestroyTensor(gone)
def call(name, *arguments):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    plan, run = getattr(ops, name + "GetWorkspaceSize"), getattr(ops, name)
    codes = [plan(*arguments, ctypes.byref(size), ctypes.byref(executor))]
    if codes == [0]:
        codes += [run(None, ctypes.c_uint64(0), executor, None) for _ in range(2)]
    print(codes, acl.aclGetRecentErrMsg().decode().strip().replace(chr(10), " "))
one = ctypes.c_int8(0)
call("aclnnMm", a, b, out, one)
call("aclnnMm", None, b, out, one)
call("aclnnMm", a, b, None, one)
call("aclnnMm", a, b, gone, one)
call("aclnnMm", tensor(2, 3), tensor(3, 5), out, one)
x = tensor(2, 3)
call("aclnnExp", x, tensor(3, 2))
call("aclnnExp", x, tensor(2, 3, dtype=3))
call("aclnnSoftmax", x, ctypes.c_int64(1), tensor(6))
call("aclnnAdd", x, x, ctypes.c_void_p(base.aclCreateScalar(ctypes.byref(ctypes.c_float(1)), 0)),
     tensor(3, 2))
print([ops.aclnnMmGetWorkspaceSize(a, b, out, one, None, None)])
print(acl.aclGetRecentErrMsg().decode().strip())
print([ops.aclnnMm(None, ctypes.c_uint64(0), None, None)])
print(acl.aclGetRecentErrMsg().decode().strip())
"""


def test_a_refusal_is_a_sentence_and_a_status(home):
    code = REFUSALS.replace("{home}", str(home))
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=alone(), capture_output=True, text=True)
    lines = done.stdout.splitlines()
    expected = [
        # Shapes are ATen's.
        r"\[161002\] .*aclnnMm: mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)",
        r"\[161001\] .*aclnnMm: self must not be NULL",
        r"\[161001\] .*aclnnMm: out must not be NULL",
        r"\[161002\] .*aclnnMm: out 0x\w+ was destroyed or never created",
        r"\[0, 0, 161002\] .*executor was already run, destroyed or never created",
        r"\[161002\] .*aclnnExp: out must have shape \[2, 3\], but got \[3, 2\]",
        r"\[161002\] .*aclnnExp: out must have a dtype that Float can be cast to, but got Int",
        r"\[161002\] .*aclnnSoftmax: out must have shape \[2, 3\], but got \[6\]",
        r"\[161002\] .*aclnnAdd: out must have shape \[2, 3\], but got \[3, 2\]",
        r"\[161001\]",
        r".*aclnnMm: workspaceSize must not be NULL",
        r"\[161001\]",
        r".*aclnnMm: executor must not be NULL",
    ]
    assert len(lines) == len(expected), done.stdout + done.stderr
    for line, pattern in zip(lines, expected, strict=True):
        assert re.match(pattern, line), line
