# SPDX-License-Identifier: Apache-2.0
"""Attention, caches and sampling: calls that are refused, with a sentence, before data are read
where shapes or numbers tell, and after where only the data do.
"""

from __future__ import annotations

import pytest
from tests.aten.refusals import Case, check

pytestmark = pytest.mark.programs

# query, key, value, then masks, prefix, scale, keep, before, after, heads, layout, precise, mode.
DENSE = (
    "'aclnnFlashAttentionScoreV2', {q}, {k}, {v}, {pse}, {drop}, None, {mask}, {prefix}, None, "
    "None, 1.0, {keep}, 9, 9, {heads}, '{layout}', 0, {mode}, {kind}, out(1, 2, 3, 8), "
    "out(1, 2, 3, 8), None, out(1, 2, 3, 4)"
)
GOOD = {
    "q": "f32(1, 2, 3, 4)", "k": "f32(1, 2, 5, 4)", "v": "f32(1, 2, 5, 4)", "pse": None,
    "drop": None, "mask": None, "prefix": None, "keep": 1.0, "heads": 2, "layout": "BNSD",
    "mode": 0, "kind": 1,
}  # fmt: skip
MASK = "np.ones((3, 5), bool)"


def dense(codes: list[int], end: object, **changed: object) -> Case:
    return DENSE.format(**{**GOOD, **changed}), codes, end


TRAINING: list[Case] = [
    dense([161002], "have the same floating-point dtype, but are Float, Double and Float",
          k="f64(1, 2, 5, 4)"),
    dense([161002], "query must have headNum heads, 4, but has shape [1, 2, 3, 4]", heads=4),
    dense([161002], "but are 2 and 3", k="f32(1, 3, 5, 4)", v="f32(1, 3, 5, 4)"),
    dense([161002], "but their shapes are [1, 2, 3, 4], [1, 2, 5, 4] and [1, 2, 6, 4]",
          v="f32(1, 2, 6, 4)"),
    dense([161002], "inputLayout must be BNSD, BSND, BSH or SBH, but got TND", layout="TND"),
    dense([161002], "sparseMode must be in [0, 6], but got 7", mode=7),
    dense([161002], "pseType must be in [0, 3], but got 4", kind=4),
    dense([161002], "keepProb must be above 0 and at most 1, but got 0", keep=0.0),
    dense([161002], "keepProb must be above 0 and at most 1, but got 1.5", keep=1.5),
    dense([161002], "but got [3, 4]", mask="np.ones((3, 4), bool)"),
    dense([161002], "attenMask must be BOOL, UINT8 or INT8, but is Float", mask="f32(3, 5)"),
    dense([161002], "batches in sparseMode 5 and 6, but has 0", mask=MASK, mode=6),
    dense([161002], "prefix must be in [0, 5], but has 6", mask=MASK, mode=6, prefix=[6]),
    dense([161002], "a bit for each of 30 elements, but got Byte with 2 elements",
          drop="out(2, dtype='uint8')", keep=0.5),
    dense([161002], "but got [3]", pse="f32(3)", kind=2),
    dense([161002], "but has shape [1, 2, 3, 4]", pse="f32(1, 2, 3, 4)"),
]  # fmt: skip

PACKED = (
    "'aclnnFlashAttentionVarLenScoreV5', f32(5, 2, 4), {rope}, {k}, None, {k}, *[None] * 4, "
    "{sink}, None, {rows}, {keys}, None, None, 1.0, 1.0, 9, 9, 2, 'TND', 0, 0, 1, '{text}', "
    "out(5, 2, 8), out(5, 2, 8), None, out(5, 2, 4)"
)
FINE = {
    "rope": None, "k": "f32(6, 1, 4)", "sink": None, "rows": [2, 5], "keys": [4, 6], "text": "",
}  # fmt: skip


def packed(codes: list[int], end: object, **changed: object) -> Case:
    return PACKED.format(**{**FINE, **changed}), codes, end


