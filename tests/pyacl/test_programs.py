# SPDX-License-Identifier: Apache-2.0
"""Programs that import acl: the example, where the module is found, the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pyacl.pyacl_support import FOLDER, acl, call

from openaclnn.commands.programs import environment

ROOT = Path(__file__).resolve().parents[2]


def run(*words, **variables):
    return subprocess.run(words, capture_output=True, text=True, env=environment({}) | variables)


def openaclnn(*words):
    return subprocess.run([sys.executable, "-m", "openaclnn", *words], capture_output=True,
                          text=True)  # fmt: skip


@pytest.mark.programs
def test_the_example_through_openaclnn_run():
    done = openaclnn("run", sys.executable, str(ROOT / "examples" / "pyacl_leaky_relu.py"))
    assert (done.stdout, done.stderr, done.returncode) == ("[-1.0, -0.5, 0.0, 3.0]\n", "", 0)


@pytest.mark.programs
def test_python_finds_the_module_only_in_that_environment():
    code = "import acl; print(acl.__file__)"
    found = run(sys.executable, "-c", code)
    assert Path(found.stdout.strip()).parent == FOLDER / "acl"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={})
    assert "No module named 'acl'" in alone.stderr


@pytest.mark.programs
def test_without_the_loader_the_library_beside_the_module_serves():
    code = "import acl; print(acl.rt.get_device_count())"
    done = run(sys.executable, "-c", code, LD_LIBRARY_PATH="", OPENACLNN_DEVICES="3")
    assert done.stdout == "(3, 0)\n", done.stderr


@pytest.mark.programs
def test_the_end_of_a_process_with_a_callback_for_failures():
    """Whose thread may still fail tasks."""
    code = (
        "import acl; acl.rt.set_device(0); stream, _ = acl.rt.create_stream()\n"
        "acl.rt.set_exception_info_callback(print)\n"
        "acl.rt.subscribe_report(1, stream); acl.rt.launch_callback(print, [], 1, stream)\n"
        "print('done')"
    )
    done = run(sys.executable, "-c", code)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.programs
def test_check_mode_sees_the_mistakes_of_a_program(tmp_path):
    program = tmp_path / "twice.py"
    program.write_text(
        "import acl\nacl.init()\nacl.rt.set_device(0)\npointer, _ = acl.rt.malloc(8, 0)\n"
        "acl.rt.free(pointer)\nacl.rt.free(pointer)\n"
    )
    done = openaclnn("check", "--", sys.executable, "-m", "openaclnn", "run", sys.executable,
                     str(program))  # fmt: skip
    assert "double free" in done.stderr.lower() or "freed" in done.stderr, done.stderr


def listed():
    """The rows of the page's table."""
    modules = {}
    for name in call.ALL:
        module, _, last = name.rpartition(".")
        if not last.startswith("_"):
            modules.setdefault(module, []).append(last)
    modules["rt"] += ["launch_callback", "set_exception_info_callback"]
    modules["op"] += ["set_attr_list_list_int"]
    modules["util"] = acl.util.__all__
    for module, names in modules.items():
        shown = ", ".join(f"`{name}`" for name in names)
        yield f"| `acl{'.' * bool(module)}{module}` | {shown} |\n"


def test_the_page_lists_the_functions():
    page = (ROOT / "docs" / "howto" / "pyacl.md").read_text(encoding="utf-8")
    between = re.search(r"here -->\n(.*?)<!-- end of the functions -->", page, re.S)
    assert between[1] == "".join(listed())
