// SPDX-License-Identifier: Apache-2.0
// The rows of experts back to the ranks of their tokens, and their weighted sums.
#include "core/torch/aten/composites/expert_ranks.h"
#include "core/torch/aten/composites/residual_norm.h"

namespace openaclnn::aten {
namespace {

// What the versions of combine add to each other.
struct Added {
  Tensor shared_x{}, elastic{}, x{}, alpha1{}, alpha2{}, v{}, performance{};
};

// xOut[t] = sum over k of gate[t, k] row(t, k), rows of shared experts, and sharedExpertX[t].
Tensor combined(const Tensor& rows, const Tensor& ids, const Tensor& counts, const Tensor& gates,
                const Tensor& mask, const Tensors& absent, const Added& added, const Experts& e) {
  for (const Tensor& x : absent)
    require(!has(x), "activationScale, weightScale and groupList must be NULL");
  require(!has(added.elastic) && !has(added.performance),
          "elasticInfo and performanceInfo must be NULL");
  const Group group = e.group();
  check_given(gates, "expertScales");
  check_tokens(rows, "expandX", ids, mask, gates);
  check_rank(rows, "expandX", 2, 2);
  const int64_t h = rows.size(1), tokens = ids.size(0), own = e.is_shared(e.rank) ? 1 : e.local();
  require_shape(counts.numel() >= e.world * own, "epSendCounts must have ", e.world * own,
                " elements, but has shape ", counts.sizes());
  if (has(added.shared_x))
    require_shape(added.shared_x.numel() == tokens * h, "sharedExpertX must have shape [", tokens,
                  ", ", h, "], but got ", added.shared_x.sizes());
  if (e.copy + e.constant > 0) {
    check_given(added.x, "oriX");
    check_shape(added.x, "oriX", {tokens, h});
  }
  if (e.constant > 0) {
    for (const Tensor* alpha : {&added.alpha1, &added.alpha2}) {
      check_given(*alpha, "constExpertAlpha");
      require_shape(alpha->dim() > 0 && alpha->size(0) == e.constant &&
                        (alpha->numel() == e.constant || alpha->numel() == e.constant * h),
                    "constExpertAlpha1 and 2 must have shape [", e.constant, "] or [", e.constant,
                    ", ", h, "], but one has ", alpha->sizes());
    }
    check_shape(added.v, "constExpertV", {e.constant, h});
  }
  const Tensor y = at::zeros({tokens, h}, rows.options().dtype(at::kFloat));
  if (rows.is_meta()) return y;

  const Routing routing(e, ids, mask);
  group.agree({kCombine, h, number_of(rows.scalar_type()), e.count, e.shared_ranks},
              "operator, row size, dtype and numbers of experts");
  const Tensor theirs = group.exchanged(at::tensor(routing.counts.of, at::kLong));
  const Counts held{numbers_in(theirs, "counts"), e.world, e.local()};
  const Ints ends = ends_of(held, own);
  const int64_t end = ends.back();
  Ints given = numbers_in(counts, "epSendCounts");
  given.resize(ends.size());
  group.require_all(given == ends && end <= rows.size(0),
                    "epSendCounts and expandX must be those "
                    "of the dispatch of these expertIds");
  Tensor by_rank = at::empty({end, h}, rows.options());
  by_rank.index_copy_(0, held.by_expert_first(rows), rows.slice(0, 0, end));
  const Tensor home = group.exchanged(by_rank, held.by_rank(), routing.counts.by_rank());
  const Tensor weight = gates.to(at::kFloat).contiguous();
  const auto* gate = weight.const_data_ptr<float>();
  std::vector<float> factors;
  for (const SentRow& row : routing.rows)
    factors.push_back(row.choice < 0 ? 1 : gate[row.token * ids.size(1) + row.choice]);
  const Tensor factor = at::tensor(factors, at::kFloat).unsqueeze(1);
  y.index_add_(0, routing.column(&SentRow::token), home.to(at::kFloat) * factor);
  if (has(added.shared_x)) y.add_(added.shared_x.reshape({tokens, h}));
  const Tensor active = active_of(mask, tokens, ids.size(1));
  // Experts without a rank: zero ones add nothing, then copies, then constants.
  const int64_t first = e.count + e.zero, last = first + e.copy;
  for (int64_t k = 0; e.copy + e.constant > 0 && k < ids.size(1); ++k) {
    const Tensor id = ids.select(1, k).to(at::kLong), g = weight.select(1, k);
    const auto put_where = [&](const Tensor& chosen, const Tensor& value) {
      Tensor on = chosen;
      if (active.defined()) on = on.bitwise_and(active.select(1, active.size(1) == 1 ? 0 : k));
      y.add_(at::where(on.unsqueeze(1), g.unsqueeze(1) * value, 0));
    };
    const Tensor x = added.x.to(at::kFloat);
    put_where((id >= first).bitwise_and(id < last), x);
    for (int64_t c = 0; c < e.constant; ++c)
      put_where(id == last + c, added.alpha1[c].to(at::kFloat) * x +
                                    added.alpha2[c].to(at::kFloat) * added.v[c].to(at::kFloat));
  }
  if (active.defined()) y.masked_fill_(active.any(1, true).logical_not(), 0);
  return y;
}

void moe_combine(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor, Tensor mask,
                 Tensor activation_scale, Tensor weight_scale, Tensor list, Tensor, Text name,
                 int64_t world, int64_t rank, int64_t experts, Text, int64_t tp, int64_t,
                 int64_t shard, int64_t shared, int64_t shared_ranks, int64_t global_rows, int64_t,
                 int64_t, int64_t, Out out) {
  out = combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list}, {},
                 {name, world, rank, experts, tp, shard, shared, shared_ranks, global_rows});
}
void moe_combine_v2(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor, Tensor mask,
                    Tensor activation_scale, Tensor weight_scale, Tensor list, Tensor,
                    Tensor shared_x, Text name, int64_t world, int64_t rank, int64_t experts, Text,
                    int64_t tp, int64_t, int64_t shard, int64_t shared, int64_t shared_ranks,
                    int64_t global_rows, int64_t, int64_t, int64_t, Text, Out out) {
  out = combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list}, {shared_x},
                 {name, world, rank, experts, tp, shard, shared, shared_ranks, global_rows});
}
void moe_combine_v3(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor, Tensor mask,
                    Tensor activation_scale, Tensor weight_scale, Tensor list, Tensor,
                    Tensor shared_x, Tensor elastic, Tensor ori, Tensor alpha1, Tensor alpha2,
                    Tensor v, Text name, int64_t world, int64_t rank, int64_t experts, Text,
                    int64_t tp, int64_t, int64_t shard, int64_t shared, int64_t shared_ranks,
                    int64_t global_rows, int64_t, int64_t, int64_t, Text, int64_t zero,
                    int64_t copy, int64_t constant, Out out) {
  out = combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list},
                 {shared_x, elastic, ori, alpha1, alpha2, v},
                 {name, world, rank, experts, tp, shard, shared, shared_ranks, global_rows, zero,
                  copy, constant});
}
void moe_combine_v4(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor, Tensor mask,
                    Tensor activation_scale, Tensor weight_scale, Tensor list, Tensor,
                    Tensor shared_x, Tensor elastic, Tensor ori, Tensor alpha1, Tensor alpha2,
                    Tensor v, Tensor performance, Text name, int64_t world, int64_t rank,
                    int64_t experts, Text, int64_t tp, int64_t, int64_t shard, int64_t shared,
                    int64_t shared_ranks, int64_t global_rows, int64_t, int64_t, int64_t, Text,
                    int64_t zero, int64_t copy, int64_t constant, Out out) {
  out = combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list},
                 {shared_x, elastic, ori, alpha1, alpha2, v, performance},
                 {name, world, rank, experts, tp, shard, shared, shared_ranks, global_rows, zero,
                  copy, constant});
}

