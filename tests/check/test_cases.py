# SPDX-License-Identifier: Apache-2.0
"""Check mode: programs with less usual mistakes: crashes, forks, threads."""

from __future__ import annotations

import json
import re

import pytest
from tests.check.check_mode import REPORT, ROOT, TOOL, built_once, needs_compiler, openaclnn_command

pytestmark = [pytest.mark.programs, needs_compiler]


READ = r"the host read device memory at 0x\.\.\., "
CASES = {
    "read_behind": ["host_access: " + READ + r"12 bytes behind an allocation of 4000 bytes\."],
    "read_after_free": [
        "host_access: " + READ + r"0 bytes into an allocation of 4000 bytes, which was freed\."
    ],
    "read_in_libc": ["host_access: " + READ + "0 bytes into an allocation of 4000 bytes"],
    "write_in_thread": ["host_access: the host wrote device memory at"],
    "told_once": ["wrong_kind: aclrtMemcpy was called with ACL_MEMCPY_HOST_TO_DEVICE"],
    "double_free_at_exit": ["double_free: aclrtFree got 0x..., which was freed before"],
    "free_inside": ["wrong_free: aclrtFree got 0x..., which lies 32 bytes inside an allocation"],
    "free_pinned_in_use": [
        r"free_in_use: aclrtFreeHost frees 0x... while aclrtMemcpyAsync may still write it \(dst\)"
    ],
    "leaks": [  # not the streams: they went with the device
        r"leak: 2 pieces of host memory are still alive at aclFinalize\.",
        r"leak: 3 pieces of device memory, 12000 bytes in all, are still alive at aclFinalize\.",
    ],
    "workspace_in_an_operand": [
        r"workspace_overlap: aclnnGroupNormSwishGrad got a workspace of \d+ bytes at 0x... "
        "that overlaps x at 0x"
    ],
    "workspace_size_too_small": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 255\."
    ],
    "no_workspace": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 0\."
    ],
    "workspace_promised_too_much": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 512 and the allocation has 256 left at workspace\."
    ],
    "workspace_one_byte_short": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"the allocation has 255 left at workspace\."
    ],
    "result_of_a_dropped_operator": [
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but 2000 of them were "
        r"never given a value, the first at byte 0\. aclnnLeakyRelu was to write them, but never "
        r"ran: its stream was destroyed by force\."
    ],
    "result_of_a_dropped_fill": [
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but none of them was ever "
        r"given a value\. aclrtMemsetAsync was to write them, but never ran"
    ],
    "left_after_a_refused_phase_2": [
        r"workspace_too_small: aclnnGroupNormSwishGrad needs 256 bytes of workspace, but "
        r"workspaceSize says 0\."
    ],
    "copied_back_uncomputed": [  # three times
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but none of them was ever "
    ],
    "half_computed": [
        r"never_written: aclrtMemcpy reads src, 4000 bytes at 0x\.\.\., but 2000 of them were "
        r"never given a value, the first at byte 2000\."
    ],
    "gaps_read": [
        r"never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x\.\.\., but 2000 of them were "
        r"never given a value, the first at byte 4\."
    ],
    "carried_by_a_copy": ["never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x"],
    "after_a_callback": ["never_written: aclnnLeakyRelu reads self, 4000 bytes at 0x"],
    "memory_of_another_device": [
        r"wrong_device: aclnnLeakyRelu works on self at 0x\.\.\., memory of device 0, on stream "
        r"0x\.\.\. of device 1\."
    ],
    "fill_on_another_devices_stream": [
        r"wrong_device: aclrtMemsetAsync puts work on stream 0x\.\.\. of device 1 while device 0"
    ],
    "makers_of_nothing": [
        "refused: aclrtCreateStream returned 100000: stream must not be NULL",
        "refused: aclrtCreateStreamWithConfig returned 100000: stream must not be NULL",
    ],
    "reset_twice": ["refused: aclrtResetDevice returned 107000: device 0 was reset already"],
    "result_of_a_refused_call": [
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must have the shape of self"
    ],
    "threads_without_a_device": [
        "refused: aclrtMalloc returned 107002: no device is set for this thread"
    ],
    "freed_address_set": [
        r"use_after_free: aclnnLeakyRelu would work on self at 0x\.\.\., memory that was freed"
    ],
    "member_of_a_list": [
        r"double_free: aclDestroyTensor got tensor 0x\.\.\., an aclTensor that was destroyed before"
    ],
    "event_destroyed": [
        r"use_after_destroy: aclrtRecordEvent got event 0x\.\.\., an aclrtEvent that was destroyed"
    ],
    "a_notification_is_consumed": [
        "unsynchronised_streams: aclrtMemsetAsync writes devPtr, 4000 bytes at 0x..., on stream "
        r"0x...; aclrtMemsetAsync writes it \(devPtr\) on stream 0x..., and nothing orders the two"
    ],
    "a_reduction_not_ordered": ["unsynchronised_streams: aclrtReduceAsync writes dst, 4000 bytes"],
    "a_replay_not_ordered": [
        "unsynchronised_streams: aclrtMemsetAsync writes devPtr, 4000 bytes at 0x..., on stream "
        r"0x...; aclrtMemsetAsync writes it \(devPtr\) on stream 0x..., and nothing orders the two"
    ],
    "a_replay_of_freed_memory": [
        r"use_after_free: aclrtMemsetAsync got devPtr 0x\.\.\., which lies in an allocation of "
        r"4000 bytes that was freed\."
    ],
    "graph_left": [r"leak: 1 aclmdlRI 0x\.\.\. is still alive at aclFinalize\."],
    "memory_freed_behind_a_wait": [
        r"free_in_use: aclrtFree frees 0x\.\.\. while aclrtMemsetAsync may still write it "
    ],
    "notification_left": [r"leak: 1 aclrtNotify 0x\.\.\. is still alive at aclFinalize\."],
    "notification_destroyed": [
        r"use_after_destroy: aclrtRecordNotify got notify 0x\.\.\., an aclrtNotify that was "
    ],
    "event_of_another_stream": [
        "unsynchronised_streams: aclrtMemsetAsync writes devPtr, 4000 bytes at 0x..., on stream "
        r"0x...; aclnnLeakyRelu writes it \(out\) on stream 0x..., and nothing orders the two"
    ],
    "fork_and_free_twice": ["double_free: aclrtFree got 0x..., which was freed before"],
    "handles_of_other_kinds": [
        "unknown_handle: aclrtSynchronizeStream got stream 0x..., which is an aclrtEvent, not "
        r"an aclrtStream\.",
        "unknown_handle: aclnnLeakyRelu got stream 0x..., which is an aclrtEvent, not ",
        "unknown_handle: aclrtSynchronizeStream got stream 0x..., which is device memory, not ",
    ],
    "one_missing_synchronisation": ["read_before_sync: aclrtMemcpy reads src"],
    "leaks_on_one_line": [
        r"leak: 1 aclTensor, FLOAT \[10\] at 0x\.\.\., is still alive at aclFinalize\.",
        r"leak: 1 aclTensor, FLOAT \[20\] at 0x\.\.\., is still alive at aclFinalize\.",
    ],
    "free_foreign": ["wrong_free: aclrtFree got 0x..., which is not device memory that acl alloc"],
    "refused_shape": [  # each place once
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must ",
    ],
    "refused_dtype": [
        "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must ",
    ],
    "executor_of_another_operator": [
        "refused: aclnnGroupNormSwishGrad returned 161002: executor belongs "
        "to another operator; pass that of aclnnGroupNormSwishGradGetWorkspaceSize"
    ],
    "run_after_a_refusal": [
        "refused: aclnnGroupNormSwishGrad returned 161002: executor belongs to another operator",
        r"leak: 1 aclOpExecutor 0x\.\.\. is still alive at aclFinalize\.",
    ],
    "refused_objects": [
        "refused: aclCreateScalar returned NULL: value must not be NULL",
        "refused: aclCreateTensor returned NULL: viewDims must not be NULL",
        "refused: aclCreateIntArray returned NULL: value must not be NULL",
    ],
    "refused_runtime": [
        "refused: aclrtMemcpyAsync returned 100000: src must not be NULL",
        "refused: aclrtSetDevice returned 107001: deviceId must be",
    ],
}
SPANS = (
    r": out spans bytes 0 to 400000 from 0x\.\.\., where 4000 are allocated; "
    r"self spans bytes 0 to 400000 from 0x\.\.\., where 400000 are allocated\."
)
CASES["output_allocated_too_small"] = [
    "refused: aclnnLeakyReluGetWorkspaceSize returned 161002: out must be the same view as self "
    "or share no memory with it, but overlaps it" + SPANS
]
CASES["set_output_allocated_too_small"] = [
    "view_outside_allocation: aclnnLeakyRelu got out, whose view spans bytes 0 to 400000 from "
    r"0x\.\.\., but the allocation there has 4000 bytes left\."
]
# What is reported under them.
CONSEQUENCES = {
    "refused_shape": ["refused: aclnnLeakyRelu returned 161001: executor must not be NULL"],
    "refused_dtype": ["refused: aclnnLeakyRelu returned 161001: executor must not be NULL"],
    "makers_of_nothing": ["refused: aclrtDestroyStream returned 100000: stream must not be NULL"],
    "result_of_a_refused_call": [
        "refused: aclnnLeakyRelu returned 161001: executor must not be NULL",
        "never_written: aclrtMemcpy reads src, 4000 bytes",
    ],
    "threads_without_a_device": [
        "refused: aclrtMemset returned 100000: devPtr must not be NULL",
    ],
}


