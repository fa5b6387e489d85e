// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/composites/attention_inference.h"

namespace openaclnn::aten {
namespace {

// A scale of one element; 64-bit integers hold the bits of a float in their lower half.
double scale_in(const Tensor& x, const char* name) {
  require(x.numel() == 1, name, " must have one element, but has ", x.numel());
  need_data(x);
  if (x.scalar_type() != at::kUInt64 && x.scalar_type() != at::kLong)
    return x.to(at::kDouble).item<double>();
  const auto bits = static_cast<uint32_t>(*static_cast<const uint64_t*>(x.const_data_ptr()));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// One scale for each query and head: [T, N, 1] or [B, S, N, 1], as [N, S, 1].
Tensor scales_of_queries(const Inference& a, const Layouts& layout, size_t batch, int64_t first,
                         const Tensor& q) {
  const int64_t heads = q.size(0), rows = q.size(1);
  const Tensor flat = a.q_scale.to(at::kFloat).flatten();
  const int64_t begin = layout.packed ? first : static_cast<int64_t>(batch) * rows;
  require_shape((begin + rows) * heads <= flat.numel(),
                "dequantScaleQuery must have a number for each query and head, but has shape ",
                a.q_scale.sizes());
  return flat.narrow(0, begin * heads, rows * heads).view({rows, heads}).t().unsqueeze(-1);
}

Tensor quantised(const Inference& a, const Tensor& x) {
  const auto along = [&](const Tensor& given, const char* name) {
    const Tensor wide = given.to(at::kFloat);
    if (wide.numel() == 1) return wide.reshape({});
    require_shape(wide.numel() == x.size(0) * x.size(2), name, " must have 1 or ",
                  x.size(0) * x.size(2), " elements, but has shape ", given.sizes());
    return wide.reshape({x.size(0), 1, x.size(2)});
  };
  Tensor y = x * along(a.quant2, "quantScale2");
  if (a.offset2.defined()) y = y + along(a.offset2, "quantOffset2");
  return at::clamp(at::round(y), -128, 127);
}

Ints shape_in(const Text& layout, int64_t batches, int64_t heads, int64_t rows, int64_t size) {
  if (layout == "BSH") return {batches, rows, heads * size};
  if (layout == "BSND") return {batches, rows, heads, size};
  if (layout == "BNSD") return {batches, heads, rows, size};
  if (layout == "NBSD") return {heads, batches, rows, size};
  if (layout == "TND") return {rows, heads, size};
  return {heads, rows, size};  // NTD, NSD
}

}  // namespace

void infer(const Inference& given, bool has_lse, const Out& out, const Out& lse) {
  Inference a = given;
  take_bytes(&a.k, "key");
  take_bytes(&a.v, "value");
  const Layouts layout = layouts_of(a);
  const Queries queries = queries_of(a, layout);
  const size_t batches = queries.all.size();
  const auto count = static_cast<int64_t>(batches);
  check(a, layout, batches);
  if (a.q.numel() == 0 || batches == 0) {
    require_shape(out.tensor().numel() == 0, "attentionOut must have no elements where query has ",
                  "none, but has shape ", out.tensor().sizes());
    return;
  }
  require_shape(queries.all[0].size(0) == a.heads, "query must have numHeads heads, ", a.heads,
                ", but has shape ", a.q.sizes());
  const int64_t kv = a.kv_heads == 0 ? a.heads : a.kv_heads;
  const Cache cache{a, layout, kv, count, rows_of_keys(a, layout, batches)};
  const Tensor first_values = cache.values(0);
  const int64_t size = first_values.size(2);
  const bool single = is_single(a, layout, queries.places);
  const bool is_int8 = a.q.scalar_type() == at::kChar, is_whole = is_int8 && a.deq1.defined();
  require(!is_whole || (a.quant1.defined() && a.deq2.defined()),
          "quantScale1 and deqScale2 must be given with deqScale1");
  require(!is_int8 || is_whole || a.q_scale.defined(),
          "deqScale1 or dequantScaleQuery must be given for a query of INT8");
  require(!a.quant2.defined() == (out.tensor().scalar_type() != at::kChar),
          "attentionOut must be INT8 where quantScale2 is given and only there, but is ",
          out.tensor().scalar_type());
  const Tensor made = at::zeros(shape_in(layout.out, count, a.heads, queries.places, size),
                                a.q.options().dtype(out.tensor().scalar_type()));
  check_result(out.tensor(), made, "attentionOut");
  const Tensor logs = at::full(
      layout.packed ? Ints{queries.places, a.heads, 1} : Ints{count, a.heads, queries.places, 1},
      INFINITY, a.q.options().dtype(at::kFloat));
  if (has_lse)
    check_result(lse.tensor(), logs, "softmaxLse");
  else
    leave(lse.tensor());

  const bool packed_out = layout.out == "TND" || layout.out == "NTD";
  const Tensor outs = packed_out ? packed_heads(made, "attentionOut", layout.out)
                                 : batches_of(made, "attentionOut", layout.out, a.heads);
  Tensors q_ropes;
  if (a.q_rope.defined()) {
    Inference of_rope = a;
    of_rope.q = a.q_rope;
    q_ropes = queries_of(of_rope, layout).all;
    require(q_ropes.size() == batches, "queryRope must have the ", batches, " batches of query");
  }
  int64_t first = 0, tree = 0;  // of packed rows, and of the pairs of a flat tree mask
  for (size_t b = 0; b < batches; ++b) {
    const Rows rows = queries.rows[b];
    const int64_t row = first;
    first += queries.all[b].size(1);
    if (a.q.is_meta() && b > 0) break;  // phase 1: the shapes of one stand for all
    Sequence one;
    one.q = queries.all[b];
    if (is_int8) one.q = one.q.to(at::kFloat);
    if (a.q_scale.defined() && is_int8 && !is_whole)
      one.q = one.q * scales_of_queries(a, layout, b, row, one.q);
    one.k = cache.keys(b);
    one.v = b == 0 ? first_values : cache.values(b);
    if (a.q_rope.defined()) {
      const Tensor rope = cache.ropes(b);
      require_shape(q_ropes[b].size(0) == one.q.size(0) && q_ropes[b].size(1) == one.q.size(1) &&
                        q_ropes[b].size(2) == rope.size(2) && rope.size(1) == one.k.size(1),
                    "queryRope and keyRope must have the rows and heads of query and key, but ",
                    "have shapes ", a.q_rope.sizes(), " and ", a.k_rope.sizes());
      one.q = at::cat({one.q.to(at::kFloat), q_ropes[b].to(at::kFloat)}, -1);
      one.k = at::cat({one.k.to(at::kFloat), rope.to(at::kFloat)}, -1);
    }
    require_shape(one.q.size(2) == one.k.size(2) && one.v.size(1) == one.k.size(1),
                  "key must have the head size of query, ", one.q.size(2), ", and the rows of ",
                  "value, ", one.v.size(1), ", but has ", one.k.size(2), " and ", one.k.size(1));
    one.q = one.q.narrow(1, rows.first, rows.count);
    const Rows keys{a.kv_padding.defined() ? cache.rows[b].first : 0, one.k.size(1)};
    const BatchEntry at{b, count, queries.places, rows, keys};
    one.scale = a.scale;
    add_mask(a, at, single, tree, &one);
    add_bias(a, at, &one);
    one.sink = a.sink;
    tree += rows.count * rows.count;
    if (a.q.is_meta() || rows.count == 0) continue;
    if (is_whole) {
      one.scale *= scale_in(a.deq1, "deqScale1");
      one.quantum = scale_in(a.quant1, "quantScale1");
    }
    const Attended found = attend(one);
    Tensor y = found.out;
    if (is_whole) y = (y * scale_in(a.deq2, "deqScale2")).to(at::kFloat);
    if (a.quant2.defined()) y = quantised(a, y);
    (packed_out ? outs.narrow(1, row, rows.count)
                : outs.select(0, static_cast<int64_t>(b)).narrow(1, rows.first, rows.count))
        .copy_(y);
    if (!has_lse) continue;
    const Tensor log = at::where(found.total > 0, found.largest + at::log(found.total), INFINITY);
    if (layout.packed)
      logs.squeeze(-1).narrow(0, row, rows.count).copy_(log.t());
    else
      logs.select(0, static_cast<int64_t>(b))
          .squeeze(-1)
          .narrow(1, rows.first, rows.count)
          .copy_(log);
  }
  out = made;
  if (has_lse) lse = logs;
}

}  // namespace openaclnn::aten
