// SPDX-License-Identifier: Apache-2.0
// Gradients of attention to chosen keys and of the indexer, and the loss that trains the indexer to
// choose as attention does: sum p log(p / y), p the mean of the heads' shares, y the softmax of the
// indexer's scores.
#include "core/torch/aten/composites/attention_chosen.h"

namespace openaclnn::aten {
namespace {

// [T, ...] as the caller has it.
Tensor shaped(const Tensor& x, const Tensor& like) { return x.reshape(like.sizes()); }

void sparse_flash_grad(Tensor query, Tensor key, Tensor value, Tensor indices, Tensor dy, Tensor y,
                       Tensor largest, Tensor total, Tensor q_lengths, Tensor k_lengths,
                       Tensor q_rope, Tensor k_rope, double scale, int64_t block, Text layout,
                       int64_t mode, int64_t, int64_t, bool, Out dq, Out dk, Out dv, Out dq_rope,
                       Out dk_rope) {
  const SparseInputs in{{layout, layout, query, key, {}, q_lengths, k_lengths, mode},
                        value,
                        indices,
                        q_rope,
                        k_rope,
                        block};
  in.check();
  const Ints sizes = in.like_query(value.size(-1));
  check_shape(dy, "dOut", sizes);
  check_shape(y, "out", sizes);
  check_shape(largest, "softmaxMax", in.statistics());
  check_shape(total, "softmaxSum", in.statistics());
  const int64_t heads = query.size(-2), d = query.size(-1);
  const auto of_rows = [&](const Tensor& x) {
    return x.to(at::kFloat).reshape({in.tokens(), heads, -1});
  };
  const Tensor g = of_rows(dy), most = of_rows(largest), sum = of_rows(total);
  const Tensor products = (g * of_rows(y)).sum(-1, true);
  const int64_t rotated = has(q_rope) ? q_rope.size(-1) : 0;
  const Tensor k_rows = key.flatten(0, -2), v_rows = value.flatten(0, -2);
  const Tensor all_q = at::zeros({in.tokens(), heads, d + rotated}, at::kFloat);
  const Tensor all_k = at::zeros({k_rows.size(0), d + rotated}, at::kFloat);
  const Tensor all_v = at::zeros(v_rows.sizes(), at::kFloat);
  in.each_row(scale, [&](int64_t t, const Tensor& used, const Sequence& s) {
    const Gradients found = differentiate(s, g[t].unsqueeze(1), most[t], sum[t], products[t]);
    all_q[t].copy_(found.q.squeeze(1));
    all_k.index_add_(0, used, found.k[0]);
    all_v.index_add_(0, used, found.v[0]);
  });
  dq = shaped(all_q.narrow(-1, 0, d), query);
  dk = shaped(all_k.narrow(-1, 0, d), key);
  dv = shaped(all_v, value);
  if (rotated == 0) return;
  dq_rope = shaped(all_q.narrow(-1, d, rotated), q_rope);
  dk_rope = shaped(all_k.narrow(-1, d, rotated), k_rope);
}

// ---- the indexer: score[i, j] = sum over heads of w[i, n] relu(q[i, n] k[j]) ----

struct Indexer {
  Chosen rows;
  Tensor weights, indices;  // indices: undefined for all keys

  void check() const {
    check_real(rows.query, "the query of the indexer");
    check_real(rows.key, "the key of the indexer");
    check_real(weights, "weights");
    rows.check();
    Ints sizes = rows.query.sizes().vec();
    sizes.pop_back();
    check_shape(weights, "weights", sizes);
    if (!indices.defined()) return;
    require_shape(indices.dim() > 0 && tokens() * list() == indices.numel(), "sparseIndices must ",
                  "have a list for each of the ", tokens(), " rows, but has shape ",
                  indices.sizes());
  }
  int64_t tokens() const { return rows.query.flatten(0, -3).size(0); }
  int64_t list() const { return indices.size(-1); }

  // Gradients of all rows and keys, in float.
  struct Sums {
    Tensor q, k, w;
  };
  Sums sums() const {
    return {at::zeros({tokens(), rows.query.size(-2), rows.query.size(-1)}, at::kFloat),
            at::zeros(rows.key.flatten(0, -2).sizes(), at::kFloat),
            at::zeros({tokens(), weights.size(-1)}, at::kFloat)};
  }
  void put(const Sums& s, const Out& dq, const Out& dk, const Out& dw) const {
    dq = shaped(s.q, rows.query);
    dk = shaped(s.k, rows.key);
    dw = shaped(s.w, weights);
  }