SOURCES = tuple(
    f"check_mode_{part}cases.cpp" for part in ("", "device_", "order_", "overlap_", "refused_")
)


@pytest.fixture
def check(programs):
    """What `openaclnn check` reports for a case."""

    def run(case, *words, options=()):
        named = f'{{"{case}", '
        (source,) = (s for s in SOURCES if named in (ROOT / "tests" / "check" / s).read_text())
        return openaclnn_command("check", *options, built_once(source, programs), case, *words)

    return run


@pytest.mark.parametrize("case", CASES)
def test_less_usual_ways(case, check):
    done = check(case)
    reports = [": ".join(found) for found in REPORT.findall(TOOL["normal"](done.stderr))]
    assert len(reports) == len(CASES[case]), done.stderr
    for report, pattern in zip(reports, CASES[case], strict=True):
        assert re.match(pattern, report), report
    followed = re.findall(r"^    consequence: (.*) \(.*\)$", done.stderr, re.M)
    expected = CONSEQUENCES.get(case, [])
    assert len(followed) == len(expected), done.stderr
    for consequence, start in zip(followed, expected, strict=True):
        assert consequence.startswith(start), consequence
    assert done.returncode == 66


@pytest.mark.parametrize(
    "case",
    [
        "answers_that_are_no_mistakes",
        "gaps_copied_back",
        "gaps_of_broadcast_views",
        "written_in_a_callback",
        "two_devices",
        "workspace_larger_than_needed",
        "dropped_and_computed_again",
        "ordered_by_a_notification",
        "replays_in_order",
        "ordered_by_a_later_record",
        "ordered_by_a_value",
        "managed_memory",
    ],
)
def test_right_cases(case, check):
    done = check(case)
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_a_child_has_memory_and_mistakes_of_its_own(check):
    done = check("fork_and_free_twice", options=("--json", "-"))
    assert "the child ended with 66\nthe parent has 1\n" in done.stderr
    assert [r["kind"] for r in json.loads(done.stdout)["reports"]] == ["double_free"]


