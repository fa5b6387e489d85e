// SPDX-License-Identifier: Apache-2.0
// Tokens in the order of their experts by a map (token, expert) of flags, and back. Without padding
// each token has as many experts; with it each expert has as many rows (its capacity), of which
// those without a token hold another one.
#include "core/torch/aten/composites/places.h"

namespace openaclnn::aten {
namespace {

Tensor by_expert(const Tensor& map) { return map.to(at::kBool).t().contiguous(); }

Tensor places_in(const Tensor& indices) { return indices.flatten().to(at::kLong); }

void check_flags(const Tensor& map, int64_t rows) {
  need_data(map);
  const auto flags = map.count_nonzero().item<int64_t>();
  require(flags == rows, "routingMap must have as many flags as there are permuted tokens, ", rows,
          ", but has ", flags);
}

int64_t capacity_of(int64_t rows, int64_t experts) {
  require(experts > 0 && rows % experts == 0, "padded tokens must be as many for each of the ",
          experts, " experts, but are ", rows);
  return rows / experts;
}

// The sum of x at each place, in so many rows.
Tensor sums_at(const Tensor& x, const Tensor& places, int64_t rows) {
  const Tensor inside = (places >= 0).bitwise_and(places < rows);
  const Tensor made = at::zeros({rows + 1, x.size(1)}, x.options());
  return made.index_add_(0, choose(inside, places, rows), x).slice(0, 0, rows);
}

Tensor sums_of_choices(const Tensor& slots, int64_t tokens) {
  require_shape(tokens > 0 ? slots.size(0) % tokens == 0 : slots.size(0) == 0,
                "permuted tokens must be as many for each of the ", tokens, " tokens, but are ",
                slots.size(0));
  const int64_t choices = tokens > 0 ? slots.size(0) / tokens : 0;
  return slots.reshape({tokens, choices, slots.size(1)}).sum(1);
}

void permute_by_map(Tensor tokens, Tensor map, Tensor probs, int64_t out_tokens, bool padded,
                    Out permuted, Out permuted_probs, Out sorted) {
  const int64_t count = tokens.size(0), experts = map.size(1);
  const Tensor flags = by_expert(map);
  Tensor ids, chosen;
  if (padded) {
    require(out_tokens >= 0 && experts > 0, "numOutTokens must be from 0, with one expert or more");
    const int64_t capacity = out_tokens / experts;
    require(capacity <= count, "numOutTokens must be at most ", count,
            " for each expert, but leaves ", capacity);
    const Tensor order = stable_order(flags.to(at::kChar), /*descending=*/true);
    const Tensor own = order.slice(1, 0, capacity);
    ids = own.flatten();
    if (has(probs)) chosen = probs.t().gather(1, own).flatten();
    sorted = ids.to(at::kInt);
  } else {
    check_rank(permuted.tensor(), "permuteTokensOut", 2, 2);
    const int64_t rows = permuted.tensor().size(0);
    check_shape(permuted.tensor(), "permuteTokensOut", {rows, tokens.size(1)});
    check_optional(permuted_probs.tensor(), "permuteProbsOut", {rows});
    check_optional(sorted.tensor(), "sortedIndicesOut", {rows});
    check_flags(flags, rows);
    ids = numbers_to(count, tokens).expand({experts, count}).masked_select(flags);
    if (has(probs)) chosen = probs.t().masked_select(flags);
    sorted = stable_order(ids).to(at::kInt);
  }
  put_rows(permuted, tokens, ids);
  permuted_probs = chosen;
}

void permute_by_map_grad(Tensor gradient, Tensor probs_gradient, Tensor sorted, Tensor map,
                         int64_t experts, int64_t tokens, bool padded, Out out, Out out_probs) {
  const Tensor places = places_in(sorted);
  const Tensor g = at_least_float(gradient);
  check_rank(g, "permutedTokenOutputGrad", 2, 2);
  // Bounds of memory, before anything is made in these sizes.
  check_rank(out.tensor(), "tokensGradOut", 2, 2);
  check_shape(out.tensor(), "tokensGradOut", {tokens, g.size(1)});
  if (padded) {
    require_shape(places.numel() == g.size(0), "sortedIndices must have ", g.size(0),
                  " elements, but has shape ", sorted.sizes());
    out = sums_at(g, places, tokens);
  } else {
    out = sums_of_choices(rows_at(g, places), tokens);
  }
  if (!has(probs_gradient)) return;
  check_shape(out_probs.tensor(), "probsGradOut", {tokens, experts});
  const int64_t rows = probs_gradient.numel();
  if (padded) {
    const int64_t capacity = capacity_of(rows, experts);
    require_shape(places.numel() == rows, "sortedIndices must have ", rows,
                  " elements, but has shape ", sorted.sizes());
    const Tensor inside = (places >= 0).bitwise_and(places < tokens);
    const Tensor columns = choose(inside, places, tokens).reshape({experts, capacity});
    const Tensor made = at::zeros({experts, tokens + 1}, probs_gradient.options());
    made.scatter_(1, columns, probs_gradient.reshape({experts, capacity}));
    out_probs = made.slice(1, 0, tokens).t();
  } else {
    check_shape(map, "routingMap", {tokens, experts});
    const Tensor flags = by_expert(map);
    check_flags(flags, rows);
    const Tensor made = at::zeros({experts, tokens}, probs_gradient.options());
    out_probs = made.masked_scatter_(flags, probs_gradient.reshape({-1})).t();
  }
}

int64_t tokens_in(const Ints& shape, const Tensor& permuted) {
  require(shape.size() == 2 && shape[0] >= 0 && shape[1] == permuted.size(1),
          "restoreShape must be the number of tokens and ", permuted.size(1), ", but is ",
          at::IntArrayRef(shape));
  return shape[0];
}

void unpermute_by_map(Tensor permuted, Tensor sorted, Tensor map, Tensor probs, bool padded,
                      Ints shape, Out out, Out out_index, Out token_ids, Out permuted_probs) {
  check_rank(permuted, "permutedTokens", 2, 2);
  const int64_t tokens = tokens_in(shape, permuted);
  check_shape(out.tensor(), "unpermutedTokens", shape);
  const Tensor places = places_in(sorted);
  Tensor x = at_least_float(permuted);
  require_shape(places.numel() == x.size(0), "sortedIndices must have ", x.size(0),
                " elements, but has shape ", sorted.sizes());
  if (has(probs)) check_shape(probs, "probs", {tokens, probs.size(-1)});
  if (padded) {
    if (has(probs)) {
      const int64_t experts = probs.size(1), capacity = capacity_of(x.size(0), experts);
      const Tensor of_expert =
          at::arange(experts, places.options()).unsqueeze(1).expand({experts, capacity}).flatten();
      const Tensor flat = places * experts + of_expert;
      const Tensor chosen = rows_at(probs.reshape({-1, 1}), flat);
      permuted_probs = chosen.squeeze(1);
      x = x * at_least_float(chosen);
    }
    const auto [ids, positions] = at::sort(places, std::optional<bool>(true), -1, false);
    token_ids = ids.to(at::kInt);
    out_index = positions.to(at::kInt);
    out = sums_at(x, places, tokens);
    return;
  }
  leave(token_ids.tensor());
  leave(out_index.tensor());
  Tensor slots = rows_at(x, places);
  if (has(probs)) {
    check_shape(map, "routingMap", probs.sizes());
    check_flags(map, x.size(0));
    const Tensor chosen = probs.masked_select(map.to(at::kBool));
    permuted_probs = chosen;
    slots = slots * at_least_float(chosen).unsqueeze(1);
  }
  out = sums_of_choices(slots, tokens);
}

// index[i] is a row of the permuted tokens; its token is ids[i], or i / choices without padding.
void unpermute_by_map_grad(Tensor gradient, Tensor index, Tensor ids, Tensor map, Tensor permuted,
                           Tensor probs, bool padded, Ints, Out out, Out out_probs) {
  check_rank(gradient, "unpermutedTokensGrad", 2, 2);
  const Tensor places = places_in(index), g = at_least_float(gradient);
  const int64_t rows = places.numel(), tokens = g.size(0);
  Tensor of_token;
  if (padded) {
    of_token = places_in(ids);
    require_shape(of_token.numel() == rows, "permuteTokenId must have ", rows,
                  " elements, but has shape ", ids.sizes());
  } else {
    require_shape(tokens > 0 ? rows % tokens == 0 : rows == 0, "outIndex must have as many ",
                  "elements for each of the ", tokens, " tokens, but has ", rows);
    of_token = numbers_to(rows, places)
                   .div(std::max<int64_t>(rows / std::max<int64_t>(tokens, 1), 1), "trunc");
  }
  Tensor made = rows_to(rows_at(g, of_token), places, rows);
  if (has(probs)) {
    check_shape(probs, "probs", {tokens, probs.size(-1)});
    check_shape(permuted, "permutedTokens", {rows, g.size(1)});
    const int64_t experts = probs.size(1);
    const Tensor dots = (made * at_least_float(permuted)).sum(1, true), p = at_least_float(probs);
    if (padded) {
      const int64_t capacity = capacity_of(rows, experts);
      const Tensor expert = places.div(std::max<int64_t>(capacity, 1), "trunc");
      const Tensor inside = (of_token >= 0)
                                .bitwise_and(of_token < tokens)
                                .bitwise_and(places >= 0)
                                .bitwise_and(places < rows);
      const Tensor flat = choose(inside, of_token * experts + expert, -1);
      out_probs = rows_to(rows_at(dots, places), flat, tokens * experts).reshape({tokens, experts});
      made = made * rows_to(rows_at(p.reshape({-1, 1}), flat), places, rows);
    } else {
      check_shape(map, "routingMap", probs.sizes());
      const Tensor flags = by_expert(map);
      check_flags(flags, rows);
      const Tensor spread = at::zeros({experts, tokens}, dots.options());
      out_probs = spread.masked_scatter_(flags, dots.flatten()).t();
      made = made * p.t().masked_select(flags).unsqueeze(1);
    }
  }
  out = made;
}

}  // namespace

const Composite moe_routing_map_composites[] = {
    ENTRY(permute_by_map),
    ENTRY(permute_by_map_grad),
    ENTRY(unpermute_by_map),
    ENTRY(unpermute_by_map_grad),
    {},
};

}  // namespace openaclnn::aten
