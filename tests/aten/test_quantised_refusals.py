# SPDX-License-Identifier: Apache-2.0
"""Wrong calls of grouped products, mixtures of experts and quantised functions: each is a refusal
of phase 1, or of phase 2 where the data are wrong, with a sentence.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.aten.refusals import Case, check

pytestmark = pytest.mark.programs

V4 = (
    "'aclnnGroupedMatmulV4', [{x}], [{w}], {lists}, {groups}, *[None] * 3, {split}, {kind}, {of}, "
    "{act}, [{out}], None, None"
)


def v4(x="f32(4, 2)", w="f32(2, 2, 3)", lists="*[None] * 6", groups="i64(1, 4)", split=3, kind=0,
       of=0, act=0, out="out(4, 3)") -> str:  # fmt: skip
    return V4.format(
        x=x, w=w, lists=lists, groups=groups, split=split, kind=kind, of=of, act=act, out=out
    )


GROUPED: list[Case] = [
    (v4(), [0, 0], [[[9, 12, 15], [61, 68, 75], [95, 106, 117], [129, 144, 159]]]),
    (v4(groups="i64(1, 9)"), [0, 0],
     [[[9, 12, 15], [61, 68, 75], [95, 106, 117], [129, 144, 159]]]),
    (v4(groups="i64(3, 1)"), [0, 161002], "groupList must ascend, but goes from 3 to 1"),
    (v4(groups="i64(-1, 1)", of=1), [0, 161002], "groupList must have counts from 0, but has -1"),
    (v4(groups="i64(1, 4, 4)"), [161002], "groupList must have shape [2], but got [3]"),
    (v4(groups="np.array([[2, 1]])", of=2), [0, 161002],
     "groupList must have groups from 0 to 1, but has 2"),
    (v4(groups="None"), [161002], "groupList must not be NULL or empty for the rows of one x"),
    (v4(split=4), [161002], "splitItem must be from 0 to 3, but got 4"),
    (v4(kind=1), [161002], "groupType must be -1, none, 0, rows, or 2, the inner dim, but got 1"),
    (v4(of=3), [161002], "groupListType must be from 0 to 2, but got 3"),
    (v4(act=3), [161002], "4, fast gelu, or 5, silu, but got 3"),
    (v4(act=6), [161002], "actType must be from 0 to 5, but got 6"),
    (v4(out="out(4, 2)"), [161002], "out must have shape [4, 3], but got [4, 2]"),
    (v4(w="f32(2, 3, 3)"), [161002], "columns, 2, but one has shape [3, 3]"),
    (v4(w="f64(2, 2, 3)"), [161002],
     "weight must have the dtype of x, or integers, but they are Double and Float"),
    (v4(w="np.ones((2, 2, 3), 'int8')"), [161001], "antiquantScale must not be NULL"),
    (v4(x="np.ones((4, 2), 'int16')", w="np.ones((2, 2, 3), 'int8')"), [161002],
     "x must be INT8, INT4, or INT32 with eight 4-bit integers in each, but is Short"),
    (v4(lists="[f32(2, 2)], *[None] * 5"), [161002],
     "bias must have 3 columns, as the product, but has shape [2]"),
    (v4(lists="[f32(3, 3)], *[None] * 5"), [161002],
     "bias must have a tensor or row for each of the 2 weights, but has 3"),
    (v4(lists="*[None] * 5, [f32(3)]"), [161002],
     "perTokenScale must have one tensor with a number for each of the 4 rows of x"),
    (v4(kind=2, x="f32(2, 4)", w="f32(4, 3)", groups="i64(3)", out="out(1, 2, 3)"), [0, 0],
     [[[[30, 36, 42], [78, 96, 114]]]]),
    (v4(kind=2, x="f32(2, 4)", w="f32(5, 3)", groups="i64(3)", out="out(1, 2, 3)"), [161002],
     "weight[0] must have as many rows as x[0] has columns, 4, but has shape [5, 3]"),
    ("'aclnnGroupedMatmul', [f32(4, 2)], [f32(2, 3)] * 2, *[None] * 5, [3, 1], 3, [out(4, 3)]",
     [161002], "groupList must ascend, but goes from 3 to 1"),
    ("'aclnnGroupedMatmulAdd', f32(4, 2), f32(4, 3), i64(1, 4), out(2, 2, 3), False, False, 2",
     [161002], "transposeX must be true, transposeWeight false and groupType 2"),
    ("'aclnnGroupedMatmulAdd', f32(4, 2), f32(4, 3), i64(1, 4), out(2, 2, 2), True, False, 2",
     [161002], "y must have shape [2, 2, 3], but got [2, 2, 2]"),
    ("'aclnnGroupedMatmulSwigluQuantV2', np.ones((2, 8), 'int8'), [np.ones((1, 8, 4), 'int8')], "
     "[f32(1, 4)], None, None, f32(2), None, i64(2), 0, 0, 2, 0, None, out(2, 2, dtype='int8'), "
     "out(2)", [161002], "quantMode must be 0: others belong to Ascend 950, but got 2"),
    ("'aclnnGroupedMatmulFinalizeRouting', np.ones((2, 8), 'int8'), np.ones((1, 8, 4), 'int8'), "
     "f32(1, 4), None, None, i64(2), f32(3, 4), None, i64(0, 1), 0, 1., 2, False, False, 0, "
     "out(4, 4)", [161002], "from 0 to 1 for the 3 rows of sharedInput, but got 2"),
]  # fmt: skip

ROUTING = "'aclnnMoeInitRoutingV3', f32(2, 4), np.array([[0], [1]], 'int32'), {}"
GATING = (
    "'aclnnMoeGatingTopK', f32(1, 6), None, {0}, 0, 0, False, 1., 0., out(1, {1}), "
    "out(1, {1}, dtype='int32'), None"
)
EXPERTS: list[Case] = [
    ("'aclnnMoeTokenPermute', f32(2, 2), i32(1, 0), 0, True, out(2, 2), out(2, dtype='int32')",
     [161002], "paddedMode must be false: tokens are not padded here"),
    ("'aclnnMoeTokenPermute', f32(2, 2), i32(1, 0, 1), 0, False, out(3, 2), out(3, dtype='int32')",
     [161002], "indices must have a row for each of the 2 tokens, but has shape [3]"),
    ("'aclnnMoeTokenPermute', f32(2, 2), i32(1, 0), 0, False, out(1, 2), out(2, dtype='int32')",
     [161002], "permuteTokensOut must have shape [2, 2], but got [1, 2]"),
    ("'aclnnMoeTokenPermute', f32(2, 2), f32(2), 0, False, out(2, 2), out(2, dtype='int32')",
     [161002], "indices must have integers, but is Float"),
    ("'aclnnMoeTokenPermute', f32(2, 2), i32(1, 0), -3, False, out(2, 2), out(2, dtype='int32')",
     [161002], "numOutTokens must not drop more than the 2 slots, but got -3"),
    ("'aclnnMoeTokenUnpermute', f32(2, 2), i32(1, -7, 99, 0), None, False, None, out(4, 2)",
     [0, 0], [[[3, 4], [0, 0], [0, 0], [1, 2]]]),
    ("'aclnnMoeTokenUnpermuteWithEp', f32(2, 2), i32(1, 0), None, 1, [0, 3], False, None, "
     "out(2, 2)", [161002], "range must be two ascending numbers from 0 to 2, but got [0, 3]"),
    ("'aclnnMoeTokenPermuteWithRoutingMap', f32(2, 2), np.ones((2, 3), 'int8'), None, 4, False, "
     "out(4, 2), None, out(4, dtype='int32')", [0, 161002],
     "routingMap must have as many flags as there are permuted tokens, 4, but has 6"),
    (ROUTING.format("None, None, 0, 0, 3, 0, 1, True, 2, None, 0, out(2, 4), i32(0, 0), i64(0, 0, "
                    "0), out(2)"), [161002], "others belong to Ascend 950, but got 2"),
    (ROUTING.format("None, None, 0, 0, 3, 0, 1, True, -1, [1, 4], 0, out(2, 4), i32(0, 0), i64(0, "
                    "0, 0), out(2)"), [161002],
     "activeExpertRange must be two ascending numbers from 0 to expertNum, 3, but got [1, 4]"),
    (ROUTING.format("None, None, 0, 0, 3, 0, 1, True, -1, None, 0, out(2, 4), i32(0, 0), i64(0, "
                    "0), out(2)"), [161002],
     "expertTokensCountOrCumsumOut must have shape [3], but got [2]"),
    (ROUTING.format("None, None, 0, 0, 3, 1, 1, True, -1, None, 0, out(3, 0, 4), i32(0, 0), i64(0, "
                    "0, 0), out(2)"), [161002],
     "expertCapacity must be at least 1 where dropPadMode is 1, but got 0"),
    (ROUTING.format("None, None, 0, 0, 3, 0, 1, False, 0, None, 0, out(2, 4, dtype='int8'), i32(0, "
                    "0), i64(0), out(2)"), [161001], "scale must not be NULL"),
    (GATING.format("2, 1, 4, 0", 2), [161002], "groupCount must divide the 6 experts, but is 4"),
    (GATING.format("2, 4, 3, 0", 2), [161002], "kGroup must be from 1 to groupCount, 3, but got 4"),
    (GATING.format("3, 1, 3, 0", 3), [161002], "k must be from 1 to 2, but got 3"),
    (GATING.format("2, 2, 6, 1", 2), [161002],
     "groups must have at least 2 experts where groupSelectMode is 1, but have 1"),
    ("'aclnnMoeFinalizeRoutingV2', f32(4, 2), i32(0, 1, 2, 3), None, None, f32(2, 2), f32(2, 2), "
     "None, 2, out(2, 2)", [161002], "expertIdx must not be NULL where bias is given"),
    ("'aclnnMoeFinalizeRoutingV2', f32(4, 2), i32(0, 1, 2), None, None, None, f32(2, 2), None, 2, "
     "out(2, 2)", [161002],
     "expandedRowIdx must have 2 elements for each token, but has shape [3]"),
    ("'aclnnMoeReRouting', f32(3, 1), np.array([[1, -1]]), None, 1, 0, out(3, 1), out(3), "
     "out(3, dtype='int32'), out(2, dtype='int64')", [0, 161002],
     "expertTokenNumPerRank must have counts from 0, but has -1"),
    ("'aclnnMoeUpdateExpert', np.array([[0]]), np.array([[1, 0]]), None, None, None, 2, 2, 0, "
     "np.array([[0]]), None", [161002],
     "localRankId must be from 0, below worldSize, where balanceMode is 0, but they are 2 and 2"),
    ("'aclnnMoeComputeExpertTokens', i32(0, 1), 10**12, out(2, dtype='int32')", [161002],
     "out must have shape [1000000000000], but got [2]"),
]  # fmt: skip

SCALES = [float(np.float32(most / 127)) for most in (4, 8)]
QUANT = "'aclnnDynamicQuantV2', f32(2, 4), {}, {}, out(2), None"
MATMUL = (
    "'aclnnQuantMatmulV5', np.ones((2, 8), 'int8'), np.ones(({}, 3), 'int8'), {}, False, False, 0, "
    "{}"
)
QUANTISED: list[Case] = [
    (QUANT.format("None, None, 2", "out(2, 4, dtype='int8')"), [0, 0],
     [[[32, 64, 95, 127], [79, 95, 111, 127]], SCALES, None]),
    (QUANT.format("None, None, 36", "out(2, 4, dtype='int8')"), [161002],
     "or 29, INT4: others belong to Ascend 950, but got 36"),
    (QUANT.format("None, None, 29", "out(2, 4, dtype='int8')"), [161002],
     "y must have the dtype of dstType, 29, but is Char"),
    (QUANT.format("None, i32(1), 2", "out(2, 4, dtype='int8')"), [161002],
     "groupIndex must be NULL where smoothScales is"),
    (QUANT.format("None, None, 3", "out(2, 1, dtype='int32')"), [161002],
     "4-bit integers must have a last dim that is divisible by 8, but have shape [2, 4]"),
    ("'aclnnDynamicQuant', i32(1, 2), None, out(2, dtype='int8'), out()", [161002],
     "x must have floating-point numbers, but is Int"),
    ("'aclnnDynamicQuantV3', f32(2, 4), None, None, 2, True, 'perhead', out(2, 4, dtype='int8'), "
     "out(2), None", [161002],
     "quantMode must be pertoken, pertensor or perchannel, but got perhead"),
    ("'aclnnDynamicQuantV4', f32(2, 4), None, None, 2, True, 'pertoken', 15., "
     "out(2, 4, dtype='int8'), out(2), None", [161002],
     "dstTypeMax must be 0: it belongs to dtypes of Ascend 950, but got 15"),
    ("'aclnnAscendQuant', f32(2, 4), f32(4), None, False, 'up', 2, out(2, 4, dtype='int8')",
     [161002], "roundMode must be round, floor, ceil or trunc, but got up"),
    ("'aclnnAscendQuantV3', f32(2, 4), f32(4), None, False, 'round', 2, 5, "
     "out(2, 4, dtype='int8')", [161002], "axis must be one of the last two dims of x, but got 5"),
    ("'aclnnAscendAntiQuant', np.ones((2, 4), 'int8'), f32(3, 1, 4), None, 1, False, out(3, 2, 4)",
     [161002], "scale and offset must broadcast to x, whose shape is [2, 4], but make [3, 2, 4]"),
    ("'aclnnGroupQuant', f32(3, 2), f32(2, 2), i64(2, 1), None, 2, out(3, 2, dtype='int8')",
     [0, 161002], "groupIndex must ascend, but goes from 2 to 1"),
    ("'aclnnDequantSwigluQuant', f32(2, 4), None, None, None, None, None, None, True, 'static', "
     "out(2, 2, dtype='int8'), out(2)", [161001], "quantScale must not be NULL"),
    ("'aclnnDequantSwigluQuant', i32(1, 2, 3, 4), None, None, None, f32(2), None, None, True, "
     "'static', out(2, dtype='int8'), out()", [161001], "weightScale must not be NULL"),
    ("'aclnnSwiGluQuant', f32(2, 3), None, None, None, True, 'dynamic', out(2, 1, dtype='int8'), "
     "out(2)", [161002], "x must have an even last dim, but has shape [2, 3]"),
    ("'aclnnSwiGluQuantV2', f32(2, 4), None, None, None, True, 'dynamic', 0, 34, "
     "out(2, 2, dtype='int8'), out(2)", [161002],
     "dstType must be 2, INT8, or 29, INT4: others belong to Ascend 950, but got 34"),
    ("'aclnnFlatQuant', f32(1, 2, 8), f32(2, 2), f32(8, 8), 1.5, out(1, 2, 1, dtype='int32'), "
     "out(1)", [161002], "clipRatio must be above 0, at most 1, but got 1.5"),
    ("'aclnnTransQuantParamV2', f64(2), None, out(2, dtype='int64')", [161002],
     "scale must be FLOAT, but is Double"),
    ("'aclnnAddRmsNormQuant', f32(2, 4), f32(2, 4), f32(4), f32(3), None, None, None, -1, 1e-6, "
     "True, out(2, 4, dtype='int8'), None, out(2, 4)", [161002],
     "scales1 and its zero points must have 1 or 4 elements, but have 3"),
    (MATMUL.format(8, "None, f32(3), *[None] * 5", "out(2, 3)"), [0, 0],
     [[[8, 16, 24], [8, 16, 24]]]),
    (MATMUL.format(7, "None, f32(3), *[None] * 5", "out(2, 3)"), [161002],
     "x2 must have as many rows as x1 has columns, 8, but has 7"),
    (MATMUL.format(8, "None, None, *[None] * 5", "out(2, 3)"), [161001],
     "the scale of x2 must not be NULL"),
    (MATMUL.format(8, "None, f32(2), *[None] * 5", "out(2, 3)"), [161002],
     "the scale of x2 must have 1 or 3 columns, but has shape [2]"),
    (MATMUL.format(8, "f32(3), f32(3), *[None] * 5", "out(2, 3)"), [161002],
     "the scale of x1 must have 1 or 2 elements, but has shape [3]"),
    (MATMUL.format(8, "None, f32(3), f32(1), *[None] * 4", "out(2, 3)"), [161002],
     "yScale and x1Offset must be NULL"),
    (MATMUL.format(8, "None, f32(3), *[None] * 4, f32(2)", "out(2, 3)"), [161002],
     "bias must have shape [3] or [batch, 1, 3], but got [2]"),
    (MATMUL.format(8, "None, f32(3), *[None] * 5", "out(2, 3, dtype='uint8')"), [161002],
     "the result must be INT32, INT8, or float, but is Byte"),
    ("'aclnnWeightQuantBatchMatmulV2', f32(2, 4), np.ones((4, 3), 'int8'), f32(3, 3), None, None, "
     "None, None, 3, out(2, 3)", [161002],
     "a parameter must have a row for each 3 of the 4 rows of the weight, but has 3"),
    ("'aclnnWeightQuantBatchMatmulV2', f32(2, 4), np.ones((4, 3), 'int8'), f32(3), None, None, "
     "None, None, 0, out(2, 3, dtype='int8')", [161002],
     "quantScale must be given where y is INT8, and only there"),
    ("'aclnnTransposeBatchMatMul', f32(1, 2, 3), f32(1, 3, 2), None, None, [2, 1, 0], [0, 1, 2], "
     "[1, 0, 2], 0, 1, out(2, 1, 2)", [161002],
     "permX1 must be [0, 1, 2] or [1, 0, 2], but got [2, 1, 0]"),
    ("'aclnnTransposeBatchMatMul', f32(1, 2, 3), f32(1, 3, 2), None, None, [0, 1, 2], [0, 1, 2], "
     "[1, 0, 2], 0, 3, out(3, 2, 1)", [161002],
     "batchSplitFactor must divide the 2 columns of the result, but is 3"),
    ("'aclnnFusedMatmul', f32(2, 3), f32(3, 2), None, None, 'add', 0, out(2, 2)", [161001],
     "x3 must not be NULL"),
    ("'aclnnConvertWeightToINT4Pack', np.ones((2, 8), 'int32'), out(2, 8)", [161002],
     "weightInt4Pack must be INT32 or INT4, but is Float"),
    ("'aclnnConvertWeightToINT4Pack', np.ones((2, 8), 'int32'), "
     "Int4(out(6, dtype='uint8'), (2, 6))", [161002],
     "the INT4 output must have shape [2, 8], but got [2, 6]"),
]  # fmt: skip


@pytest.mark.parametrize("cases", [GROUPED, EXPERTS, QUANTISED],
                         ids=["grouped", "experts", "quantised"])  # fmt: skip
def test_every_call_has_its_status_and_its_sentence_or_value(cases):
    check(cases)
