// SPDX-License-Identifier: Apache-2.0
// Linear attention with decay and a delta rule (gated delta net).
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// The lengths of packed sequences, in total at most `tokens`.
Ints sequence_lengths(const Tensor& lengths, int64_t tokens) {
  Ints counts;
  int64_t sum = 0;
  for (int64_t b = 0; b < lengths.numel(); ++b) {
    counts.push_back(number_in(lengths[b]));
    require(counts.back() >= 0 && counts.back() <= tokens - sum,
            "actualSeqLengths must be at least 0 and together at most the tokens, ", tokens,
            ", but sequence ", b, " has ", counts.back());
    sum += counts.back();
  }
  return counts;
}

// For each token, with the state S of its sequence and head: S = S exp(g), S += beta (v - S k) kᵀ,
// out = S q scale. A sequence goes on from the state of its last accepted token, and every token
// leaves a state at its own index.
void recurrent_gated_delta(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor state,
                           Tensor lengths, Tensor places, Tensor decay, Tensor key_decay,
                           Tensor accepted, double scale, Out out) {
  check_rank(key, "key", 3, 3);
  check_rank(value, "value", 3, 3);
  const int64_t tokens = key.size(0), heads_of_k = key.size(1), size_k = key.size(2);
  const int64_t heads_of_v = value.size(1), size_v = value.size(2);
  require(heads_of_k > 0 && heads_of_v % heads_of_k == 0,
          "the heads of value must be a multiple of those of key, but are ", heads_of_v, " and ",
          heads_of_k);
  check_shape(query, "query", key.sizes());
  check_shape(value, "value", {tokens, heads_of_v, size_v});
  check_shape(beta, "beta", {tokens, heads_of_v});
  check_rank(state, "state", 4, 4);
  check_shape(state, "state", {state.size(0), heads_of_v, size_v, size_k});
  check_rank(lengths, "actualSeqLengths", 1, 1);
  check_shape(places, "ssmStateIndices", {tokens});
  check_optional(decay, "g", {tokens, heads_of_v});
  check_optional(key_decay, "gk", {tokens, heads_of_v, size_k});
  check_optional(accepted, "numAcceptedTokens", lengths.sizes());
  check_result(out.tensor(), value, "out");
  const Ints counts = sequence_lengths(lengths, tokens);
  const Tensor q = query.to(at::kFloat) * scale, k = key.to(at::kFloat), v = value.to(at::kFloat);
  const int64_t times = heads_of_v / heads_of_k;
  const auto slot = [&](int64_t i) {
    check_positions(places[i], "ssmStateIndices", state.size(0));
    return number_in(places[i]);
  };
  Tensor made = at::zeros_like(v);
  int64_t token = 0;
  for (size_t b = 0; b < counts.size(); ++b) {
    const int64_t length = counts[b];
    if (length == 0) continue;
    const auto before = accepted.defined() ? number_in(accepted[static_cast<int64_t>(b)]) : 1;
    require(1 <= before && before <= tokens - token, "numAcceptedTokens must be at least 1 and at ",
            "most the tokens from its sequence on, ", tokens - token, ", but is ", before);
    Tensor s = state[slot(token + before - 1)].to(at::kFloat);
    for (const int64_t end = token + length; token < end; ++token) {
      const auto heads = [&](const Tensor& x) {  // [Nv, 1, Dk]
        return x[token].repeat_interleave(times, 0).unsqueeze(1);
      };
      if (decay.defined()) s = s * at::exp(decay[token].to(at::kFloat)).view({-1, 1, 1});
      if (key_decay.defined()) s = s * at::exp(key_decay[token].to(at::kFloat)).unsqueeze(1);
      const Tensor miss = v[token] - (s * heads(k)).sum(-1);
      s = s + (beta[token].to(at::kFloat).unsqueeze(-1) * miss).unsqueeze(-1) * heads(k);
      made[token].copy_((s * heads(q)).sum(-1));
      state[slot(token)].copy_(s);
    }
  }
  out = made;
}

}  // namespace

const Composite linear_attention_composites[] = {ENTRY(recurrent_gated_delta), {}};

}  // namespace openaclnn::aten
