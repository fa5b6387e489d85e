# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient in Triton's interpreter, against the references. Divisions are
made small, so that each kernel has several programs, tiles, splits and ragged ends."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support import SEED, all_rows, assert_accurate, text
from tests.triton.interpreting import no_wait, to_torch, torch

from openaclnn.reference.evaluation import (
    REFERENCES,
    evaluate,
    input_shapes,
    numpy_dtype,
    sample,
)
from openaclnn.reference.layouts import CASE_LAYOUTS
from openaclnn.triton import group_norm, group_norm_division, group_norm_resident

OPS = {
    op.python: op for op in (p.values[0] for p in all_rows(lambda op: op.family == "group_norm"))
}
FORWARD, GRADIENT = OPS["group_norm_swish"], OPS["group_norm_swish_grad"]
SMALL = {"block": 64, "block_last": 64, "channels_last": 8, "programs": 1}
NEVER_WHOLE = {"whole_forward": 0, "whole_gradient": 0}
DIVISIONS = {
    "whole": {"whole_row_bytes": 0},
    "whole, many groups": {"whole_row_bytes": 0, "elements_a_warp": 4096},
    "sweeps": {**NEVER_WHOLE, **SMALL},
    "tiles": {**NEVER_WHOLE, **SMALL, "block": 16, "block_last": 32},
    "resident": {
        **NEVER_WHOLE, "resident": 64, "resident_bytes": 0, "resident_threads": 64,
        "resident_fetch": False,
    },
    "resident, all at once": {
        **NEVER_WHOLE, "resident": 64, "resident_bytes": 0, "resident_threads": 1024,
        "resident_fetch": False,
    },
}  # fmt: skip
KERNELS = {  # that the division must come to, by layout
    "whole": ({"whole"}, {"whole", "combine"}),
    "whole, many groups": ({"whole"}, {"whole", "combine"}),
    "sweeps": ({"sums", "apply", "combine"}, {"sums", "apply", "combine"}),
    "tiles": ({"sums", "apply", "combine"}, {"sums", "apply", "combine"}),
    **dict.fromkeys(
        ("resident", "resident, all at once"),
        (
            {"resident_forward", "sums", "apply", "combine"},
            {"resident_gradient", "sums", "apply", "combine"},
        ),
    ),
}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def divided(monkeypatch):
    """Sets a division; returns what was launched."""
    launched = []
    call = group_norm_division.Launch.__call__

    def twice(launch, *tensors):
        """Programs that would wait find in `parts` what the same launch stored before."""
        if launch.kernel.__name__.startswith("resident"):
            call(launch, *[t.clone() for t in tensors[:-2]], *tensors[-2:])
        call(launch, *tensors)

    def choose(name):
        if name.startswith("resident"):
            monkeypatch.setattr(group_norm_division, "WAITING", True)
            monkeypatch.setattr(group_norm_resident, "wait", no_wait)
            monkeypatch.setattr(group_norm_division.Launch, "__call__", twice)
        monkeypatch.setattr(group_norm, "tuning", group_norm.Tuning(**DIVISIONS[name]))
        return launched

    def recording(prepare):
        def run(*arguments):
            prepared = prepare(*arguments)
            launched.extend(launch.kernel.__name__ for launch in prepared.launches)
            return prepared

        return run

    for name in "prepare_forward", "prepare_gradient":
        monkeypatch.setattr(group_norm, name, recording(getattr(group_norm, name)))
    return choose


def run(op, inputs, attributes, layout="contiguous", poison=np.nan, over=None):
    """The outputs of the kernels, as NumPy arrays. over: the input that the first output is."""
    move = CASE_LAYOUTS[layout]
    arrays = [move(x) for x in inputs]
    outs = [
        move(np.full(like.shape, poison, x.dtype))
        for like, x in zip(
            evaluate(op, inputs, attributes), (inputs[0], inputs[-1], inputs[-1]), strict=True
        )
    ]
    if over is not None:
        outs[0] = arrays[over]
    names = [p.name for p in op.input_tensors]
    named = dict(zip(names, map(to_torch, arrays), strict=True))
    named |= {p.name: attributes[p.python_name] for p in op.attributes}
    named |= dict(zip((p.name for p in op.outputs), map(to_torch, outs), strict=True))
    group_norm.run(op, named)
    return tuple(outs)