void normalise_combined(const Tensor& sum, const Tensor& residual, const Tensor& gamma, double eps,
                        const Out& y, const Out& rstd, const Out& x) {
  const ResidualNorm made(sum, residual, gamma, eps, "residualX");
  y = made.norm, rstd = made.rstd, x = made.sum;
}

void moe_combine_norm(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor residual,
                      Tensor gamma, Tensor, Tensor mask, Tensor activation_scale,
                      Tensor weight_scale, Tensor list, Tensor, Tensor shared_x, Text name,
                      int64_t world, int64_t rank, int64_t experts, Text, int64_t tp, int64_t,
                      int64_t shard, int64_t shared, int64_t shared_ranks, int64_t global_rows,
                      int64_t, int64_t, int64_t, Text, double eps, Out y, Out rstd, Out sum) {
  normalise_combined(
      combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list}, {shared_x},
               {name, world, rank, experts, tp, shard, shared, shared_ranks, global_rows}),
      residual, gamma, eps, y, rstd, sum);
}
void moe_combine_norm_v2(Tensor x, Tensor ids, Tensor, Tensor counts, Tensor gates, Tensor residual,
                         Tensor gamma, Tensor, Tensor mask, Tensor activation_scale,
                         Tensor weight_scale, Tensor list, Tensor, Tensor shared_x, Tensor elastic,
                         Tensor ori, Tensor alpha1, Tensor alpha2, Tensor v, Text name,
                         int64_t world, int64_t rank, int64_t experts, Text, int64_t tp, int64_t,
                         int64_t shard, int64_t shared, int64_t shared_ranks, int64_t global_rows,
                         int64_t, int64_t, int64_t, Text, double eps, int64_t zero, int64_t copy,
                         int64_t constant, Out y, Out rstd, Out sum) {
  normalise_combined(combined(x, ids, counts, gates, mask, {activation_scale, weight_scale, list},
                              {shared_x, elastic, ori, alpha1, alpha2, v},
                              {name, world, rank, experts, tp, shard, shared, shared_ranks,
                               global_rows, zero, copy, constant}),
                     residual, gamma, eps, y, rstd, sum);
}

}  // namespace

const Composite moe_combine_composites[] = {
    ENTRY(moe_combine),
    ENTRY(moe_combine_norm),
    ENTRY(moe_combine_norm_v2),
    ENTRY(moe_combine_v2),
    ENTRY(moe_combine_v3),
    ENTRY(moe_combine_v4),
    {},
};

}  // namespace openaclnn::aten