@pytest.mark.parametrize("case", ["crash", "crash_of_its_own", "sent_signal"])
def test_other_faults_are_as_without_check_mode(case, check):
    done = check(case, "with_memory")
    sentence = "openaclnn check: ended by signal 11: no mistakes until then\n"
    assert (done.returncode, done.stderr) == (128 + 11, sentence)
    done = check(case)
    sentence = "openaclnn check: ended by signal 11: nothing was checked: "
    assert (done.returncode, done.stderr.startswith(sentence)) == (128 + 11, True)


def test_an_ignored_signal(check):
    done = check("ignored_signal")
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_programs_that_do_not_finalise(check):
    done = check("no_finalise")
    assert done.returncode == 0
    assert done.stderr == (
        "openaclnn check: leaks were not looked for: no aclFinalize succeeded\n"
        "openaclnn check: no mistakes\n"
    )


def test_advice_fits(check):
    advice = {
        "free_foreign": "free what aclrtMalloc gave with aclrtFree, ",
        "free_inside": "free memory with the address that the allocation gave.",
    }
    for case, words in advice.items():
        assert f"to do: {words}" in check(case).stderr


def test_handles_of_other_kinds_are_named_with_their_places(check):
    done = check("handles_of_other_kinds")
    assert done.stderr.count("made by aclrtCreateEvent") == 2
