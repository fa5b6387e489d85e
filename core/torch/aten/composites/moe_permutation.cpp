// SPDX-License-Identifier: Apache-2.0
// Tokens in the order of their experts, and back. Slot t K + k is choice k of token t; sorted[slot]
// is its row among the permuted ones. Sums are float, rounded once.
#include "core/torch/aten/composites/places.h"

namespace openaclnn::aten {
namespace {

void check_not_padded(bool padded) {
  require(!padded, "paddedMode must be false: tokens are not padded here");
}

// Rows [low, high) of the sorted ones are there.
struct Range {
  int64_t low, high;
};

// NULL: all slots, of which the last may be dropped.
Range range_of(const Ints& given, int64_t out_tokens, int64_t slots) {
  if (given.empty()) {
    const int64_t kept = out_tokens > 0 ? std::min(out_tokens, slots) : slots + out_tokens;
    require(kept >= 0, "numOutTokens must not drop more than the ", slots, " slots, but got ",
            out_tokens);
    return {0, kept};
  }
  require(given.size() == 2 && 0 <= given[0] && given[0] <= given[1] && given[1] <= slots,
          "range must be two ascending numbers from 0 to ", slots, ", but got ",
          at::IntArrayRef(given));
  return {given[0], given[1]};
}

int64_t choices_of(const Tensor& indices) { return indices.dim() == 2 ? indices.size(1) : 1; }

int64_t tokens_of(const Tensor& sorted, int64_t choices) {
  require_shape(choices > 0 && sorted.numel() % choices == 0, "sortedIndices must have ", choices,
                " elements for each token, but has shape ", sorted.sizes());
  return sorted.numel() / choices;
}

// ---- by the indices of experts ----

void permute(const Tensor& tokens, const Tensor& indices, const Tensor& probs, const Range& range,
             const Out& permuted, const Out& sorted, const Out* permuted_probs) {
  const int64_t choices = choices_of(indices);
  require_shape(indices.dim() <= 2 && indices.size(0) == tokens.size(0) && choices > 0,
                "indices must have a row for each of the ", tokens.size(0),
                " tokens, but has shape ", indices.sizes());
  const Tensor order = stable_order(indices.flatten());
  const Tensor mine = order.slice(0, range.low, range.high);
  put_rows(permuted, tokens, mine.div(choices, "trunc"));
  sorted = inverse_of(order).to(at::kInt);
  if (permuted_probs != nullptr && has(probs)) {
    check_shape(probs, "probs", indices.sizes());
    *permuted_probs = select_rows(probs.flatten(), mine);
  }
}

void moe_token_permute(Tensor tokens, Tensor indices, int64_t out_tokens, bool padded, Out permuted,
                       Out sorted) {
  check_not_padded(padded);
  permute(tokens, indices, {}, range_of({}, out_tokens, indices.numel()), permuted, sorted,
          nullptr);
}

void moe_token_permute_ep(Tensor tokens, Tensor indices, Tensor probs, Ints range,
                          int64_t out_tokens, bool padded, Out permuted, Out sorted,
                          Out permuted_probs) {
  check_not_padded(padded);
  permute(tokens, indices, probs, range_of(range, out_tokens, indices.numel()), permuted, sorted,
          &permuted_probs);
}

void moe_token_permute_grad(Tensor gradient, Tensor sorted, int64_t choices, bool padded, Out out) {
  check_not_padded(padded);
  (void)tokens_of(sorted, choices);
  out = summed_rows(gradient, sorted.flatten().to(at::kLong), {}, choices);
}

void moe_token_permute_ep_grad(Tensor gradient, Tensor sorted, Tensor probs_gradient,
                               int64_t choices, Ints range, bool padded, Out token_gradient,
                               Out out_probs) {
  check_not_padded(padded);
  const int64_t tokens = tokens_of(sorted, choices);
  const Range mine = range_of(range, 0, sorted.numel());
  const Tensor rows = sorted.flatten().to(at::kLong) - mine.low;
  token_gradient = summed_rows(gradient, rows, {}, choices);
  if (has(probs_gradient))
    out_probs = rows_at(probs_gradient.reshape({-1, 1}), rows).reshape({tokens, choices});
}

// out[t] = sum over k of probs[t, k] permuted[sorted[t K + k] - low]
void unpermute(const Tensor& permuted, const Tensor& sorted, const Tensor& probs, int64_t choices,
               int64_t low, const Out& out) {
  (void)tokens_of(sorted, choices);
  if (has(probs))
    require_shape(probs.numel() == sorted.numel(), "probs must have a number for each of the ",
                  sorted.numel(), " elements of sortedIndices, but has shape ", probs.sizes());
  out = summed_rows(permuted, sorted.flatten().to(at::kLong) - low, probs, choices);
}

int64_t choices_of_probs(const Tensor& probs) { return has(probs) ? choices_of(probs) : 1; }

void moe_token_unpermute(Tensor permuted, Tensor sorted, Tensor probs, bool padded, Ints, Out out) {
  check_not_padded(padded);
  unpermute(permuted, sorted, probs, choices_of_probs(probs), 0, out);
}

void moe_token_unpermute_ep(Tensor permuted, Tensor sorted, Tensor probs, int64_t choices,
                            Ints range, bool padded, Ints, Out out) {
  check_not_padded(padded);
  if (range.empty()) return unpermute(permuted, sorted, probs, choices_of_probs(probs), 0, out);
  const Range mine = range_of(range, 0, sorted.numel());
  check_rank(permuted, "permutedTokens", 2, 2);
  unpermute(permuted.slice(0, 0, mine.high - mine.low), sorted, probs, choices, mine.low, out);
}

void unpermute_grad(const Tensor& permuted, const Tensor& gradient, const Tensor& sorted,
                    const Tensor& probs, int64_t choices, const Range& range, const Out& out,
                    const Out& out_probs) {
  const int64_t tokens = tokens_of(sorted, choices);
  check_rank(gradient, "unpermutedTokensGrad", 2, 2);
  require_shape(gradient.size(0) == tokens, "unpermutedTokensGrad must have ", tokens,
                " rows, but has shape ", gradient.sizes());
  const Tensor rows = sorted.flatten().to(at::kLong) - range.low;
  Tensor up = at_least_float(gradient).repeat_interleave(choices, 0);
  if (has(probs)) {
    require_shape(probs.numel() == sorted.numel(), "probs must have a number for each of the ",
                  sorted.numel(), " elements of sortedIndices, but has shape ", probs.sizes());
    check_given(permuted, "permutedTokens");
    out_probs = (rows_at(at_least_float(permuted), rows) * up).sum(1).reshape(probs.sizes());
    up = up * at_least_float(probs).reshape({-1, 1});
  }
  out = rows_to(up, rows, range.high - range.low);
}

void moe_token_unpermute_grad(Tensor permuted, Tensor gradient, Tensor sorted, Tensor probs,
                              bool padded, Ints, Out out, Out out_probs) {
  check_not_padded(padded);
  check_rank(out.tensor(), "permutedTokensGradOut", 2, 2);
  unpermute_grad(permuted, gradient, sorted, probs, choices_of_probs(probs),
                 {0, out.tensor().size(0)}, out, out_probs);
}

void moe_token_unpermute_ep_grad(Tensor gradient, Tensor sorted, Tensor permuted, Tensor probs,
                                 bool padded, Ints, Ints range, int64_t choices, Out out,
                                 Out out_probs) {
  check_not_padded(padded);
  check_rank(out.tensor(), "permutedTokensGradOut", 2, 2);
  const Range mine =
      range.empty() ? Range{0, out.tensor().size(0)} : range_of(range, 0, sorted.numel());
  unpermute_grad(permuted, gradient, sorted, probs,
                 range.empty() ? choices_of_probs(probs) : choices, mine, out, out_probs);
}

}  // namespace

const Composite moe_permutation_composites[] = {
    ENTRY(moe_token_permute),
    ENTRY(moe_token_permute_ep),
    ENTRY(moe_token_permute_ep_grad),
    ENTRY(moe_token_permute_grad),
    ENTRY(moe_token_unpermute),
    ENTRY(moe_token_unpermute_ep),
    ENTRY(moe_token_unpermute_ep_grad),
    ENTRY(moe_token_unpermute_grad),
    {},
};

}  // namespace openaclnn::aten
