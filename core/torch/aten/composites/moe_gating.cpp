// SPDX-License-Identifier: Apache-2.0
// The experts of each token. Of equal values the one with the lower index comes first.
#include "core/torch/aten/composites/places.h"

namespace openaclnn::aten {
namespace {

Tensor best(const Tensor& x, int64_t k) {
  return stable_order(x, /*descending=*/true).slice(-1, 0, k);
}

constexpr int64_t kSoftmax = 0, kSigmoid = 1;

Tensor gate(const Tensor& x, int64_t kind) {
  const Tensor wide = at_least_float(x);
  if (kind == kSoftmax) return at::softmax(wide, -1);
  return kind == kSigmoid ? at::sigmoid(wide) : at::sqrt(at::softplus(wide));
}

struct Gating {
  Tensor x, bias;
  int64_t k, kept_groups, groups, select_mode, renorm, norm_type;
  bool with_norm;
  double factor, eps;
  Out y, idx, norm_out;

  void check() const {
    const int64_t experts = x.size(1);
    require(groups <= 1 || experts % groups == 0, "groupCount must divide the ", experts,
            " experts, but is ", groups);
    const int64_t many = std::max<int64_t>(groups, 1), in_group = experts / many;
    require(groups <= 1 || (kept_groups >= 1 && kept_groups <= groups),
            "kGroup must be from 1 to groupCount, ", groups, ", but got ", kept_groups);
    const int64_t most = groups <= 1 ? experts : kept_groups * in_group;
    require(k >= 1 && k <= most, "k must be from 1 to ", most, ", but got ", k);
    require(groups <= 1 || select_mode == 0 || in_group >= 2,
            "groups must have at least 2 experts where groupSelectMode is 1, but have ", in_group);
  }

  Tensor chosen(const Tensor& norm) const {
    Tensor by = has(bias) ? norm + at_least_float(bias) : norm;
    if (groups > 1) {
      const Tensor g = by.reshape({x.size(0), groups, -1});
      const Tensor rank = select_mode == 0 ? g.amax(-1) : std::get<0>(g.topk(2, -1)).sum(-1);
      const Tensor left = at::ones({x.size(0), groups}, rank.options().dtype(at::kBool));
      left.scatter_(1, best(rank, kept_groups), false);
      by = g.masked_fill(left.unsqueeze(-1), -INFINITY).reshape(x.sizes());
    }
    return best(by, k);
  }

  void put_all(const Tensor& norm, const Tensor& experts) const {
    Tensor weights = norm.gather(1, experts);
    if (norm_type == kSigmoid || renorm == 1) weights = weights / (weights.sum(1, true) + eps);
    y = weights * factor;
    idx = experts.to(at::kInt);
    if (with_norm)
      norm_out = norm;
    else
      leave(norm_out.tensor());
  }

