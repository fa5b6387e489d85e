# SPDX-License-Identifier: Apache-2.0
"""The commands that show what there is: demo, home, info, ops, help."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import openaclnn
from openaclnn.commands.cli import main
from openaclnn.rows.catalogue import companions, formula_lines, shapes
from openaclnn.rows.schema import Op, Product
from openaclnn.rows.table import OPS, PRODUCTS

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """`openaclnn ...` in its own process."""
    main = "import sys; from openaclnn.commands.cli import main; sys.exit(main())"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENACLNN_")}
    done = subprocess.run(
        [sys.executable, "-c", main, *arguments],
        env={**environment, "PYTHONIOENCODING": "utf-8", **variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `openaclnn ...` prints, here: a process would take 0.2 s to start."""

    def show(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    return show


def test_demo_shows_every_operator_and_keeps_every_promise() -> None:
    shown = command("demo", "--all").stdout
    words = " ".join(shown.split())
    for op in OPS:
        assert f"{op.name} {' '.join(formula_lines(op, 1000))}" in words
    assert "BROKEN" not in shown
    assert "Every promise was kept.\nNo NPU was used" in shown
    assert "\033" not in shown, "colour is for terminals"
    assert max(map(len, shown.splitlines())) <= 100


def test_demo_fits_a_screen_and_says_the_verdict_first() -> None:
    shown = command("demo").stdout
    lines = shown.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert lines.index("Every promise was kept.") < lines.index(
        next(line for line in lines if line.startswith(OPS[0].name))
    )
    for op in OPS:
        (line,) = (line for line in lines if line.split()[:1] == [op.name])
        assert line.endswith(" kept")


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.key)
def test_demo_on_every_product(product: Product) -> None:
    shown = command("demo", OPENACLNN_PRODUCT=product.key).stdout
    lacking = [op for op in OPS if product.key not in op.products]
    assert shown.count(f"not on {product.title}") == len(lacking)


def test_demo_fails_when_a_promise_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "openaclnn.demo.showcase.accuracy", lambda op, compute, output: (output, 0.25)
    )
    assert main(["demo"]) == 1
    shown = capsys.readouterr().out
    assert "BROKEN" in shown
    assert "A promise was broken" in shown


def test_demo_without_ml_dtypes_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    sentence = "BFLOAT16 is left out: it needs ml_dtypes (pip install ml_dtypes)\n"
    assert shown.count(sentence) == shown.count("BFLOAT16") == 1
    assert "Every promise that could be measured was kept." in shown


def test_home_is_the_directory_alone() -> None:
    assert command("home").stdout == f"{openaclnn.home()}\n"


def test_info_shows_and_obeys_the_variables() -> None:
    variables = {"OPENACLNN_PRODUCT": "A3", "OPENACLNN_NUM_THREADS": "3"}
    values = json.loads(command("info", "--json", **variables).stdout)
    assert (values["product"], values["threads"]) == ("A3", 3)
    shown = command("info", **variables).stdout
    for name in values:
        assert re.search(rf"^{name} ", shown, re.M)
    for variable in variables:
        assert variable in shown


def test_info_says_why_torch_has_no_threads() -> None:
    """0 alone would read as if the library had none."""
    for setting, reason in (("1", "torch 2.10 or newer is not loaded here"), ("0", "switched off")):
        shown = command("info", OPENACLNN_TORCH_THREADS=setting).stdout
        assert re.search(rf"^torch_threads +none: {reason}  ", shown, re.M), shown


