# SPDX-License-Identifier: Apache-2.0
"""`openaclnn completion`: what the shells offer."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from openaclnn.commands.cli import main, parser
from openaclnn.commands.completion import SHELLS, options

# What is typed, and what bash offers for the last word; nothing: bash offers files.
TYPED = {
    "openaclnn ver": ["verify"],
    "openaclnn ops leaky": ["leaky_relu", "leaky_relu_", "leaky_relu_backward"],
    "openaclnn plot elu --dtype fp3": ["fp32"],
    "openaclnn verify --op aclnnLogitG": ["aclnnLogitGrad"],
    "openaclnn bench --threa": ["--threads"],
    "openaclnn npu --rep": ["--report"],
    "openaclnn docs check": ["check_mode", "check_mode.zh-CN"],
    "openaclnn completion z": ["zsh"],
    "openaclnn compare mine": [],
    "openaclnn cc prog": [],
}


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_what_fits(capsys):
    program = script("bash", capsys)
    for line in TYPED:
        words = line.split()
        program += f"COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}\n"
        program += '_openaclnn; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert dict(zip(TYPED, map(str.split, done.stdout.splitlines()), strict=True)) == TYPED


@pytest.mark.programs
@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_its_script(shell, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    text = script(shell, capsys)
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_and_option_is_offered(capsys):
    (commands,) = (a.choices for a in parser()._actions if a.dest == "==SUPPRESS==")
    texts = {shell: script(shell, capsys) for shell in SHELLS}
    assert texts["zsh"].endswith(texts["bash"])
    for name, sub in commands.items():
        assert f" -a {name} -d '" in texts["fish"]
        assert f'*" {name} "*)' in texts["bash"]
        for option, _ in options(sub):
            assert f"from {name}' -l {option[2:]}" in texts["fish"]
            assert option in texts["bash"]
