# SPDX-License-Identifier: Apache-2.0
"""`openaclnn run`: the environment, exit statuses and signals of a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.abi.test_building import COMMAND, HOME, LIB, run

from openaclnn.commands.programs import environment
from openaclnn.rows.libraries import LINK_LINE

pytestmark = pytest.mark.programs


def test_environment_is_that_of_set_env(tmp_path) -> None:
    """The variables of `openaclnn run` and of set_env.sh, as `env` shows them in both."""
    script = f". '{HOME}/set_env.sh' && env -0"
    bare = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/before", "CMAKE_PREFIX_PATH": ""}
    shell = subprocess.run(["bash", "-c", script], env=bare, capture_output=True, check=True)
    set_env = dict(
        entry.split("=", 1) for entry in shell.stdout.decode().split("\0") if "=" in entry
    )
    names = {*environment(bare)} | {n for n in set_env if n not in ("PWD", "SHLVL", "_", "OLDPWD")}
    assert {n: environment(bare).get(n) for n in names} == {n: set_env.get(n) for n in names}


def test_what_holds_the_installation_directory() -> None:
    """Official build lines and samples read one of these."""
    found = {name for name, value in environment({}).items() if value == str(HOME)}
    assert found >= {"ASCEND_HOME_PATH", "ASCEND_CUSTOM_PATH", "ASCEND_INSTALL_PATH"}


@pytest.mark.parametrize("name", ["ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT"])
def test_log_of_a_program(name) -> None:
    call = f"ctypes.CDLL('{HOME}/lib64/libascendcl.so').aclAppLog(3, b'f', b'a/b.c', 7, b'text')"
    command = [sys.executable, "-c", f"import ctypes; {call}"]
    for shown in "01":
        done = subprocess.run(command, env={name: shown}, capture_output=True, text=True)
        assert ("b.c:7 f: text" in done.stdout) == (shown == "1")


def test_exit_status_and_words(tmp_path) -> None:
    script = 'printf "%s|" "$@" "$ASCEND_HOME_PATH"; exit 42'
    done = run("run", "sh", "-c", script, "sh", "a b", "--", "-h", "--show", cwd=tmp_path)
    assert done.returncode == 42
    assert done.stdout == f"a b|--|-h|--show|{HOME}|"


def test_killed_by_a_signal(tmp_path) -> None:
    done = run("run", "sh", "-c", "kill -TERM $$", cwd=tmp_path)
    assert done.returncode == -signal.SIGTERM


def test_signals_reach_the_program(tmp_path) -> None:
    script = "trap 'echo signalled; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
    command = [*COMMAND, "run", "sh", "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "signalled\n"
        assert process.wait(timeout=60) == 3


def test_programs_that_are_not_there(tmp_path) -> None:
    (tmp_path / "here").write_text("")
    none = run("run", "./none", cwd=tmp_path)
    assert none.returncode == 127
    assert none.stderr == "openaclnn run: program ./none not found\n"
    here = run("run", "here", cwd=tmp_path)
    assert here.returncode == 127
    assert here.stderr == "openaclnn run: program here not found; use ./here\n"
    (tmp_path / "here.py").write_text("")
    assert run("run", "here.py", cwd=tmp_path).stderr.endswith("not found; use python here.py\n")
    text = run("run", "./here", cwd=tmp_path)
    assert text.returncode == 126
    assert text.stderr == "openaclnn run: cannot run ./here: Permission denied\n"


def test_libraries_are_those_of_the_installation() -> None:
    assert all((LIB / f"lib{name}.so").exists() for name in LINK_LINE)
