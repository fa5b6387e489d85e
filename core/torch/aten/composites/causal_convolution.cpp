// SPDX-License-Identifier: Apache-2.0
// Causal convolutions of each channel: y[s] = sum over w of x[s - K + 1 + w] weight[w].
#include <algorithm>

#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

// ---- x [S, B, H], zeros before the first row ----

Tensor masked(const Tensor& x, const Tensor& mask) {
  if (!has(mask)) return at_least_float(x);
  check_shape(mask, "mask", {x.size(1), x.size(0)});
  return at_least_float(x) * mask.t().unsqueeze(2).to(at::kFloat);
}

void check_masked(const Tensor& x, const Tensor& weight) {
  check_real(x, "input");
  check_real(weight, "weight");
  check_rank(x, "input", 3, 3);
  check_rank(weight, "weight", 2, 2);
  require_shape(weight.size(1) == x.size(2), "weight must have ", x.size(2),
                " columns, but has shape ", weight.sizes());
}

// The weights before it meet only the zeros before the first row.
int64_t first_in_reach(int64_t size, int64_t rows) { return std::max<int64_t>(0, size - rows); }

void masked_causal_conv(Tensor x, Tensor weight, Tensor mask, Out out) {
  check_masked(x, weight);
  const Tensor wide = at_least_float(x), w = at_least_float(weight);
  const Tensor y = at::zeros_like(wide);
  const int64_t size = w.size(0), rows = x.size(0);
  for (int64_t i = first_in_reach(size, rows); i < size; ++i) {
    const int64_t shift = size - 1 - i;
    y.slice(0, shift, rows).add_(wide.slice(0, 0, rows - shift) * w[i]);
  }
  out = masked(y, mask);
}

void masked_causal_conv_grad(Tensor gradient, Tensor x, Tensor weight, Tensor mask, Out dx,
                             Out dw) {
  check_masked(x, weight);
  check_shape(gradient, "gradOutput", x.sizes());
  const Tensor g = masked(gradient, mask), wide = at_least_float(x), w = at_least_float(weight);
  const Tensor to_x = at::zeros_like(wide), to_w = at::zeros_like(w);
  const int64_t size = w.size(0), rows = x.size(0);
  for (int64_t i = first_in_reach(size, rows); i < size; ++i) {
    const int64_t shift = size - 1 - i;
    const Tensor later = g.slice(0, shift, rows);
    to_x.slice(0, 0, rows - shift).add_(later * w[i]);
    to_w[i].copy_((later * wide.slice(0, 0, rows - shift)).sum(at::IntArrayRef{0, 1}));
  }
  dx = to_x;
  dw = to_w;
}

// ---- with the last rows of each sequence in states [slots, C, H], C at least K - 1 ----

struct Causal {
  Tensor x, weight, states, starts, slots, bias, accepted, computed;
  int64_t activation, none, residual, mode;

  void check(const Tensors& pages) const {
    for (const Tensor& page : pages)
      require(!has(page), "blockIdxFirstScheduledToken, blockIdxLastScheduledToken and ",
              "initialStateIdx must be NULL: states in pages are not supported");
    check_real(x, "x");
    check_rank(x, "x", 2, 3);
    check_rank(weight, "weight", 2, 2);
    check_rank(states, "convStates", 3, 3);
    const int64_t h = x.size(-1), size = weight.size(0);
    require_shape(size >= 1 && weight.size(1) == h, "weight must have shape [K, ", h, "], but got ",
                  weight.sizes());
    require_shape(states.size(1) >= size - 1 && states.size(2) == h, "convStates must have shape ",
                  "[slots, at least ", size - 1, ", ", h, "], but got ", states.sizes());
    if (has(bias)) check_shape(bias, "bias", {h});
    require(activation >= 0 && activation <= 2,
            "activation must be 0, none, 1, silu, or 2, swish, ", "but got ", activation);
    require(mode == 0 || mode == 1, "convMode must be 0 or 1, but got ", mode);
    require(x.dim() == 3 || has(starts), "queryStartLoc must be given where x has 2 dims");
  }

