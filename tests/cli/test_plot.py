# SPDX-License-Identifier: Apache-2.0
"""`openaclnn plot`: curves, marks and errors of every row, text and pictures, and sentences."""

from __future__ import annotations

import importlib.util
import math
import re
import struct
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from tests.support import all_rows

from openaclnn.commands.cli import main
from openaclnn.plotting.canvas import Canvas, has_braille, spread
from openaclnn.plotting.curves import curves, default_attributes, marks
from openaclnn.plotting.errors import errors
from openaclnn.reference.evaluation import evaluate
from openaclnn.report.text_table import Paint
from openaclnn.rows.catalogue import find_operator


def row(name):
    found = find_operator(name)
    assert found is not None
    return found


def drawn(name, ends=None, **given):
    op = row(name)
    return curves(op, default_attributes(op) | given, ends)


# ---- the curve ----


@pytest.mark.parametrize("op", all_rows())
def test_every_row_has_a_curve_and_keeps_its_promise(op):
    found = curves(op, default_attributes(op))
    assert np.isfinite(found.y).mean() > 0.9
    assert (np.diff(found.x) > 0).all()
    assert found.range[0] <= found.x[0] < found.x[-1] <= found.range[1]
    error = errors(found, "FLOAT16")
    assert error.kept
    assert error.worst == np.nanmax(error.greatest)


@pytest.mark.parametrize("op", all_rows())
def test_the_derivative_is_that_of_the_formula(op):
    """Between neighbours on a smooth piece the difference quotient lies between their slopes."""
    if not op.pointwise:
        pytest.skip("an output depends on all elements, and so on the number of points")
    found = curves(op, default_attributes(op))
    x, y, slope = found.x, found.y, found.slope
    with np.errstate(invalid="ignore"):
        quotient = np.diff(y) / np.diff(x)
    low, high = np.minimum(slope[1:], slope[:-1]), np.maximum(slope[1:], slope[:-1])
    apart = 0.01 * (high - low) + 1e-6 * np.maximum(abs(low), abs(high)) + 1e-8
    known = np.isfinite(quotient) & np.isfinite(low) & np.isfinite(high)
    turning = np.zeros(known.size, bool)  # the slope itself has an extreme: a few intervals
    turning[1:-1] = (np.diff(slope)[2:] * np.diff(slope)[:-2]) < 0
    checked = known & ~turning
    assert checked.sum() > known.sum() / 3
    assert (quotient[checked] >= (low - apart)[checked]).all()
    assert (quotient[checked] <= (high + apart)[checked]).all()


def named(found):
    return [(m.kind, round(m.x, 9)) for m in found.marks]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("elu", {}, []),  # smooth for alpha = input_scale = 1
        ("elu", {"alpha": 1.5}, [("kink", 0.0)]),
        ("elu", {"alpha": 1.5, "input_scale": 1 / 1.5}, []),
        ("elu", {"input_scale": 0.0}, [("clamp edge", 0.0)]),
        ("elu_backward", {"alpha": 2.0}, [("jump", 0.0)]),
        ("leaky_relu", {"negative_slope": 0.0}, [("clamp edge", 0.0)]),
        ("leaky_relu", {"negative_slope": 1.0}, []),
        ("leaky_relu", {"negative_slope": 1e30}, [("kink", 0.0)]),
        ("hardshrink", {"lambd": 10.0}, [("jump", -10.0), ("jump", 10.0)]),
        ("hardshrink", {"lambd": -1.0}, []),
        ("logit", {}, [("pole", 0.0), ("pole", 1.0)]),
        ("logit", {"eps": 1e-6}, [("clamp edge", 1e-6), ("clamp edge", 0.999999)]),
        ("logit_grad", {}, [("pole", 0.0), ("pole", 1.0)]),  # 0.5 is a minimum, and smooth
        ("logit_grad", {"eps": 0.1}, [("jump", 0.1), ("jump", 0.9)]),
        ("group_norm_swish", {}, []),
    ],
)
def test_marks(name, given, expected):
    found = drawn(name, **given)
    assert named(found) == expected
    assert all(found.range[0] <= m.x <= found.range[1] for m in found.marks)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (abs, "kink"),
        (np.sign, "jump"),
        (lambda x: 1 / x, "pole"),
        (lambda x: np.log(abs(x)), "pole"),
        (lambda x: np.maximum(x, 0), "clamp edge"),
        (np.sin, None),
        (np.cos, None),
        (lambda x: x * x, None),
        (lambda x: np.full_like(x, np.nan), None),
    ],
)
def test_kinds_of_marks_do_not_depend_on_the_scale(function, kind, scale):
    found = marks(lambda x: scale * function(x), [0.0])
    assert [m.kind for m in found] == ([kind] if kind else [])


def test_the_range_is_the_one_given():
    found = drawn("logit", (0.05, 0.2), eps=0.1)
    assert (found.x[0], found.x[-1]) == (0.05, 0.2)
    assert named(found) == [("clamp edge", 0.1)]


def test_a_range_may_have_exponents(capsys):
    """argparse takes -1e38 for an option."""
    assert main(["plot", "elu", "--range", "-1e38", "1e38"]) == 0
    assert capsys.readouterr().out.startswith("aclnnElu")


# ---- the error ----


