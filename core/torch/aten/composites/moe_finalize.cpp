// SPDX-License-Identifier: Apache-2.0
// The sum of the experts' rows for each token (FinalizeRouting), and gradients of the routing.
#include "core/torch/aten/composites/places.h"

namespace openaclnn::aten {
namespace {

Tensor flat_rows(const Tensor& x) {
  check_rank(x, "the rows of experts", 2, 3);
  return x.flatten(0, -2);
}

struct Finalize {
  Tensor expanded, row_idx, x1, x2, bias, scales, expert_idx;
  int64_t mode, choices;  // the choices where scales do not say them
  Out out;

  void run() const {
    const Tensor rows = flat_rows(expanded);
    const int64_t h = rows.size(1);
    int64_t k = choices;
    if (has(scales)) {
      check_rank(scales, "scales", 2, 2);
      k = scales.size(1);
    }
    require_shape(k > 0 && row_idx.numel() % k == 0, "expandedRowIdx must have ", k,
                  " elements for each token, but has shape ", row_idx.sizes());
    const int64_t tokens = row_idx.numel() / k;
    if (has(scales)) check_shape(scales, "scales", {tokens, k});
    const Tensor given = row_idx.flatten().to(at::kLong);
    const bool columns_first = mode == 0 || mode == 1;
    const Tensor places = columns_first ? given.reshape({k, tokens}).t().reshape({-1}) : given;
    Tensor y;
    if (!has(bias)) {
      y = summed_rows(rows, places, scales, k);
    } else {
      y = at_least_float(rows_at(rows, places)).reshape({tokens, k, h});
      check_rank(bias, "bias", 2, 2);
      require(has(expert_idx), "expertIdx must not be NULL where bias is given");
      check_shape(expert_idx, "expertIdx", {tokens, k});
      const Tensor of_expert = rows_at(bias, expert_idx.flatten().to(at::kLong));
      y = y + at_least_float(of_expert).reshape({tokens, k, h});
      if (has(scales)) y = y * at_least_float(scales).unsqueeze(2);
      y = y.sum(1);
    }
    for (const Tensor& x : {x1, x2}) {
      if (!has(x)) continue;
      check_shape(x, "x1 and x2", {tokens, h});
      y = y + at_least_float(x);
    }
    out = y;
  }
};

void moe_finalize_routing(Tensor expanded, Tensor x1, Tensor x2, Tensor bias, Tensor scales,
                          Tensor row_idx, Tensor expert_idx, Out out) {
  Finalize{expanded, row_idx, x1, x2, bias, scales, expert_idx, 0, 1, out}.run();
}

void moe_finalize_routing_v2(Tensor expanded, Tensor row_idx, Tensor x1, Tensor x2, Tensor bias,
                             Tensor scales, Tensor expert_idx, int64_t mode, Out out) {
  Finalize{expanded, row_idx, x1, x2, bias, scales, expert_idx, mode, 1, out}.run();
}

void moe_finalize_routing_v4(Tensor expanded, Tensor row_idx, Tensor x1, Tensor x2, Tensor bias,
                             Tensor scales, Tensor expert_idx, Tensor x, Tensor alpha1,
                             Tensor alpha2, Tensor v, int64_t mode, Ints zero, Ints copy,
                             Ints constant, int64_t choices, Out out) {
  require(!has(x) && !has(alpha1) && !has(alpha2) && !has(v) && zero.empty() && copy.empty() &&
              constant.empty(),
          "x, alpha1, alpha2, v and the ranges of zero, copy and constant experts must be NULL");
  Finalize{expanded, row_idx, x1, x2, bias, scales, expert_idx, mode, choices, out}.run();
}

// gradExpandedX[row[s]] = gradY[s / K] scales[s]; gradScales[s] = (expandedX[row[s]] + bias) gradY
void moe_finalize_routing_v2_grad(Tensor gradient, Tensor row_idx, Tensor expanded, Tensor scales,
                                  Tensor expert_idx, Tensor bias, int64_t, int64_t, int64_t,
                                  int64_t, Out out, Out out_scales) {
  check_rank(gradient, "gradY", 2, 2);
  check_rank(out.tensor(), "gradExpandedXOut", 2, 3);
  const int64_t h = gradient.size(1);
  const int64_t k = has(scales) ? (check_rank(scales, "scales", 2, 2), scales.size(1)) : 1;
  require_shape(row_idx.numel() == gradient.size(0) * k, "expandedRowIdx must have ",
                gradient.size(0) * k, " elements, but has shape ", row_idx.sizes());
  require_shape(out.tensor().size(-1) == h, "gradExpandedXOut must have ", h,
                " columns, but has shape ", out.tensor().sizes());
  const Ints shape = out.tensor().sizes().vec();
  const int64_t rows = shape.size() == 3 ? shape[0] * shape[1] : shape[0];
  const Tensor places = row_idx.flatten().to(at::kLong);
  Tensor up = at_least_float(gradient).repeat_interleave(k, 0);
  if (has(scales)) {
    check_shape(scales, "scales", {gradient.size(0), k});
    check_given(expanded, "expandedX");
    Tensor y = at_least_float(rows_at(flat_rows(expanded).slice(0, 0, rows), places));
    if (has(bias)) {
      require(has(expert_idx), "expertIdx must not be NULL where bias is given");
      check_rank(bias, "bias", 2, 2);
      check_shape(expert_idx, "expertIdx", scales.sizes());
      y = y + at_least_float(rows_at(bias, expert_idx.flatten().to(at::kLong)));
    }
    out_scales = (y * up).sum(1).reshape(scales.sizes());
    up = up * at_least_float(scales).reshape({-1, 1});
  }
  out = rows_to(up, places, rows).reshape(shape);
}

// out[t] = sum over k of gradient[row[t K + k]]
void moe_init_routing_v2_grad(Tensor gradient, Tensor row_idx, int64_t choices, int64_t padded,
                              int64_t active, Out out) {
  Tensor rows = flat_rows(gradient);
  if (padded == 0 && active > 0) rows = rows.slice(0, 0, active);
  require_shape(row_idx.numel() % choices == 0, "expandedRowIdx must have ", choices,
                " elements for each token, but has shape ", row_idx.sizes());
  out = summed_rows(rows, row_idx.flatten().to(at::kLong), {}, choices);
}

// ---- tokens of several ranks ----

// The rows in the order expert, rank; they come as rank, expert.
std::vector<int64_t> order_of(const Tensor& given, int64_t rows, int64_t kind) {
  const Tensor counts = given.to(at::kLong).contiguous();
  const int64_t ranks = counts.size(0), experts = counts.size(1);
  const auto* count = data_of<int64_t>(counts);
  std::vector<int64_t> first(static_cast<size_t>(counts.numel()));
  int64_t begin = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    require(count[i] >= 0, "expertTokenNumPerRank must have counts from 0, but has ", count[i]);
    first[i] = begin;
    begin += std::min(count[i], rows - begin);  // rows that do not exist are left out
  }
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(rows));
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t r = 0; r < ranks; ++r) {
      const auto i = static_cast<size_t>(r * experts + e);
      const int64_t end = i + 1 < first.size() ? first[i + 1] : begin;
      for (int64_t row = first[i]; row < end; ++row) order.push_back(row);
    }
  for (int64_t row = begin; row < rows; ++row) order.push_back(row);
  if (kind == 0) return order;
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