  // f(row t of the query, the places of its keys in the list, their rows among all keys).
  template <class F>
  void each_row(F f) const {
    need_data(rows.query);
    Tensor index;
    if (indices.defined()) index = indices.reshape({tokens(), list()}).to(at::kLong);
    rows.each([&](int64_t first, int64_t count, size_t, int64_t from, int64_t keys) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t t = first + i, seen = rows.seen(i, count, keys);
        Tensor places, used = at::arange(seen);
        if (index.defined()) {
          places = ((index[t] >= 0).bitwise_and(index[t] < seen)).nonzero().squeeze(1);
          used = index[t].index_select(0, places);
        }
        if (used.numel() > 0) f(t, places, used + from);
      }
    });
  }

  // From the gradient of the scores of row t, [U].
  void add(const Sums& s, int64_t t, const Tensor& used, const Tensor& k, const Tensor& q,
           const Tensor& w, const Tensor& found, const Tensor& g) const {
    s.w[t].copy_(at::matmul(found.clamp_min(0), g));
    const Tensor d = w.unsqueeze(1) * g * (found > 0);
    s.q[t].copy_(at::matmul(d, k));
    s.k.index_add_(0, used, at::matmul(d.t(), q));
  }
};

void indexer_grad(Tensor query, Tensor key, Tensor dy, Tensor indices, Tensor weights,
                  Tensor q_lengths, Tensor k_lengths, int64_t, Text layout, int64_t mode, int64_t,
                  int64_t, bool, Out dq, Out dk, Out dw) {
  const Indexer x{{layout, layout, query, key, {}, q_lengths, k_lengths, mode}, weights, indices};
  check_given(indices, "sparseIndices");
  x.check();
  check_given(dy, "dy");
  require_shape(dy.numel() == indices.numel(), "dy must have a number for each of sparseIndices, ",
                "but has shape ", dy.sizes());
  const auto sums = x.sums();
  const Tensor g = dy.reshape({x.tokens(), -1}).to(at::kFloat);
  const Tensor q = query.flatten(0, -3).to(at::kFloat), k = key.flatten(0, -2).to(at::kFloat),
               w = weights.flatten(0, -2).to(at::kFloat);
  x.each_row([&](int64_t t, const Tensor& places, const Tensor& used) {
    const Tensor near = k.index_select(0, used);
    x.add(sums, t, used, near, q[t], w[t], at::matmul(q[t], near.t()),
          g[t].index_select(0, places));
  });
  x.put(sums, dq, dk, dw);
}

// The maximum and the sum of exponentials of each row of scores; 0 without keys.
void indexer_lse(Tensor query, Tensor key, Tensor weights, Ints q_lengths, Ints k_lengths,
                 Text layout, int64_t mode, int64_t, int64_t, Out largest, Out total) {
  const Indexer x{
      {layout, layout, query, key, {}, list_of(q_lengths), list_of(k_lengths), mode}, weights, {}};
  x.check();
  Ints sizes = {1, x.tokens()};
  if (layout == "BSND") sizes = {query.size(0), 1, query.size(1)};
  check_shape(largest.tensor(), "softmaxMax", sizes);
  check_shape(total.tensor(), "softmaxSum", sizes);
  need_data(query);
  const Tensor most = at::zeros({x.tokens()}, at::kFloat), sum = at::zeros_like(most);
  const Tensor q = query.flatten(0, -3).to(at::kFloat), w = weights.flatten(0, -2).to(at::kFloat);
  x.rows.each([&](int64_t first, int64_t rows, size_t batch, int64_t from, int64_t keys) {
    const Tensor k = x.rows.keys(key, batch, from, keys).to(at::kFloat).t();
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t t = first + i, seen = x.rows.seen(i, rows, keys);
      if (seen == 0) continue;
      const Tensor s = at::matmul(w[t], at::matmul(q[t], k.narrow(1, 0, seen)).relu_());
      const Tensor top = s.max();
      most[t].copy_(top);
      sum[t].copy_((s - top).exp_().sum());
    }
  });
  largest = most.reshape(sizes);
  total = sum.reshape(sizes);
}

// The loss with its gradients; statistics of attention are [B, K, S, G] or [K, T, G]. Without
// indices it is over all keys, with the statistics of the indexer's softmax.
struct IndexerLoss {
  Tensor query, key, q_rope, k_rope, largest, total, index_largest, index_total;
  double scale;

