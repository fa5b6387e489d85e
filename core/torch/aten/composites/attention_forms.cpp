// SPDX-License-Identifier: Apache-2.0
// The parameters of attention for inference in all versions.
#include "core/torch/aten/composites/attention_inference.h"

namespace openaclnn::aten {
namespace {

#define COMMON                                                                                 \
  Tensor q, Tensors k, Tensors v, Tensor pse, Tensor mask, Ints lengths, Ints kv_lengths,      \
      Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2, Tensor offset2, Tensor kv_scale, \
      Tensor kv_offset, Tensor table, Tensor q_padding, Tensor kv_padding
#define QUANTISED                                                                    \
  Tensor k_scale, Tensor k_offset, Tensor v_scale, Tensor v_offset, Tensor k_prefix, \
      Tensor v_prefix, Ints prefix_length
#define ATTRIBUTES                                                                           \
  int64_t heads, double scale, int64_t before, int64_t after, Text layout, int64_t kv_heads, \
      int64_t sparse, int64_t, int64_t block, int64_t kv_mode, bool has_lse

#define SET_COMMON                                                                                 \
  Inference a;                                                                                     \
  a.q = q, a.k = k, a.v = v, a.pse = pse, a.mask = mask, a.lengths = lengths,                      \
  a.kv_lengths = kv_lengths, a.deq1 = deq1, a.quant1 = quant1, a.deq2 = deq2, a.quant2 = quant2,   \
  a.offset2 = offset2, a.kv_scale = kv_scale, a.kv_offset = kv_offset, a.table = table,            \
  a.q_padding = q_padding, a.kv_padding = kv_padding, a.heads = heads, a.scale = scale,            \
  a.before = before, a.after = after, a.layout = layout, a.kv_heads = kv_heads, a.sparse = sparse, \
  a.block = block, a.kv_mode = kv_mode
#define SET_QUANTISED                                                                     \
  a.k_scale = k_scale, a.k_offset = k_offset, a.v_scale = v_scale, a.v_offset = v_offset, \
  a.k_prefix = k_prefix, a.v_prefix = v_prefix, a.prefix_length = prefix_length,          \
  a.k_mode = k_mode, a.v_mode = v_mode

void infer_attention(COMMON, ATTRIBUTES, Out out, Out lse) {
  SET_COMMON;
  infer(a, has_lse, out, lse);
}

void infer_attention_v2(COMMON, QUANTISED, ATTRIBUTES, int64_t k_mode, int64_t v_mode, Out out,
                        Out lse) {
  SET_COMMON;
  SET_QUANTISED;
  infer(a, has_lse, out, lse);
}

void infer_attention_v3(COMMON, QUANTISED, Tensor q_rope, Tensor k_rope, Tensor k_rope_scale,
                        ATTRIBUTES, int64_t k_mode, int64_t v_mode, Out out, Out lse) {
  SET_COMMON;
  SET_QUANTISED;
  a.q_rope = q_rope, a.k_rope = k_rope, a.k_rope_scale = k_rope_scale;
  infer(a, has_lse, out, lse);
}

void infer_attention_v4(COMMON, QUANTISED, Tensor q_rope, Tensor k_rope, Tensor k_rope_scale,
                        Tensor q_scale, Tensor sink, ATTRIBUTES, int64_t k_mode, int64_t v_mode,
                        int64_t, Out out, Out lse) {
  SET_COMMON;
  SET_QUANTISED;
  a.q_rope = q_rope, a.k_rope = k_rope, a.k_rope_scale = k_rope_scale, a.q_scale = q_scale,
  a.sink = sink;
  infer(a, has_lse, out, lse);
}

void infer_attention_v5(COMMON, QUANTISED, Tensor q_rope, Tensor k_rope, Tensor k_rope_scale,
                        Tensor q_scale, Tensor sink, Tensor q_start, Tensor kv_start, ATTRIBUTES,
                        int64_t k_mode, int64_t v_mode, int64_t, int64_t pse_type, Out out,
                        Out lse) {
  if (q_start.defined() || kv_start.defined() || pse_type != 0)
    throw Refusal("qStartIdx and kvStartIdx must be NULL and pseType 0: only product 950 has them",
                  Reason::not_supported);
  SET_COMMON;
  SET_QUANTISED;
  a.q_rope = q_rope, a.k_rope = k_rope, a.k_rope_scale = k_rope_scale, a.q_scale = q_scale,
  a.sink = sink;
  infer(a, has_lse, out, lse);
}

#undef COMMON
#undef QUANTISED
#undef ATTRIBUTES
#undef SET_COMMON
#undef SET_QUANTISED

// ---- one query in each batch: the lengths are those of the keys ----

void incre_attention_v4(Tensor q, Tensors k, Tensors v, Tensor pse, Tensor mask, Ints kv_lengths,
                        Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2, Tensor offset2,
                        Tensor kv_scale, Tensor kv_offset, Tensor table, Tensor kv_padding,
                        int64_t heads, double scale, Text layout, int64_t kv_heads, int64_t block,
                        int64_t, Out out) {
  Inference a;
  a.q = q, a.k = k, a.v = v, a.pse = pse, a.mask = mask, a.kv_lengths = kv_lengths, a.deq1 = deq1,
  a.quant1 = quant1, a.deq2 = deq2, a.quant2 = quant2, a.offset2 = offset2, a.kv_scale = kv_scale,
  a.kv_offset = kv_offset, a.table = table, a.kv_padding = kv_padding, a.heads = heads,
  a.scale = scale, a.layout = layout, a.kv_heads = kv_heads, a.block = block;
  require(layout == "BSH" || layout == "BSND" || layout == "BNSD",
          "inputLayout must be BSH, BSND or BNSD, but got ", layout);
  const int64_t rows = batches_of(q, "query", layout, heads).size(2);
  require_shape(rows == 1, "query must have one row in each batch, but has shape ", q.sizes());
  infer(a, false, out, Out({}, "softmaxLse"));
}

void incre_attention_v3(Tensor q, Tensors k, Tensors v, Tensor pse, Tensor mask, Ints kv_lengths,
                        Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2, Tensor offset2,
                        Tensor kv_scale, Tensor kv_offset, Tensor table, int64_t heads,
                        double scale, Text layout, int64_t kv_heads, int64_t block, int64_t precise,
                        Out out) {
  incre_attention_v4(q, k, v, pse, mask, kv_lengths, deq1, quant1, deq2, quant2, offset2, kv_scale,
                     kv_offset, table, {}, heads, scale, layout, kv_heads, block, precise, out);
}

void incre_attention_v2(Tensor q, Tensors k, Tensors v, Tensor pse, Tensor mask, Ints kv_lengths,
                        Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2, Tensor offset2,
                        int64_t heads, double scale, Text layout, int64_t kv_heads, Out out) {
  incre_attention_v4(q, k, v, pse, mask, kv_lengths, deq1, quant1, deq2, quant2, offset2, {}, {},
                     {}, {}, heads, scale, layout, kv_heads, 0, 0, out);
}

void incre_attention(Tensor q, Tensors k, Tensors v, Tensor pse, Tensor mask, Ints kv_lengths,
                     int64_t heads, double scale, Text layout, int64_t kv_heads, Out out) {
  incre_attention_v2(q, k, v, pse, mask, kv_lengths, {}, {}, {}, {}, {}, heads, scale, layout,
                     kv_heads, out);
}

// ---- many queries: one tensor of keys and one of values ----

void prompt_attention_v3(Tensor q, Tensor k, Tensor v, Tensor pse, Tensor mask, Ints lengths,
                         Ints kv_lengths, Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2,
                         Tensor offset2, int64_t heads, double scale, int64_t before, int64_t after,
                         Text layout, int64_t kv_heads, int64_t sparse, int64_t, Out out) {
  Inference a;
  a.q = q, a.k = {k}, a.v = {v}, a.pse = pse, a.mask = mask, a.lengths = lengths,
  a.kv_lengths = kv_lengths, a.deq1 = deq1, a.quant1 = quant1, a.deq2 = deq2, a.quant2 = quant2,
  a.offset2 = offset2, a.heads = heads, a.scale = scale, a.before = before, a.after = after,
  a.layout = layout, a.kv_heads = kv_heads, a.sparse = sparse;
  infer(a, false, out, Out({}, "softmaxLse"));
}

void prompt_attention_v2(Tensor q, Tensor k, Tensor v, Tensor pse, Tensor mask, Ints lengths,
                         Ints kv_lengths, Tensor deq1, Tensor quant1, Tensor deq2, Tensor quant2,
                         Tensor offset2, int64_t heads, double scale, int64_t before, int64_t after,
                         Text layout, int64_t kv_heads, int64_t sparse, Out out) {
  prompt_attention_v3(q, k, v, pse, mask, lengths, kv_lengths, deq1, quant1, deq2, quant2, offset2,
                      heads, scale, before, after, layout, kv_heads, sparse, 0, out);
}

void prompt_attention(Tensor q, Tensor k, Tensor v, Tensor pse, Tensor mask, Ints lengths,
                      int64_t heads, double scale, int64_t before, int64_t after, Text layout,
                      int64_t kv_heads, Out out) {
  prompt_attention_v2(q, k, v, pse, mask, lengths, {}, {}, {}, {}, {}, {}, heads, scale, before,
                      after, layout, kv_heads, 0, out);
}

}  // namespace

const Composite inference_attention_composites[] = {
    ENTRY(infer_attention),
    ENTRY(infer_attention_v2),
    ENTRY(infer_attention_v3),
    ENTRY(infer_attention_v4),
    ENTRY(infer_attention_v5),
    ENTRY(incre_attention),
    ENTRY(incre_attention_v2),
    ENTRY(incre_attention_v3),
    ENTRY(incre_attention_v4),
    ENTRY(prompt_attention),
    ENTRY(prompt_attention_v2),
    ENTRY(prompt_attention_v3),
    {},
};

}  // namespace openaclnn::aten