LENGTHS: list[Case] = [
    packed([161002], "must have a number for each sequence, but have 2 and 1", keys=[6]),
    packed([161002], "must have a number for each sequence, but have 0 and 2", rows=None),
    packed([161002], "actualSeqQLen must end with the rows of its tensor at most, 5, but has 6",
           rows=[2, 6]),
    packed([161002], "queryRope and keyRope must be given together or both be NULL",
           rope="f32(5, 2, 4)"),
    packed([161002], "sink must have shape [2], but got [3]", sink="f32(3)"),
    packed([161002], "must be empty or same_as_input, but is BNSD", text="BNSD"),
    packed([161002], "but their shapes are [5, 2, 4], [6, 1, 3] and [6, 1, 3]", k="f32(6, 1, 3)"),
]  # fmt: skip

INFER = (
    "'aclnnFusedInferAttentionScoreV3', {q}, {k}, {v}, None, {mask}, {rows}, {keys}, {deq}, None, "
    "None, {quant}, None, None, None, {table}, None, {padding}, *[None] * 4, {prefix}, None, None, "
    "{rope}, None, None, {heads}, 1.0, 9, 9, '{layout}', {kv}, {mode}, 0, {block}, 0, {lse}, 0, 0, "
    "{out}, {log}"
)
USUAL = {
    "q": "f32(1, 2, 3, 4)", "k": "[f32(1, 1, 5, 4)]", "v": "[f32(1, 1, 5, 4)]", "mask": None,
    "rows": None, "keys": None, "deq": None, "quant": None, "table": None, "padding": None,
    "prefix": None, "rope": None, "heads": 2, "layout": "BNSD", "kv": 1, "mode": 0, "block": 0,
    "lse": False, "out": "out(1, 2, 3, 4)", "log": None,
}  # fmt: skip
PAGES = {"k": "[f32(3, 1, 2, 4)]", "v": "[f32(3, 1, 2, 4)]", "keys": [5]}


def inferred(codes: list[int], end: object, **changed: object) -> Case:
    return INFER.format(**{**USUAL, **changed}), codes, end