void moe_re_routing(Tensor tokens, Tensor counts, Tensor scales, int64_t counts_type,
                    int64_t idx_type, Out permuted, Out permuted_scales, Out idx, Out totals) {
  check_rank(tokens, "tokens", 2, 2);
  const int64_t rows = tokens.size(0);
  if (has(scales))
    require_shape(scales.size(0) == rows, "perTokenScales must have ", rows,
                  " rows, but has shape ", scales.sizes());
  check_optional(permuted.tensor(), "permuteTokensOut", tokens.sizes());
  check_optional(idx.tensor(), "permuteTokenIdxOut", {rows});
  const Tensor sums = counts.to(at::kLong).sum(0);
  totals = counts_type == 1 ? sums : sums.cumsum(0);
  const Tensor own = counts.is_meta() ? numbers_to(rows, tokens)
                                      : at::tensor(order_of(counts, rows, 0), at::kLong);
  permuted = select_rows(tokens, own);
  if (has(scales))
    permuted_scales = select_rows(scales, own);
  else if (permuted_scales.tensor().defined())
    permuted_scales.tensor().fill_(1);
  idx = (idx_type == 0 ? own : inverse_of(own)).to(at::kInt);
}

void moe_compute_expert_tokens(Tensor sorted, int64_t experts, Out out) {
  check_shape(out.tensor(), "out", {experts});
  const Tensor ids = at::arange(experts, sorted.options());
  out = ids.is_meta() ? ids
                      : at::searchsorted(sorted.contiguous(), ids, /*out_int32=*/true,
                                         /*right=*/true);
}

