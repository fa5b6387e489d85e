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

// The sizes of key [T, Nk, Dk] and value [T, Nv, Dv].
struct DeltaSizes {
  int64_t tokens, heads_of_k, size_k, heads_of_v, size_v;
};
DeltaSizes delta_sizes(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& beta) {
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
  return {tokens, heads_of_k, size_k, heads_of_v, size_v};
}

// For each token, with the state S of its sequence and head: S = S exp(g), S += beta (v - S k) kᵀ,
// out = S q scale. A sequence goes on from the state of its last accepted token, and every token
// leaves a state at its own index.
void recurrent_gated_delta(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor state,
                           Tensor lengths, Tensor places, Tensor decay, Tensor key_decay,
                           Tensor accepted, double scale, Out out) {
  const auto [tokens, heads_of_k, size_k, heads_of_v, size_v] =
      delta_sizes(query, key, value, beta);
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

// The same without states of tokens: each sequence begins with its own state and leaves its last.
void chunk_gated_delta(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor state,
                       Tensor lengths, double scale, Tensor decay, Out out, Out last) {
  const auto [tokens, heads_of_k, size_k, heads_of_v, size_v] =
      delta_sizes(query, key, value, beta);
  check_rank(lengths, "actualSeqLengths", 1, 1);
  check_shape(state, "initialState", {lengths.size(0), heads_of_v, size_v, size_k});
  check_optional(decay, "g", {tokens, heads_of_v});
  check_result(out.tensor(), value, "out");
  check_result(last.tensor(), state, "finalState");
  const Ints counts = sequence_lengths(lengths, tokens);
  const int64_t times = heads_of_v / heads_of_k;
  const auto of_heads = [&](const Tensor& x) {  // [T, Nv, 1, Dk]
    return x.to(at::kFloat).repeat_interleave(times, 1).unsqueeze(2);
  };
  const Tensor q = of_heads(query) * scale, k = of_heads(key), v = value.to(at::kFloat);
  const Tensor b = beta.to(at::kFloat).unsqueeze(-1);
  const Tensor kept =
      decay.defined() ? at::exp(decay.to(at::kFloat)).unsqueeze(-1).unsqueeze(-1) : Tensor();
  const Tensor made = at::zeros_like(v), states = state.to(at::kFloat).clone();
  int64_t token = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    Tensor s = states[static_cast<int64_t>(i)];
    for (const int64_t end = token + counts[i]; token < end; ++token) {
      if (kept.defined()) s = s * kept[token];
      const Tensor miss = v[token] - (s * k[token]).sum(-1);
      s = s + (b[token] * miss).unsqueeze(-1) * k[token];
      made[token].copy_((s * q[token]).sum(-1));
    }
    states[static_cast<int64_t>(i)].copy_(s);
  }
  out = made;
  last = states;
}

// out[i, j] = exp of the sum of x over (j, i]; 0 above the diagonal.
void exp_segsum(Tensor x, Out out) {
  check_rank(x, "self", 1, 8);
  const int64_t size = x.size(-1);
  Ints shape = x.sizes().vec();
  shape.push_back(size);
  const auto below = [&](int64_t diagonal) {
    return at::ones({size, size}, x.options().dtype(at::kBool)).tril(diagonal);
  };
  check_result(out.tensor(), at::empty(shape, x.options().device(at::kMeta)), "out");
  // Sums of what is below the diagonal alone: differences of running sums would cancel.
  const Tensor rows = x.unsqueeze(-1).expand(shape).masked_fill(below(-1).logical_not(), 0);
  out = at::exp(at::cumsum(rows, -2)).masked_fill(below(0).logical_not(), 0);
}

// The sum over j < t <= i of gradient out, for each t.
void exp_segsum_backward(Tensor gradient, Tensor y, Out out) {
  check_rank(gradient, "gradOutput", 2, 8);
  check_shape(y, "gradSelf", gradient.sizes());
  require_shape(gradient.size(-1) == gradient.size(-2),
                "gradOutput must have square matrices, but ", "has shape ", gradient.sizes());
  const int64_t size = gradient.size(-1);
  const Tensor below = at::ones({size, size}, gradient.options().dtype(at::kBool)).tril();
  const Tensor product = (gradient * y).masked_fill(below.logical_not(), 0);
  const Tensor from_row = at::cumsum(product.flip(-2), -2).flip(-2);  // over i >= t
  out = from_row.masked_fill(below.tril(-1).logical_not(), 0).sum(-1);
}

// Sums of the rows and columns of exp(cost) d0 d1 approach 1 / R and 1 / C.
void sinkhorn(Tensor cost, std::optional<at::Scalar> tolerance, Out out) {
  check_rank(cost, "cost", 2, 2);
  const double tol = tolerance ? tolerance->toDouble() : 1e-4;
  require(tol > 0, "tol must be above 0, but is ", tol);
  check_result(out.tensor(), cost, "p");
  need_data(cost);
  if (cost.numel() == 0) return;
  constexpr double kSmall = 1e-8;
  constexpr int kMostSteps = 1000;  // the error shrinks by a factor in each
  const auto rows = static_cast<double>(cost.size(0)), columns = static_cast<double>(cost.size(1));
  const Tensor c = at::exp(cost.to(at::kFloat));
  Tensor d0, d1 = at::ones({cost.size(1)}, c.options());
  for (int i = 0; i < kMostSteps; ++i) {
    d0 = 1 / (rows * ((c * d1).sum(1) + kSmall));
    const Tensor next = 1 / (columns * ((c * d0.unsqueeze(1)).sum(0) + kSmall));
    const auto error = (next - d1).abs().mean().item<double>();
    d1 = next;
    if (!(error > tol)) break;
  }
  out = c * d1 * d0.unsqueeze(1);
}

}  // namespace

const Composite linear_attention_composites[] = {
    ENTRY(recurrent_gated_delta), ENTRY(chunk_gated_delta), ENTRY(exp_segsum),
    ENTRY(exp_segsum_backward),   ENTRY(sinkhorn),          {},
};

}  // namespace openaclnn::aten
