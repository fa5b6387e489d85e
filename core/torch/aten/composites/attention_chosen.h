// SPDX-License-Identifier: Apache-2.0
// Sequences of rows of a query with many heads, and of keys with one, which may be in pages: what
// the indexer and sparse attention share with their gradients.
#pragma once

#include "core/torch/aten/composites/attention.h"
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {

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

// Index x is keys x block to (x + 1) block - 1; a list ends at -1.
inline Tensor positions_of(const int32_t* index, int64_t count, int64_t block, int64_t seen) {
  Ints found;
  for (int64_t i = 0; i < count && index[i] >= 0; ++i) {
    if (index[i] >= (seen + block - 1) / block) continue;
    const int64_t begin = index[i] * block, end = std::min(seen, begin + block);
    for (int64_t j = begin; j < end; ++j) found.push_back(j);
  }
  return at::tensor(found, at::kLong);
}

// x with the rotated part of its heads beside it, in float.
inline Tensor joined(const Tensor& x, const Tensor& rope) {
  const Tensor wide = x.to(at::kFloat);
  return has(rope) ? at::cat({wide, rope.to(at::kFloat)}, -1) : wide;
}

// What attention to chosen keys and its gradient take.
struct SparseInputs {
  Chosen rows;
  Tensor value, indices, q_rope, k_rope;
  int64_t block;

  void check() const {
    const Tensor &query = rows.query, &key = rows.key;
    check_real(query, "query");
    check_real(key, "key");
    check_real(value, "value");
    rows.check();
    require(block >= 1 && block <= INT32_MAX, "sparseBlockSize must be at least 1, but got ",
            block);
    const auto same = [](const Tensor& x, const char* name, const Tensor& like) {
      check_rank(x, name, like.dim(), like.dim());
      const auto leading = static_cast<size_t>(like.dim() - 1);
      require_shape(x.sizes().slice(0, leading) == like.sizes().slice(0, leading), name,
                    " must have shape ", like.sizes().slice(0, leading),
                    " and a size of heads, but got ", x.sizes());
    };
    same(value, "value", key);
    require(has(q_rope) == has(k_rope), "queryRope and keyRope must be given together");
    if (has(q_rope)) {
      same(q_rope, "queryRope", query);
      same(k_rope, "keyRope", key);
      require_shape(q_rope.size(-1) == k_rope.size(-1), "queryRope and keyRope must have heads of ",
                    "one size, but have shapes ", q_rope.sizes(), " and ", k_rope.sizes());
    }
    check_rank(indices, "sparseIndices", query.dim(), query.dim());
    Ints expected = query.sizes().vec();
    expected.end()[-2] = 1;
    expected.back() = indices.size(-1);
    check_shape(indices, "sparseIndices", expected);
  }
  // The shape of query with other heads.
  Ints like_query(int64_t size) const {
    Ints sizes = rows.query.sizes().vec();
    sizes.back() = size;
    return sizes;
  }
  Ints statistics() const {
    const Tensor& q = rows.query;
    if (rows.q_layout == "TND") return {1, q.size(0), q.size(1)};
    return {q.size(0), 1, q.size(1), q.size(2)};
  }
  int64_t tokens() const { return rows.query.flatten(0, -3).size(0); }
  Tensor all_queries() const {  // [T, N, D], with what is rotated
    return joined(rows.query.flatten(0, -3), has(q_rope) ? q_rope.flatten(0, -3) : q_rope);
  }

  // f(row t of the query, the rows of its keys among all, both as a sequence) for each row that
  // has keys.
  template <class F>
  void each_row(double scale, F f) const {
    need_data(rows.query);
    const Tensor index = indices.flatten(0, -2).to(at::kInt).contiguous(), q = all_queries();
    const auto* chosen = data_of<int32_t>(index);
    rows.each([&](int64_t first, int64_t count, size_t batch, int64_t from, int64_t keys) {
      const Tensor k = rows.keys(rows.key, batch, from, keys),
                   v = rows.keys(value, batch, from, keys);
      const Tensor rope = has(k_rope) ? rows.keys(k_rope, batch, from, keys) : Tensor();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t t = first + i;
        const Tensor used = positions_of(chosen + t * index.size(1), index.size(1), block,
                                         rows.seen(i, count, keys));
        if (used.numel() == 0) continue;
        Sequence s;
        s.q = q[t].unsqueeze(1);
        s.k = joined(k.index_select(0, used), has(rope) ? rope.index_select(0, used) : rope)
                  .unsqueeze(0);
        s.v = v.index_select(0, used).to(at::kFloat).unsqueeze(0);
        s.scale = scale;
        f(t, from + used, s);
      }
    });
  }
};

}  // namespace openaclnn::aten
