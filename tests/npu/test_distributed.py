# SPDX-License-Identifier: Apache-2.0
"""`init_process_group("hccl")` through the torch_npu wheel: the programs of tests/npu/distributed,
each as several processes, inside `openaclnn npu`. Most are started by launch.py, which takes half
the time of torch's launcher; those of the examples, of two machines and of one number of ranks by
the launchers that people use.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.npu.npu_support import environment
from tests.processes import run_with_children

pytestmark = pytest.mark.programs

PROGRAMS = Path(__file__).parent / "distributed"
LIMIT = 240  # seconds until a test is a hang


NPU = (sys.executable, "-m", "openaclnn", "npu", "--", sys.executable)
LAUNCH = str(PROGRAMS.parents[1] / "torch" / "launch.py")


def start(ranks: int, program: Path, *words: str, **variables: str) -> tuple[int, str]:
    """The exit status of the launcher, and what all ranks printed."""
    return run(*NPU, LAUNCH, str(ranks), str(program), *words, **variables)


def start_with_torch(ranks: int, program: Path, *words: str, **variables: str) -> tuple[int, str]:
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
    return run(*NPU, *launcher, str(program), *words, **variables)


def run(*command: str, **variables: str) -> tuple[int, str]:
    quiet = {"OMP_NUM_THREADS": "1", "OPENACLNN_NPU_NOTICE": "0", "PYTHONWARNINGS": "ignore"}
    return run_with_children(command, environment(**{**quiet, **variables}), LIMIT)


# The modules and how many checks each has. One check of training needs four ranks.
CHECKS = {"collectives": 16, "transfers": 8, "training": 5, "operators": 4}


def passed(ranks: int, modules: str, ended: tuple[int, str]) -> list[int]:
    """Which of the ranks ran all checks of the modules."""
    status, text = ended
    assert status == 0, text
    wanted = sum(CHECKS[name] + (name == "training" and ranks == 4) for name in modules.split())
    done = re.findall(rf"rank (\d+) of {ranks}: (\d+) checks", text)
    assert all(int(count) == wanted for _, count in done), text
    return sorted(int(rank) for rank, _ in done)


@pytest.mark.parametrize(
    ("ranks", "modules"),
    [
        (2, "collectives transfers training operators"),
        (3, "collectives"),  # torch_npu has operators for powers of two only
        (4, "transfers training"),
    ],
)
def test_checks(ranks, modules):
    # Forked ranks share addresses and hashes; a launch must have others in each.
    launch = start_with_torch if ranks == 2 else start
    ended = launch(ranks, PROGRAMS / "run_checks.py", *modules.split())
    assert passed(ranks, modules, ended) == list(range(ranks))


@pytest.mark.parametrize("queue", ["1", "2"])
def test_with_the_queue_of_torch_npu(queue):
    program = PROGRAMS / "run_checks.py"
    ended = start(2, program, "transfers", "operators", TASK_QUEUE_ENABLE=queue)
    assert passed(2, "transfers operators", ended) == [0, 1]


# The words of launch.py for each way to fail. Where none of them sets a timeout, the others must
# raise at once, or they would wait for half an hour.
EXECUTION, CONNECTION = "HCCL_EXEC_TIMEOUT=5", "HCCL_CONNECT_TIMEOUT=5"
FAILING = str(PROGRAMS / "failing.py")
FAILURES = {
    "raises": ("2", FAILING, "raises"),
    "killed": ("2", FAILING, "killed"),
    "leaves": ("2", FAILING, "leaves"),
    "sleeps": (EXECUTION, "2", FAILING, "sleeps"),
    "missing": (CONNECTION, "2", FAILING, "missing"),
    "sleeps longer than the group waits": ("TIMEOUT=5", "2", FAILING, "sleeps"),
    "killed, of four": ("4", FAILING, "killed"),
    "killed, no result read": ("2", FAILING, "killed", "unread"),
    "told to fail": ("OPENACLNN_HCCL_FAULT=1:2:error", "2", FAILING, "fault"),
    "told to be silent": ("OPENACLNN_HCCL_FAULT=1:2:silent", EXECUTION, "2", FAILING, "fault"),
}


@pytest.fixture(scope="module")
def failures() -> dict[str, tuple[int, str]]:
    """The exit status of each launch, and what its ranks printed."""
    words = [word for failure in FAILURES.values() for word in ("---", *failure)][1:]
    status, text = run(*NPU, LAUNCH, *words)
    assert status == 0, text
    groups = json.loads(text.splitlines()[-1])
    return dict(zip(FAILURES, groups, strict=True))


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("raises", "another rank ended or failed: "),
        ("killed", "another rank ended or failed: "),
        ("leaves", "another rank ended or failed: "),
        ("sleeps", "timed out after HCCL_EXEC_TIMEOUT = 5 s: a rank did not take part"),
        ("missing", "timed out after HCCL_CONNECT_TIMEOUT = 5 s: rank 1 of 2"),
        ("told to fail", "another rank ended or failed: "),
        # Both wait for 5 s, and the one that began first tells the other.
        ("told to be silent", "timed out after HCCL_EXEC_TIMEOUT = 5 s: a rank did not take part|"
                              "another rank ended or failed: "),
    ],
)  # fmt: skip
def test_a_failing_rank_ends_the_others_with_a_sentence(way, sentence, failures):
    status, text = failures[way]
    assert status != 0
    raised = re.search(r"rank 0 after (\d+) s: (.*?)(?=^\[rank|\Z)", text, re.M | re.S)
    assert raised is not None, text
    assert re.search(sentence, raised[2]), text
    assert "rank 0 has" not in text  # no result that only looks like one


@pytest.mark.parametrize(
    ("way", "sentence"),
    [("told to fail", "failed, as "), ("told to be silent", "took no part, as ")],
)
def test_a_rank_fails_at_the_call_that_the_variable_names(way, sentence, failures):
    raised = re.search(r"rank 1 after \d+ s: (.*?)(?=^\[rank|\Z)", failures[way][1], re.M | re.S)
    assert raised is not None, failures[way][1]
    assert f"{sentence}OPENACLNN_HCCL_FAULT says" in raised[1]


SUM = "(sum of Float)"


DISAGREE = {
    "size": (f"all_reduce of 16 bytes {SUM}", f"all_reduce of 20 bytes {SUM}"),
    "empty": (f"all_reduce of 0 bytes {SUM}", f"all_reduce of 16 bytes {SUM}"),
    "dtype": (f"all_reduce of 24 bytes {SUM}", "all_reduce of 24 bytes (sum of Int)"),
    "operation": (f"all_reduce of 24 bytes {SUM}", "all_reduce of 24 bytes (maximum of Float)"),
    "broadcast": ("broadcast of 16 bytes with root 0", "broadcast of 20 bytes with root 0"),
    "root": ("broadcast of 24 bytes with root 0", "broadcast of 24 bytes with root 1"),
    "kind": ("broadcast of 24 bytes with root 0", f"all_reduce of 24 bytes {SUM}"),
    "gather": ("all_gather of 4 bytes", "all_gather of 8 bytes"),
}


def test_ranks_that_disagree_say_so_in_check_mode():
    status, text = start(2, PROGRAMS / "disagreeing.py", *DISAGREE, OPENACLNN_CHECK="1")
    assert status == 0, text
    said = re.findall(r"^(\w+): rank (\d) raised (.*?)(?=^\w+: rank|\Z)", text, re.M | re.S)
    assert [way for way, rank, _ in said if rank == "0"] == list(DISAGREE), text
    assert [way for way, rank, _ in said if rank == "1"] == list(DISAGREE), text
    for way, _, error in said:
        calls = "rank 0 {}, rank 1 {}".format(*DISAGREE[way])
        assert f"the ranks make different calls: {calls}" in error, text
    # What failed is the group of each call, not that of all ranks.
    assert len(re.findall(r"^at the end: rank \d has 12.0$", text, re.M)) == 2, text
    assert len(re.findall(r"rank \d has", text)) == 2, text


def test_the_timeout_of_the_group_ends_the_process(failures):
    """torch_npu's own, which is not openaclnn's sentence."""
    status, text = failures["sleeps longer than the group waits"]
    assert status != 0
    assert "OpType=ALLREDUCE" in text, text
    assert "Timeout(ms)=5000" in text, text
    assert "rank 0 has" not in text, text


def test_the_failure_reaches_ranks_that_are_not_neighbours(failures):
    status, text = failures["killed, of four"]
    assert status != 0
    assert "another rank ended or failed" in text, text
    assert not re.search(r"rank \d has", text, re.M), text


def test_the_watchdog_says_what_failed(failures):
    """torch_npu's thread ends a rank that reads no result, with what HcclGetCommAsyncError left."""
    status, text = failures["killed, no result read"]
    assert status != 0
    sentence = "another rank ended or failed: "
    said = rf"ERROR via HcclGetCommAsyncError : .*HcclGetCommAsyncError: \w+: {sentence}"
    assert re.search(said, text, re.S), text


