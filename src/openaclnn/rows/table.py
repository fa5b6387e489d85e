# SPDX-License-Identifier: Apache-2.0
"""The rows: every public operator and every product, once.

Headers, C symbols, Python functions, reference pages, tests and benchmarks are derived from them.
"""

from __future__ import annotations

from .language import gradient, op
from .schema import Op, Product

PRODUCTS: tuple[Product, ...] = (
    Product(
        "910",
        "Atlas training series",
        "Ascend910A",
        bfloat16=False,
        memory=32,
        chips=("910A", "910PRO", "910PREMIUM"),
    ),
    Product(
        "A2",
        "Atlas A2 training / Atlas 800I A2 inference",
        "Ascend910B1",
        bfloat16=True,
        memory=64,
        chips=("910B",),
    ),
    Product(
        "A3",
        "Atlas A3 training / inference",
        "Ascend910_9391",
        bfloat16=True,
        memory=64,
        chips=("910C", "910_93"),
    ),
    Product(
        "310P", "Atlas inference series", "Ascend310P3", bfloat16=False, memory=24, chips=("310P",)
    ),
    Product(
        "310B",
        "Atlas 200I/500 A2 inference",
        "Ascend310B1",
        bfloat16=False,
        memory=8,
        chips=("310B",),
    ),
)
OTHER_CHIPS = ("950", "910_95", "A5")  # newer than the products
DEFAULT_PRODUCT = "A2"

# No product: every operator, with every dtype that the library computes.
ANY = Product("any", "any product", "Ascend910B1", bfloat16=True, everything=True)

