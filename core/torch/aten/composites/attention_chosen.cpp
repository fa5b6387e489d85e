// SPDX-License-Identifier: Apache-2.0
// Attention to chosen keys of one head: the indexer chooses them for each row of the query, sparse
// attention reads them. Keys may be in pages.
#include "core/torch/aten/composites/attention.h"
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

// Where the rows of each sequence lie.
struct Chosen {
  Text q_layout, k_layout;
  Tensor query, key, table, q_lengths, k_lengths;
  int64_t mode;

  void check() const {
    require(q_layout == "BSND" || q_layout == "TND", "layoutQuery must be BSND or TND, but got ",
            q_layout);
    require(k_layout == "BSND" || k_layout == "TND" || k_layout == "PA_BSND",
            "the layout of keys must be BSND, TND or PA_BSND, but got ", k_layout);
    require(mode == 0 || mode == 3, "sparseMode must be 0, all keys, or 3, up to the row, but got ",
            mode);
    const int64_t q_rank = q_layout == "TND" ? 3 : 4, k_rank = k_layout == "TND" ? 3 : 4;
    check_rank(query, "query", q_rank, q_rank);
    check_rank(key, "key", k_rank, k_rank);
    require_shape(query.size(-2) > 0, "query must have at least one head, but has shape ",
                  query.sizes());
    require_shape(key.size(-2) == 1, "key must have one head, but has shape ", key.sizes());
    require_shape(key.size(-1) == query.size(-1), "key must have heads of ", query.size(-1),
                  " as query, but has shape ", key.sizes());
    require(q_layout != "TND" || has(q_lengths), "actualSeqLengthsQuery must be given with TND");
    require(k_layout == "BSND" || has(k_lengths), "actualSeqLengths of keys must be given with ",
            k_layout);
    if (k_layout == "PA_BSND") check_rank(table, "blockTable", 2, 2);
  }

  // Sequences as (first row, rows); ends where the layout is TND.
  std::vector<std::pair<int64_t, int64_t>> rows(const Tensor& x, const Text& layout,
                                                const Tensor& lengths, const char* name) const {
    std::vector<std::pair<int64_t, int64_t>> found;
    const bool packed = layout == "TND";
    Ints given;
    if (has(lengths)) given = numbers_in(lengths, name);
    if (given.empty()) given.assign(static_cast<size_t>(x.size(0)), x.size(1));
    int64_t begin = 0;
    for (size_t b = 0; b < given.size(); ++b) {
      const int64_t count = packed ? given[b] - begin : given[b];
      const int64_t most = packed                ? x.size(0) - begin
                           : layout == "PA_BSND" ? table.size(1) * x.size(1)
                                                 : x.size(1);
      require(count >= 0 && count <= most, name, " must have lengths from 0 to ", most,
              ", or ends that ascend with TND, but has ", given[b]);
      found.emplace_back(packed ? begin : static_cast<int64_t>(b) * x.size(1), count);
      if (packed) begin = given[b];
    }
    return found;
  }

  // f(first row of the query, its rows, batch, keys)
  template <class F>
  void each(F f) const {
    const auto q = rows(query, q_layout, q_lengths, "actualSeqLengthsQuery");
    const auto k = rows(key, k_layout, k_lengths, "the lengths of keys");
    require(q.size() == k.size() &&
                (q_layout == "TND" || k_layout != "BSND" || query.size(0) == key.size(0)),
            "query and key must have as many sequences as each other, but have ", q.size(), " and ",
            k.size());
    require(q_layout == "TND" || static_cast<int64_t>(q.size()) == query.size(0),
            "actualSeqLengthsQuery must have ", query.size(0), " numbers, but has ", q.size());
    require(k_layout != "PA_BSND" || static_cast<int64_t>(k.size()) == table.size(0),
            "blockTable must have ", k.size(), " rows, but has shape ", table.sizes());
    for (size_t b = 0; b < q.size(); ++b) f(q[b].first, q[b].second, b, k[b].first, k[b].second);
  }

  // The rows of one sequence, [L, D].
  Tensor keys(const Tensor& x, size_t batch, int64_t first, int64_t count) const {
    if (k_layout != "PA_BSND") return x.flatten(0, -2).slice(0, first, first + count);
    const int64_t size = x.size(1);
    const Tensor used = table[static_cast<int64_t>(batch)]
                            .slice(0, 0, (count + size - 1) / std::max<int64_t>(size, 1))
                            .to(at::kLong);
    check_positions(used, "blockTable", x.size(0));
    return x.index_select(0, used).flatten(0, -2).slice(0, 0, count);
  }
  // The keys that row i of the query sees.
  int64_t seen(int64_t i, int64_t rows, int64_t count) const {
    return mode == 3 ? std::clamp<int64_t>(count - rows + i + 1, 0, count) : count;
  }
};

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

// ---- attention: index x is keys x block to (x + 1) block - 1, a list ends at -1 ----

Tensor positions_of(const int32_t* index, int64_t count, int64_t block, int64_t seen) {
  Ints found;
  for (int64_t i = 0; i < count && index[i] >= 0; ++i) {
    if (index[i] >= (seen + block - 1) / block) continue;
    const int64_t begin = index[i] * block, end = std::min(seen, begin + block);
    for (int64_t j = begin; j < end; ++j) found.push_back(j);
  }
  return at::tensor(found, at::kLong);
}

