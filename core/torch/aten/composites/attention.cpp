// SPDX-License-Identifier: Apache-2.0
// The parameters of FlashAttentionScore, with sequences of several lengths too (TND), and of its
// gradient, in all versions. The output softmaxOut and the gradient of pse are not written, as on
// the device.
#include "core/torch/aten/composites/attention_training.h"

namespace openaclnn::aten {
namespace {

// Versions without the parameter add the bias before they scale.
constexpr int64_t kBeforeScaling = 1;

bool is_rows_first(const Text& layout) {
  require(layout.empty() || layout == "same_as_input" || layout == "TND",
          "the layout of softmaxMax and softmaxSum must be empty or same_as_input, but is ",
          layout);
  return !layout.empty();
}

#define NONE_ROPE Tensor(), Tensor()
#define MASKS Tensor pse, Tensor drop, Tensor, Tensor mask
#define TAIL                                                                                     \
  double scale, double keep, int64_t before, int64_t after, int64_t heads, Text layout, int64_t, \
      int64_t sparse
#define STATISTICS Tensor largest, Tensor total, Tensor, Tensor out

// ---- forward ----

void flash_attention(Tensor q, Tensor k, Tensor v, MASKS, Ints prefix, TAIL, Out largest, Out total,
                     Out softmax, Out out) {
  attend_training(
      {q,  k,     v,    NONE_ROPE, pse,   drop,  mask,   Tensor(), prefix,        {}, {}, {},
       {}, scale, keep, before,    after, heads, layout, sparse,   kBeforeScaling},
      largest, total, softmax, out);
}

void flash_attention_v2(Tensor q, Tensor k, Tensor v, MASKS, Ints prefix, Ints q_start,
                        Ints kv_start, TAIL, int64_t pse_type, Out largest, Out total, Out softmax,
                        Out out) {
  attend_training(
      {q,       k,        v,     NONE_ROPE, pse,    drop,  mask,  Tensor(), prefix, {},      {},
       q_start, kv_start, scale, keep,      before, after, heads, layout,   sparse, pse_type},
      largest, total, softmax, out);
}

void flash_attention_v3(Tensor q, Tensor k, Tensor v, MASKS, Tensor sink, Ints prefix, Ints q_start,
                        Ints kv_start, TAIL, int64_t pse_type, Out largest, Out total, Out softmax,
                        Out out) {
  attend_training(
      {q,       k,        v,     NONE_ROPE, pse,    drop,  mask,  sink,   prefix, {},      {},
       q_start, kv_start, scale, keep,      before, after, heads, layout, sparse, pse_type},
      largest, total, softmax, out);
}

void var_len_attention_v5(Tensor q, Tensor q_rope, Tensor k, Tensor k_rope, Tensor v, MASKS,
                          Tensor sink, Ints prefix, Ints q_lengths, Ints kv_lengths, Ints q_start,
                          Ints kv_start, TAIL, int64_t pse_type, Text statistics, Out largest,
                          Out total, Out softmax, Out out) {
  attend_training(
      {q,      k,      v,         q_rope,     k_rope,  pse,      drop,  mask,
       sink,   prefix, q_lengths, kv_lengths, q_start, kv_start, scale, keep,
       before, after,  heads,     layout,     sparse,  pse_type, true,  is_rows_first(statistics)},
      largest, total, softmax, out);
}

void var_len_attention_v4(Tensor q, Tensor k, Tensor v, MASKS, Ints prefix, Ints q_lengths,
                          Ints kv_lengths, TAIL, Text statistics, Out largest, Out total,
                          Out softmax, Out out) {
  var_len_attention_v5(q, {}, k, {}, v, pse, drop, {}, mask, {}, prefix, q_lengths, kv_lengths, {},
                       {}, scale, keep, before, after, heads, layout, 0, sparse, kBeforeScaling,
                       statistics, largest, total, softmax, out);
}

void var_len_attention_v3(Tensor q, Tensor q_rope, Tensor k, Tensor k_rope, Tensor v, MASKS,
                          Ints prefix, Ints q_lengths, Ints kv_lengths, Ints q_start, Ints kv_start,
                          TAIL, int64_t pse_type, Out largest, Out total, Out softmax, Out out) {
  var_len_attention_v5(q, q_rope, k, k_rope, v, pse, drop, {}, mask, {}, prefix, q_lengths,
                       kv_lengths, q_start, kv_start, scale, keep, before, after, heads, layout, 0,
                       sparse, pse_type, "", largest, total, softmax, out);
}

void var_len_attention_v2(Tensor q, Tensor k, Tensor v, MASKS, Ints prefix, Ints q_lengths,
                          Ints kv_lengths, Ints q_start, Ints kv_start, TAIL, int64_t pse_type,
                          Out largest, Out total, Out softmax, Out out) {
  var_len_attention_v5(q, {}, k, {}, v, pse, drop, {}, mask, {}, prefix, q_lengths, kv_lengths,
                       q_start, kv_start, scale, keep, before, after, heads, layout, 0, sparse,
                       pse_type, "", largest, total, softmax, out);
}

void var_len_attention(Tensor q, Tensor k, Tensor v, MASKS, Ints prefix, Ints q_lengths,
                       Ints kv_lengths, TAIL, Out largest, Out total, Out softmax, Out out) {
  var_len_attention_v4(q, k, v, pse, drop, {}, mask, prefix, q_lengths, kv_lengths, scale, keep,
                       before, after, heads, layout, 0, sparse, "", largest, total, softmax, out);
}

// ---- gradients ----

Out unwritten() { return Out({}, ""); }

void flash_attention_grad(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS, Ints prefix,
                          TAIL, Out dq, Out dk, Out dv, Out dpse) {
  differentiate_training(
      {q,  k,     v,    NONE_ROPE, pse,   drop,  mask,   Tensor(), prefix,        {}, {}, {},
       {}, scale, keep, before,    after, heads, layout, sparse,   kBeforeScaling},
      dy, {largest, total, out}, {dq, dk, dv, unwritten(), unwritten(), unwritten(), dpse});
}

void flash_attention_grad_v2(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS,
                             Ints prefix, Ints q_start, Ints kv_start, TAIL, int64_t pse_type,
                             Out dq, Out dk, Out dv, Out dpse) {
  differentiate_training(
      {q,       k,        v,     NONE_ROPE, pse,    drop,  mask,  Tensor(), prefix, {},      {},
       q_start, kv_start, scale, keep,      before, after, heads, layout,   sparse, pse_type},
      dy, {largest, total, out}, {dq, dk, dv, unwritten(), unwritten(), unwritten(), dpse});
}

void flash_attention_grad_v3(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS,
                             Tensor sink, Ints prefix, Ints q_start, Ints kv_start, TAIL,
                             int64_t pse_type, Out dq, Out dk, Out dv, Out dpse, Out dsink) {
  differentiate_training(
      {q,       k,        v,     NONE_ROPE, pse,    drop,  mask,  sink,   prefix, {},      {},
       q_start, kv_start, scale, keep,      before, after, heads, layout, sparse, pse_type},
      dy, {largest, total, out}, {dq, dk, dv, unwritten(), unwritten(), dsink, dpse});
}

void var_len_attention_grad_v5(Tensor q, Tensor q_rope, Tensor k, Tensor k_rope, Tensor v,
                               Tensor dy, MASKS, STATISTICS, Tensor sink, Ints prefix,
                               Ints q_lengths, Ints kv_lengths, Ints q_start, Ints kv_start, TAIL,
                               int64_t pse_type, Text statistics, Out dq, Out dq_rope, Out dk,
                               Out dk_rope, Out dv, Out dpse, Out dsink) {
  differentiate_training(
      {q,      k,      v,         q_rope,     k_rope,  pse,      drop,  mask,
       sink,   prefix, q_lengths, kv_lengths, q_start, kv_start, scale, keep,
       before, after,  heads,     layout,     sparse,  pse_type, true,  is_rows_first(statistics)},
      dy, {largest, total, out}, {dq, dk, dv, dq_rope, dk_rope, dsink, dpse});
}

void var_len_attention_grad_v4(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS,
                               Ints prefix, Ints q_lengths, Ints kv_lengths, TAIL, Out dq, Out dk,
                               Out dv, Out dpse, Text statistics) {
  var_len_attention_grad_v5(q, {}, k, {}, v, dy, pse, drop, {}, mask, largest, total, {}, out, {},
                            prefix, q_lengths, kv_lengths, {}, {}, scale, keep, before, after,
                            heads, layout, 0, sparse, kBeforeScaling, statistics, dq, unwritten(),
                            dk, unwritten(), dv, dpse, unwritten());
}

void var_len_attention_grad_v3(Tensor q, Tensor q_rope, Tensor k, Tensor k_rope, Tensor v,
                               Tensor dy, MASKS, STATISTICS, Ints prefix, Ints q_lengths,
                               Ints kv_lengths, Ints q_start, Ints kv_start, TAIL, int64_t pse_type,
                               Out dq, Out dq_rope, Out dk, Out dk_rope, Out dv, Out dpse) {
  var_len_attention_grad_v5(q, q_rope, k, k_rope, v, dy, pse, drop, {}, mask, largest, total, {},
                            out, {}, prefix, q_lengths, kv_lengths, q_start, kv_start, scale, keep,
                            before, after, heads, layout, 0, sparse, pse_type, "", dq, dq_rope, dk,
                            dk_rope, dv, dpse, unwritten());
}

void var_len_attention_grad_v2(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS,
                               Ints prefix, Ints q_lengths, Ints kv_lengths, Ints q_start,
                               Ints kv_start, TAIL, int64_t pse_type, Out dq, Out dk, Out dv,
                               Out dpse) {
  var_len_attention_grad_v3(q, {}, k, {}, v, dy, pse, drop, {}, mask, largest, total, {}, out,
                            prefix, q_lengths, kv_lengths, q_start, kv_start, scale, keep, before,
                            after, heads, layout, 0, sparse, pse_type, dq, unwritten(), dk,
                            unwritten(), dv, dpse);
}

void var_len_attention_grad(Tensor q, Tensor k, Tensor v, Tensor dy, MASKS, STATISTICS, Ints prefix,
                            Ints q_lengths, Ints kv_lengths, TAIL, Out dq, Out dk, Out dv,
                            Out dpse) {
  var_len_attention_grad_v4(q, k, v, dy, pse, drop, {}, mask, largest, total, {}, out, prefix,
                            q_lengths, kv_lengths, scale, keep, before, after, heads, layout, 0,
                            sparse, dq, dk, dv, dpse, "");
}

// ATen's kernel trusts one dtype, and divides by the number of elements.
void transform_bias_rescale_qkv(Tensor qkv, Tensor bias, int64_t heads, Out q, Out k, Out v) {
  require(qkv.scalar_type() == bias.scalar_type(), "qkvBias must have the dtype of qkv, ",
          qkv.scalar_type(), ", but is ", bias.scalar_type());
  require(qkv.numel() > 0, "qkv must have elements, but has shape ", qkv.sizes());
  require(qkv.size(2) % (3 * heads) == 0, "the last dim of qkv must be a multiple of 3 numHeads, ",
          3 * heads, ", but is ", qkv.size(2));
  const auto [query, key, value] = at::_transform_bias_rescale_qkv(qkv, bias, heads);
  q = query;
  k = key;
  v = value;
}

#undef NONE_ROPE
#undef MASKS
#undef TAIL
#undef STATISTICS

}  // namespace

const Composite attention_composites[] = {
    ENTRY(transform_bias_rescale_qkv), ENTRY(flash_attention),
    ENTRY(flash_attention_v2),         ENTRY(flash_attention_v3),
    ENTRY(var_len_attention),          ENTRY(var_len_attention_v2),
    ENTRY(var_len_attention_v3),       ENTRY(var_len_attention_v4),
    ENTRY(var_len_attention_v5),       ENTRY(flash_attention_grad),
    ENTRY(flash_attention_grad_v2),    ENTRY(flash_attention_grad_v3),
    ENTRY(var_len_attention_grad),     ENTRY(var_len_attention_grad_v2),
    ENTRY(var_len_attention_grad_v3),  ENTRY(var_len_attention_grad_v4),
    ENTRY(var_len_attention_grad_v5),  {},
};

}  // namespace openaclnn::aten
