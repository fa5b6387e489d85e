// SPDX-License-Identifier: Apache-2.0
// Attention with other pairs of queries and keys: blocks that a mask chooses, paths of two edges.
#include "core/torch/aten/composites/attention.h"

namespace openaclnn::aten {
namespace {

// ---- attention over blocks of [X, Y] pairs: the mask is [B, N, S / X, L / Y] ----

struct BlockSparse {
  Tensor q, k, v, mask;
  Ints block, lengths, kv_lengths;  // lengths of each sequence, not their sums
  Text layout, kv_layout;
  double scale;
};

struct SparseShape {
  Ints rows, keys;
  int64_t heads, kv_heads;
  bool packed;
};

SparseShape shape_of_sparse(const BlockSparse& a) {
  require(a.layout == a.kv_layout && (a.layout == "TND" || a.layout == "BNSD"),
          "qInputLayout and kvInputLayout must both be TND or BNSD, but are ", a.layout, " and ",
          a.kv_layout);
  const bool packed = a.layout == "TND";
  const int64_t rank = packed ? 3 : 4;
  const std::pair<const char*, const Tensor*> given[] = {
      {"query", &a.q}, {"key", &a.k}, {"value", &a.v}};
  for (const auto& [name, x] : given) {
    check_rank(*x, name, rank, rank);
    require(x->is_floating_point() && x->scalar_type() == a.q.scalar_type(), name,
            " must have the floating-point dtype of query, but is ", x->scalar_type());
  }
  require_shape(
      a.k.sizes().slice(0, static_cast<size_t>(rank - 1)) ==
              a.v.sizes().slice(0, static_cast<size_t>(rank - 1)) &&
          a.q.size(-1) == a.k.size(-1) && (packed || a.q.size(0) == a.k.size(0)),
      "key must have the batches and head size of query, and value the rows and heads of ",
      "key, but their shapes are ", a.q.sizes(), ", ", a.k.sizes(), " and ", a.v.sizes());
  SparseShape s{{}, {}, a.q.size(1), a.k.size(1), packed};
  check_groups(s.heads, s.kv_heads);
  require(a.lengths.size() == a.kv_lengths.size() && (!packed || !a.lengths.empty()),
          "actualSeqLengths and actualSeqLengthsKv must have a number for each sequence, but have ",
          a.lengths.size(), " and ", a.kv_lengths.size());
  const auto of_all = [&](const Ints& list, const Tensor& x, const char* name) {
    const int64_t room = packed ? x.size(0) : x.size(2);
    Ints made = list.empty() ? Ints(static_cast<size_t>(x.size(0)), room) : list;
    require_shape(packed || static_cast<int64_t>(made.size()) == x.size(0), name,
                  " must have a number for each of the ", x.size(0), " batches, but has ",
                  made.size());
    int64_t sum = 0;
    for (const int64_t length : made) {
      require(length >= 0 && length <= room - (packed ? sum : 0), name,
              " must stay within the rows of its tensor, ", room, ", but has ", length);
      sum += length;
    }
    return made;
  };
  s.rows = of_all(a.lengths, a.q, "actualSeqLengths");
  s.keys = of_all(a.kv_lengths, a.k, "actualSeqLengthsKv");
  check_rank(a.mask, "blockSparseMask", 4, 4);
  require(a.block.size() == 2 && a.block[0] > 0 && a.block[1] > 0,
          "blockShape must have two numbers from 1, but is ", at::IntArrayRef(a.block));
  int64_t rows = 0, keys = 0;
  for (size_t b = 0; b < s.rows.size(); ++b) {
    rows = std::max(rows, (s.rows[b] - 1) / a.block[0] + 1);
    keys = std::max(keys, (s.keys[b] - 1) / a.block[1] + 1);
  }
  require_shape(a.mask.size(0) == static_cast<int64_t>(s.rows.size()) &&
                    a.mask.size(1) == s.heads && a.mask.size(2) >= rows && a.mask.size(3) >= keys,
                "blockSparseMask must have shape [", s.rows.size(), ", ", s.heads, ", ", rows, ", ",
                keys, "] at least, but got ", a.mask.sizes());
  return s;
}

// [N, S, D] of each sequence.
Tensors sparse_parts(const Tensor& x, const Ints& lengths, bool packed) {
  Tensors made;
  int64_t first = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    made.push_back(packed ? x.narrow(0, first, lengths[b]).transpose(0, 1)
                          : x[static_cast<int64_t>(b)].narrow(1, 0, lengths[b]));
    first += lengths[b];
  }
  return made;
}

// Calls f(sequence, b) for each that has rows and keys.
template <class F>
void for_each_sparse(const BlockSparse& a, const SparseShape& s, F f) {
  const Tensors q = sparse_parts(a.q, s.rows, s.packed), k = sparse_parts(a.k, s.keys, s.packed),
                v = sparse_parts(a.v, s.keys, s.packed);
  for (size_t b = 0; b < q.size(); ++b) {
    if (s.rows[b] == 0 || s.keys[b] == 0) continue;
    Sequence one;
    one.q = q[b];
    one.k = k[b];
    one.v = v[b];
    one.scale = a.scale;
    one.chosen = a.mask[static_cast<int64_t>(b)].ne(0);
    one.chosen_rows = a.block[0];
    one.chosen_keys = a.block[1];
    f(one, b);
  }
}

void refuse_other_masks(const Tensor& mask, int64_t type) {
  require(!mask.defined() && type == 0, "attenMask must be NULL and maskType 0, but it is ", type);
}

void block_sparse_attention(Tensor q, Tensor k, Tensor v, Tensor blocks, Tensor mask, Ints block,
                            Ints lengths, Ints kv_lengths, Tensor table, Text layout,
                            Text kv_layout, int64_t kv_heads, int64_t type, double scale, int64_t,
                            int64_t, int64_t, int64_t, int64_t, Out out, Out lse) {
  refuse_other_masks(mask, type);
  require(!table.defined(), "blockTable must be NULL");
  const BlockSparse a{q, k, v, blocks, block, lengths, kv_lengths, layout, kv_layout, scale};
  const SparseShape s = shape_of_sparse(a);
  require(kv_heads == s.kv_heads, "numKeyValueHeads must be the heads of key, ", s.kv_heads,
          ", but is ", kv_heads);
  Ints shape = q.sizes().vec();
  shape.back() = 1;
  const Tensor logs = at::full(shape, INFINITY, q.options().dtype(at::kFloat));
  shape.back() = v.size(-1);
  const Tensor made = at::zeros(shape, q.options());
  check_result(out.tensor(), made, "attentionOut");
  if (is_given(lse.tensor())) check_result(lse.tensor(), logs, "softmaxLse");
  if (q.is_meta()) return;
  const Tensors outs = sparse_parts(made, s.rows, s.packed);
  const Tensors all_logs = sparse_parts(logs, s.rows, s.packed);
  for_each_sparse(a, s, [&](const Sequence& one, size_t b) {
    const Attended found = attend(one);
    outs[b].copy_(found.out);
    all_logs[b].squeeze(-1).copy_(
        at::where(found.total > 0, found.largest + at::log(found.total), INFINITY));
  });
  out = made;
  if (is_given(lse.tensor())) lse = logs;
}

void block_sparse_attention_grad(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse,
                                 Tensor blocks, Tensor mask, Ints block, Ints lengths,
                                 Ints kv_lengths, Text layout, Text kv_layout, int64_t kv_heads,
                                 int64_t type, double scale, int64_t, int64_t, Out dq, Out dk,
                                 Out dv) {
  refuse_other_masks(mask, type);
  const BlockSparse a{q, k, v, blocks, block, lengths, kv_lengths, layout, kv_layout, scale};
  const SparseShape s = shape_of_sparse(a);
  require(kv_heads == s.kv_heads, "numKeyValueHeads must be the heads of key, ", s.kv_heads,
          ", but is ", kv_heads);
  Ints shape = q.sizes().vec();
  shape.back() = v.size(-1);
  check_shape(out, "attentionOut", shape);
  check_shape(dy, "dOut", shape);
  shape.back() = 1;
  check_shape(lse, "softmaxLse", shape);
  const Tensor gq = at::zeros(q.sizes(), q.options()), gk = at::zeros(k.sizes(), k.options()),
               gv = at::zeros(v.sizes(), v.options());
  check_result(dq.tensor(), gq, "dQuery");
  check_result(dk.tensor(), gk, "dKey");
  check_result(dv.tensor(), gv, "dValue");
  if (q.is_meta()) return;
  const auto of_rows = [&](const Tensor& x) { return sparse_parts(x, s.rows, s.packed); };
  const auto of_keys = [&](const Tensor& x) { return sparse_parts(x, s.keys, s.packed); };
  const Tensors dys = of_rows(dy), outs = of_rows(out), logs = of_rows(lse), gqs = of_rows(gq),
                gks = of_keys(gk), gvs = of_keys(gv);
  for_each_sparse(a, s, [&](const Sequence& one, size_t b) {
    const Tensor log = logs[b].squeeze(-1).to(at::kFloat);  // the sum is 1 above it
    const Tensor total = (log != INFINITY).to(at::kFloat);
    const Tensor products = (dys[b].to(at::kFloat) * outs[b].to(at::kFloat)).sum(-1);
    const Gradients g = differentiate(one, dys[b], log.masked_fill(total == 0, 0), total, products);
    gqs[b].copy_(g.q);
    gks[b].copy_(g.k);
    gvs[b].copy_(g.v);
  });
  dq = gq;
  dk = gk;
  dv = gv;
}

// ---- attention of edges over the paths of two edges: query [B, H, N, M, D] of the edge (i, k),
// keys and values [B, H, N, K, D] of (i, j) and [B, H, K, M, D] of (j, k), a softmax over j ----

struct Paths {
  Tensor q, k0, v0, k1, v1;  // in float
  Tensor scores;             // scaled, [B, H, N, M, K]
};

Paths paths_of(const Tensor& q, const Tensor& k0, const Tensor& v0, const Tensor& k1,
               const Tensor& v1, const Tensor& mask, double scale) {
  check_rank(q, "queryIk", 5, 5);
  check_rank(k0, "keyIj", 5, 5);
  const int64_t b = q.size(0), h = q.size(1), n = q.size(2), m = q.size(3), d = q.size(4);
  const int64_t k = k0.size(3);
  check_shape(k0, "keyIj", {b, h, n, k, d});
  check_shape(v0, "valueIj", {b, h, n, k, d});
  check_shape(k1, "keyJk", {b, h, k, m, d});
  check_shape(v1, "valueJk", {b, h, k, m, d});
  if (mask.defined()) check_shape(mask, "attenMask", {b, 1, n, 1, k});
  for (const Tensor* x : {&q, &k0, &v0, &k1, &v1})
    require(x->is_floating_point(), "queries, keys and values must have floating-point numbers");
  Paths p{q.to(at::kFloat),  k0.to(at::kFloat), v0.to(at::kFloat),
          k1.to(at::kFloat), v1.to(at::kFloat), {}};
  // q k0: for each (i, k) over j; q k1: for each (k, i) over j.
  const Tensor first = at::matmul(p.q, p.k0.transpose(3, 4));
  const Tensor second = at::matmul(p.q.transpose(2, 3), p.k1.permute({0, 1, 3, 4, 2}));
  p.scores = (first + second.transpose(2, 3)) * scale;
  if (mask.defined()) p.scores = p.scores.masked_fill(mask.to(at::kBool), -INFINITY);
  return p;
}

// Of weights [B, H, N, M, K]: the sum over j of w (x0 of (i, j) + x1 of (j, k)).
Tensor over_paths(const Tensor& w, const Tensor& x0, const Tensor& x1) {
  return at::matmul(w, x0) + at::matmul(w.transpose(2, 3), x1.transpose(2, 3)).transpose(2, 3);
}

// The sums of w y over k for each (i, j), and over i for each (j, k).
std::pair<Tensor, Tensor> by_edges(const Tensor& w, const Tensor& y) {
  return {at::matmul(w.transpose(3, 4), y),
          at::matmul(w.permute({0, 1, 3, 4, 2}), y.transpose(2, 3)).transpose(2, 3)};
}

Tensor eight_of(const Tensor& x) {
  Ints shape = x.sizes().vec();
  shape.back() = 8;
  return x.expand(shape);
}

void floyd_attention(Tensor q, Tensor k0, Tensor v0, Tensor k1, Tensor v1, Tensor mask,
                     double scale, Out most_out, Out sum_out, Out out) {
  const Paths p = paths_of(q, k0, v0, k1, v1, mask, scale);
  require_shape(p.scores.size(4) > 0, "keyIj must have keys, but has shape ", k0.sizes());
  const Tensor most = std::get<0>(p.scores.max(-1, true)).clamp_min(kLowest);
  const Tensor x = at::exp(p.scores - most), sum = x.sum(-1, true);
  check_result(most_out.tensor(), eight_of(most), "softmaxMax");
  check_result(sum_out.tensor(), eight_of(sum), "softmaxSum");
  out = over_paths((x / sum).masked_fill(sum == 0, 0), p.v0, p.v1);
  most_out = eight_of(most);
  sum_out = eight_of(sum);
}

void floyd_attention_grad(Tensor q, Tensor k0, Tensor v0, Tensor k1, Tensor v1, Tensor dy,
                          Tensor mask, Tensor most, Tensor sum, Tensor y, double scale, Out dq,
                          Out dk0, Out dv0, Out dk1, Out dv1) {
  const Paths p = paths_of(q, k0, v0, k1, v1, mask, scale);
  check_shape(dy, "gradOutput", q.sizes());
  check_shape(y, "attentionOut", q.sizes());
  Ints shape = q.sizes().vec();
  shape.back() = 8;
  check_shape(most, "softmaxMax", shape);
  check_shape(sum, "softmaxSum", shape);
  const Tensor total = sum.narrow(4, 0, 1).to(at::kFloat);
  const Tensor weights =
      (at::exp(p.scores - most.narrow(4, 0, 1).to(at::kFloat)) / total).masked_fill(total <= 0, 0);
  const Tensor g = dy.to(at::kFloat);
  const Tensor dp = at::matmul(g, p.v0.transpose(3, 4)) +
                    at::matmul(g.transpose(2, 3), p.v1.permute({0, 1, 3, 4, 2})).transpose(2, 3);
  const Tensor ds = weights * (dp - (g * y.to(at::kFloat)).sum(-1, true)) * scale;
  dq = over_paths(ds, p.k0, p.k1);
  std::tie(k0, k1) = by_edges(ds, p.q);
  std::tie(v0, v1) = by_edges(weights, g);
  dk0 = k0;
  dk1 = k1;
  dv0 = v0;
  dv1 = v1;
}

}  // namespace

const Composite sparse_attention_composites[] = {
    ENTRY(block_sparse_attention),
    ENTRY(block_sparse_attention_grad),
    ENTRY(floyd_attention),
    ENTRY(floyd_attention_grad),
    {},
};

}  // namespace openaclnn::aten