INFERENCE: list[Case] = [
    inferred([161002], "numHeads must be a multiple of numKeyValueHeads, 3, but is 2", kv=3),
    inferred([161002], "or one of them and that of the result, such as BNSD_BSND, but got BDSN",
             layout="BDSN"),
    inferred([161002], "sparseMode must be in [0, 4] or 9, but got 5", mode=5),
    inferred([161002], "attenMask must be given in sparseMode 2, 3, 4 and 9", mode=3),
    inferred([161001], "key[0] must not be NULL", k="[None]"),
    inferred([161002], "batches, but have 2 and 1", k="[f32(1, 1, 5, 4)] * 2"),
    inferred([161002], "queryRope and keyRope must be given together or both be NULL",
             rope="f32(1, 2, 3, 4)"),
    inferred([161002], "keySharedPrefix and valueSharedPrefix must be given together or both be "
             "NULL", prefix="f32(1, 1, 2, 4)"),
    inferred([161002], "actualSeqLengthsKv must be in [0, 5], but has 6", keys=[6]),
    inferred([161002], "key and value must have a tensor, but have none", k="[]"),
    inferred([161002], "attentionOut must be INT8 where quantScale2 is given and only there, but "
             "is Float", quant="f32(1)"),
    inferred([161002], "attentionOut must have shape [1, 2, 3, 4], but got [1, 2, 3, 5]",
             out="out(1, 2, 3, 5)"),
    inferred([161002], "softmaxLse must have shape [1, 2, 3, 1], but got [1, 2, 4]", lse=True,
             log="out(1, 2, 4)"),
    inferred([161002], "actualSeqLengthsKv must be given with blockTable",
             table="i32(0, 1, 2).reshape(1, 3)", **{**PAGES, "keys": None}),
    inferred([161002], "blockTable must have 3 pages of 2 rows for batch 0, but has shape [1, 2]",
             table="i32(0, 1).reshape(1, 2)", **PAGES),
    inferred([0, 161002], "blockTable must be in [0, 2], but has 3",
             table="i32(0, 3, 2).reshape(1, 3)", **PAGES),
    inferred([161002], "blockSize must be that of the pages of value, 2, but is 4", block=4,
             table="i32(0, 1, 2).reshape(1, 3)", **PAGES),
    inferred([161002], "must be NULL with blockTable", padding="i64(0)",
             table="i32(0, 1, 2).reshape(1, 3)", **PAGES),
    inferred([161002], "actualSeqLengthsKv must be given with kvPaddingSize", padding="i64(0)"),
    inferred([0, 161002], "actualSeqLengthsKv must be in [0, 3], but has 4", padding="i64(2)",
             keys=[4]),
    inferred([161002], "must have the head size of query, 4, and the rows of value, 5, but has 3 "
             "and 5", k="[f32(1, 1, 5, 3)]"),
    inferred([161002], "deqScale1 or dequantScaleQuery must be given for a query of INT8",
             q="f32(1, 2, 3, 4).astype('int8')"),
    inferred([161002], "attenMask must have 3 rows and 5 keys at least, but has shape [3, 4]",
             mask="np.ones((3, 4), bool)"),
    ("'aclnnFusedInferAttentionScoreV5', f32(1, 2, 3, 4), [f32(1, 1, 5, 4)], [f32(1, 1, 5, 4)], "
     "*[None] * 28, 2, 1.0, 9, 9, 'BNSD', 1, 0, 0, 0, 0, False, 0, 0, 0, 2, out(1, 2, 3, 4), None",
     [161002], "pseType 0: only product 950 has them"),
    ("'aclnnIncreFlashAttention', f32(1, 2, 3, 4), [f32(1, 1, 5, 4)], [f32(1, 1, 5, 4)], None, "
     "None, None, 2, 1.0, 'BNSD', 1, out(1, 2, 3, 4)", [161002],
     "query must have one row in each batch, but has shape [1, 2, 3, 4]"),
]  # fmt: skip