void sparse_flash_v2(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor table,
                     Tensor q_lengths, Tensor k_lengths, Tensor q_rope, Tensor k_rope, Tensor sinks,
                     double scale, int64_t block, Text q_layout, Text k_layout, int64_t mode,
                     int64_t, int64_t, int64_t absorbed, bool has_lse, Out out, Out largest,
                     Out total) {
  check_real(query, "query");
  check_real(key, "key");
  check_real(value, "value");
  const Chosen c{q_layout, k_layout, query, key, table, q_lengths, k_lengths, mode};
  c.check();
  require(block >= 1, "sparseBlockSize must be at least 1, but got ", block);
  require(absorbed == 0 || absorbed == 2, "attentionMode must be 0 or 2, but got ", absorbed);
  const at::IntArrayRef k_sizes = key.sizes().slice(0, static_cast<size_t>(key.dim() - 1));
  const at::IntArrayRef q_sizes = query.sizes().slice(0, static_cast<size_t>(query.dim() - 1));
  const auto same = [](const Tensor& x, const char* name, at::IntArrayRef sizes) {
    require_shape(
        x.defined() && x.dim() > 0 && x.sizes().slice(0, static_cast<size_t>(x.dim() - 1)) == sizes,
        name, " must have shape ", sizes, " and a size of heads, but got ",
        x.defined() ? x.sizes() : at::IntArrayRef());
  };
  same(value, "value", k_sizes);
  require(has(q_rope) == has(k_rope), "queryRope and keyRope must be given together");
  if (has(q_rope)) {
    same(q_rope, "queryRope", q_sizes);
    same(k_rope, "keyRope", k_sizes);
    require_shape(q_rope.size(-1) == k_rope.size(-1), "queryRope and keyRope must have heads of ",
                  "one size, but have shapes ", q_rope.sizes(), " and ", k_rope.sizes());
  }
  const int64_t heads = query.size(-2);
  if (has(sinks)) check_shape(sinks, "sinks", {heads});
  check_rank(indices, "sparseIndices", query.dim(), query.dim());
  Ints expected = q_sizes.vec();
  expected.back() = 1;
  expected.push_back(indices.size(-1));
  check_shape(indices, "sparseIndices", expected);
  Ints sizes = q_sizes.vec();
  sizes.push_back(value.size(-1));
  check_shape(out.tensor(), "attentionOut", sizes);
  const Tensor index = indices.flatten(0, -2).to(at::kInt).contiguous();
  const auto* chosen = data_of<int32_t>(index);
  const auto joined = [](const Tensor& x, const Tensor& rope) {
    const Tensor wide = x.to(at::kFloat);
    return has(rope) ? at::cat({wide, rope.to(at::kFloat)}, -1) : wide;
  };
  const Tensor q = joined(query.flatten(0, -3), has(q_rope) ? q_rope.flatten(0, -3) : q_rope);
  const Tensor y = at::zeros({q.size(0), heads, value.size(-1)}, at::kFloat);
  const Tensor most = at::full({q.size(0), heads}, kLowest, at::kFloat);
  const Tensor sum = at::zeros({q.size(0), heads}, at::kFloat);
  c.each([&](int64_t first, int64_t rows, size_t batch, int64_t from, int64_t count) {
    const Tensor k = c.keys(key, batch, from, count), v = c.keys(value, batch, from, count);
    const Tensor rope = has(k_rope) ? c.keys(k_rope, batch, from, count) : Tensor();
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t t = first + i;
      const Tensor used =
          positions_of(chosen + t * index.size(1), index.size(1), block, c.seen(i, rows, count));
      if (used.numel() == 0) continue;
      Sequence s;
      s.q = q[t].unsqueeze(1);
      s.k = joined(k.index_select(0, used), has(rope) ? rope.index_select(0, used) : rope)
                .unsqueeze(0);
      s.v = v.index_select(0, used).to(at::kFloat).unsqueeze(0);
      s.scale = scale;
      if (has(sinks)) s.sink = sinks.to(at::kFloat);
      const Attended found = attend(s);
      y[t].copy_(found.out.squeeze(1));
      most[t].copy_(found.largest.squeeze(1));
      sum[t].copy_(found.total.squeeze(1));
    }
  });
  out = y.reshape(sizes);
  if (!has_lse) return;
  Ints statistics{query.size(0), 1, query.size(1), heads};
  if (q_layout == "TND") statistics = {1, query.size(0), heads};
  largest = most.reshape(statistics);
  total = sum.reshape(statistics);
}

void sparse_flash(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor table,
                  Tensor q_lengths, Tensor k_lengths, Tensor q_rope, Tensor k_rope, double scale,
                  int64_t block, Text q_layout, Text k_layout, int64_t mode, int64_t before,
                  int64_t after, int64_t absorbed, bool has_lse, Out out, Out largest, Out total) {
  sparse_flash_v2(query, key, value, indices, table, q_lengths, k_lengths, q_rope, k_rope, {},
                  scale, block, q_layout, k_layout, mode, before, after, absorbed, has_lse, out,
                  largest, total);
}

}  // namespace

const Composite chosen_attention_composites[] = {
    ENTRY(lightning_indexer),
    ENTRY(quant_lightning_indexer),
    ENTRY(sparse_flash),
    ENTRY(sparse_flash_v2),
    {},
};

}  // namespace openaclnn::aten