// The physical expert of each choice, from rows [count, ids ...] of eplbTable. Ids outside the
// table stay as they are.
void moe_update_expert(Tensor ids, Tensor table, Tensor scales, Tensor threshold, Tensor active,
                       int64_t rank, int64_t world, int64_t mode, Out out, Out mask) {
  const int64_t rows = ids.size(0), experts = table.size(0), copies = table.size(1) - 1;
  require_shape(copies > 0, "eplbTable must have a count and ids, but has shape ", table.sizes());
  require(mode != 0 || (world > 0 && 0 <= rank && rank < world),
          "localRankId must be from 0, below worldSize, where balanceMode is 0, but they are ",
          rank, " and ", world);
  const Tensor e = ids.to(at::kLong), wide = table.to(at::kLong);
  const Tensor inside = (e >= 0).bitwise_and(e < experts);
  const Tensor own = at::clamp(e, 0, std::max<int64_t>(experts - 1, 0)).flatten();
  if (experts > 0) {
    const Tensor of_slot = select_rows(wide, own);
    const Tensor count = at::clamp(of_slot.select(1, 0), 1, copies);
    Tensor copy;
    if (mode == 0)
      copy = at::full_like(count, rank).div((count + (world - 1)).div(count, "trunc"), "trunc");
    else
      copy = numbers_to(rows, e).unsqueeze(1).expand_as(e).flatten().remainder(count);
    copy = choose(count == 1, 0, copy);
    const Tensor found =
        of_slot.gather(1, (at::clamp(copy, 0, copies - 1) + 1).unsqueeze(1)).reshape(ids.sizes());
    out = choose(inside, found, e);
  } else {
    out = e;
  }
  if (!has(scales) || !has(threshold)) return leave(mask.tensor());
  check_shape(scales, "expertScales", ids.sizes());
  require_shape(threshold.numel() == ids.size(1), "pruningThreshold must have ", ids.size(1),
                " elements, but has shape ", threshold.sizes());
  const Tensor s = scales.to(at::kFloat);
  Tensor kept = s >= s.sum(1, true) * threshold.to(at::kFloat).reshape({1, -1});
  if (has(active)) {
    require_shape(active.numel() == rows, "activeMask must have ", rows,
                  " elements, but has shape ", active.sizes());
    kept = kept.bitwise_and(active.to(at::kBool).reshape({-1, 1}));
  }
  mask = kept;
}

}  // namespace

const Composite moe_finalize_composites[] = {
    ENTRY(moe_compute_expert_tokens),
    ENTRY(moe_finalize_routing),
    ENTRY(moe_finalize_routing_v2),
    ENTRY(moe_finalize_routing_v2_grad),
    ENTRY(moe_finalize_routing_v4),
    ENTRY(moe_init_routing_v2_grad),
    ENTRY(moe_re_routing),
    ENTRY(moe_update_expert),
    {},
};

}  // namespace openaclnn::aten