CACHES: list[Case] = [
    ("'aclnnScatterPaKvCache', f32(1, 2, 3), f32(2, 2, 2, 3), i64(4), None, None, *[None] * 3, "
     "'Norm', 'None', [1, 1], [0, 0]", [0, 161002],
     "slots must be below 4, the rows of keyCache, but one is 4"),
    ("'aclnnScatterPaKvCache', f32(1, 2, 3), f32(2, 2, 2, 4), i64(3), None, None, *[None] * 3, "
     "None, 'None', [1, 1], [0, 0]", [161002], "[blocks, size, 2, 3], but got [2, 2, 2, 4]"),
    ("'aclnnScatterPaKvCache', f32(1, 2, 3), f32(2, 2, 2, 3), i64(3, 1), None, None, *[None] * 3, "
     "None, 'None', [1, 1], [0, 0]", [161002],
     "there must be a slot for each of the 1 rows of keyCache, but there are 2"),
    ("'aclnnScatterPaKvCache', f32(1, 2, 3), f32(2, 2, 2, 3), i64(3), f32(1, 2, 3), None, "
     "*[None] * 3, None, 'None', [1, 1], [0, 0]", [161002],
     "value and valueCache must be given together or both be NULL"),
    ("'aclnnScatterPaKvCache', f32(1, 2, 3), f32(2, 2, 2, 3), i64(3), None, None, *[None] * 3, "
     "'Norm', 'Rope', [1, 1], [0, 0]", [161002], "scatterMode must be None, but got Rope"),
    ("'aclnnScatterPaCache', f32(1, 2, 3), f32(2, 2, 2, 3), i64(3), i64(1), None, None, None",
     [161002], "compressed caches are not supported here"),
    ("'aclnnScatterPaCache', f32(1, 2, 3), f64(2, 2, 2, 3), i64(3), None, None, None, None",
     [161002], "the same dtype, but have Double and Float"),
    ("'aclnnGatherPaKvCache', f32(2, 2, 1, 3), f32(2, 2, 1, 4), i32(0).reshape(1, 1), i64(1, 2), "
     "out(2, 1, 3), out(2, 1, 4), None, 'Norm', False", [161002],
     "seqLens must have 1 elements, but has shape [2]"),
    ("'aclnnGatherPaKvCache', f32(2, 2, 1, 3), f32(2, 2, 1, 4), i32(0).reshape(1, 1), i64(1), "
     "out(2, 1, 4), out(2, 1, 4), None, 'Norm', False", [161002],
     "but have shapes [2, 1, 4] and [2, 1, 4]"),
    ("'aclnnInplaceScatterUpdate', f32(2, 3, 4), i64(3, 0), f32(2, 1, 4), -2", [0, 161002],
     "index 0 is batch 0, place 3"),
    ("'aclnnInplaceScatterUpdate', f32(2, 3, 4), i64(1, 0), f32(2, 1, 3), -2", [161002],
     "but has shape [2, 1, 3]"),
    ("'aclnnInplaceScatterUpdate', f32(2, 3, 4), i64(1, 0), f32(2, 1, 4), 0", [161002],
     "axis must not be that of the batches, but is 0"),
    ("'aclnnInplaceQuantScatterV2', out(2, 3, 4, dtype='int8'), i64(1, 0), f32(2, 1, 4), f32(4), "
     "None, -2, -1, 1, 'floor'", [161002], "only product 950 has others, but got floor"),
    ("'aclnnScatterList', [f32(3, 4)], i64(2, 2).reshape(1, 2), f32(1, 2, 4), None, 'update', -2",
     [0, 161002], "but entry 0 is 2 from 2 on of 3"),
    ("'aclnnKvRmsNormRopeCache', f32(1, 1, 1, 6), f32(4), f32(1, 1, 1, 2), f32(1, 1, 1, 2), "
     "i64(9).reshape(1, 1), f32(1, 1, 3, 2), f32(1, 1, 3, 4), *[None] * 4, 1e-5, 'Norm', False, "
     "out(1), out(1)", [0, 161002], "index must be below 3, the rows of kCache, but has 9"),
    ("'aclnnKvRmsNormRopeCache', f32(1, 1, 1, 6), f32(4), f32(1, 1, 1, 2), f32(1, 1, 1, 2), "
     "i64(0), f32(1, 1, 3, 2), f32(1, 1, 3, 4), *[None] * 4, 1e-5, 'Nrom', False, "
     "out(1), out(1)", [161002], "PA_NZ, PA_BLK_BNSD or PA_BLK_NZ, but got Nrom"),
    ("'aclnnKvRmsNormRopeCache', f32(1, 1, 1, 6), f32(3), f32(1, 1, 1, 2), f32(1, 1, 1, 2), "
     "i64(0), f32(1, 1, 3, 2), f32(1, 1, 3, 4), *[None] * 4, 1e-5, 'Norm', False, "
     "out(1), out(1)", [161002], "must be that of gamma, 3, and that of cos, 2"),
    ("'aclnnQkvRmsNormRopeCache', f32(2, 64), f32(16), f32(16), f32(2, 16), f32(2, 16), i64(0, 1), "
     "out(2, 32), f32(1, 2, 4, 8), f32(1, 2, 4, 8), *[None] * 4, [1, 2, 4, 16], [2, 1, 1], 1e-5, "
     "'Norm', None, None, None", [161002], "cacheMode must be PA_NZ, but got Norm"),
    ("'aclnnRopeWithSinCosCache', i64(4), f32(1, 4), f32(1, 4), f32(3, 4), [0, 0, 0], 4, True, "
     "out(1, 4), out(1, 4)", [0, 161002], "positions must be in [0, 2], but has 4"),
    ("'aclnnRopeWithSinCosCache', i64(1, 1, 1).reshape(3, 1), f32(1, 4), f32(1, 4), f32(3, 4), "
     "[1, 0, 0], 4, True, out(1, 4), out(1, 4)", [161002], "with the sum 2, but is [1, 0, 0]"),
    ("'aclnnRopeWithSinCosCache', i64(1), f32(1, 4), f32(1, 4), f32(3, 6), None, 4, True, "
     "out(1, 4), out(1, 4)", [161002],
     "headSize must be at least that of cosSinCache, 6, but is 4"),
    ("'aclnnAttentionUpdate', [f32(2)], [f32(3, 8)], 0, out(3, 8), None", [161002],
     "lse must have shape [3], but got [2]"),
    ("'aclnnRingAttentionUpdate', f32(2, 1, 4), f32(1, 2, 2, 8), f32(1, 2, 2, 8), f32(2, 1, 4), "
     "f32(1, 2, 2, 8), f32(1, 2, 2, 8), None, 'BSH', out(2, 1, 4), out(1, 2, 2, 8), "
     "out(1, 2, 2, 8)", [161002], "inputLayout must be SBH or TND, but got BSH"),
    ("'aclnnRingAttentionUpdate', f32(2, 1, 4), f32(2, 1, 8), f32(2, 1, 8), f32(2, 1, 4), "
     "f32(2, 1, 8), f32(2, 1, 8), i64(3), 'TND', out(2, 1, 4), out(2, 1, 8), out(2, 1, 8)",
     [0, 161002], "actualSeqQlen must ascend up to the rows of attnOut, 2, but has 3"),
]  # fmt: skip

