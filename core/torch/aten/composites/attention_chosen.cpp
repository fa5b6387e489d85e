// SPDX-License-Identifier: Apache-2.0
// Attention to chosen keys of one head: the indexer chooses them for each row of the query, sparse
// attention reads them. Keys may be in pages.
#include "core/torch/aten/composites/attention_chosen.h"

namespace openaclnn::aten {
namespace {

// ---- the indexer: score[i, j] = sum over heads of w[i, n] relu(q[i, n] k[j]) ----

void choose_keys(const Chosen& c, const Tensor& weights, int64_t count, bool with_values,
                 const Out& indices, const Out* values) {
  c.check();
  require(count >= 1, "sparseCount must be at least 1, but got ", count);
  Ints sizes = c.query.sizes().vec();
  sizes.pop_back();
  check_shape(weights, "weights", sizes);
  sizes.back() = 1;
  sizes.push_back(count);
  check_shape(indices.tensor(), "sparseIndices", sizes);
  if (with_values) check_shape(values->tensor(), "sparseValues", sizes);
  need_data(c.query);
  const Tensor q = c.query.flatten(0, -3).to(at::kFloat), w = weights.flatten(0, -2).to(at::kFloat);
  const int64_t heads = q.size(1);
  const Tensor made = at::full({q.size(0), count}, -1, at::kInt);
  const Tensor scores = at::full({q.size(0), count}, -INFINITY, at::kFloat);
  c.each([&](int64_t first, int64_t rows, size_t batch, int64_t from, int64_t keys) {
    if (keys == 0 || rows == 0) return;
    const Tensor k = c.keys(c.key, batch, from, keys).to(at::kFloat).t();
    const int64_t block = std::max<int64_t>(1, kScores / (heads * keys));
    const int64_t most = std::min(count, keys);
    for (int64_t i = 0; i < rows; i += block) {
      const int64_t end = std::min(rows, i + block), at = first + i, last = first + end;
      const Tensor s = at::matmul(q.slice(0, at, last), k).relu_();
      const Tensor all = at::matmul(w.slice(0, at, last).unsqueeze(1), s).squeeze(1);
      for (int64_t r = i; r < end; ++r) {
        const int64_t seen = c.seen(r, rows, keys), few = std::min(most, seen);
        if (few == 0) continue;
        const auto [value, order] =
            at::sort(all[r - i].slice(0, 0, seen), std::optional<bool>(true), 0, true);
        made[first + r].slice(0, 0, few).copy_(order.slice(0, 0, few));
        scores[first + r].slice(0, 0, few).copy_(value.slice(0, 0, few));
      }
    }
  });
  indices = made.reshape(sizes);
  if (with_values) *values = scores.reshape(sizes);
}

void lightning_indexer(Tensor query, Tensor key, Tensor weights, Tensor q_lengths, Tensor k_lengths,
                       Tensor table, Text q_layout, Text k_layout, int64_t count, int64_t mode,
                       int64_t, int64_t, bool with_values, Out indices, Out values) {
  check_real(query, "query");
  check_real(key, "key");
  choose_keys({q_layout, k_layout, query, key, table, q_lengths, k_lengths, mode}, weights, count,
              with_values, indices, &values);
}

// Numbers times the scale of their token and head.
Tensor multiplied(const Tensor& x, const char* name, const Tensor& scale) {
  check_given(x, name);
  require(x.scalar_type() == at::kChar, name, " must be INT8, but is ", x.scalar_type(),
          "; only Ascend 950 takes 8-bit floats");
  check_given(scale, "the scales of query and key");
  require_shape(x.size(-1) > 0 && scale.numel() == x.numel() / x.size(-1), "the scale of ", name,
                " must have a number for each token and head, but has shape ", scale.sizes());
  Ints sizes = x.sizes().vec();
  sizes.back() = 1;
  return x.to(at::kFloat) * scale.to(at::kFloat).reshape(sizes);
}

void quant_lightning_indexer(Tensor query, Tensor key, Tensor weights, Tensor q_scale,
                             Tensor k_scale, Tensor q_lengths, Tensor k_lengths, Tensor table,
                             int64_t q_quant, int64_t k_quant, Text q_layout, Text k_layout,
                             int64_t count, int64_t mode, int64_t, int64_t, Out indices) {
  require(q_quant == 0 && k_quant == 0, "queryQuantMode and keyQuantMode must be 0, but are ",
          q_quant, " and ", k_quant);
  choose_keys({q_layout, k_layout, multiplied(query, "query", q_scale),
               multiplied(key, "key", k_scale), table, q_lengths, k_lengths, mode},
              weights, count, false, indices, nullptr);
}

// ---- attention ----

void sparse_flash_v2(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor table,
                     Tensor q_lengths, Tensor k_lengths, Tensor q_rope, Tensor k_rope, Tensor sinks,
                     double scale, int64_t block, Text q_layout, Text k_layout, int64_t mode,
                     int64_t, int64_t, int64_t absorbed, bool has_lse, Out out, Out largest,
                     Out total) {
  const SparseInputs in{{q_layout, k_layout, query, key, table, q_lengths, k_lengths, mode},
                        value,
                        indices,
                        q_rope,
                        k_rope,
                        block};
  in.check();
  require(absorbed == 0 || absorbed == 2, "attentionMode must be 0 or 2, but got ", absorbed);
  const int64_t heads = query.size(-2), tokens = in.tokens();
  if (has(sinks)) check_shape(sinks, "sinks", {heads});
  const Ints sizes = in.like_query(value.size(-1));
  check_shape(out.tensor(), "attentionOut", sizes);
  const Tensor y = at::zeros({tokens, heads, value.size(-1)}, at::kFloat);
  const Tensor most = at::full({tokens, heads}, kLowest, at::kFloat);
  const Tensor sum = at::zeros({tokens, heads}, at::kFloat);
  in.each_row(scale, [&](int64_t t, const Tensor&, Sequence& s) {
    if (has(sinks)) s.sink = sinks.to(at::kFloat);
    const Attended found = attend(s);
    y[t].copy_(found.out.squeeze(1));
    most[t].copy_(found.largest.squeeze(1));
    sum[t].copy_(found.total.squeeze(1));
  });
  out = y.reshape(sizes);
  if (!has_lse) return;
  largest = most.reshape(in.statistics());
  total = sum.reshape(in.statistics());
}

void sparse_flash(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor table,
                  Tensor q_lengths, Tensor k_lengths, Tensor q_rope, Tensor k_rope, double scale,
                  int64_t block, Text q_layout, Text k_layout, int64_t mode, int64_t before,
                  int64_t after, int64_t absorbed, bool has_lse, Out out, Out largest, Out total) {
  sparse_flash_v2(query, key, value, indices, table, q_lengths, k_lengths, q_rope, k_rope, {},
                  scale, block, q_layout, k_layout, mode, before, after, absorbed, has_lse, out,
                  largest, total);
}

// Rows of a cache are numbers of INT8, the rotated part as in query, and a FLOAT scale for each
// tile of the numbers.
void quant_sparse_flash_v2(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor k_scale,
                           Tensor v_scale, Tensor table, Tensor q_lengths, Tensor k_lengths,
                           Tensor sinks, double scale, int64_t k_quant, int64_t v_quant,
                           int64_t block, Text q_layout, Text k_layout, int64_t mode,
                           int64_t before, int64_t after, int64_t absorbed, int64_t repo,
                           int64_t tile, int64_t rotated, Out out) {
  require(!has(k_scale) && !has(v_scale), "keyDequantScale and valueDequantScale must be NULL: ",
          "the scales are in the rows of key");
  require(k_quant == 2 && v_quant == 2 && repo == 1 && absorbed == 2, "keyQuantMode and ",
          "valueQuantMode must be 2, a scale for each tile, quantScaleRepoMode 1 and ",
          "attentionMode 2, but are ", k_quant, ", ", v_quant, ", ", repo, " and ", absorbed);
  check_real(query, "query");
  check_rank(query, "query", 3, 4);
  check_rank(key, "key", 3, 4);
  check_shape(value, "value", key.sizes());
  require(key.scalar_type() == at::kChar, "key must be INT8, but is ", key.scalar_type());
  const int64_t n = query.size(-1) - rotated, part = rotated * query.element_size();
  require(rotated >= 0 && n > 0 && tile > 0 && n % tile == 0,
          "query must have heads of a multiple ", "of tileSize, ", tile, ", and of ropeHeadDim, ",
          rotated, ", but has shape ", query.sizes());
  require_shape(key.size(-1) == n + part + n / tile * 4, "key must have rows of ",
                n + part + n / tile * 4, " bytes: numbers, rotated part and scales, but has shape ",
                key.sizes());
  const Tensor scales = key.narrow(-1, n + part, n / tile * 4).contiguous().view(at::kFloat);
  const Tensor numbers =
      (key.narrow(-1, 0, n).to(at::kFloat).unflatten(-1, {n / tile, tile}) * scales.unsqueeze(-1))
          .flatten(-2);
  Tensor q_rope, k_rope;
  if (rotated > 0) {
    q_rope = query.narrow(-1, n, rotated);
    k_rope = key.narrow(-1, n, part).contiguous().view(query.scalar_type());
  }
  sparse_flash_v2(query.narrow(-1, 0, n), numbers, numbers, indices, table, q_lengths, k_lengths,
                  q_rope, k_rope, sinks, scale, block, q_layout, k_layout, mode, before, after,
                  absorbed, false, out, Out(Tensor(), "softmaxMax"), Out(Tensor(), "softmaxSum"));
}

void quant_sparse_flash(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor k_scale,
                        Tensor v_scale, Tensor table, Tensor q_lengths, Tensor k_lengths,
                        double scale, int64_t k_quant, int64_t v_quant, int64_t block,
                        Text q_layout, Text k_layout, int64_t mode, int64_t before, int64_t after,
                        int64_t absorbed, int64_t repo, int64_t tile, int64_t rotated, Out out) {
  quant_sparse_flash_v2(query, key, value, indices, k_scale, v_scale, table, q_lengths, k_lengths,
                        {}, scale, k_quant, v_quant, block, q_layout, k_layout, mode, before, after,
                        absorbed, repo, tile, rotated, out);
}

}  // namespace

const Composite chosen_attention_composites[] = {
    ENTRY(lightning_indexer),
    ENTRY(quant_lightning_indexer),
    ENTRY(sparse_flash),
    ENTRY(sparse_flash_v2),
    ENTRY(quant_sparse_flash),
    ENTRY(quant_sparse_flash_v2),
    {},
};

}  // namespace openaclnn::aten
