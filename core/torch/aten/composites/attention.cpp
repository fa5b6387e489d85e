// SPDX-License-Identifier: Apache-2.0
// FlashAttentionScore and its gradient, in float: softmax(scale q kᵀ + bias, masked) v, and with
// p the probabilities, dv = pᵀ dy, ds = p (dp - sum(dp p)), dq = scale ds k, dk = scale dsᵀ q.
#include "core/torch/aten/composites/bits.h"
#include "core/torch/aten/composites/checks.h"
#include "core/torch/aten/composites/scores.h"

namespace openaclnn::aten {
namespace {

// Brings any layout to batch, heads, sequence, head size. The layouts without a dim of heads need
// their number, or the head size where heads is 0.
Tensor to_heads(const Tensor& x, const char* name, const Text& layout, int64_t heads,
                int64_t head_size) {
  const bool joined = layout == "SBH" || layout == "BSH";
  require(joined || layout == "BNSD" || layout == "BSND",
          "inputLayout must be BNSD, BSND, BSH or SBH, but got ", layout);
  check_rank(x, name, joined ? 3 : 4, joined ? 3 : 4);
  if (layout == "BNSD") return x.to(at::kFloat);
  if (layout == "BSND") return x.transpose(1, 2).to(at::kFloat);
  const Tensor rows = layout == "SBH" ? x.transpose(0, 1) : x;
  const int64_t width = rows.size(2), divisor = heads > 0 ? heads : head_size;
  require(divisor > 0 && width % divisor == 0, name,
          " must have a last dim that is divisible by the ",
          heads > 0 ? "number of heads, " : "head size, ", divisor, ", but has shape ", x.sizes());
  const int64_t other = width / divisor;
  return rows
      .reshape(
          {rows.size(0), rows.size(1), heads > 0 ? divisor : other, heads > 0 ? other : divisor})
      .transpose(1, 2)
      .to(at::kFloat);
}

Tensor from_heads(const Tensor& x, const Text& layout) {
  if (layout == "BNSD") return x;
  const Tensor rows = x.transpose(1, 2);
  if (layout == "BSND") return rows;
  const Tensor joined = rows.flatten(2);
  return layout == "SBH" ? joined.transpose(0, 1) : joined;
}

// Heads of k and v serve several heads of q.
Tensor repeated(const Tensor& x, int64_t heads) {
  require(x.size(1) > 0 && heads % x.size(1) == 0,
          "the heads of query must be a multiple of those of key and value, but are ", heads,
          " and ", x.size(1));
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

Tensor summed(const Tensor& gradient, const Tensor& like) {
  if (gradient.size(1) == like.size(1)) return gradient;
  return gradient.unflatten(1, {like.size(1), gradient.size(1) / like.size(1)}).sum(2);
}

// isinf has no form without data.
Tensor finite_or_0(const Tensor& x) {
  return at::where((x == INFINITY).logical_or(x == -INFINITY), 0, x);
}

struct Attention {
  Tensor q, k, v, probabilities, largest, total, kept;  // kept: undefined without dropout
};

Attention attend(const Tensor& query, const Tensor& key, const Tensor& value, const Text& layout,
                 int64_t heads, const Bias& bias, const Tensor& drop, const Masking& masking,
                 double scale, double keep) {
  require(heads > 0, "headNum must be at least 1, but got ", heads);
  Attention a;
  a.q = to_heads(query, "query", layout, heads, 0);
  a.k = to_heads(key, "key", layout, 0, a.q.size(3));
  require(a.k.size(1) > 0, "key must have heads, but has shape ", key.sizes());
  a.v = to_heads(value, "value", layout, a.k.size(1), 0);
  Tensor s = scaled(at::matmul(a.q, repeated(a.k, a.q.size(1)).transpose(-1, -2)), scale, bias);
  const Tensor out = left_out(masking, s);
  if (out.defined()) s = s.masked_fill(out, -INFINITY);
  a.largest = std::get<0>(s.max(-1, true));
  a.largest = finite_or_0(a.largest);
  const Tensor x = at::exp(s - a.largest);
  a.total = x.sum(-1, true);
  a.probabilities = at::where(a.total > 0, x / a.total, 0);
  if (drop.defined() && drop.numel() > 0 && keep < 1) {
    require(keep > 0, "keepProb must be above 0, but got ", keep);
    a.kept = unpack_bits(drop, s.sizes()) * static_cast<float>(1 / keep);
  }
  return a;
}

void flash_attention_v2(Tensor query, Tensor key, Tensor value, Tensor pse, Tensor drop, Tensor,
                        Tensor mask, Ints prefix, Ints q_start, Ints kv_start, double scale,
                        double keep, int64_t before, int64_t after, int64_t heads, Text layout,
                        int64_t, int64_t sparse, int64_t pse_type, Out largest, Out total, Out,
                        Out out) {
  const Attention a = attend(query, key, value, layout, heads, {pse, pse_type, q_start, kv_start},
                             drop, {mask, sparse, before, after, prefix}, scale, keep);
  const Tensor p = a.kept.defined() ? a.probabilities * a.kept : a.probabilities;
  largest = a.largest.expand({-1, -1, -1, 8});
  total = a.total.expand({-1, -1, -1, 8});
  out = from_heads(at::matmul(p, repeated(a.v, a.q.size(1))), layout);
}

void flash_attention_grad_v2(Tensor query, Tensor key, Tensor value, Tensor gradient, Tensor pse,
                             Tensor drop, Tensor, Tensor mask, Tensor, Tensor, Tensor, Tensor,
                             Ints prefix, Ints q_start, Ints kv_start, double scale, double keep,
                             int64_t before, int64_t after, int64_t heads, Text layout, int64_t,
                             int64_t sparse, int64_t pse_type, Out dquery, Out dkey, Out dvalue,
                             Out) {
  const Attention a = attend(query, key, value, layout, heads, {pse, pse_type, q_start, kv_start},
                             drop, {mask, sparse, before, after, prefix}, scale, keep);
  const Tensor dy = to_heads(gradient, "dy", layout, heads, 0);
  const Tensor k = repeated(a.k, a.q.size(1)), v = repeated(a.v, a.q.size(1));
  const Tensor p = a.kept.defined() ? a.probabilities * a.kept : a.probabilities;
  Tensor dp = at::matmul(dy, v.transpose(-1, -2));
  if (a.kept.defined()) dp = dp * a.kept;
  const Tensor ds = a.probabilities * (dp - (dp * a.probabilities).sum(-1, true));
  dquery = from_heads(at::matmul(ds, k) * scale, layout);
  dkey = from_heads(summed(at::matmul(ds.transpose(-1, -2), a.q) * scale, a.k), layout);
  dvalue = from_heads(summed(at::matmul(p.transpose(-1, -2), dy), a.v), layout);
}

// ---- attention for inference ----

// Returns the positions of each batch from its length on; undefined without lengths.
Tensor behind(const Ints& lengths, const Tensor& scores, int64_t places) {
  if (lengths.empty()) return {};
  const int64_t batches = scores.size(0);
  if (lengths.size() != 1 && static_cast<int64_t>(lengths.size()) != batches)
    throw Refusal("actual lengths must be one, or one for each of the " + std::to_string(batches) +
                  " batches, but are " + std::to_string(lengths.size()));
  const auto options = scores.options().dtype(at::kLong);
  return at::arange(places, options).unsqueeze(0) >= at::tensor(lengths, options).unsqueeze(1);
}

Tensor joined(const Tensors& list, const char* name) {
  require(!list.empty(), name, " must have a tensor, but has none");
  for (const Tensor& tensor : list) check_given(tensor, name);
  return list.size() == 1 ? list[0] : at::cat(list);
}

// Computes softmax(scale q kᵀ + pse, masked) v; a completely masked row is zero.
void fused_infer_attention(Tensor query, Tensors key, Tensors value, Tensor pse, Tensor mask,
                           Ints lengths, Ints kv_lengths, Tensor deq1, Tensor quant1, Tensor deq2,
                           Tensor quant2, Tensor offset2, Tensor scale_of_kv, Tensor offset_of_kv,
                           Tensor table, Tensor padding, Tensor kv_padding, Tensor key_scale,
                           Tensor key_offset, Tensor value_scale, Tensor value_offset,
                           Tensor key_prefix, Tensor value_prefix, Ints, int64_t heads,
                           double scale, int64_t before, int64_t after, Text layout,
                           int64_t kv_heads, int64_t sparse, int64_t, int64_t, int64_t, bool lse,
                           int64_t, int64_t, Out out, Out logarithm) {
  const std::pair<const char*, const Tensor*> refused[] = {
      {"deqScale1", &deq1},
      {"quantScale1", &quant1},
      {"deqScale2", &deq2},
      {"quantScale2", &quant2},
      {"quantOffset2", &offset2},
      {"antiquantScale", &scale_of_kv},
      {"antiquantOffset", &offset_of_kv},
      {"blockTable", &table},
      {"queryPaddingSize", &padding},
      {"kvPaddingSize", &kv_padding},
      {"keyAntiquantScale", &key_scale},
      {"keyAntiquantOffset", &key_offset},
      {"valueAntiquantScale", &value_scale},
      {"valueAntiquantOffset", &value_offset},
      {"keySharedPrefix", &key_prefix},
      {"valueSharedPrefix", &value_prefix},
  };
  for (const auto& [name, tensor] : refused) {
    if (tensor->defined())
      throw Refusal(
          std::string(name) + " must be NULL: quantised and paged attention is not supported here",
          Reason::not_supported);
  }
  const int64_t n = kv_heads == 0 ? heads : kv_heads;
  require(heads > 0 && n > 0,
          "numHeads must be at least 1 and numKeyValueHeads at least 0, but got ", heads, " and ",
          kv_heads);
  const Tensor q = to_heads(query, "query", layout, heads, 0);
  const Tensor k = to_heads(joined(key, "key"), "key", layout, n, 0);
  const Tensor v = to_heads(joined(value, "value"), "value", layout, n, 0);
  Tensor s = at::matmul(q, repeated(k, q.size(1)).transpose(-1, -2)) * scale;
  if (pse.defined()) s = s + pse;
  const int64_t rows = s.size(2), columns = s.size(3);
  require(sparse >= 0 && sparse <= 4, "sparseMode must be in [0, 4], but got ", sparse);
  require(sparse < 2 || (mask.defined() && mask.numel() > 0),
          "attenMask must be given in sparseMode 2, 3 and 4");
  const Tensor hidden = left_out({mask, sparse, before, after, {}}, s);
  if (hidden.defined()) s = s.masked_fill(hidden, -INFINITY);
  const Tensor short_k = behind(kv_lengths, s, columns);
  if (short_k.defined()) s = s.masked_fill(short_k.unsqueeze(1).unsqueeze(1), -INFINITY);
  const Tensor total = at::logsumexp(s, -1, true);
  const Tensor p = at::exp(s - finite_or_0(total));
  Tensor o = at::matmul(p, repeated(v, q.size(1)));
  const Tensor short_q = behind(lengths, s, rows);
  if (short_q.defined()) o = o.masked_fill(short_q.unsqueeze(1).unsqueeze(-1), 0);
  out = from_heads(o, layout);
  if (lse) logarithm = total;
}

// The first version adds the bias before it scales.
constexpr int64_t kBeforeScaling = 1;

void flash_attention(Tensor query, Tensor key, Tensor value, Tensor pse, Tensor drop,
                     Tensor padding, Tensor mask, Ints prefix, double scale, double keep,
                     int64_t before, int64_t after, int64_t heads, Text layout, int64_t precise,
                     int64_t sparse, Out largest, Out total, Out softmax, Out out) {
  flash_attention_v2(query, key, value, pse, drop, padding, mask, prefix, {}, {}, scale, keep,
                     before, after, heads, layout, precise, sparse, kBeforeScaling, largest, total,
                     softmax, out);
}

void flash_attention_grad(Tensor query, Tensor key, Tensor value, Tensor gradient, Tensor pse,
                          Tensor drop, Tensor padding, Tensor mask, Tensor largest, Tensor total,
                          Tensor softmax, Tensor out, Ints prefix, double scale, double keep,
                          int64_t before, int64_t after, int64_t heads, Text layout,
                          int64_t precise, int64_t sparse, Out dquery, Out dkey, Out dvalue,
                          Out dpse) {
  flash_attention_grad_v2(query, key, value, gradient, pse, drop, padding, mask, largest, total,
                          softmax, out, prefix, {}, {}, scale, keep, before, after, heads, layout,
                          precise, sparse, kBeforeScaling, dquery, dkey, dvalue, dpse);
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

}  // namespace

const Composite attention_composites[] = {
    ENTRY(transform_bias_rescale_qkv),
    ENTRY(fused_infer_attention),
    ENTRY(flash_attention),
    ENTRY(flash_attention_grad),
    ENTRY(flash_attention_v2),
    ENTRY(flash_attention_grad_v2),
    {},
};

}  // namespace openaclnn::aten