OPS: tuple[Op, ...] = (
    op(
        "aclnnLeakyRelu",
        "self, negativeSlope: scalar = 0.01, out!",
        python="leaky_relu",
        kernel="leaky_relu",
        products="910 A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16 DOUBLE",
        formula="self > 0 ? self : self * negativeSlope",
        doc="Scales negative values by negativeSlope, so that their gradient does not vanish.",
        gradient=gradient(
            "aclnnLeakyReluBackward", gradOutput="d out", selfIsResult=False, out="d self"
        ),
    ),
    op(
        "aclnnInplaceLeakyRelu",
        "selfRef!&, negativeSlope: scalar = 0.01",
        python="leaky_relu_",
        kernel="leaky_relu",
        products="910 A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16 DOUBLE",
        formula="selfRef > 0 ? selfRef : selfRef * negativeSlope",
        doc="LeakyRelu that writes its result over its input.",
        gradient=gradient(
            "aclnnLeakyReluBackward",
            gradOutput="d selfRef",
            self="selfRef",
            selfIsResult=True,
            out="d selfRef",
            nonnegative="negativeSlope",
        ),
    ),
    op(
        "aclnnLeakyReluBackward",
        "gradOutput[...], self[...], negativeSlope: scalar = 0.01, selfIsResult: bool = False, "
        "out[...]!",
        python="leaky_relu_backward",
        kernel="leaky_relu_backward",
        products="910 A2 A3 310P",
        dtypes="FLOAT FLOAT16 BFLOAT16 DOUBLE",
        rules=["slope_of_result"],
        formula="self > 0 ? gradOutput : gradOutput * negativeSlope",
        doc="The gradient of LeakyRelu from its input, or its result when selfIsResult is set.",
        gradient=gradient(
            "aclnnLeakyReluBackward", gradOutput="d out", out="d gradOutput", zero="self"
        ),
    ),
    op(
        "aclnnElu",
        "self, alpha: scalar = 1.0, scale: scalar = 1.0, inputScale: scalar = 1.0, out!",
        python="elu",
        kernel="elu",
        products="910 A2 A3 310P",
        dtypes="FLOAT FLOAT16 BFLOAT16 DOUBLE",
        formula="self > 0 ? scale * self : scale * alpha * expm1(inputScale * self)",
        doc="Lets negative values saturate at -scale * alpha, smoothly if alpha * inputScale = 1.",
        gradient=gradient(
            "aclnnEluBackward",
            gradOutput="d out",
            isResult=False,
            selfOrResult="self",
            gradInput="d self",
        ),
    ),
    op(
        "aclnnInplaceElu",
        "selfRef!&, alpha: scalar = 1.0, scale: scalar = 1.0, inputScale: scalar = 1.0",
        python="elu_",
        kernel="elu",
        products="910 A2 A3 310P",
        dtypes="FLOAT FLOAT16 BFLOAT16 DOUBLE",
        formula="selfRef > 0 ? scale * selfRef : scale * alpha * expm1(inputScale * selfRef)",
        doc="Elu that writes its result over its input.",
        gradient=gradient(
            "aclnnEluBackward",
            gradOutput="d selfRef",
            isResult=True,
            selfOrResult="selfRef",
            gradInput="d selfRef",
            nonnegative="alpha scale inputScale",
        ),
    ),
    op(
        "aclnnEluBackward",
        "gradOutput, alpha: scalar, scale: scalar, inputScale: scalar, isResult: bool, "
        "selfOrResult, gradInput!",
        python="elu_backward",
        kernel="elu_backward",
        products="910 A2 A3 310P",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        inputs="equal",
        rules=["alpha_of_result"],
        formula="x > 0 ? gradOutput * scale : gradOutput * inputScale * t",
        where="x = selfOrResult; "
        "t = isResult ? x + scale * alpha : scale * alpha * exp(inputScale * x)",
        doc="The gradient of Elu from its input, or its result when isResult is set.",
        gradient=gradient("aclnnEluBackward", gradOutput="d gradInput", gradInput="d gradOutput"),
    ),
    op(
        "aclnnHardshrink",
        "self, lambd: scalar = 0.5, out!",
        python="hardshrink",
        kernel="hardshrink",
        products="910 A2 A3 310P",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        formula="|self| <= max(lambd, 0) ? 0 : self",
        doc="Sets values whose magnitude is at most lambd to zero and keeps the others.",
        gradient=gradient("aclnnHardshrinkBackward", gradOutput="d out", gradInput="d self"),
    ),
    op(
        "aclnnHardshrinkBackward",
        "gradOutput[...], self[...], lambd: scalar = 0.5, gradInput[...]!",
        python="hardshrink_backward",
        kernel="hardshrink_backward",
        products="910 A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        formula="|self| <= max(lambd, 0) ? 0 : gradOutput",
        doc="The gradient of Hardshrink: zero where Hardshrink returns zero.",
        gradient=gradient(
            "aclnnHardshrinkBackward",
            gradOutput="d gradInput",
            gradInput="d gradOutput",
            zero="self",
        ),
    ),
    op(
        "aclnnLogit",
        "input, eps: double = -1.0, const out!",
        python="logit",
        kernel="logit",
        products="A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        inputs="equal",
        output="equal",
        formula="ln(z / (1 - z))",
        where="z = eps < 0 ? input : max(eps, min(input, 1 - eps))",
        doc="The logarithm of the odds of a probability; eps >= 0 keeps it away from 0 and 1.",
        gradient=gradient("aclnnLogitGrad", x="input", dy="d out", out="d input"),
    ),
    op(
        "aclnnLogitGrad",
        "x, dy, eps: double = -1.0, const out!",
        python="logit_grad",
        kernel="logit_grad",
        products="A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        inputs="equal",
        output="equal",
        formula="e <= x <= 1 - e ? dy / (x * (1 - x)) : (eps < 0 ? NaN : 0)",
        where="e = max(eps, 0)",
        doc="The gradient of Logit: 0 where eps clamps x; NaN outside [0, 1] if eps < 0.",
        gradient=gradient("aclnnLogitGrad", dy="d out", out="d dy"),
    ),
    op(
        "aclnnGroupNormSwish",
        "x[N,C,*], gamma[C]~, beta[C]~, numGroups: int64, dataFormatOptional: text = None, "
        "eps: double = 1e-5, activateSwish: bool = True, swishScale: double = 1.0, "
        "const yOut[N,C,*]!, const meanOut[N,numGroups]!~, const rstdOut[N,numGroups]!~",
        python="group_norm_swish",
        family="group_norm",
        kernel="group_norm_swish",
        products="A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        sizes="N: samples, C: channels % numGroups, numGroups: groups",
        limits="x is not empty; a group has at most 4000 channels",
        inputs="equal",
        output="equal",
        formula="yOut = activateSwish ? v / (1 + exp(-swishScale * v)) : v",
        where="v = h * gamma + beta; h = (x - meanOut) * rstdOut; meanOut = mean(x); "
        "rstdOut = 1 / sqrt(variance(x) + eps)",
        doc="Group normalisation, then Swish if activateSwish; mean and variance are of a group.",
        gradient=gradient(
            "aclnnGroupNormSwishGrad",
            dy="d yOut",
            mean="meanOut",
            rstd="rstdOut",
            dxOut="d x",
            dgammaOut="d gamma",
            dbetaOut="d beta",
            only_if="activateSwish",
        ),
    ),
    op(
        "aclnnGroupNormSwishGrad",
        "dy[N,C,*], mean[(N,numGroups)]~, rstd[(N,numGroups)]~, x[N,C,*], gamma[C]~, beta[C]~, "
        "numGroups: int64, dataFormatOptional: text = None, swishScale: double = 1.0, "
        "dgammaIsRequire: bool = True, dbetaIsRequire: bool = True, const dxOut[N,C,*]!, "
        "const dgammaOut[C]!~ if dgammaIsRequire, const dbetaOut[C]!~ if dbetaIsRequire",
        python="group_norm_swish_grad",
        family="group_norm",
        kernel="group_norm_swish_grad",
        products="A2 A3",
        dtypes="FLOAT FLOAT16 BFLOAT16",
        extra_dtypes="DOUBLE",
        sizes="N: samples, C: channels % numGroups, numGroups: groups",
        limits="x is not empty; a group has at most 4000 channels",
        inputs="equal",
        output="equal",
        formula="dxOut = rstd * (g - average(g) - h * average(g * h)); "
        "dgammaOut = sum(u * h); dbetaOut = sum(u)",
        where="g = gamma * u; u = dy * swish'(v); swish(v) = v / (1 + exp(-swishScale * v)); "
        "v = h * gamma + beta; h = (x - mean) * rstd",
        doc="The gradient of GroupNormSwish; average: over a group, sum: over a channel.",
    ),
)
