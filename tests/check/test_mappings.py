# SPDX-License-Identifier: Apache-2.0
"""Check mode knows reserved addresses and mapped memory: it reports mistakes, not right use."""

from __future__ import annotations

import re

import pytest
from tests.check.check_mode import REPORT, TOOL, built_once, needs_compiler, openaclnn_command

pytestmark = [pytest.mark.programs, needs_compiler]

READ = "the host (read|touched) device memory at 0x..., "  # the report says which on x86-64
NOWHERE = "among addresses that are reserved, where nothing is mapped"
CASES = {
    "read_reserved": [f"host_access: {READ}{NOWHERE}"],
    "read_mapped": [f"host_access: {READ}5 bytes into an allocation of 4194304 bytes\\."],
    "read_unmapped": [
        f"host_access: {READ}5 bytes into an allocation of 4194304 bytes, which was freed"
    ],
    "operator_on_reserved": [f"not_mapped: aclnnInplaceLeakyRelu got selfRef 0x..., {NOWHERE}"],
    "workspace_on_reserved": [
        f"not_mapped: aclnnGroupNormSwishGrad got workspace 0x..., {NOWHERE}"
    ],
    "operator_on_unmapped": [
        "use_after_free: aclnnInplaceLeakyRelu would work on selfRef at 0x..., memory that was fr"
    ],
    "operator_past_mapping": [
        "view_outside_allocation: aclnnInplaceLeakyRelu got selfRef, whose view spans bytes 0 to "
        "4000 from 0x..., but the allocation there has 400 bytes left"
    ],
    "copy_past_mapping": [
        "past_allocation: aclrtMemset was asked to write 4194313 bytes at devPtr 0x..., but 4194312"
    ],
    "copy_to_released": ["use_after_free: aclrtMemset got devPtr 0x..., which lies in an alloc"],
    "unmap_in_use": [
        "free_in_use: aclrtUnmapMem frees 0x... while aclnnInplaceLeakyRelu may still write it"
    ],
    "wrong_ends": [
        "wrong_free: aclrtUnmapMem got 0x..., which lies 64 bytes inside mapped memory",
        "wrong_free: aclrtUnmapMem got 0x..., which lies 10485760 bytes inside a reservation",
        "wrong_free: aclrtFree got 0x..., which is mapped memory",
        "wrong_free: aclrtReleaseMemAddress got 0x..., which lies 2097152 bytes inside a reserv",
        "wrong_free: aclrtUnmapMem got 0x..., which is device memory",
        "wrong_free: aclrtReleaseMemAddress got 0x..., which is not reserved memory",
    ],
    "twice": [
        "double_free: aclrtUnmapMem got 0x..., where memory was unmapped before",
        "double_free: aclrtFreePhysical got handle 0x..., an aclrtDrvMemHandle that was destroyed",
        "use_after_destroy: aclrtMapMem got handle 0x..., an aclrtDrvMemHandle that was destroyed",
        "double_free: aclrtReleaseMemAddress got 0x..., a reservation that was released before",
    ],
    "leaks": [
        "leak: 1 aclrtDrvMemHandle 0x... is still alive at aclFinalize",
        "leak: 1 piece of reserved memory, 16777216 bytes at 0x..., is still alive at aclFinalize",
    ],
    "not_in_order": [
        "unsynchronised_streams: aclrtMemsetAsync writes devPtr, 4 bytes at 0x..., on stream 0x...;"
        " aclnnInplaceLeakyRelu writes it"
    ],
    "replay_of_unmapped": [
        "use_after_free: aclnnInplaceLeakyRelu got selfRef 0x..., whose byte 2000 lies in an "
        "allocation of 4194304 bytes that was freed"
    ],  # of the fill, the places are the same
    "replay_of_released": [
        "use_after_free: aclnnInplaceLeakyRelu got selfRef 0x..., which lies in an allocation of "
        "2097152 bytes that was freed",
        "use_after_free: aclrtMemsetAsync got devPtr 0x..., which lies in an allocation of 4194304",
    ],
}


@pytest.fixture(scope="module")
def cases(programs) -> str:
    return built_once("check_mode_mappings.cpp", programs)


@pytest.mark.parametrize("case", CASES)
def test_mistakes(case, cases):
    done = openaclnn_command("check", cases, case)
    reports = [": ".join(found) for found in REPORT.findall(TOOL["normal"](done.stderr))]
    assert len(reports) == len(CASES[case]), done.stderr
    for report, pattern in zip(reports, CASES[case], strict=True):
        assert re.match(pattern, report), report
    assert done.returncode == 66


@pytest.mark.parametrize("case", ["right", "replay_of_mapped_again"])
def test_right_use_causes_no_report(case, cases):
    done = openaclnn_command("check", cases, case)
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")