SAMPLING: list[Case] = [
    ("'aclnnApplyTopKTopP', f32(1, 4), None, None, out(1, 4)", [161002], "p or k must be given"),
    ("'aclnnApplyTopKTopP', f32(1, 4), None, i32(5), out(1, 4)", [0, 161002],
     "k must be in [1, 4], but has 5"),
    ("'aclnnApplyTopKTopP', f32(1, 4), f32(2), None, out(1, 4)", [161002],
     "p must have shape [1], but got [2]"),
    ("'aclnnTopKTopPSample', f32(1, 4), i32(2), f32(1), f32(1, 3), 1e-8, False, 32, "
     "out(1, dtype='int64'), None", [161002], "q must have shape [1, 4], but got [1, 3]"),
    ("'aclnnTopKTopPSample', f32(1, 0), i32(2), f32(1), None, 1e-8, False, 32, "
     "out(1, dtype='int64'), None", [161002], "but are Float with shape [1, 0]"),
    ("'aclnnAdvanceStep', i64(1), i64(1), i64(1), i64(9), i64(1), i32(1, 2).reshape(1, 2), 1, 1, "
     "4", [0, 161002], "the pages of the positions must be in [0, 1], but has 2"),
    ("'aclnnAdvanceStep', i64(1), i64(1), i64(1), i64(3), i64(1), i32(1, 2).reshape(1, 2), 1, 2, "
     "4", [161002], "numQueries must be in [0, 1], but is 2"),
    ("'aclnnAdvanceStep', i64(1), i64(1), i64(1), i64(3), i64(1), i32(1, 2).reshape(1, 2), 1, 1, "
     "0", [161002], "blockSize must be at least 1, but got 0"),
]  # fmt: skip


@pytest.mark.parametrize(
    "cases", [TRAINING, LENGTHS, INFERENCE, CACHES, SAMPLING],
    ids=["training", "lengths", "inference", "caches", "sampling"],
)  # fmt: skip
def test_every_call_has_its_status_and_its_sentence_or_value(cases):
    check(cases)