  // The rows [T, H] of the result; states are updated.
  Tensor run() const {
    need_data(x);
    const Tensor rows = x.reshape({-1, x.size(-1)});
    Ints begin;
    if (has(starts)) {
      begin = numbers_in(starts, "queryStartLoc");
    } else {
      for (int64_t b = 0; b <= x.size(0); ++b) begin.push_back(b * x.size(1));
    }
    const auto count = static_cast<int64_t>(begin.size()) - 1;
    const auto numbers = [&](const Tensor& list, const char* name) {
      if (!has(list)) return Ints();
      require_shape(list.numel() == count, name, " must have a number for each of the ", count,
                    " sequences, but has shape ", list.sizes());
      return numbers_in(list, name);
    };
    const Ints slot_of = numbers(slots, "cacheIndices");
    const Ints kept = numbers(accepted, "numAcceptedTokens");
    const Ints done = numbers(computed, "numComputedTokens");
    const int64_t size = weight.size(0), held = states.size(1);
    const Tensor y = at::zeros_like(rows);
    for (int64_t b = 0; b < count; ++b) {
      const auto i = static_cast<size_t>(b);
      const int64_t first = begin[i], last = begin[i + 1], n = last - first;
      require(first >= 0 && n >= 0 && last <= rows.size(0), "queryStartLoc must ascend from 0 to ",
              rows.size(0), ", but goes from ", first, " to ", last);
      const int64_t slot = slot_of.empty() ? b : slot_of[i];
      if (slot == none) continue;
      require(slot >= 0 && slot < states.size(0), "cacheIndices must be in [0, ", states.size(0),
              "), but has ", slot);
      const bool fresh = !done.empty() && done[i] == 0;
      const int64_t skipped = fresh ? 0 : kept.empty() ? held - (size - 1) : kept[i] - 1;
      require(skipped >= 0 && skipped + size - 1 <= held, "numAcceptedTokens must be in [1, ",
              held - size + 2, "], but has ", skipped + 1);
      Tensor state = states[slot];
      const Tensor own = rows.slice(0, first, last);
      const Tensor old = fresh ? at::zeros({size - 1, rows.size(1)}, rows.options())
                               : state.slice(0, 0, skipped + size - 1).to(rows.scalar_type());
      const Tensor all = at::cat({old, own});
      const int64_t many = std::min(held, all.size(0));
      state.slice(0, held - many, held).copy_(all.slice(0, all.size(0) - many));
      const Tensor wide = at_least_float(all.slice(0, skipped)), w = at_least_float(weight);
      Tensor made = at::zeros({n, rows.size(1)}, wide.options());
      for (int64_t k = 0; k < size; ++k) made.add_(wide.slice(0, k, k + n) * w[k]);
      if (mode == 1) {
        const int64_t before = done.empty() ? 0 : done[i];
        made.slice(0, 0, std::clamp<int64_t>(size - 1 - before, 0, n)).zero_();
      }
      if (has(bias)) made = made + at_least_float(bias);
      if (activation != 0) made = at::silu(made);
      if (residual != 0) made = made + at_least_float(own);
      y.slice(0, first, last).copy_(made);
    }
    return y.reshape(x.sizes());
  }
};

void fused_causal_conv(Tensor x, Tensor weight, Tensor states, Tensor starts, Tensor slots, Tensor,
                       Tensor bias, Tensor accepted, Tensor computed, Tensor first, Tensor last,
                       Tensor initial, int64_t activation, int64_t none, int64_t, int64_t,
                       int64_t residual, int64_t, int64_t mode, Out out) {
  const Causal c{x,        weight,   states,     starts, slots,    bias,
                 accepted, computed, activation, none,   residual, mode};
  c.check({first, last, initial});
  check_shape(out.tensor(), "y", x.sizes());
  out = c.run();
}

void inplace_causal_conv(Out x, Tensor weight, Tensor states, Tensor starts, Tensor slots,
                         Tensor initial_mode, Tensor bias, Tensor accepted, Tensor computed,
                         Tensor first, Tensor last, Tensor initial, int64_t activation,
                         int64_t none, int64_t run_mode, int64_t longest, int64_t residual,
                         int64_t block, int64_t mode) {
  fused_causal_conv(x.tensor(), weight, states, starts, slots, initial_mode, bias, accepted,
                    computed, first, last, initial, activation, none, run_mode, longest, residual,
                    block, mode, x);
}

}  // namespace

const Composite causal_convolution_composites[] = {
    ENTRY(fused_causal_conv),
    ENTRY(inplace_causal_conv),
    ENTRY(masked_causal_conv),
    ENTRY(masked_causal_conv_grad),
    {},
};

}  // namespace openaclnn::aten
