# SPDX-License-Identifier: Apache-2.0
"""Environment variables: the one list of their names and rules, misspelt names, commands that
refuse a value before the program starts, the product of a chip.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import INTERNAL_VARIABLES

from openaclnn import _core
from openaclnn.rows.table import OTHER_CHIPS, PRODUCTS

ROOT = Path(__file__).resolve().parents[2]
LIST = (ROOT / "core" / "runtime" / "variables.cpp").read_text(encoding="utf-8")
LISTED = set(re.findall(r'^    \{"(OPENACLNN_\w+)"', LIST, re.M))
PRODUCT_KEYS = "910, A2, A3, 310P, 310B or any"
MISSPELT = "openaclnn: OPENACLNN_PRODUKT is unknown; did you mean OPENACLNN_PRODUCT?\n"


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in LISTED or k == "OPENACLNN_CACHE"}
    return subprocess.run(
        [sys.executable, *words], env=clean | variables, capture_output=True, text=True
    )


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "openaclnn", *words, **variables)


# ---- the list ----


def test_the_list_has_every_variable_that_is_read():
    read = set()
    for path in [*(ROOT / "core").rglob("*.cpp"), *(ROOT / "core").rglob("*.h")]:
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r'"(OPENACLNN_[A-Z_]+)"', text))
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r'environ(?:\.get\(|\[)"(OPENACLNN_[A-Z_]+)"', text))
    assert len(read) > 15
    assert read <= LISTED


def test_the_pages_name_what_is_on_the_list():
    pages = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs").rglob("*.md"))
    options = re.findall(r"\bOPENACLNN_\w+", (ROOT / "CMakeLists.txt").read_text())
    documented = set(re.findall(r"(?<![\w.])OPENACLNN_[A-Z_]+(?=[=`])", pages)) - set(options)
    assert documented >= LISTED - INTERNAL_VARIABLES
    assert documented - LISTED <= {"OPENACLNN_PRODUKT"}  # the misspelt one


# ---- misspelt names ----


@pytest.mark.programs
def test_a_misspelt_name_is_reported_once():
    program = "import openaclnn; openaclnn.config()"
    wrong = {"OPENACLNN_PRODUKT": "910", "OPENACLNN_DEVICE": "2", "OPENACLNN_XYZ": ""}
    done = python("-c", program, **wrong)
    assert done.returncode == 0
    assert sorted(done.stderr.splitlines(keepends=True)) == [
        "openaclnn: OPENACLNN_DEVICE is unknown; did you mean OPENACLNN_DEVICES?\n",
        MISSPELT,
        "openaclnn: OPENACLNN_XYZ is unknown; `openaclnn docs configuration` lists the variables\n",
    ]
    assert python("-c", program, OPENACLNN_DEVICES="2").stderr == ""


@pytest.mark.programs
def test_a_command_and_its_program_report_a_name_once():
    program = ("run", sys.executable, "-c", "import openaclnn")
    assert command(*program, OPENACLNN_PRODUKT="910").stderr == MISSPELT
    own = (
        "import os, subprocess, sys;"
        "names = os.environ | {'OPENACLNN_DEVICE': '2'};"
        "subprocess.run([sys.executable, '-c', 'import openaclnn'], env=names)"
    )
    done = command("run", sys.executable, "-c", own, OPENACLNN_PRODUKT="910")
    assert "OPENACLNN_DEVICE is unknown" in done.stderr
    assert done.stderr.count("OPENACLNN_PRODUKT is unknown") == 1


# ---- values ----


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("OPENACLNN_PRODUCT", "A5", f'{PRODUCT_KEYS}, but is "A5"; A5 is not among the products'),
        ("OPENACLNN_PRODUCT", "910B", f'{PRODUCT_KEYS}, but is "910B"; 910B is product A2'),
        ("OPENACLNN_DEVICES", "abc", 'a whole number from 0 to 64, but is "abc"'),
        ("OPENACLNN_DEVICE_MEMORY", "2X", 'a size such as 64GiB or 512MiB, but is "2X"'),
    ],
)
@pytest.mark.parametrize("words", [("run",), ("check",), ("trace",), ("npu", "--")])
def test_a_command_refuses_a_wrong_value(words, name, value, sentence):
    done = command(*words, sys.executable, "-c", "print('started')", **{name: value})
    expected = f"openaclnn {words[0]}: {name} must be {sentence}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_values_are_judged_without_case():
    for product in PRODUCTS:
        assert _core.variable_problem("OPENACLNN_PRODUCT", product.key.lower()) == ""
    assert _core.variable_problem("OPENACLNN_PRODUCT", "") == ""
    assert _core.variable_problem("OPENACLNN_SOC_NAME", "anything") == ""
    assert _core.variable_problem("NOBODY_KNOWS_IT", "anything") == ""


SIZES = {
    "4096": 4096,
    "2G": 2 << 30,
    "2GiB": 2 << 30,
    "2gib": 2 << 30,
    "2GB": 2 * 10**9,
    "64M": 64 << 20,
    "3kB": 3000,
    "1T": 1 << 40,
}


@pytest.mark.programs
@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_sizes(text, size):
    show = "import openaclnn; print(openaclnn.config()['device_memory'])"
    done = python("-c", show, OPENACLNN_DEVICE_MEMORY=text)
    assert (done.stdout, done.stderr) == (f"{size}\n", "")


@pytest.mark.parametrize("text", ["0", "G", "1.5G", "2X", "2GiBs", "1b", "-1G", f"{2**34}G"])
def test_wrong_sizes(text):
    sentence = f'OPENACLNN_DEVICE_MEMORY must be a size such as 64GiB or 512MiB, but is "{text}"'
    assert _core.variable_problem("OPENACLNN_DEVICE_MEMORY", text) == sentence


@pytest.mark.programs
def test_info_shows_and_reports_devices_memory_and_cache():
    done = command("info", OPENACLNN_DEVICES="abc", OPENACLNN_CACHE="/a/cache")
    assert done.stderr == (
        'openaclnn: OPENACLNN_DEVICES must be a whole number from 0 to 64, but is "abc"; '
        "1 is used\n"
    )
    shown = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert shown["devices"].split() == ["1", "OPENACLNN_DEVICES"]
    assert shown["cache"].split() == ["/a/cache", "OPENACLNN_CACHE"]
    memory = command("info", OPENACLNN_DEVICE_MEMORY="2G").stdout
    assert re.search(r"^device_memory +2\.0 GiB +OPENACLNN_DEVICE_MEMORY$", memory, re.M)


# ---- chips ----


def test_a_chip_has_its_product():
    for product in PRODUCTS:
        for chip in product.chips:
            for name in (chip, f"Ascend{chip}", f"ascend {chip.lower()}1"):
                assert _core.chip_hint(name) == f"; {name} is product {product.key}"
    for chip in OTHER_CHIPS:
        assert _core.chip_hint(chip) == f"; {chip} is not among the products"
    assert _core.chip_hint("Ascend 910 Pro B") == "; Ascend 910 Pro B is product 910"
    assert _core.chip_hint("9") == _core.chip_hint("") == ""
