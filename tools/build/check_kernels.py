# SPDX-License-Identifier: Apache-2.0
"""Checks the kernel objects of a build: symbols and vectorised loops, one sentence per finding.

    python tools/build/check_kernels.py BUILD               BUILD holds kernels_<level>.dir/**/*.o
    python tools/build/check_kernels.py BUILD --self-test   sees the checks fail on broken kernels

Symbols: each object defines <its file>_<level> and nothing else that the linker can
see. A weak symbol could replace baseline code by an AVX-512 copy of the same function.

Loops: run_blocks of every form of a formula that has one, the element loops of group norm, and
every half conversion, wherever else it is, have a loop that computes in and stores from registers
of the level's full width: xmm for v2, ymm for v3, zmm for v4. A run_blocks has no scalar loop.
(One instruction of v3 converts a full register to fp16, and stores half a register. The fused
multiply-add in double, which v2 takes from libm, is exempt. The loops of
run_registers_summed and run_registers_quick are in registers as they are written; that of
`general` is not checked.)

The self-test compiles the kernels with -O0 and an inline function, and expects
a finding for every formula, for every conversion, and for the symbols.
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

# No arithmetic in the loop, and fma calls.
CONSTANT = ("logit_grad_constant<float>", "logit_nan")
EXEMPT = {
    (level, f"{type} {form}")
    for level in REGISTER
    for type in ("F32", "F16", "Bf16")
    for form in CONSTANT
} | {
    # v2 takes fused multiply-adds in double from libm. The gradient of elu in DOUBLE is there for
    # gradient checks, and GCC 12 leaves its choices among infinities scalar.
    *(("v2", f"F64 elu_double{form}") for form in ("_single", "<false>", "<true>")),
    *(("v2", f"F64 {form}") for form in ("logit_double", "logit_grad_double")),
    ("v2", "F64 elu_backward_result_double"),
    *((level, "F64 elu_backward_double") for level in REGISTER),
    *((level, "F64 logit_grad_constant<double>") for level in REGISTER),  # no arithmetic
    # Masks of 32 and 64 bits, which SSE has no conversions for; rare values only.
    ("v2", "ShortGradient::input_gradient_general"),
}

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


SPACE = re.compile(r"openaclnn::\w+::\(anonymous namespace\)::")
FORM = re.compile(r"\brun_blocks<(F32|F16|Bf16|F64), (\w+(?:<[\w()]+>)?), ")


# Other loops that the compiler vectorises; the rest of group norm is in registers as it is written.
OTHERS = re.compile(
    r"::(make_canonical(?=<[^>]*F32>)"
    r"|group_norm_(?:terms_general|gradient_general|values_general)"
    r"|ShortGradient::(?:terms_general(?=<false>)|input_gradient\w*))[(<]"
)


def form_of(name: str) -> str | None:
    """`F16 elu_wide` of run_blocks<F16, elu_wide, …>(…)."""
    other = OTHERS.search(name)
    if other:
        return other[1]
    match = FORM.search(SPACE.sub("", name))
    return match and " ".join(match.groups())


def check_loops(level: str, obj: Path) -> Iterator[str]:
    register = REGISTER[level]
    conversions = dict(CONVERSIONS[level])
    for name, code in functions(obj):
        loops = innermost_loops(code)
        form = form_of(name)
        if form and (level, form) not in EXEMPT:
            subject = f"{form} of kernels_{level}"
            narrow = [loop for loop in loops if not wide(loop, register)]
            if not any(PACKED.fullmatch(n) for loop in loops for n in wide(loop, register)):
                yield f"{subject} has no loop that computes in {register[1:]} registers."
            elif "run_blocks<" in name and any(
                SCALAR.fullmatch(n) for loop in narrow for _, n, _ in loop
            ):
                yield f"{subject} has a scalar loop beside a vectorised one."
        elif "run_registers_" not in name:  # conversions are where the compiler put them
            for loop in loops:
                names = wide(loop, register) | converted(loop, register)
                for conversion, marks in list(conversions.items()):
                    has, not_has = (set(part.split()) for part in f"{marks}|".split("|")[:2])
                    if has <= names and not names & not_has:
                        del conversions[conversion]
    # An object without such loops converts in a way of its own, or not at all, as the table.
    for conversion in conversions if forms(level, [obj]) else {}:
        subject = f"{conversion} of kernels_{level}, {obj.name},"
        yield f"{subject} has no loop that works in {register[1:]} registers."


def check(level: str, objects: list[Path]) -> list[str]:
    findings = list(check_symbols(level, objects))
    for obj in objects if level in REGISTER else []:
        findings += check_loops(level, obj)
    if level in REGISTER and not forms(level, objects):
        findings.append(f"kernels_{level} has no loops that this check looks for.")
    return findings


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
        findings = check(level, broken)
    text = "\n".join(findings)
    expected = forms(level, objects) if level in REGISTER else []
    for name in (Path(obj.stem).stem for obj in objects):
        expected += [f"weak symbol _ZZ{len(name) + 5}{name}_leakv"]
        expected += [f"shows the linker _Z{len(name) + 7}{name}_secondv"]
    expected += CONVERSIONS.get(level, {})
    for what in expected:
        if what not in text:
            yield f"self-test of kernels_{level}: the broken object was not reported for {what}."


def forms(level: str, objects: list[Path]) -> list[str]:
    names = [name for obj in objects for name, _ in disassembled(obj)]
    found = sorted({form for name in names if (form := form_of(name))})
    return [form for form in found if (level, form) not in EXEMPT]


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
            checked = forms(level, objects)
            loops = f"loops of {len(checked)} forms" if level in REGISTER else "no loops"
            print(f"kernels_{level}: symbols and {loops} checked")
    good = "every check fails where it should" if arguments.self_test else "nothing found"
    print("\n".join(findings) or good)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
