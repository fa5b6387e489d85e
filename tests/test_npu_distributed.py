# SPDX-License-Identifier: Apache-2.0
"""`init_process_group("hccl")` through the torch_npu wheel: the programs of tests/npu_distributed,
each as several processes, inside `openaclnn npu`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from npu_support import environment

PROGRAMS = Path(__file__).parent / "npu_distributed"
LIMIT = 240  # seconds until a test is a hang


def start(ranks: int, program: Path, *words: str, **variables: str) -> tuple[int, str]:
    """The exit status of torch's launcher, and what all ranks printed."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    command = (sys.executable, "-m", "openaclnn", "npu", "--", *launcher)
    return run(*command, f"--nproc-per-node={ranks}", str(program), *words, **variables)


def run(*command: str, **variables: str) -> tuple[int, str]:
    quiet = {"OMP_NUM_THREADS": "1", "OPENACLNN_NPU_NOTICE": "0", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command,
        env=environment(**{**quiet, **variables}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        pytest.fail(f"{command} did not end within {LIMIT} s:\n{text}")
    return process.returncode, text


def passes(ranks: int, name: str, checks: int, **variables: str) -> None:
    status, text = start(ranks, PROGRAMS / name, **variables)
    assert status == 0, text
    done = re.findall(rf"rank (\d+) of {ranks}: (\d+) checks", text)
    assert sorted(rank for rank, _ in done) == [str(rank) for rank in range(ranks)], text
    assert all(int(count) >= checks for _, count in done), text


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(ranks):
    passes(ranks, "collectives.py", 16)


@pytest.mark.parametrize("ranks", [2, 4])
def test_sends_and_order(ranks):
    passes(ranks, "transfers.py", 8)


@pytest.mark.parametrize("queue", ["1", "2"])
def test_with_the_queue_of_torch_npu(queue):
    passes(2, "transfers.py", 8, TASK_QUEUE_ENABLE=queue)


@pytest.mark.parametrize("ranks", [2, 4])
def test_training_equals_one_process(ranks):
    passes(ranks, "training.py", 5)


SECONDS = {"HCCL_EXEC_TIMEOUT": "5", "HCCL_CONNECT_TIMEOUT": "5"}


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("raises", "all ranks must be alive, but one ended or failed: "),
        ("killed", "all ranks must be alive, but one ended or failed: "),
        ("leaves", "all ranks must be alive, but one ended or failed: "),
        ("sleeps", "all ranks must take part within HCCL_EXEC_TIMEOUT = 5 s, but one did not"),
        ("missing", "all of the 2 ranks must come within HCCL_CONNECT_TIMEOUT = 5 s, but rank 1"),
    ],
)
def test_a_failing_rank_ends_the_others_with_a_sentence(way, sentence):
    # The others raise at once; without HCCL_EXEC_TIMEOUT, which only some of these ways wait for,
    # they would wait for half an hour.
    timeouts = SECONDS if way in ("sleeps", "missing") else {}
    status, text = start(2, PROGRAMS / "failing.py", way, **timeouts)
    assert status != 0
    raised = re.search(r"^rank 0 after (\d+) s: (.*?)(?=^\[rank|\Z)", text, re.M | re.S)
    assert raised is not None, text
    assert sentence in raised[2], text
    assert "rank 0 has" not in text  # no result that only looks like one


def test_the_timeout_of_the_group_ends_the_process():
    """torch_npu's own, which is not openaclnn's sentence."""
    status, text = start(2, PROGRAMS / "failing.py", "sleeps", TIMEOUT="5")
    assert status != 0
    assert "OpType=ALLREDUCE" in text, text
    assert "Timeout(ms)=5000" in text, text
    assert "rank 0 has" not in text, text


def test_the_failure_reaches_ranks_that_are_not_neighbours():
    status, text = start(4, PROGRAMS / "failing.py", "killed")
    assert status != 0
    assert "all ranks must be alive, but one ended or failed" in text
    assert not re.search(r"^rank \d has", text, re.M), text


def test_the_example_of_the_page(tmp_path):
    page = (PROGRAMS.parents[1] / "docs" / "npu_processes.md").read_text()
    (tmp_path / "train.py").write_text(re.search(r"```python\n(.*?)```", page, re.S)[1])
    command = "openaclnn npu -- torchrun --standalone --nproc-per-node=2 train.py"
    assert f"```bash\n{command}\n```" in page
    losses = []
    for ranks in (1, 2):
        status, text = start(ranks, tmp_path / "train.py")
        assert status == 0, text
        losses.append(float(re.search(rf"loss of {ranks} processes: (\S+)", text)[1]))
    assert losses[0] == pytest.approx(losses[1], abs=2e-4)


def test_processes_that_import_openaclnn_npu(tmp_path):
    status, text = run(sys.executable, str(PROGRAMS / "spawned.py"), str(tmp_path / "store"))
    assert status == 0, text
    for rank in range(2):
        assert f"rank {rank} has the sum" in text


def test_calls_that_a_task_could_not_survive():
    status, text = run(sys.executable, str(PROGRAMS / "wrong_calls.py"))
    assert status == 0, text
    assert "all were refused" in text