  void run() const {
    check_real(x, "x");
    check();
    const Tensor norm = gate(x, norm_type);
    put_all(norm, chosen(norm));
  }
};

void moe_gating_top_k(Tensor x, Tensor bias, int64_t k, int64_t kept_groups, int64_t groups,
                      int64_t select_mode, int64_t renorm, int64_t norm_type, bool with_norm,
                      double factor, double eps, Out y, Out idx, Out norm) {
  Gating{x,         bias,      k,      kept_groups, groups, select_mode, renorm,
         norm_type, with_norm, factor, eps,         y,      idx,         norm}
      .run();
}

// With a table of ids the experts are its row of the token's id.
void moe_gating_top_k_v2(Tensor x, Tensor bias, Tensor ids, Tensor table, int64_t k,
                         int64_t kept_groups, int64_t groups, int64_t select_mode, int64_t renorm,
                         int64_t norm_type, bool with_norm, double factor, double eps, Out y,
                         Out idx, Out norm_out) {
  const Gating g{x,         bias,      k,      kept_groups, groups, select_mode, renorm,
                 norm_type, with_norm, factor, eps,         y,      idx,         norm_out};
  if (!has(table)) return g.run();
  check_real(x, "x");
  check_rank(table, "tid2eid", 2, 2);
  check_given(ids, "inputIds");
  require(at::isIntegralType(table.scalar_type(), false) &&
              at::isIntegralType(ids.scalar_type(), false),
          "inputIds and tid2eid must have integers");
  require_shape(ids.numel() == x.size(0), "inputIds must have ", x.size(0),
                " elements, but has shape ", ids.sizes());
  require(k >= 1 && k <= table.size(1), "k must be from 1 to the columns of tid2eid, ",
          table.size(1), ", but got ", k);
  check_positions(ids, "inputIds", table.size(0));
  const Tensor experts =
      select_rows(table, ids.flatten().to(at::kLong)).slice(1, 0, k).to(at::kLong);
  check_positions(experts, "tid2eid", x.size(1));
  g.put_all(gate(x, norm_type), experts);
}

// norm is the third result of the forward function.
void moe_gating_top_k_backward(Tensor norm, Tensor gradient, Tensor idx, int64_t renorm,
                               int64_t norm_type, double factor, double eps, Out out) {
  check_shape(idx, "expertIdx", gradient.sizes());
  check_positions(idx, "expertIdx", norm.size(1));
  const Tensor places = idx.to(at::kLong), n = at_least_float(norm);
  Tensor g = at_least_float(gradient) * factor;
  if (norm_type == kSigmoid || renorm == 1) {
    const Tensor weights = n.gather(1, places), total = weights.sum(1, true) + eps;
    g = g / total - (g * weights).sum(1, true) / at::square(total);
  }
  const Tensor all = at::zeros_like(n).scatter_(1, places, g.to(n.scalar_type()));
  out = norm_type == kSigmoid ? all * n * (1 - n) : n * (all - (all * n).sum(1, true));
}

// Finished tokens have the expert after the last one.
Tensor marked(const Tensor& experts, const Tensor& finished, int64_t count) {
  if (!has(finished)) return experts;
  require_shape(finished.numel() == experts.size(0), "finished must have ", experts.size(0),
                " elements, but has shape ", finished.sizes());
  return experts.masked_fill(finished.to(at::kBool).reshape({-1, 1}), count);
}

Tensor flat_tokens(const Tensor& x, int64_t k) {
  check_real(x, "x");
  check_rank(x, "x", 2, 3);
  require(k >= 1 && k <= x.size(-1), "k must be from 1 to ", x.size(-1), ", but got ", k);
  return at_least_float(x).reshape({-1, x.size(-1)});
}

Ints shape_with(const Tensor& x, int64_t k) {
  Ints shape = x.sizes().vec();
  shape.back() = k;
  return shape;
}

void moe_gating_top_k_softmax(Tensor x, Tensor finished, int64_t k, Out y, Out idx, Out rows) {
  const Tensor p = at::softmax(flat_tokens(x, k), -1), experts = best(p, k);
  const int64_t tokens = p.size(0);
  const Ints shape = shape_with(x, k);
  y = p.gather(1, experts).reshape(shape);
  idx = marked(experts, finished, x.size(-1)).reshape(shape).to(at::kInt);
  const Tensor row = numbers_to(k, p).unsqueeze(0) * tokens + numbers_to(tokens, p).unsqueeze(1);
  rows = row.reshape(shape).to(at::kInt);
}

void moe_gating_top_k_softmax_v2(Tensor x, Tensor finished, int64_t k, int64_t renorm,
                                 bool with_softmax, Out y, Out idx, Out softmax) {
  const Tensor flat = flat_tokens(x, k), p = at::softmax(flat, -1);
  const Tensor experts = best(renorm == 0 ? p : flat, k);
  const Ints shape = shape_with(x, k);
  y = (renorm == 0 ? p.gather(1, experts) : at::softmax(flat.gather(1, experts), -1))
          .reshape(shape);
  idx = marked(experts, finished, x.size(-1)).reshape(shape).to(at::kInt);
  if (with_softmax && renorm == 0)
    softmax = p.reshape(x.sizes());
  else
    leave(softmax.tensor());
}

}  // namespace

const Composite moe_gating_composites[] = {
    ENTRY(moe_gating_top_k),         ENTRY(moe_gating_top_k_backward),
    ENTRY(moe_gating_top_k_softmax), ENTRY(moe_gating_top_k_softmax_v2),
    ENTRY(moe_gating_top_k_v2),      {},
};

}  // namespace openaclnn::aten
