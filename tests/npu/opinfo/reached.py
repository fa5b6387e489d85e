# SPDX-License-Identifier: Apache-2.0
"""Which rows the operators on npu reach, and which of the others a test compares by value."""

from __future__ import annotations

import ast
import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
import torch

TESTS = Path(__file__).resolve().parents[2]
# Tests of the rows that torch_npu does not call under the name of this device.
NPU_TESTS = TESTS / "npu" / "device"
OTHERS = ("test_provider.py", "test_taken_forms.py", "test_attention_modes.py", "test_types*.py")
DIRECT = [
    str(path) for name in ("test_direct_*.py", *OTHERS) for path in sorted(NPU_TESTS.glob(name))
]


def provider() -> ctypes.CDLL:
    torch.ones(1, device="npu").add(1)  # loads it
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "libaclnn_math.so" in line)
    library = ctypes.CDLL(path)
    library.openaclnn_aten_name.restype = ctypes.c_char_p
    library.openaclnn_aten_count.restype = ctypes.c_uint64
    return library


def counts(library: ctypes.CDLL) -> dict[str, int]:
    found, i = {}, 0
    while (name := library.openaclnn_aten_name(i)) is not None:
        found[name.decode()] = library.openaclnn_aten_count(i)
        i += 1
    return found


# Compared by tests/aten on several ranks, or under names that the tests compose.
COMPOSED = (
    r"aclnn\w*(AllReduce|AlltoAll|ReduceScatter|AllGather|MoeDistribute)\w*|aclnnMlaProlog\w*"
)


def compared_elsewhere() -> re.Pattern[str]:
    """The functions whose values the C programs and Python tests of tests/aten compare: strings
    that are names, with a pattern for what an f-string fills in. Refusals compare no values.
    """
    found = set()
    for file in (TESTS / "aten" / "programs").glob("*.cpp"):
        found |= set(re.findall(r'expect\("(\w+)"', file.read_text()))
    for file in (TESTS / "aten").glob("*.py"):
        if "refusals" not in file.name:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
                elif isinstance(node, ast.JoinedStr):
                    fixed = (getattr(part, "value", None) for part in node.values)
                    found.add("".join(v if isinstance(v, str) else r"\w*" for v in fixed))
    names = (name for name in found if re.fullmatch(r"(aclnn[A-Z]|[A-Z][a-z])\w*(\\w\*)?", name))
    return re.compile("|".join([COMPOSED, *(f"(aclnn)?{name}" for name in names)]))


def reached_rows(library: ctypes.CDLL, document: dict[str, Any]) -> list[str]:
    """The rows that nothing reaches; the tests of rows that torch_npu does not call run here."""
    direct = pytest.main(
        ["-q", "-W", "ignore", "-o", "addopts=", "-p", "no:cacheprovider", *DIRECT]
    )
    assert direct == 0, "the tests of rows that are called as C functions must pass"
    reached = counts(library)
    document["reached"] = sorted(name for name, count in reached.items() if count > 0)
    compared = compared_elsewhere()
    unreached = sorted(n for n, count in reached.items() if not count and not compared.fullmatch(n))
    elsewhere = len(reached) - len(document["reached"]) - len(unreached)
    print(
        f"rows reached: {len(document['reached'])} of {len(reached)}, and {elsewhere} more by "
        f"tests/aten {' '.join(unreached)}"
    )
    return unreached