def example(program: str, command: str, folder: Path) -> Path:
    """The program of the page, whose command must be in it too."""
    page = (PROGRAMS.parents[2] / "docs" / "tutorials" / "several_processes.md").read_text()
    assert f"```bash\n{command} {program}\n```" in page
    text = re.search(rf"```python\n(# {re.escape(program)}\n.*?)```", page, re.S)[1]
    (folder / program).write_text(text)
    return folder / program


def loss_of(ranks: int, ended: tuple[int, str]) -> float:
    status, text = ended
    assert status == 0, text
    return float(re.search(rf"loss of {ranks} processes: (\S+)", text)[1])


def test_the_example_of_torchrun(tmp_path):
    command = "openaclnn npu -- torchrun --standalone --nproc-per-node=2"
    program = example("train.py", command, tmp_path)
    check = start_with_torch(2, program, OPENACLNN_CHECK="1")  # as the page does at its end
    losses = [loss_of(1, start_with_torch(1, program)), loss_of(2, check)]
    assert losses[0] == pytest.approx(losses[1], abs=2e-4)


@pytest.mark.skipif(
    importlib.util.find_spec("accelerate") is None,
    reason="accelerate is not installed: pip install '.[npu-test]'",
)
def test_the_example_of_accelerate(tmp_path):
    launch = "openaclnn npu -- accelerate launch --num_processes="
    program = example("train_accelerate.py", f"OPENACLNN_DEVICES=2 {launch}2", tmp_path)
    losses = []
    for ranks in (1, 2):
        words = ("-m", "accelerate.commands.launch", f"--num_processes={ranks}", str(program))
        losses.append(loss_of(ranks, run(*NPU, *words, OPENACLNN_DEVICES=str(ranks))))
    assert losses[0] == pytest.approx(losses[1], abs=2e-4)