def test_ops() -> None:
    shown = command("ops").stdout
    data = json.loads(command("ops", "--json").stdout)
    assert [entry["name"] for entry in data] == [op.name for op in OPS]
    for op in OPS:
        assert f"{op.name} " in shown
        assert "\n    ".join(formula_lines(op, 112)) in shown
    assert [entry["dtypes_any"] for entry in data] == [list(op.computed) for op in OPS]
    for op in OPS:
        (line,) = (line for line in shown.splitlines() if line.startswith(f"{op.name} "))
        assert line.count("+fp64") == ("DOUBLE" in op.extra_dtypes), line
    assert "any product: every operator" in shown
    assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ops_in_full(op: Op, shown: Callable[..., str]) -> None:
    text = shown("ops", op.name)
    assert shown("ops", op.python) == text
    words = " ".join(text.split())
    every = f"product any (OPENACLNN_PRODUCT=any): {', '.join(op.computed)}"
    for part in (op.doc, op.formula, *op.where, op.header, f"openaclnn.{op.python}(", every):
        assert part in words
    for parameter in op.parameters:
        assert parameter.c_declaration in words
    assert max(map(len, text.splitlines())) <= 100
    assert json.loads(shown("ops", op.name, "--json"))["name"] == op.name


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_what_is_accepted_is_documented_everywhere(
    op: Op, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `openaclnn ops`, by help() and on the reference page."""
    function = getattr(openaclnn, op.python)
    helped = " ".join(function.__doc__.split())
    monkeypatch.syspath_prepend(ROOT / "tools" / "build")
    page = importlib.import_module("reference_pages").page(op)
    printed = " ".join(shown("ops", op.name).split())
    assert max(map(len, function.__doc__.splitlines())) <= 100
    assert "~" not in str(inspect.signature(function))
    for text in (printed, page):
        assert shapes(op) in text
        assert companions(op) in text
    for said in ("Shapes: ", f"Dtypes: {', '.join(op.dtypes)}", f"C: {op.name}."):
        assert said in helped
    assert ("or all FLOAT beside 16 bits" in helped) == bool(companions(op))
    for p in op.parameters:
        row = page.split(f"| `{p.name}` | ")[1].split(" |\n")[0]
        if p.kind == "text":
            assert f'{p.python_name}: None, "NCHW" or "ND".' in helped
            assert 'NULL, "NCHW" or "ND"' in row
            assert 'NULL, "NCHW" or "ND"' in printed
        if p.condition:
            assert f"may be NULL unless {p.condition}" in row


def test_ops_names_the_nearest() -> None:
    name = OPS[0].name
    done = command("ops", name[:7] + name[8:], status=2)
    assert f"did you mean {name}?" in done.stderr
    assert done.stdout == ""


def test_help_fits_a_screen() -> None:
    lines = command("--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", ["demo", "home", "info", "ops"])
def test_help(name: str) -> None:
    assert name in command("--help").stdout
    assert f"openaclnn {name}" in command(name, "--help").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["check", "--bogus", "./prog"],
            "unrecognized arguments: --bogus; see:  openaclnn check --help",
        ),
        (["info", "extra"], "unrecognized arguments: extra; see:  openaclnn info --help"),
        (
            ["ops", "aclnnElu", "extra"],
            "unrecognized arguments: extra; see:  openaclnn ops --help",
        ),
        (
            ["verify", "--lambd", "1"],
            "unrecognized arguments: --lambd; attributes "
            "are those of the cases: --cases FILE.json takes your own",
        ),
        (
            ["compare", "x", "--op", "elu", "--json", "o"],
            "unrecognized arguments: o; --json takes no argument",
        ),
        (["verify", "--timeout", "0"], "argument --timeout: must be a number above 0, but is 0"),
        (["demo", "--fast"], "unrecognized arguments: --fast; see:  openaclnn demo --help"),
        (
            ["compare", "r.npy", "x.npy", "--op", "elu", "--slope", "2"],
            "unrecognized arguments: --slope 2; did you mean --scale?",
        ),
        (["demo", "--htlm", "x"], "unrecognized arguments: --htlm x; did you mean --html?"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line(words: list[str], sentence: str) -> None:
    assert command(*words, status=2).stderr == f"openaclnn {words[0]}: error: {sentence}\n"


@pytest.mark.parametrize(
    ("word", "hint"), [("verfy", "did you mean verify?"), ("xyz", "see:  openaclnn --help")]
)
def test_a_command_that_is_not_there(word: str, hint: str) -> None:
    shown = command(word, status=2).stderr
    assert shown.endswith(f"openaclnn: error: there is no command {word}; {hint}\n")


@pytest.mark.parametrize("name", ["plot", "bench", "compare"])
def test_attributes_do_not_swamp_the_usage(name: str) -> None:
    usage, _, rest = command(name, "--help").stdout.partition("\n\n")
    assert "[ATTRIBUTES]" in usage
    assert "--negative-slope" not in usage
    assert "--negative-slope" in rest
    assert max(map(len, rest.splitlines())) <= 100


def test_version() -> None:
    assert command("--version").stdout == f"openaclnn {openaclnn.__version__}\n"
