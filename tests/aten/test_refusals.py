# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that ATen computes which are wrong, unusual or at the edge: each is a refusal
with a status and a sentence of the caller's words, or has its value. Cases of one table share a
process; a call that kills it fails the test of its table. `-k` selects tables, not functions.
"""

from __future__ import annotations

import json
import math

import pytest
from tests.aten.refusals import Case, check, run

pytestmark = pytest.mark.programs

# More dims in gamma than in x, halves of what has none, nothing to divide by.
COMPOSITES: list[Case] = [
    # Nothing is written by a call that is refused.
    ("'aclnnApplyAdamWV2', f32(3), f32(3), f32(3), None, f32(2), f32(1), .1, .9, .99, .1, 1e-8, "
     "False, False", [161002], "grad must have shape [3], but got [2]"),
    ("'aclnnApplyAdamWV2', f32(3), f32(3), f32(3), None, f32(3), f32(1), .1, .9, .99, .1, 1e-8, "
     "True, False", [161001], "maxGradNorm must not be NULL"),
    ("'aclnnGroupedMatmulV3', [f32(4, 2)], [f32(2, 3, 3)], *[None] * 5, i64(1, 4), 2, 0, "
     "[out(4, 3)]", [161002], "columns, 2, but one has shape [3, 3]"),
    # ATen's gradient trusts the shape of gradOutput, and reads where it has none.
    ("'aclnnConvolutionBackward', f64(0, 6, 3, 3), f64(2, 3, 4, 4), f64(6, 3, 2, 2), (6,), (1, 1), "
     "(0, 0), (1, 1), False, (0, 0), 1, (True,) * 3, 0, f64(2, 3, 4, 4), f64(6, 3, 2, 2), f64(6)",
     [161002], "gradOutput must have shape [2, 6, 3, 3], but got [0, 6, 3, 3]"),
    ("'aclnnConvolution', f32(1, 1, 4), f32(1, 1, 2), None, (1,), (0,), (1,), False, (0,), 1, "
     "out(1, 1, 4), 0", [161002], "out must have shape [1, 1, 3], but got [1, 1, 4]"),
    # 2^62 rows of no elements: ATen's kernel, which has no form without data, went through all.
    ("'aclnnAdaptiveAvgPool3d', f32(4, 4, 8, 6), (2**31 - 1, 2**31 - 1, 0), out(4, 1, 4, 1)",
     [161002], "outputSize is [2147483647, 2147483647, 0], but got [4, 1, 4, 1]"),
    # A kernel of 2^31 taps: a loop over them took minutes, in phase 1.
    ("'aclnnConvTbc', f32(2, 2, 2), np.broadcast_to(f32(1), (2**31, 2, 2)), f32(2), 2**31 - 1, "
     "out(1, 2, 2), 0", [161002], "out must have shape [2147483649, 2, 2], but got [1, 2, 2]"),
    ("'aclnnRmsNormGrad', f32(3), f32(3), f32(1), f32(2, 2, 2, 3), out(3), out(2, 2, 2, 3)",
     [161002], "self must have shape [*, gamma], where gamma is [2, 2, 2, 3], but got [3]"),
    ("'aclnnAddLayerNormGrad', f32(3), f32(3), f32(3), f32(1), f32(1), f32(2, 2, 3), None, out(3), "
     "out(2, 2, 3), out(2, 2, 3)", [161002], "where gamma is [2, 2, 3], but got [3]"),
    ("'aclnnDeepNormGrad', f32(3), f32(3), f32(3), f32(2, 2, 3), f32(1), f32(1), 0.3, out(3), "
     "out(3), out(2, 2, 3), out(2, 2, 3)", [161002], "where gamma is [2, 2, 3], but got [3]"),
    ("'aclnnGemmaRmsNorm', f32(3), f32(2, 2, 3), 1e-6, out(3), out(1)", [161002],
     "where gamma is [2, 2, 3], but got [3]"),
    ("'aclnnAddRmsNorm', f32(3), f32(3), f32(2, 3), 1e-6, out(3), out(1), out(3)", [161002],
     "where gamma is [2, 3], but got [3]"),
    ("'aclnnBatchNormReduce', f32(3), out(3), out(3)", [161002], "but got [3]"),
    ("'aclnnSwiGluGrad', f32(2, 1), f32(2, 1), 1, out(2, 1)", [161002],
     "self must have a size along dim 1 that is divisible by 2, but has shape [2, 1]"),
    ("'aclnnSwiGluGrad', f32(2, 2), f32(2, 4), 5, out(2, 4)", [161002],
     "dim must be a dim of self, whose shape is [2, 4], but got 5"),
    ("'aclnnGeluMul', f32(2, 1), 'none', out(2, 1)", [161002], "but has shape [2, 1]"),
    ("'aclnnGeluMul', None, 'none', out(2, 1)", [161001], "input must not be NULL"),
    ("'aclnnApplyRotaryPosEmb', *[f32(1, 1, 1, 1)] * 4, 1", [161002], "shape [1, 1, 1, 1]"),
    ("'aclnnRotaryPositionEmbeddingGrad', *[f32(1, 1, 1, 1)] * 4, 0, *[out(1, 1, 1, 1)] * 3",
     [161002], "shape [1, 1, 1, 1]"),
    ("'aclnnGroupNormSilu', f32(1, 4, 2), f32(4), f32(4), 0, 1e-5, out(1, 4, 2), out(1, 1), "
     "out(1, 1)", [161002], "group must be at least 1, but got 0"),
    ("'aclnnScatterNdUpdate', f32(3), np.zeros((2, 0), np.int64), f32(2, 3)", [161002],
     "but has shape [2, 0]"),
    ("'aclnnIndexPutImpl', f32(3), [], f32(1), False, False", [161002],
     "indices must have a tensor, but has none"),
    ("'aclnnDropoutGenMaskV2', [1 << 40, 1 << 40], 0.5, 1, 2, 0, out(16, dtype='uint8')", [161002],
     "but is [1099511627776, 1099511627776]"),
    ("'aclnnGroupedMatmulV3', [f32(4, 2)], [f32(2, 2, 3)], *[None] * 5, i64(3, 1), 2, 0, "
     "[out(4, 3)]", [0, 161002], "but goes from 3 to 1"),
    ("'aclnnGroupedMatmulV3', [f32(4, 2)], [f32(2, 2, 3)], [f32(1, 3)], *[None] * 4, i64(1, 4), 2, "
     "0, [out(4, 3)]", [161002], "each of the 2 weights, but has 1"),
]  # fmt: skip

ATTENTION: list[Case] = [
    *[(f"'aclnnFlashAttentionScore', {q}, {k}, {k}, *[None] * 5, 1.0, 1.0, 0, 0, {heads}, "
       f"'{layout}', 0, 0, out(1, 2, 2, 8), out(1, 2, 2, 8), None, out(1, 2, 4)", [161002], end)
      for q, k, heads, layout, end in [
          ("f32(1, 2, 4)", "f32(1, 2, 4)", 0, "BSH", "headNum must be at least 1, but got 0"),
          ("f32(1, 2, 0)", "f32(1, 2, 0)", 2, "BSH", "but has shape [1, 2, 0]"),
          ("f32(1, 2, 2, 4)", "f32(1, 0, 2, 4)", 2, "BNSD", "but has shape [1, 0, 2, 4]"),
          ("f32(1, 3, 2, 4)", "f32(1, 2, 2, 4)", 3, "BNSD", "but are 3 and 2"),
          ("f32(3, 2, 4)", "f32(1, 2, 2, 4)", 3, "BNSD", "4 dims, but has shape [3, 2, 4]"),
      ]],
    ("'aclnnFlashAttentionScoreGrad', *[f32(1, 2, 4)] * 4, *[None] * 9, 1.0, 1.0, 0, 0, 0, 'BSH', "
     "0, 0, *[out(1, 2, 4)] * 3, None", [161002], "headNum must be at least 1, but got 0"),
    # The widest band masks nothing.
    ("'aclnnFusedInferAttentionScoreV2', f32(1, 1, 2), [f32(1, 1, 2)], [f32(1, 1, 2)], "
     "None, np.zeros((1, 1), bool), *[None] * 19, 1, 1.0, (1 << 63) - 1, (1 << 63) - 1, 'BSH', 0, "
     "4, 0, 0, 0, False, 0, 0, out(1, 1, 2), None", [0, 0], [[[[1, 2]]], None]),
]  # fmt: skip

DELTA = "'aclnnRecurrentGatedDeltaRule', {q}, {q}, f32(2, 2, 3), f32(2, 2), f32(2, 2, 3, 3), "
RECURRENT: list[Case] = [
    (DELTA.format(q="f32(2, 0, 3)") + "i32(2), i32(0, 1), None, None, None, 1.0, out(2, 2, 3)",
     [161002], "must be a multiple of those of key, but are 2 and 0"),
    *[(DELTA.format(q="f32(2, 1, 3)") + f"{given}, 1.0, out(2, 2, 3)", codes, end)
      for given, codes, end in [
          ("None, i32(0, 1), None, None, None", [161001], "actualSeqLengths must not be NULL"),
          ("i32(3), i32(0, 1), None, None, None", [0, 161002], "but sequence 0 has 3"),
          ("i32(-1), i32(0, 1), None, None, None", [0, 161002], "but sequence 0 has -1"),
          ("i32(2), i32(0, 5), None, None, None", [0, 161002], "must be in [0, 1], but has 5"),
          ("i32(2), i32(0, 1), None, None, i32(7)", [0, 161002], "but is 7"),
      ]],
]  # fmt: skip

# Positions of 32 bits, wherever the device takes them.
POSITIONS: list[Case] = [
    ("'aclnnEmbeddingDenseBackward', f32(2, 8), np.array([-1, -1]), 2, -1, True, out(2, 8)",
     [0, 161002], "indices must have indices from 0 to 1, but has -1"),
    ("'aclnnInplaceIndexCopy', f32(3), 0, i32(2, 0), f32(2)", [0, 0], [[2, 2, 1]]),
    ("'aclnnIndexCopy', f32(3), 0, i32(2, 0), f32(2), out(3)", [0, 0], [[2, 2, 1]]),
    ("'aclnnAdaptiveMaxPool2dBackward', f32(1, 1, 1, 1), f32(1, 1, 2, 2), "
     "i32(3).reshape(1, 1, 1, 1), out(1, 1, 2, 2)", [0, 0], [[[[[0, 0], [0, 1]]]]]),
    ("'aclnnMaxUnpool2d', f32(1, 1, 1, 1), i32(3).reshape(1, 1, 1, 1), [2, 2], out(1, 1, 2, 2)",
     [0, 0], [[[[[0, 0], [0, 1]]]]]),
    ("'aclnnMaxUnpool3d', f32(1, 1, 1, 1, 1), i32(3).reshape(1, 1, 1, 1, 1), [1, 2, 2], "
     "[1, 2, 2], [0, 0, 0], out(1, 1, 1, 2, 2)", [0, 0], [[[[[[0, 0], [0, 1]]]]]]),
    ("'aclnnMultilabelMarginLoss', f32(1, 2), i32(0, -1).reshape(1, 2), 2, out(), "
     "out(1, 2)",
     [0, 0], [1, [[1, 0]]]),
    ("'aclnnNLLLoss', f32(2, 3), i32(1, 2), f32(3), 2, -100, out(), out()", [0, 0], [-22, 5]),
    ("'aclnnNLLLossBackward', f32(), f32(2, 3), i32(1, 2), f32(3), 2, -100, f32(), out(2, 3)",
     [0, 0], [[[0, -2, 0], [0, 0, -3]]]),
    ("'aclnnNLLLoss2d', f32(1, 3, 1, 2), i32(1, 2).reshape(1, 1, 2), f32(3), 2, -100, out(), out()",
     [0, 0], [-24, 5]),
    ("'aclnnNLLLoss2dBackward', f32(), f32(1, 3, 1, 2), i32(1, 2).reshape(1, 1, 2), f32(3), 2, "
     "-100, f32(), out(1, 3, 1, 2)", [0, 0], [[[[[0, 0]], [[-2, 0]], [[0, -3]]]]]),
    ("'aclnnTake', f32(3), i32(2, 0), out(2)", [0, 0], [[3, 1]]),
    ("'aclnnInplacePut', f32(3), i32(2, 0), f32(2), False", [0, 0], [[2, 2, 1]]),
    ("'aclnnScatterAdd', f32(3), 0, i32(2, 0), f32(2), out(3)", [0, 0], [[3, 2, 4]]),
    ("'aclnnIndexFill', f32(3), 0, i32(2, 0), 9.0, out(3)", [0, 0], [[9, 2, 9]]),
    ("'aclnnEmbeddingDenseBackward', f32(2, 1), i32(2, 0), 3, -1, False, out(3, 1)", [0, 0],
     [[[2], [0], [1]]]),
]  # fmt: skip

# The data decide the size of a result; its tensor is destroyed between the phases.
DESTROYED: list[Case] = [
    ("'aclnnNonzero', f32(2), out(2, 1, dtype='int64'), destroyed=1", [0, 0], [[[0], [1]]]),
    ("'aclnnMaskedSelect', f32(3), np.array([True, False, True]), out(3), destroyed=2", [0, 0],
     [[1, 3, 77]]),
    ("'aclnnUnique2', f32(3), True, True, True, out(3), out(3, dtype='int64'), "
     "out(3, dtype='int64'), destroyed=4", [0, 0], [[1, 2, 3], [0, 1, 2], [1, 1, 1]]),
    ("'aclnnNonzero', f32(2), out(1, 1, dtype='int64'), destroyed=1", [0, 161002],
     "out must have room for 2 elements, but has room for 1"),
]  # fmt: skip

LISTS: list[Case] = [
    ("'aclnnReplicationPad2d', f32(3, 4, 3, 2), [(1 << 63) - 1] * 4, out(0)", [161002],
     "padding must have numbers from -2^40 to 2^40, but has 9223372036854775807"),
    ("'aclnnForeachCopy', [f32(2)], [out(2), out(2)]", [161002], "as in x, but got [2]"),
    ("'aclnnForeachCopy', [f32(2)], [out(2)]", [0, 0], [[1, 2]]),
    ("'aclnnForeachCopy', [f32(1)], [out(2)]", [161002], "out must have shape [1], but got [2]"),
    ("'aclnnForeachRoundOffNumberV2', [f32(2)], 1, [out(2), out(2)]", [161002], "but got [2]"),
    ("'aclnnForeachAbs', [f32(2)], [out(2), out(2)]", [161002], "as in x, but got [2]"),
    ("'aclnnForeachMulList', [f32(2)] * 2, [f32(2)], [out(2), out(2)]", [161002], "but got [1]"),
    ("'aclnnForeachMulScalarList', [f32(2)] * 2, [1.0], [out(2), out(2)]", [161002],
     "values must have L elements, where L is 2 as in x, but has 1"),
    ("'aclnnForeachAbs', [f32(2), None], [out(2), out(2)]", [161001], "x[1] must not be NULL"),
    ("'aclnnGroupedMatmulV3', [f32(4, 2), None], [f32(2, 3)] * 2, *[None] * 6, 2, -1, "
     "[out(4, 3)] * 2", [161001], "x[1] must not be NULL"),
]  # fmt: skip

SENTENCES: list[Case] = [
    ("'aclnnNLLLossBackward', f32(1), f32(1, 3), i64(0), None, 1, -100, f32(2), out(1, 3)",
     [161002], "totalWeight must have 1 elements, as many as [1], but got [2]"),
    ("'aclnnNLLLossBackward', f32(1), f32(3), i64(0), None, 1, -100, f32(1), out(3)", [161002],
     "target must have shape [], but got [1]"),
    ("'aclnnLogSoftmaxBackward', f32(2, 3), f32(2, 4), 1, out(2, 4)", [161002],
     "gradOutput must have the shape of output, [2, 4], but got [2, 3]"),
    ("'aclnnLayerNormBackward', f32(2, 3), f32(2, 3), None, f32(2), f32(2), None, None, "
     "[True, False, False], out(2, 3), None, None", [161001], "normalizedShape must not be NULL"),
    ("'aclnnLayerNormBackward', f32(2, 3), f32(2, 3), [3], f32(2), f32(2), f32(4), f32(3), "
     "[True, True, True], out(2, 3), out(3), out(3)", [161002],
     "weight must have the shape normalizedShape, [3], but got [4]"),
    # A message that asks its reader for an enhancement request, and one with a type of C++.
    ("'aclnnInplaceBernoulliTensor', f32(2), f32(2) * 9, 1, 2", [0, 161002],
     "ATen refuses these arguments: self Float [2], prob Float [2], seed 1, offset 2"),
    ("'aclnnLerp', f32(2), f32(2).astype('float16'), f32(2), out(2)", [161002],
     "expected dtype float for `end` but got dtype Half"),
    ("'aclnnRemainderTensorTensor', i32(1, 2), i32(0, 2), out(2, dtype='int32')", [0, 161002],
     "integer division by 0"),
    ("'aclnnDivMod', i32(1, 2), i32(0, 2), 1, out(2, dtype='int32')", [0, 161002],
     "integer division by 0"),
    ("'aclnnInplaceFillScalar', out(2, dtype='int8'), 10**18", [0, 161002],
     "a number does not fit the dtype in which it is computed: self Char [2], value "
     "1000000000000000000"),
    ("'aclnnExp', f32(4), Int4(out(2, dtype='uint8'), (4,))", [161002],
     "out is INT4, which only inputs may be"),
    ("'aclnnExp', Int4(out(3, dtype='uint8'), (4,), 1), out(4)", [161002],
     "self is INT4 and must begin with a whole byte, at an even offset, but its offset is 1"),
    ("'aclnnExp', Int4(out(2, dtype='uint8'), (4,)), out(4)", [0, 161002],
     "ATen has no kernel for these dtypes: self Int4 [4], out Float [4]"),
]  # fmt: skip

VALUES: list[Case] = [
    ("'aclnnBatchMatMul', f32(1, 1, 2), f32(2, 2, 1), out(2, 1, 1), 0", [0, 0], [[[[5]], [[11]]]]),
    ("'aclnnBatchMatMul', f32(2, 1, 2), f32(1, 2, 1), out(2, 1, 1), 0", [0, 0], [[[[5]], [[11]]]]),
    ("'aclnnBatchMatMul', f32(2, 1, 2), f32(3, 2, 1), out(3, 1, 1), 0", [161002],
     "size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    ("'aclnnBatchMatMul', f32(1, 2), f32(2, 1), out(1, 1), 0", [161002],
     "self must have shape [B, M, K], but got [1, 2]"),
    ("'aclnnIsInScalarTensor', 3.0, f32(4), False, False, out(dtype='bool')", [0, 0], [True]),
    ("'aclnnIsInScalarTensor', 9.0, f32(4), False, False, out(1, dtype='bool')", [0, 0], [[False]]),
    *[(f"'aclnn{name}', {given}, False, 0.1, 0.1, {out}", [161002],
       "scalesH must be above 0.375 for 2 of 4 pixels, or 0, but got 0.1")
      for name, given, out in [
          ("UpsampleBilinear2dAA", "f32(1, 1, 4, 4), [2, 2]", "out(1, 1, 2, 2)"),
          ("UpsampleBicubic2dAA", "f32(1, 1, 4, 4), [2, 2]", "out(1, 1, 2, 2)"),
          ("UpsampleBilinear2dAABackward", "f32(1, 1, 2, 2), [2, 2], [1, 1, 4, 4]",
           "out(1, 1, 4, 4)"),
          ("UpsampleBicubic2dAAGrad", "f32(1, 1, 2, 2), [2, 2], [1, 1, 4, 4]", "out(1, 1, 4, 4)"),
      ]],
    ("'aclnnUpsampleBilinear2dAA', f32(1, 1, 1, 2), [1, 1], False, 0.0, 0.5, out(1, 1, 1, 1)",
     [0, 0], [[[[[1.5]]]]]),
    ("'aclnnBinaryCrossEntropy', f32(1), f32(0), None, 1, out()", [161002], "but got [0]"),
]  # fmt: skip


# Documented calls that a limit of a row has refused once.
TAKEN: list[Case] = [
    ("'aclnnL1LossBackward', f32(1, 3), f32(2, 3), np.zeros((2, 3), 'float32'), 2, out(2, 3)",
     [0, 0], [[[1, 2, 3], [1, 2, 3]]]),
    ("'aclnnKlDivBackward', f32(1), f32(2, 2), f32(2, 2), 3, False, out(2, 2)", [0, 0],
     [[[-0.5, -1], [-1.5, -2]]]),
    ("'aclnnEmbeddingDenseBackward', f32(6, 1), np.array([[0, 1, 0], [1, 0, 1]]), 2, -1, False, "
     "out(2, 1)", [0, 0], [[[9], [12]]]),
    ("'aclnnGroupNormBackward', np.zeros((1, 2, 2), 'float32'), f32(1, 2, 2, 1), f32(1, 1), "
     "f32(1, 1), f32(1, 2), 1, 2, 2, 1, [True, True, True], out(1, 2, 2, 1), out(2), out(2)",
     [0, 0], [[[[[0], [0]], [[0], [0]]]], [0, 0], [0, 0]]),
    ("'aclnnCtcLoss', np.zeros((1, 2, 3), 'float32'), np.array([[1, -1], [2, -1]]), [1, 1], "
     "[1, 1], 0, False, out(2), out(2, 1, 3)", [0, 0],
     [[0, 0], [[[0, 0, -math.inf]], [[0, 0, -math.inf]]]]),
    ("'aclnnCtcLoss', np.zeros((1, 2, 3), 'float32'), np.array([[1, -1], [3, -1]]), [1, 1], "
     "[1, 1], 0, False, out(2), out(2, 1, 3)", [0, 161002],
     "targets must be classes from 0 to 2, but has 3"),
]  # fmt: skip


@pytest.mark.parametrize(
    "cases",
    [COMPOSITES, ATTENTION, RECURRENT, POSITIONS, DESTROYED, LISTS, SENTENCES, VALUES, TAKEN],
    ids=["composites", "attention", "recurrent", "positions", "destroyed", "lists", "sentences",
         "values", "taken"],
)  # fmt: skip
def test_every_call_has_its_status_and_its_sentence_or_value(cases):
    check(cases)


def test_pytorch_warns_nobody_on_stderr():
    """aten::std warns of a negative number of degrees of freedom."""
    done = run(["call('aclnnStd', f32(1), [0], 5, False, out())"])
    assert json.loads(done.stdout)[0] == [0, 0], done.stdout
    assert done.stderr == ""