def drawn(op, kind, attributes, shape, dtype):
    rng = np.random.default_rng(SEED)
    shapes = input_shapes(op, shape, attributes)
    made = REFERENCES[op.kernel].together[kind](rng, attributes, shapes)
    return [np.asarray(x).astype(numpy_dtype(dtype)) for x in made]


CASES = [
    pytest.param(op, dtype, attributes, id=f"{op.name}-{dtype}-{text(attributes)}")
    for op in OPS.values()
    for dtype in (*op.dtypes, *op.extra_dtypes)
    for attributes in REFERENCES[op.kernel].attributes
]


@pytest.mark.parametrize(("op", "dtype", "attributes"), CASES)
def test_attributes(op, dtype, attributes, divided):
    inputs = sample(op, (1, 12, 5, 7), dtype, SEED, attributes)  # samples: test_divisions
    for division in "whole", "sweeps":
        divided(division)
        found = run(op, inputs, attributes)
        assert_accurate(op, inputs, attributes, found, SEED)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_divisions(op, division, layout, divided):
    """Rows of memory that are aligned and such that are not; short and long channels."""
    launched = divided(division)
    attributes = REFERENCES[op.kernel].attributes[0]
    shapes = (2, 12, 5, 7), (2, 8, 16), (3, 40), (1, 8, 2, 2, 9)
    # One shape for BFLOAT16: how elements are converted does not depend on where they lie.
    for dtype, shape in (*(("FLOAT", shape) for shape in shapes), ("BFLOAT16", shapes[0])):
        inputs = sample(op, shape, dtype, SEED, attributes)
        found = run(op, inputs, attributes, layout)
        assert_accurate(op, inputs, attributes, found, SEED)
    assert set(launched) <= KERNELS[division][op is GRADIENT]
    if layout == "contiguous":
        resident = any(name.startswith("resident") for name in launched)
        assert division.startswith("resident") == resident
        assert ("whole" in launched) == division.startswith("whole")


@pytest.mark.parametrize("layout", ["strided", "transposed", "padded", "offset"])
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_layouts_that_are_copied(op, layout):
    """Neither NCHW nor channels last, or not aligned; inputs and outputs."""
    attributes = REFERENCES[op.kernel].attributes[0]
    for shape in (2, 12, 5, 8), (3, 40):
        inputs = sample(op, shape, "FLOAT", SEED, attributes)
        found = run(op, inputs, attributes, layout)
        assert_accurate(op, inputs, attributes, found, SEED)


@pytest.mark.parametrize("division", ["whole", "sweeps"])
@pytest.mark.parametrize(
    ("op", "kind"), [(FORWARD, "far"), (GRADIENT, "far"), (GRADIENT, "like sign")]
)
def test_sums_that_cancel(op, kind, division, divided):
    divided(division)
    for attributes in REFERENCES[op.kernel].attributes[:2]:
        for layout in "contiguous", "channels_last":
            inputs = drawn(op, kind, attributes, (2, 12, 8, 9), "FLOAT")
            found = run(op, inputs, attributes, layout)
            assert_accurate(op, inputs, attributes, found, SEED)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_mixed_dtypes(op, divided):
    """x of 16 bits, the rest FLOAT."""
    attributes = REFERENCES[op.kernel].attributes[1]
    for dtype in "FLOAT16", "BFLOAT16":
        inputs = sample(op, (2, 12, 5, 7), "FLOAT", SEED, attributes)
        large = max(x.ndim for x in inputs)
        inputs = [x.astype(numpy_dtype(dtype)) if x.ndim == large else x for x in inputs]
        for division in "whole", "sweeps":
            divided(division)
            found = run(op, inputs, attributes)
            assert_accurate(op, inputs, attributes, found, SEED)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_special_values(op, divided):
    """A NaN or an infinity in one group: NaN where the formula has it, and nowhere else; for an
    infinite x, which is infinitely far from the mean, NaN or an infinity."""
    attributes = REFERENCES[op.kernel].attributes[0]
    large = [i for i, p in enumerate(op.input_tensors) if p.name in ("x", "dy")]
    for division in "whole", "sweeps":
        divided(division)
        for value in np.nan, np.inf if division == "whole" else -np.inf:
            for i in large:
                inputs = sample(op, (2, 12, 5, 7), "FLOAT", SEED, attributes)
                inputs[i][1, 4, 2, 3] = value
                expected = evaluate(op, inputs, attributes)
                for got, wanted in zip(run(op, inputs, attributes), expected, strict=True):
                    assert (np.isfinite(got) == np.isfinite(wanted)).all()
                    if op is GRADIENT and op.input_tensors[i].name == "x" and not np.isnan(value):
                        continue
                    assert (np.isnan(got) == np.isnan(wanted)).all()
                    assert (got == wanted)[np.isinf(wanted)].all()


