# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the functions that ATen computes reports each kind of mistake: fuzz/fake.c has
a function for each. Whether the functions are right is what the step `fuzz` of CI looks at."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass

import pytest
from tests.aten.fuzz import written
from tests.aten.fuzz.campaign import Campaign, Worker
from tests.aten.fuzz.children import Pair, built
from tests.aten.fuzz.library import Signature
from tests.aten.fuzz.plausible import Draw
from tests.aten.fuzz.report import Report
from tests.aten.fuzz.search import repaired
from tests.aten.fuzz.values import Call, List, T

from openaclnn import aten

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

MISTAKES = {
    "aclnnDies": "death",
    "aclnnHangs": "hang",
    "aclnnDiffers": "differs",
    "aclnnReadsPast": "death",
    "aclnnWritesPast": "death",
    "aclnnReadsBefore": "death",
    "aclnnHeapFront": "death",
    "aclnnHeapPast": "death",
    "aclnnHeapFreed": "death",
    "aclnnHeapReadPast": "death",
    "aclnnChangesInput": "input changed",
    "aclnnStray": "stray write",
    "aclnnSays": "stderr",
    "aclnnSilent": "no sentence",
    "aclnnOddStatus": "status",
    "aclnnInternal": "unclear",
    "aclnnUntouched": "untouched",
    "aclnnNever": "never accepted",
}


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    written: bool = False


PARAMETERS = (
    Parameter("self", "tensor"),
    Parameter("mode", "int"),
    Parameter("out", "tensor", True),
)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Report:
    folder = tmp_path_factory.mktemp("fake")
    made = built("fake.c", folder / "libopapi.so", "-Wall", "-Werror", "-fno-builtin-malloc")
    fence = built("fence.c", folder / "fence.so", "-Wall", "-Werror")
    for other in ("libascendcl.so", "libnnopbase.so"):
        (folder / other).symlink_to(made)
    report = Report()
    pair = Pair(folder, "", fence)
    try:
        worker = Worker(pair, "1", report, seconds=1.0)
        signatures = [Signature(name, PARAMETERS) for name in ("aclnnRight", *MISTAKES)]
        Campaign([worker], "1", 0).run(signatures, cases=400)
    finally:
        pair.close()
    return report


@pytest.mark.parametrize("function", MISTAKES)
def test_a_mistake_is_reported(found, function):
    kinds = {kind for kind, name in found.found if name == function}
    assert MISTAKES[function] in kinds
    finding = found.found[MISTAKES[function], function]
    assert f"--only '^{function}$'" in finding.command


def test_a_right_function_is_not_reported(found):
    assert not [finding for finding in found.found.values() if finding.function == "aclnnRight"]


def drawn(line: str, count: int = 200):
    """The arguments of calls of a row, by name."""
    (row,) = aten.parse(line)
    signature = Signature(row.name, row.given)
    for seed in range(count):
        draw = Draw(signature, random.Random(seed))
        yield dict(zip(draw.places, draw.call().args, strict=True))


def test_marks_of_sizes_are_no_part_of_their_names():
    line = "aclnnX(gradOutput[N?,C,OH], self[N?,C+,H+], index[H], H: int, out!) = composite x"
    fit = [
        call["gradOutput"].shape[:-1] == call["self"].shape[:-1]
        and call["self"].shape[-1] == max(call["H"], 1)
        for call in drawn(line)
    ]
    assert sum(fit) > 0.9 * len(fit)  # the rest ignores the row, as it should


def test_multiples_are_drawn():
    calls = [*drawn("aclnnX(input[C], C: int >= 0 % group, group: int >= 1, out!) = composite x")]
    assert all(call["C"] % call["group"] == 0 for call in calls)
    assert len({call["C"] // call["group"] for call in calls}) > 2


def test_written_calls_of_a_function_become_calls_of_each_float_dtype():
    row = next(row for row in aten.rows() if row.name == "aclnnGroupedMatmulV5")
    calls = list(written.calls(Signature(row.name, row.given)))
    assert len(calls) == 3 * len(written.lines()[row.name])
    assert len({call.args[0].items[0].dtype for call in calls}) == 3
    by_name = dict(zip([p.name for p in row.given], calls[0].args, strict=True))
    assert by_name["groupList"].fill == "list:2,5,8"
    assert by_name["out"].items[0] == T((8, 6), by_name["x"].items[0].dtype, fill="poison")


def test_a_shape_that_a_list_of_numbers_must_have_repairs_no_tensor():
    (row,) = aten.parse("aclnnX(x, groupList: ints, out!) = composite x")
    call = Call(row.name, (T((2,)), List("ints", (1, 2)), T((2,))))
    sentence = "aclnnX: groupList must have shape [1], but got [2]"
    assert repaired(call, sentence, Signature(row.name, row.given), random.Random(0)) == call
