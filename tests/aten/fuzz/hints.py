# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions for which neither the row nor the search finds accepted calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .sampled import CALLS, sampled
from .values import FLOAT, INT32, INT64, UINT8, T

if TYPE_CHECKING:
    from .plausible import Draw


def affine_grid(draw: Draw) -> dict[str, Any]:
    n, c, h, w = (draw.sizes[x] for x in "NCHW")
    return {"theta": (n, 2, 3), "size": (n, c, h, w), "out": (n, h, w, 2)}


def amp_update_scale(draw: Draw) -> dict[str, Any]:
    tracker = T((1,), INT32)
    return {
        "currentScale": T((1,)), "growthTracker": tracker, "foundInf": T((1,), fill="zero"),
        "growthFactor": 2.0, "backoffFactor": 0.5, "growthInterval": 3,
        "scaleOut": T((1,), fill="poison"), "growthOut": T((1,), INT32, fill="poison"),
    }  # fmt: skip


def convolution_backward(draw: Draw) -> dict[str, Any]:
    n, c, k = draw.sizes["N"], draw.sizes["C"], draw.sizes["K"]
    d = draw.chance.choice((1, 2, 3))
    size, ones = (4,) * d, (1,) * d
    image, weight = (n, c, *size), (k, c, *(2,) * d)
    return {
        "gradOutput": (n, k, *(3,) * d), "input": image, "weight": weight, "biasSizes": (k,),
        "stride": ones, "padding": (0,) * d, "dilation": ones, "outputPadding": (0,) * d,
        "transposed": 0, "groups": 1, "outputMask": (True, True, True), "cubeMathType": 0,
        "gradInput": image, "gradWeight": weight, "gradBias": (k,),
    }  # fmt: skip


def ctc_loss(draw: Draw) -> dict[str, Any]:
    t, n, c, s = 6, draw.sizes["N"], 4, 3
    target = T((n, s), INT64, fill=f"index:{c - 1}")
    lengths = {"inputLengths": (t,) * n, "targetLengths": (s,) * n, "blank": c - 1}
    found = {"logProbs": (t, n, c), "targets": target, **lengths}
    if draw.signature.name.endswith("Backward"):
        return found | {
            "grad": (n,), "negLogLikelihood": (n,), "logAlpha": (n, t, 2 * s + 1),
            "out": (t, n, c),
        }  # fmt: skip
    return found | {"negLogLikelihood": (n,), "logAlpha": (n, t, 2 * s + 1)}


def fake_quantise(draw: Draw) -> dict[str, Any]:
    c = draw.base[0]
    return {
        "self": draw.base, "scale": T((c,), FLOAT, fill="unit"),
        "zeroPoint": T((c,), INT32, fill="index:3"), "axis": 0, "quantMin": 0, "quantMax": 255,
        "out": draw.base,
    }  # fmt: skip


def col2im(draw: Draw) -> dict[str, Any]:
    n, c = draw.sizes["N"], draw.sizes["C"]
    two, ones = (2, 2), (1, 1)
    return {
        "self": (n, 4 * c, 9), "outputSize": (4, 4), "kernelSize": two, "dilation": ones,
        "padding": (0, 0), "stride": ones, "out": (n, c, 4, 4),
    }  # fmt: skip


def padding_backward(draw: Draw) -> dict[str, Any]:
    d = draw.spatial
    shape = (draw.sizes["N"], draw.sizes["C"], *(draw.chance.randint(3, 5) for _ in range(d)))
    pad = tuple(draw.chance.randint(0, 2) for _ in range(2 * d))
    grown = [size + pad[2 * k] + pad[2 * k + 1] for k, size in enumerate(reversed(shape[2:]))]
    return {
        "gradOutput": (*shape[:2], *reversed(grown)), "self": shape, "padding": pad, "out": shape,
    }  # fmt: skip


def sign_bits_unpack(draw: Draw) -> dict[str, Any]:
    rows, columns = draw.chance.randint(1, 3), draw.chance.randint(1, 4)
    return {
        "self": T((rows * columns,), UINT8), "size": rows, "dtype": FLOAT,
        "out": (rows, 8 * columns),
    }  # fmt: skip


def upsample_backward(draw: Draw) -> dict[str, Any]:
    d = draw.spatial
    before = tuple(draw.chance.randint(2, 4) for _ in range(d))
    after = tuple(draw.chance.randint(2, 5) for _ in range(d))
    front = (draw.sizes["N"], draw.sizes["C"])
    scale = {p.name: 0.0 for p in draw.signature.parameters if p.name.startswith("scale")}
    return scale | {
        "gradOutput": front + after, "outputSize": after, "inputSize": front + before,
        "out": front + before,
    }  # fmt: skip


def average_pool(draw: Draw) -> dict[str, Any]:
    d = draw.spatial
    front = (draw.sizes["N"], draw.sizes["C"])
    image, result = (*front, *(4,) * d), (*front, *(2,) * d)
    pool = {"stride": (2,) * d, "padding": (0,) * d, "ceilMode": 0, "divisorOverride": 0}
    if draw.signature.name.endswith("Backward"):
        return pool | {"kernelSize": (2,) * d, "gradOutput": result, "self": image, "out": image}
    return pool | {"kernel": (2,) * d, "self": image, "out": result}


HINTS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    **dict.fromkeys(CALLS, sampled),
    "aclnnAffineGrid": affine_grid,
    "aclnnAmpUpdateScale": amp_update_scale,
    "aclnnAvgPool3d": average_pool,
    "aclnnAvgPool3dBackward": average_pool,
    "aclnnConvolutionBackward": convolution_backward,
    "aclnnCtcLoss": ctc_loss,
    "aclnnCtcLossBackward": ctc_loss,
    "aclnnFakeQuantPerChannelAffineCachemask": fake_quantise,
    "aclnnIm2colBackward": col2im,
    "aclnnSignBitsUnpack": sign_bits_unpack,
    **{
        f"aclnn{kind}Pad{d}dBackward": padding_backward
        for kind in ("Reflection", "Replication")
        for d in (2, 3)
    },
    **{
        f"aclnnUpsample{kind}Backward": upsample_backward
        for kind in ("Bicubic2d", "Nearest3d", "NearestExact3d", "Trilinear3d")
    },
}