def test_large_values_of_swish(divided):
    """Finite in gives finite out, where Swish is 0, and where it is the identity."""
    attributes = {**REFERENCES[GRADIENT.kernel].attributes[0], "num_groups": 2}
    for division in "whole", "sweeps":
        divided(division)
        inputs = sample(GRADIENT, (2, 4, 40), "FLOAT", SEED, attributes)
        inputs[-1] = np.array([1e4, -1e4, 3e37, -3e37], np.float32)
        for got in run(GRADIENT, inputs, attributes):
            assert np.isfinite(got).all()
        forward = {**attributes, "eps": 1e-5, "activate_swish": True}
        for beta, limit in (-1e4, 0.0), (1e4, 1e4), (-89.0, -89 * np.exp(-89.0)):
            x, gamma = np.ones((1, 4, 40), np.float32), np.zeros(4, np.float32)
            inputs = [x, gamma, np.full(4, beta, np.float32)]
            assert np.allclose(run(FORWARD, inputs, forward)[0], limit, rtol=1e-4, atol=0)


def test_one_writer_each(divided):
    """The same bits however the programs share the items, since none adds to what another wrote."""
    for op in OPS.values():
        attributes = REFERENCES[op.kernel].attributes[0]
        inputs = sample(op, (2, 12, 5, 7), "FLOAT", SEED, attributes)
        found = []
        for division in "resident", "resident, all at once":
            divided(division)
            found.append(run(op, inputs, attributes))
        assert_accurate(op, inputs, attributes, found[0], SEED)
        for got, wanted in zip(*found, strict=True):
            assert (got.view(np.uint32) == wanted.view(np.uint32)).all()


@pytest.mark.parametrize("division", ["whole", "sweeps", "resident"])
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_output_over_an_input(op, division, divided):
    divided(division)
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, (2, 12, 5, 7), "FLOAT", SEED, attributes)
    expected = run(op, inputs, attributes)
    for layout in "contiguous", "channels_last":
        found = run(op, inputs, attributes, layout, over=0)
        assert_accurate(op, inputs, attributes, found, SEED)
    assert_accurate(op, inputs, attributes, expected, SEED)


def test_a_result_over_gamma(divided):
    """Other programs still read gamma when dgamma is written."""
    attributes = {**REFERENCES[GRADIENT.kernel].attributes[0], "num_groups": 3}
    for division in "whole", "sweeps":
        divided(division)
        inputs = sample(GRADIENT, (2, 12, 5, 7), "FLOAT", SEED, attributes)
        expected = run(GRADIENT, inputs, attributes)
        named = {
            p.name: to_torch(x.copy()) for p, x in zip(GRADIENT.input_tensors, inputs, strict=True)
        }
        named |= {p.name: attributes[p.python_name] for p in GRADIENT.attributes}
        named["dxOut"] = torch.empty_like(named["x"])
        named |= {"dgammaOut": named["gamma"], "dbetaOut": named["beta"]}
        group_norm.run(GRADIENT, named)
        for got, wanted in zip(("dxOut", "dgammaOut", "dbetaOut"), expected, strict=True):
            assert (named[got].numpy() == wanted).all()


@pytest.mark.parametrize("division", ["whole", "sweeps", "resident"])
def test_gradients_that_nobody_wants(division, divided):
    attributes = REFERENCES[GRADIENT.kernel].attributes[0]
    inputs = sample(GRADIENT, (2, 12, 5, 7), "FLOAT", SEED, attributes)
    divided(division)
    expected = run(GRADIENT, inputs, attributes)
    for gamma, beta in (False, True), (True, False), (False, False):
        wanted = {**attributes, "dgamma_is_require": gamma, "dbeta_is_require": beta}
        found = run(GRADIENT, inputs, wanted)
        for i, written in enumerate((True, gamma, beta)):
            assert (found[i] == expected[i]).all() if written else np.isnan(found[i]).all()
