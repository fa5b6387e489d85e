# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: resizing, windows as columns, pooling of volumes, borders, sampling.
And the same as torch_npu sends it under jit_compile.
"""

from __future__ import annotations

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.typed_calls import (
    check,
    check_compiled,
    execute,
    gradients,
    ints,
    numbers,
)

X, V = numbers(2, 3, 6, 4), numbers(2, 3, 4, 6, 4, seed=2)
GRID = torch.rand(2, 3, 5, 2, generator=torch.Generator().manual_seed(4)) * 2 - 1


def both(name, gradient, function, x, form, given=(), of_gradient=None, form_of_gradient=None):
    """A type and its gradient, whose inputs are dy and of_gradient."""
    y = function(x)
    dy = numbers(*y.shape, seed=5)
    yield name, [x, *given], form, [y]
    yield (gradient, [dy, *(given if of_gradient is None else of_gradient)],
           form if form_of_gradient is None else form_of_gradient,
           gradients(function, (x,), dy))  # fmt: skip


# ---- resizing ----


def resizing():
    size, back = ints(9, 5).int(), ints(6, 4).int()
    for exact in (False, True):
        mode = "nearest-exact" if exact else "nearest"
        yield from both(
            "ResizeNearestNeighborV2", "ResizeNearestNeighborV2Grad",
            lambda x, m=mode: F.interpolate(x, (9, 5), mode=m), X,
            {"align_corners": False, "half_pixel_centers": exact}, [size], [back],
        )  # fmt: skip
        yield from both(
            "ResizeBilinearV2", "ResizeBilinearV2Grad",
            lambda x, c=exact: F.interpolate(x, (9, 5), mode="bilinear", align_corners=c), X,
            {"align_corners": exact, "half_pixel_centers": not exact}, [size], [X],
        )  # fmt: skip
        where = "align_corners" if exact else "half_pixel"
        form = {"coordinate_transformation_mode": where, "mode": "cubic", "cubic_coeff_a": -0.75,
                "scales": [0.0, 0.0]}  # fmt: skip
        yield from both(
            "ResizeD", "ResizeGradD",
            lambda x, c=exact: F.interpolate(x, (9, 5), mode="bicubic", align_corners=c), X,
            form | {"sizes": [9, 5]}, form_of_gradient=form | {"original_size": [2, 3, 6, 4]},
        )  # fmt: skip
        yield from both(
            "UpsampleTrilinear3d", "UpsampleTrilinear3dGrad",
            lambda x, c=exact: F.interpolate(x, (3, 7, 5), mode="trilinear", align_corners=c), V,
            {"output_size": [3, 7, 5], "align_corners": exact}, form_of_gradient={
                "output_size": [3, 7, 5], "input_size": list(V.shape), "align_corners": exact},
        )  # fmt: skip

    def scaled(x):
        return F.interpolate(x, scale_factor=1.7, mode="bicubic")

    dy = numbers(*scaled(X).shape, seed=5)
    form = {"coordinate_transformation_mode": "half_pixel", "mode": "cubic",
            "scales": [1.7, 1.7]}  # fmt: skip
    yield "ResizeD", [X], form | {"sizes": [10, 6]}, [scaled(X)]
    # The image comes first in memory, in the result too.
    (dx,) = gradients(scaled, (X,), dy)
    yield ("ResizeGradD", [dy.permute(2, 3, 0, 1)], form | {"original_size": [2, 3, 6, 4],
           "data_format": "HWNC"}, [dx.permute(2, 3, 0, 1).reshape(2, 3, 6, 4)])  # fmt: skip
    form = form | {"mode": "linear", "scales": [1.5]}
    line = numbers(2, 3, 5)

    def longer(x):
        return F.interpolate(x, scale_factor=1.5, mode="linear")

    dy = numbers(2, 3, 7, seed=5)
    yield "ResizeD", [line.unsqueeze(2)], form | {"sizes": [7]}, [longer(line)]
    yield ("ResizeGradD", [dy.unsqueeze(2)], form | {"original_size": [2, 3, 5]},
           gradients(longer, (line,), dy))  # fmt: skip
    yield from both(
        "UpsampleNearest3d", "UpsampleNearest3dGrad", lambda x: F.interpolate(x, (3, 7, 5)), V,
        {"output_size": [3, 7, 5]},
        form_of_gradient={"output_size": [3, 7, 5], "input_size": list(V.shape)},
    )  # fmt: skip


# ---- windows, pooling ----


def windows():
    def columns(x):
        return F.unfold(x, (3, 2), (2, 1), (1, 0), (2, 1))

    yield ("Im2col", [X], {"ksizes": [3, 2], "strides": [2, 1], "dilations": [2, 1],
           "padding_mode": "CALCULATED", "pads": [1, 1, 0, 0]}, [columns(X)])  # fmt: skip
    dy = numbers(*columns(X).shape, seed=5)
    yield ("Col2im", [dy.unflatten(1, (3, 6)), ints(6, 4).int()], {"kernel_size": [3, 2],
           "dilation": [2, 1], "padding": [1, 0], "stride": [2, 1]},
           gradients(columns, (X,), dy))  # fmt: skip

    form = {"ksize": [1, 1, 1, 2, 3], "strides": [1, 1, 2, 1, 3], "data_format": "NCDHW"}
    calculated = form | {"padding": "CALCULATED", "pads": [0, 1, 1, 1, 1, 1]}
    for ceil in (False, True):

        def highest(x, c=ceil):
            return F.max_pool3d(x, (1, 2, 3), (2, 1, 3), (0, 1, 1), 1, c)

        y = highest(V)
        dy = numbers(*y.shape, seed=5)
        yield ("MaxPool3D", [V], calculated | {"dilation": [1] * 5, "ceil_mode": ceil},
               [y])  # fmt: skip
        yield "MaxPool3DGrad", [V, y, dy], calculated, gradients(highest, (V,), dy)
    yield ("MaxPool3D", [V[0]], calculated | {"dilation": [1, 1, 1, 2, 1], "ceil_mode": False},
           [F.max_pool3d(V[:1], (1, 2, 3), (2, 1, 3), (0, 1, 1), (1, 2, 1))])  # fmt: skip
    for ceil, include, divide in ((False, True, 0), (True, False, 0), (False, True, 5)):

        def average(x, c=ceil, i=include, d=divide):
            return F.avg_pool3d(x, (2, 2, 3), (2, 1, 3), (1, 0, 1), c, i, d or None)

        y = average(V)
        dy = numbers(*y.shape, seed=5)
        form = {"ceil_mode": ceil, "count_include_pad": include, "divisor_override": divide,
                "data_format": "NCDHW"}  # fmt: skip
        yield ("AvgPool3D", [V], form | {"ksize": [2, 2, 3], "strides": [2, 1, 3],
               "pads": [1, 1, 0, 0, 1, 1]}, [y])  # fmt: skip
        # Height, width, depth.
        yield ("AvgPool3DGrad", [ints(*V.shape), dy], form | {"ksize": [1, 1, 2, 2, 3],
               "strides": [1, 1, 2, 1, 3], "pads": [0, 0, 1, 1, 1, 1]},
               gradients(average, (V,), dy))  # fmt: skip


# ---- borders, sampling ----


def borders():
    pairs = ints(0, 0, 0, 0, 2, 1, 0, 3).int()
    for mode, name in (("replicate", "edge"), ("reflect", "reflect")):

        def wide(x, m=mode):
            return F.pad(x, (0, 3, 2, 1), m)

        form = {"mode": name, "paddings_contiguous": True}
        dy = numbers(*wide(X).shape, seed=5)
        yield "PadV3", [X, pairs, torch.zeros(1)], form, [wide(X)]
        yield "PadV3Grad", [dy, pairs], form, gradients(wide, (X,), dy)
    yield "MirrorPad", [X, pairs], {"mode": "REFLECT"}, [wide(X)]
    for mode, edge, corners in (("bilinear", "zeros", False), ("nearest", "border", True),
                                ("bicubic", "reflection", False)):  # fmt: skip

        def sample(x, grid, m=mode, e=edge, c=corners):
            return F.grid_sample(x, grid, m, e, c)

        form = {"interpolation_mode": mode, "padding_mode": edge, "align_corners": corners}
        dy = numbers(2, 3, 3, 5, seed=5)
        yield "GridSampler2D", [X, GRID], form, [sample(X, GRID)]
        yield "GridSampler2DGrad", [dy, X, GRID], form, gradients(sample, (X, GRID), dy)
    yield "ShuffleChannel", [X], {"group": 3}, [F.channel_shuffle(X, 3)]


CASES = [*resizing(), *windows(), *borders()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


SENT = {
    **{f"{mode}, {size}": (X, lambda x, m=mode, s=size: F.interpolate(x, s, mode=m))
       for mode in ("nearest", "bilinear", "bicubic") for size in ((12, 8), (4, 5))},
    "bilinear with corners": (X, lambda x: F.interpolate(x, (9, 5), mode="bilinear",
                                                         align_corners=True)),
    "bicubic by a factor": (X, lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic")),
    "linear": (X[0], lambda x: F.interpolate(x, scale_factor=1.5, mode="linear")),
    "nearest line": (X[0], lambda x: F.interpolate(x, scale_factor=2)),
    "nearest volume": (V, lambda x: F.interpolate(x, (3, 7, 5))),
    "trilinear": (V, lambda x: F.interpolate(x, (3, 7, 5), mode="trilinear")),
    "unfold": (X, lambda x: F.unfold(x, (3, 2), (2, 1), (1, 0), (2, 1))),
    "fold": (numbers(2, 8, 9), lambda x: F.fold(x, (4, 4), 2)),
    "maximum of volumes": (V, lambda x: F.max_pool3d(x, (1, 2, 3), (2, 1, 3), (0, 1, 1), 1, True)),
    "average of volumes": (V, lambda x: F.avg_pool3d(x, (2, 2, 3), (2, 1, 3), (1, 0, 1))),
    "local response": (X, lambda x: F.local_response_norm(x, 2)),
    "reflect": (X, lambda x: F.pad(x, (0, 3, 2, 1), "reflect")),
    "replicate": (X, lambda x: F.pad(x, (0, 3, 2, 1), "replicate")),
    "sample": (X, lambda x: F.grid_sample(x, GRID.to(x.device), align_corners=False)),
    "shuffle": (X, lambda x: F.channel_shuffle(x, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_what_compiled_operators_send(name):
    x, function = SENT[name]
    check_compiled(function, x)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "shape", "sentence"),
    [
        ("ResizeBilinearV2", [X, ints(9, 5)], {"align_corners": False, "half_pixel_centers": False},
         (2, 3, 9, 5), "one of align_corners and half_pixel_centers must be true"),
        ("ResizeNearestNeighborV2", [X, ints(0, 5)], {"align_corners": False,
         "half_pixel_centers": False}, (2, 3, 1, 5), "a height and a width from 1, but is [0, 5]"),
        ("ResizeD", [X], {"coordinate_transformation_mode": "asymmetric", "mode": "cubic",
         "sizes": [9, 5], "scales": [1.0]}, (2, 3, 9, 5), "must be half_pixel or align_corners"),
        ("ResizeD", [X], {"coordinate_transformation_mode": "half_pixel", "mode": "cubic",
         "sizes": [9, 5], "scales": [1e-9]}, (2, 3, 9, 5), "scales must be 0 or at least 1e-6"),
        ("ResizeGradD", [X], {"coordinate_transformation_mode": "half_pixel", "mode": "cubic",
         "original_size": [2, 3, 9, 5], "scales": [1.0]}, (2, 3, 6, 4), "y must have 270 elements"),
        ("Im2col", [X], {"ksizes": [0, 2], "strides": [1, 1], "dilations": [1, 1],
         "padding_mode": "CALCULATED", "pads": [0, 0, 0, 0]}, (1,), "ksizes must be from 1"),
        ("MaxPool3DGrad", [V, V, V], {"ksize": [1, 1, 2, 2, 2], "strides": [1] * 5,
         "padding": "CALCULATED", "pads": [0] * 6, "data_format": "NCDHW"}, tuple(V.shape),
         "grads must have the shape of orig_x pooled without dilation"),
        ("AvgPool3DGrad", [ints(*V.shape), V[:1]], {"ksize": [1] * 5, "strides": [1] * 5,
         "pads": [0] * 6, "ceil_mode": False, "count_include_pad": True, "data_format": "NCDHW"},
         tuple(V.shape), "grads must have shape [2, 3, 4, 6, 4], but got [1, 3, 4, 6, 4]"),
        ("PadV3", [X, ints(0, 0, 0, 0, 6, 0, 0, 0)], {"mode": "reflect",
         "paddings_contiguous": True}, (2, 3, 12, 4), "paddings must be from 0 to 5 where x has 6"),
        ("PadV3Grad", [X, ints(0, 0, 0, 0, 6, 0, 0, 0)], {"mode": "edge",
         "paddings_contiguous": True}, (2, 3, 0, 4), "where x has 0"),
        ("GridSampler2D", [X, GRID], {"interpolation_mode": "cubic", "padding_mode": "zeros",
         "align_corners": True}, (2, 3, 3, 5), "bicubic], but is cubic"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, shape, sentence):
    status = execute(name, [t.contiguous().npu() for t in inputs], [torch.zeros(shape).npu()],
                     **values)  # fmt: skip
    assert status == 161002, acl.get_recent_err_msg()
    assert sentence in acl.get_recent_err_msg()