def test_an_error_is_found_where_it_is(monkeypatch):
    """A library that is wrong at one input."""
    from openaclnn.plotting import errors as module

    def wrong(op, inputs, attributes):
        (y,) = evaluate(op, inputs, attributes)
        y = y.astype(np.float32)
        y[np.argmin(abs(inputs[0] - 2.5))] *= np.float32(1 + 64 * 2.0**-23)
        return [y], 0.0

    monkeypatch.setattr(module, "execute", wrong)
    found = errors(drawn("elu"), "FLOAT")
    assert found.worst == pytest.approx(64 / 1.25 * 1.25, rel=0.3)
    assert found.worst_at == pytest.approx(2.5, abs=1e-3)
    assert not found.kept
    worst = np.nanargmax(found.greatest)
    assert found.edges[worst] <= found.worst_at <= found.edges[worst + 1]


@pytest.mark.parametrize(("dtype", "every"), [("FLOAT16", True), ("FLOAT", False)])
def test_sixteen_bits_are_swept_whole(dtype, every):
    found = errors(drawn("leaky_relu", (1.0, 2.0)), dtype)
    assert found.every is every
    assert found.count == 1025 if every else found.count > 1e5  # 2^10 of one binade, and 2


# ---- text ----


@pytest.mark.parametrize("op", all_rows())
@pytest.mark.parametrize("ascii_alone", [True, False])
def test_text(op, ascii_alone, capsys):
    assert main(["plot", op.name, *["--ascii"] * ascii_alone]) == 0
    text = capsys.readouterr().out
    assert text.isascii() is ascii_alone
    assert bool(re.search("[\u2801-\u28ff]", text)) is not ascii_alone
    assert text.startswith(op.name)
    assert "promised" in text
    assert max(map(len, text.splitlines()[2:20])) <= 80


def test_a_terminal_without_braille_gets_ascii(capsys, monkeypatch):
    assert has_braille("utf-8")
    assert not any(map(has_braille, ("latin-1", "ascii", None, "no such")))
    from openaclnn.plotting import canvas

    monkeypatch.setattr(canvas, "has_braille", lambda encoding: False)
    assert main(["plot", "elu"]) == 0
    assert capsys.readouterr().out.isascii()


def test_dots_are_where_the_points_are():
    plain = Paint(sys.stdout)
    line = np.array([0.0, 1.0])
    canvas = Canvas(4, 4, (0, 1), (0, 1), braille=False)
    canvas.line(line, line, "*")
    assert canvas.text(plain) == ["   *", "  * ", " *  ", "*   "]
    canvas = Canvas(2, 1, (0, 1), (0, 1), braille=True)
    canvas.line(line, line, "*")
    assert canvas.text(plain) == ["⡠⠊"]
    assert spread(["0", "5", "10"], 11) == "0    5   10"


def test_lines_do_not_cross_what_is_not_finite():
    canvas = Canvas(9, 1, (0, 8), (-1, 1), braille=False)
    canvas.line(np.arange(9.0), np.where(np.arange(9) == 4, math.nan, 0.0), "*")
    assert canvas.text(Paint(sys.stdout)) == ["**** ****"]


# ---- pictures ----


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_picture(suffix, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"elu.{suffix}"
    assert main(["plot", "elu", "--alpha", "1.5", "--out", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: kink at 0; error in FLOAT, ulp: at most ")
    if suffix == "png":
        head = path.read_bytes()[:24]
        width, height = struct.unpack(">II", head[16:24])
        assert head.startswith(b"\x89PNG")
        assert min(width, height) > 500
    else:
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        first = path.read_bytes()
        main(["plot", "elu", "--alpha", "1.5", "--out", str(path)])
        assert path.read_bytes() == first  # the same command, the same file


# ---- wrong use ----


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["elo"], "there is no operator elo; did you mean elu?"),
        (["matmul"], "aclnnMatmul is computed by ATen, but this command takes openaclnn's own"),
        (["elu", "--eps", "1"], "elu has no attribute eps; it has alpha, scale, input_scale"),
        (["elu", "--out", "x.pdf"], "--out must be a .png or .svg file, but is x.pdf"),
        pytest.param(
            ["elu", "--out", "no/x.svg"],
            "--out no/x.svg cannot be written",
            marks=pytest.mark.skipif(
                importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib"
            ),
        ),
        (["elu", "--range", "4", "1"], "--range must be two finite numbers, the lower first, but"),
        (
            ["elu", "--range", "-inf", "1"],
            "--range must be two finite numbers, the lower first, but",
        ),
        (["elu", "--range", "0", "nan"], "--range must be two finite numbers, the lower first"),
        (["elu", "--range", "1e30", "1e31", "--dtype", "fp16"], "--range must hold a value of"),
        (["elu", "--dtype", "int8"], "--dtype must be a float dtype"),
        (["group_norm_swish", "--num-groups", "4"], "num_groups must be 1 for a plot, which"),
        (["hardshrink", "--dtype", "fp64"], "aclnnHardshrink: self must have dtype"),
    ],
)
def test_wrong_use_is_one_sentence(given, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plot", *given]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"openaclnn plot: {sentence}")
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_a_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    assert main(["plot", "elu", "--out", str(tmp_path / "x.svg")]) == 2
    assert "--out needs matplotlib: pip install matplotlib" in capsys.readouterr().err
    assert main(["plot", "elu"]) == 0  # text needs nothing