  void run(const Indexer& x, const Out& dq, const Out& dk, const Out& dw, const Out& loss) const {
    x.check();
    const Tensor &qi = x.rows.query, &ki = x.rows.key;
    for (const auto& [given, name] : {std::pair(&query, "query"), {&key, "key"}}) {
      check_real(*given, name);
      check_rank(*given, name, qi.dim(), qi.dim());
    }
    require(has(q_rope) == has(k_rope), "queryRope and keyRope must be given together");
    const Tensor q = joined(query, q_rope).flatten(0, -3), k = joined(key, k_rope).flatten(0, -3);
    require_shape(
        q.size(0) == x.tokens() && k.size(0) == ki.flatten(0, -3).size(0) && q.size(2) == k.size(2),
        "query and key must have the rows of those of the indexer and heads of one size, ",
        "but have shapes ", query.sizes(), " and ", key.sizes());
    check_groups(q.size(1), k.size(1));
    const int64_t kv = k.size(1), group = q.size(1) / kv;
    const bool packed = x.rows.q_layout == "TND";
    const auto statistics = [&](const Tensor& given, const char* name) {
      if (packed) {
        check_shape(given, name, {kv, query.size(0), group});
        return given.to(at::kFloat).permute({1, 0, 2}).unsqueeze(-1);  // [T, K, G, 1]
      }
      check_shape(given, name, {query.size(0), kv, query.size(1), group});
      return given.to(at::kFloat).transpose(1, 2).flatten(0, 1).unsqueeze(-1);
    };
    const Tensor most = statistics(largest, "softmaxMax"), sum = statistics(total, "softmaxSum");
    const bool dense = !x.indices.defined();
    if (dense) {
      for (const auto& [given, name] :
           {std::pair(&index_largest, "softmaxMaxIndex"), {&index_total, "softmaxSumIndex"}}) {
        check_given(*given, name);
        require_shape(given->numel() == x.tokens(), name, " must have a number for each row, but ",
                      "has shape ", given->sizes());
      }
    }
    need_data(query);
    const Tensor flat_qi = qi.flatten(0, -3).to(at::kFloat), w = x.weights.flatten(0, -2);
    const Tensor flat_ki = ki.flatten(0, -2).to(at::kFloat);
    const Tensor by_kv = q.unflatten(1, {kv, group});
    const auto sums = x.sums();
    Tensor all = at::zeros({}, at::kDouble);
    x.each_row([&](int64_t t, const Tensor&, const Tensor& used) {
      const Tensor near = k.index_select(0, used).permute({1, 2, 0});  // [K, D, U]
      Tensor share = (at::matmul(by_kv[t], near) * scale - most[t]).exp_().div_(sum[t]);
      share = share.masked_fill_(sum[t] <= 0, 0).mean(at::IntArrayRef{0, 1});
      const Tensor keys = flat_ki.index_select(0, used);
      const Tensor found = at::matmul(flat_qi[t], keys.t()), wt = w[t].to(at::kFloat);
      const Tensor s = at::matmul(wt, found.clamp_min(0));
      const Tensor y = dense ? (s - index_largest.flatten()[t].to(at::kFloat)).exp_() /
                                   index_total.flatten()[t].to(at::kFloat)
                             : s.softmax(0);
      all += (share * (share.clamp_min(1e-8).log() - y.clamp_min(1e-8).log())).sum();
      x.add(sums, t, used, keys, flat_qi[t], wt, found, y - share);
    });
    x.put(sums, dq, dk, dw);
    loss = all.to(at::kFloat).reshape({1});
  }
};

void dense_indexer_loss(Tensor query, Tensor key, Tensor qi, Tensor ki, Tensor weights,
                        Tensor largest, Tensor total, Tensor index_largest, Tensor index_total,
                        Tensor q_rope, Tensor k_rope, Ints q_lengths, Ints k_lengths, double scale,
                        Text layout, int64_t mode, int64_t, int64_t, Out dq, Out dk, Out dw,
                        Out loss) {
  const Indexer x{
      {layout, layout, qi, ki, {}, list_of(q_lengths), list_of(k_lengths), mode}, weights, {}};
  IndexerLoss{query, key, q_rope, k_rope, largest, total, index_largest, index_total, scale}.run(
      x, dq, dk, dw, loss);
}

void sparse_indexer_loss(Tensor query, Tensor key, Tensor qi, Tensor ki, Tensor weights,
                         Tensor indices, Tensor largest, Tensor total, Tensor q_rope, Tensor k_rope,
                         Ints q_lengths, Ints k_lengths, double scale, Text layout, int64_t mode,
                         int64_t, int64_t, bool, Out dq, Out dk, Out dw, Out loss) {
  check_given(indices, "sparseIndices");
  const Indexer x{
      {layout, layout, qi, ki, {}, list_of(q_lengths), list_of(k_lengths), mode}, weights, indices};
  IndexerLoss{query, key, q_rope, k_rope, largest, total, {}, {}, scale}.run(x, dq, dk, dw, loss);
}

}  // namespace

const Composite chosen_attention_gradient_composites[] = {
    ENTRY(sparse_flash_grad),  ENTRY(indexer_grad),        ENTRY(indexer_lse),
    ENTRY(dense_indexer_loss), ENTRY(sparse_indexer_loss), {},
};

}  // namespace openaclnn::aten
