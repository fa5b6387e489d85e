// SPDX-License-Identifier: Apache-2.0
// With p the probabilities: dv = pᵀ dy, ds = p (dp - sum(dp p)), dq = scale ds k, dk = scale dsᵀ q.
#include "core/torch/aten/composites/attention_training.h"

namespace openaclnn::aten {
namespace {

// One number for each head and row: [B, N, S], of TND [T, N].
Tensor empty_statistics(const Training& t, const Shape& s) {
  const auto options = t.q.options().dtype(wide_of(t.q));
  if (t.packed) return at::zeros({t.q.size(0), s.heads}, options);
  return at::zeros({s.batches, s.heads, s.rows.empty() ? 0 : s.rows[0]}, options);
}

// [N, S] of each sequence, views of them.
Tensors statistics(const Tensor& x, const Training& t, const Shape& s) {
  if (!t.packed) return x.unbind(0);
  Tensors made;
  int64_t first = 0;
  for (const int64_t length : s.rows) {
    made.push_back(
        t.rows_first
            ? x.narrow(0, first, length).t()
            : x.flatten().narrow(0, first * s.heads, length * s.heads).view({s.heads, length}));
    first += length;
  }
  return made;
}

// The program has eight of each.
Tensor eightfold(const Tensor& x) {
  Ints shape = x.sizes().vec();
  shape.push_back(8);
  return x.unsqueeze(-1).expand(shape);
}

Tensor single(const Tensor& eight, const Tensor& like, const char* name) {
  check_shape(eight, name, eightfold(like).sizes());
  return eight.select(-1, 0).contiguous();
}

// That of query with the head size of value.
Ints shape_of_out(const Training& t, const Shape& s) {
  Ints shape = t.q.sizes().vec();
  const bool joined = t.layout == "BSH" || t.layout == "SBH";
  shape.back() = joined ? s.heads * (t.v.size(2) / s.kv_heads) : t.v.size(-1);
  return shape;
}

}  // namespace

void attend_training(const Training& t, const Out& largest, const Out& total, const Out& softmax,
                     const Out& out) {
  const Shape s = shape_of(t);
  const Tensor made = at::zeros(shape_of_out(t, s), t.q.options());
  const Tensor most = empty_statistics(t, s), sums = empty_statistics(t, s);
  check_result(largest.tensor(), eightfold(most), "softmaxMax");
  check_result(total.tensor(), eightfold(sums), "softmaxSum");
  check_result(out.tensor(), made, "attentionOut");
  const Tensors outs = sequences(made, "attentionOut", t, s.heads, s.rows);
  const Tensors all_most = statistics(most, t, s), all_sums = statistics(sums, t, s);
  for_each_sequence(t, s, [&](const Sequence& one, size_t b) {
    const Attended a = attend(one);
    outs[b].copy_(a.out);
    all_most[b].copy_(a.largest);
    all_sums[b].copy_(a.total);
  });
  leave(softmax.tensor());
  largest = eightfold(most);
  total = eightfold(sums);
  out = made;
}

void differentiate_training(const Training& t, const Tensor& dy, const Given& given,
                            const Derived& to) {
  const Shape s = shape_of(t);
  check_shape(dy, "dy", shape_of_out(t, s));
  require(dy.is_floating_point(), "dy must have floating-point numbers, but is ", dy.scalar_type());
  const auto zeros = [](const Tensor& x) {
    return x.defined() ? at::zeros(x.sizes(), x.options()) : x;
  };
  const Tensor dq = zeros(t.q), dk = zeros(t.k), dv = zeros(t.v);
  const Tensor dq_rope = zeros(t.q_rope), dk_rope = zeros(t.k_rope), dsink = zeros(t.sink);
  check_result(to.q.tensor(), dq, "dq");
  check_result(to.k.tensor(), dk, "dk");
  check_result(to.v.tensor(), dv, "dv");
  const Tensor like = empty_statistics(t, s);
  const bool has_statistics = given.largest.defined() && given.total.defined();
  Tensors most, sums;
  if (has_statistics) {
    most = statistics(single(given.largest, like, "softmaxMax"), t, s);
    sums = statistics(single(given.total, like, "softmaxSum"), t, s);
  }
  if (is_given(given.out)) check_shape(given.out, "attentionIn", dy.sizes());
  const auto of_rows = [&](const Tensor& x) {
    return is_given(x) ? sequences(x, "a gradient", t, s.heads, s.rows) : Tensors();
  };
  const auto of_keys = [&](const Tensor& x) {
    return is_given(x) ? sequences(x, "a gradient", t, s.kv_heads, s.keys) : Tensors();
  };
  const Tensors dys = of_rows(dy), outs = of_rows(given.out), dqs = of_rows(dq), dks = of_keys(dk),
                dvs = of_keys(dv), dq_ropes = of_rows(dq_rope), dk_ropes = of_keys(dk_rope);
  for_each_sequence(t, s, [&](const Sequence& one, size_t b) {
    if (dys.empty() || dks.empty() || dvs.empty() || dqs.empty()) return;  // nothing to derive by
    const at::ScalarType wide = wide_of(one.q);
    const Attended a = has_statistics ? Attended{{}, most[b], sums[b]} : attend(one);
    const Tensor products = outs.empty() ? Tensor() : (dys[b].to(wide) * outs[b].to(wide)).sum(-1);
    const Gradients g = differentiate(one, dys[b], a.largest, a.total, products);
    const int64_t d = dqs[b].size(2);
    dqs[b].copy_(g.q.narrow(-1, 0, d));
    dks[b].copy_(g.k.narrow(-1, 0, d));
    dvs[b].copy_(g.v);
    if (!dq_ropes.empty()) dq_ropes[b].copy_(g.q.narrow(-1, d, dq_ropes[b].size(2)));
    if (!dk_ropes.empty()) dk_ropes[b].copy_(g.k.narrow(-1, d, dk_ropes[b].size(2)));
    if (dsink.defined()) dsink.add_(g.sink);
  });
  leave(to.pse.tensor());
  to.q = dq;
  to.k = dk;
  to.v = dv;
  const bool roped = dq_rope.defined();
  require(roped || (!is_given(to.q_rope.tensor()) && !is_given(to.k_rope.tensor())),
          "dqRope and dkRope must be NULL or empty where queryRope and keyRope are");
  if (is_given(to.q_rope.tensor())) to.q_rope = dq_rope;
  if (is_given(to.k_rope.tensor())) to.k_rope = dk_rope;
  if (!is_given(to.sink.tensor())) return;
  require(dsink.defined(), "dsink must be NULL or empty where sink is");
  to.sink = dsink;
}

}  // namespace openaclnn::aten
