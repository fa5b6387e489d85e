# SPDX-License-Identifier: Apache-2.0
"""Checks the kernel objects of a build: symbols and vectorised loops, one sentence per finding.

    python tools/build/check_kernels.py BUILD               BUILD holds kernels_<level>.dir/**/*.o
    python tools/build/check_kernels.py BUILD --self-test   sees the checks fail on broken kernels

Symbols: each object defines <its file>_<level> and nothing else that the linker can
see. A weak symbol could replace baseline code by an AVX-512 copy of the same function.

Loops: run_fast and run_double of every form, and the array conversions of halves, have a loop that
computes in and stores from registers of the level's full width: xmm for v2, ymm for v3, zmm for
v4. So have loops that only the compiler's vectoriser makes wide: compute_exact of every form, the
exact form of group norm, its small-spatial sums. Element-wise forms have no scalar loop besides.
(One instruction of v3 converts a full register to fp16, and stores half a register. Loops of group
norm that are written in registers are not checked.)

The self-test compiles the kernels with -O0 and an inline function, and expects
a finding for every form, for every conversion, and for the symbols.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

REGISTER = {"v2": "%xmm", "v3": "%ymm", "v4": "%zmm"}
OPERATION = r"(add|sub|mul|div|min|max|sqrt|cmp\w*|u?comi|fn?m(add|sub)\d*)"
PACKED = re.compile(OPERATION + "p[sd]")
SCALAR = re.compile(OPERATION + "s[sd]")

# Instructions that the loop of a conversion has and, after the bar, has not: those of other loops.
F16C = {"fp16 to float": "cvtph2ps", "float to fp16": "cvtps2ph"}
BF16 = {
    "bf16 to float": "pmovzxwd pslld | addps subps subpd",
    "float to bf16": "psrld paddd | addps",
}
CONVERSIONS = {
    "v2": BF16 | {"fp16 to float": "pmovzxwd addps | mulps", "float to fp16": "packusdw addps |"},
    "v3": BF16 | F16C,
    "v4": {"bf16 to float": "permw", "float to bf16": "permt2w paddd"} | F16C,
}

# The functions that are checked. Element-wise forms have no scalar loop; the others may have one
# for the last values.
FORM = r"\w+(?:<[\w, ]+>)?"
ELEMENTWISE = [rf"run_fast<\w+, {FORM}", rf"compute_exact<{FORM}", rf"run_double<{FORM}"]
CHECKED = [
    *ELEMENTWISE,
    r"narrow<double",
    r"exact_normalise",
    r"exact_terms",
    r"SmallSpatialForward::(?:moments|find_distances|finish)",
    r"SmallSpatialGradient::(?:sum|finish|input_gradient)",
]
CONSTANT = r"run_double<logit_grad_constant"  # no arithmetic: eps is 1 or more
# Without FMA, these take fused multiply-adds in double from libm, one value at a time.
FUSED = r"(compute_exact|run_double)<(elu_(?!backward_result)|logit_(exact|open|clamped))|exact_"
EXEMPT = {"v2": rf"{CONSTANT}|{FUSED}", "v3": CONSTANT, "v4": CONSTANT}

Code = list[tuple[int, str, str]]  # address, mnemonic without the v of AVX, operands


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions(obj: Path) -> Iterator[tuple[str, Code]]:
    for name, text in disassembled(obj):
        lines = re.findall(r"^\s*([0-9a-f]+):\s+v?(\S+)[ \t]*(.*)$", text, re.M)
        yield name, [(int(address, 16), operation, rest) for address, operation, rest in lines]


@cache  # it takes seconds for a large object
def disassembled(obj: Path) -> list[tuple[str, str]]:
    """The names of the functions and their text."""
    found = []
    for block in output_of("objdump", "-dC", "--no-show-raw-insn", obj).split("\n\n"):
        if head := re.search(r"^[0-9a-f]+ <(.*)>:$", block, re.M):
            found.append((head[1], block))
    return found


def innermost_loops(code: Code) -> list[Code]:
    """From a backward jump's target to the jump, if the one leads to the other on the way.

    If not, the jump only returns from code that was placed out of line.
    """
    following = {line[0]: after[0] for line, after in pairwise(code)}
    targets = {}
    for address, name, operands in code:
        match = re.match(r"[0-9a-f]+\b", operands) if name.startswith("j") else None
        if match:
            targets[address] = int(match[0], 16)
        if name == "jmp" or name.startswith("ret"):
            following.pop(address, None)

    def body(first: int, last: int) -> set[int]:
        seen, todo = set(), [first]
        while todo:
            at = todo.pop()
            if at not in seen and first <= at <= last:
                seen.add(at)
                todo += [to for to in (following.get(at), targets.get(at)) if to is not None]
        return seen

    loops = {(to, at): body(to, at) for at, to in targets.items() if code[0][0] <= to <= at}
    spans = [span for span, seen in loops.items() if span[1] in seen]
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    return [[line for line in code if line[0] in loops[span]] for span in inner]


def wide(loop: Code, register: str) -> set[str]:
    """The mnemonics that work on full registers, if the loop stores one; else none."""
    store = re.compile(re.escape(register) + r"\d+,[^,%]*\([^)]*\)(\{%k\d\})?$")
    names = {name for _, name, operands in loop if register in operands}
    return names if any(store.search(operands) for _, _, operands in loop) else set()


def converted(loop: Code, register: str) -> set[str]:
    """cvtps2ph, if it reads a full register; what it writes and the loop stores is half of one."""
    reads = any(name == "cvtps2ph" and register in operands for _, name, operands in loop)
    return {"cvtps2ph"} if reads else set()


def check_symbols(level: str, objects: list[Path]) -> Iterator[str]:
    units = sorted((Path(__file__).resolve().parents[2] / "core" / "kernels").rglob("*.cpp"))
    names = [f"{unit.stem}_{level}" for unit in units]
    tables = {f"_ZN9openaclnn{len(name)}{name}E" for name in names}
    for line in output_of("nm", "--no-sort", *objects).splitlines():
        if not re.match(r"[0-9a-f ]{16} \S ", line):
            continue
        kind, name = line.split()[-2:]
        if kind in "VvWwu":
            yield f"kernels_{level} has the weak symbol {name}; kernels may define none."
        elif kind.isupper() and kind != "U" and name not in tables:
            only = " and ".join(names)
            yield f"kernels_{level} shows the linker {name}; it may show {only} only."


SPACE = re.compile(r"openaclnn::(\w+::\(anonymous namespace\)::)?")


def form_of(name: str) -> str | None:
    """`run_fast<F16, elu_unit>` of long run_fast<F16, elu_unit, …>(…)."""
    match = re.search(rf"\b(?:{'|'.join(CHECKED)})(?=[,>(])", SPACE.sub("", name))
    return match and match[0] + (">" if "<" in match[0] else "")


def check_loops(level: str, obj: Path) -> Iterator[str]:
    register = REGISTER[level]
    conversions = dict(CONVERSIONS[level])
    for name, code in functions(obj):
        loops = innermost_loops(code)
        form = form_of(name)
        works = [wide(loop, register) | converted(loop, register) for loop in loops]
        computes = [any(PACKED.fullmatch(n) for n in names) for names in works]
        if form and not re.match(EXEMPT[level], form):
            subject = f"{form} of kernels_{level}"
            if not any(computes):
                yield f"{subject} has no loop that computes in {register[1:]} registers."
            scalar = [any(SCALAR.fullmatch(n) for _, n, _ in loop) for loop in loops]
            left = any(s and not c for s, c in zip(scalar, computes, strict=True))
            if left and re.match("|".join(ELEMENTWISE), form):
                yield f"{subject} has a scalar loop beside a vectorised one."
        elif "run_fast<" not in name:  # conversions are where the compiler put them
            for names in works:
                for conversion, marks in list(conversions.items()):
                    has, not_has = (set(part.split()) for part in f"{marks}|".split("|")[:2])
                    if has <= names and not names & not_has:
                        del conversions[conversion]
    # An object without such loops converts in its own way, or not at all, as the table.
    for conversion in conversions if forms([obj]) else {}:
        subject = f"{conversion} of kernels_{level}, {obj.name},"
        yield f"{subject} has no loop that works in {register[1:]} registers."


def check(level: str, objects: list[Path]) -> list[str]:
    findings = list(check_symbols(level, objects))
    for obj in objects if level in REGISTER else []:
        findings += check_loops(level, obj)
    return findings + list(check_kinds(level, objects))


def check_kinds(level: str, objects: list[Path]) -> Iterator[str]:
    found = forms(objects)
    for kind in CHECKED if level in REGISTER else []:
        if not any(re.match(kind, form) for form in found):
            yield f"kernels_{level} has no {kind}, which this check looks for."


def self_test(build: Path, level: str, objects: list[Path]) -> Iterator[str]:
    """The defects of broken objects that the checks miss."""
    with tempfile.TemporaryDirectory() as folder:
        broken = []
        for entry in json.loads((build / "compile_commands.json").read_text()):
            command = shlex.split(entry["command"])
            if f"-DOPENACLNN_ISA={level}" not in command:
                continue
            name = Path(entry["file"]).stem
            broken.append(Path(folder, f"{name}.o"))
            source = Path(folder, f"{name}.cpp")
            source.write_text(
                f'#include "{entry["file"]}"\n'
                f"inline int {name}_leak() {{ static int n; return ++n; }}\n"
                f"int {name}_second() {{ return {name}_leak(); }}\n"
            )
            command[command.index("-o") + 1] = str(broken[-1])
            command[command.index("-c") + 1] = str(source)
            command += ["-O0"]
            subprocess.run(command, check=True, cwd=entry["directory"])
        findings = check(level, broken) + list(check_kinds(level, []))
    text = "\n".join(findings)
    expected = checked(level, objects) + (CHECKED if level in REGISTER else [])
    for name in (Path(obj.stem).stem for obj in objects):
        expected += [f"weak symbol _ZZ{len(name) + 5}{name}_leakv"]
        expected += [f"shows the linker _Z{len(name) + 7}{name}_secondv"]
    expected += CONVERSIONS.get(level, {})
    for what in expected:
        if what not in text:
            yield f"self-test of kernels_{level}: the broken object was not reported for {what}."


def forms(objects: list[Path]) -> set[str]:
    names = [name for obj in objects for name, _ in disassembled(obj)]
    return {form for name in names if (form := form_of(name))}


def checked(level: str, objects: list[Path]) -> list[str]:
    """The forms whose loops are checked; of levels without registers none."""
    exempt = EXEMPT.get(level, "")
    return [form for form in sorted(forms(objects)) if not re.match(exempt, form)]


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("build", type=Path, help="a CMake build folder")
    parser.add_argument("--self-test", action="store_true", help="check the checks")
    arguments = parser.parse_args()
    levels: dict[str, list[Path]] = {}
    for obj in sorted(arguments.build.rglob("kernels_*.dir/**/*.o")):
        level = re.search(r"kernels_(\w+)\.dir", str(obj))[1]  # type: ignore[index]
        levels.setdefault(level, []).append(obj)
    if not levels:
        print(f"{arguments.build} holds no kernels_<level>.dir/**/*.o.")
        return 1
    findings: list[str] = []
    for level, objects in levels.items():
        if arguments.self_test:
            findings += self_test(arguments.build, level, objects)
        else:
            findings += check(level, objects)
            count = len(checked(level, objects))
            print(f"kernels_{level}: symbols and loops of {count} forms checked")
    good = "every check fails where it should" if arguments.self_test else "nothing found"
    print("\n".join(findings) or good)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