def _ip(words: str) -> bool:
    try:
        return subprocess.run(["ip", *words.split()], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def machines():
    """Two network namespaces with a cable between them: no address of one, its loopback included,
    is one of the other."""
    names = [f"openaclnn-{os.getpid()}-{i}" for i in range(2)]
    ends = [f"oa{i}n{os.getpid() % 100000}" for i in range(2)]
    try:
        if not all(_ip(f"netns add {name}") for name in names):
            pytest.skip("this user must not make network namespaces, or ip is not installed")
        cable = f"link add {ends[0]} netns {names[0]} type veth peer name {ends[1]}"
        if not _ip(f"{cable} netns {names[1]}"):
            pytest.skip("this kernel has no pairs of virtual network devices")
        for i, (name, end) in enumerate(zip(names, ends, strict=True)):
            assert _ip(f"-n {name} addr add 10.77.0.{i + 1}/24 dev {end}")
            assert _ip(f"-n {name} link set lo up")
            assert _ip(f"-n {name} link set {end} up")
        yield names
    finally:
        for name in names:
            _ip(f"netns del {name}")


def test_two_machines(machines):
    modules = "collectives transfers"

    def launch(node: int) -> tuple[int, str]:
        return run(
            *("ip", "netns", "exec", machines[node]),
            *(*NPU, "-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={node}"),
            *("--nproc-per-node=2", "--master-addr=10.77.0.1", "--master-port=29533"),
            *(str(PROGRAMS / "run_checks.py"), *modules.split()),
        )

    with ThreadPoolExecutor() as pool:
        for node, ended in enumerate(pool.map(launch, range(2))):
            assert passed(4, modules, ended) == [2 * node, 2 * node + 1]


def test_processes_that_import_openaclnn_npu(tmp_path):
    status, text = run(sys.executable, str(PROGRAMS / "spawned.py"), str(tmp_path / "store"))
    assert status == 0, text
    for rank in range(2):
        assert f"rank {rank} has the sum" in text


def test_calls_that_a_task_could_not_survive_and_seconds_that_are_not_numbers():
    values = {"HCCL_EXEC_TIMEOUT": "abc", "HCCL_CONNECT_TIMEOUT": "0"}
    status, text = run(sys.executable, str(PROGRAMS / "wrong_calls.py"), **values)
    assert status == 0, text
    assert "all were refused" in text
    for name, value, used in (("EXEC", "abc", 1836), ("CONNECT", "0", 120)):
        sentence = f'HCCL_{name}_TIMEOUT must be a whole number from 1 to 2147483, but is "{value}"'
        assert text.count(f"openaclnn: {sentence}; {used} is used") == 1, text
