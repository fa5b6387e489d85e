// SPDX-License-Identifier: Apache-2.0
// What LSTM and GRU share: the order of the steps, states, masks and checks of the weights. x is
// [T, B, features].
#pragma once

#include <algorithm>
#include <sstream>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

// The steps in order; the last one comes first in the reverse direction.
inline Ints steps(const Tensor& x, const Text& direction) {
  check_rank(x, "x", 3, 3);
  Ints order;
  for (int64_t t = 0; t < x.size(0); ++t) order.push_back(t);
  if (direction == "REDIRECTIONAL") {
    std::reverse(order.begin(), order.end());
  } else if (direction != "UNIDIRECTIONAL") {
    throw Refusal("direction must be UNIDIRECTIONAL or REDIRECTIONAL, but got " + direction);
  }
  return order;
}

inline Tensor wide(const Tensor& x) { return x.to(at::kFloat); }

// A state [B, H]; zeros if it is left out.
inline Tensor state(const Tensor& given, const Tensor& x, int64_t hidden) {
  check_rank(x, "x", 3, 3);
  if (!given.defined()) return at::zeros({x.size(1), hidden}, x.options().dtype(at::kFloat));
  return wide(given).reshape({x.size(1), hidden});
}

// A tensor without dims counts as missing.
inline bool is_there(const Tensor& given) { return given.defined() && given.dim() > 0; }

// 1 for the steps that count and 0 for padding, [T, B, H]; undefined if it is left out.
inline Tensor mask_of(const Tensor& lengths, const Tensor& like) {
  if (!is_there(lengths)) return {};
  if (lengths.sizes() == like.sizes()) return wide(lengths);
  std::ostringstream shape;
  shape << "seq_length must be a mask of shape " << like.sizes() << ", but got " << lengths.sizes();
  throw Refusal(shape.str());
}

inline void must_be_absent(const char* name, const Tensor& given) {
  if (is_there(given)) throw Refusal(std::string(name) + " must be left out, but was given");
}

inline Tensor stacked(const Tensor& x, int64_t hidden) {
  check_rank(x, "x", 3, 3);
  return at::empty({x.size(0), x.size(1), hidden}, x.options().dtype(at::kFloat));
}

inline void check_weights(const Tensor& input, const Tensor& hidden, int64_t gates) {
  const bool fits = input.dim() == 2 && hidden.dim() == 2 &&
                    hidden.size(1) == gates * hidden.size(0) && input.size(1) == hidden.size(1);
  if (fits) return;
  const auto shape = [](const Tensor& x) {
    std::string text;
    for (const int64_t size : x.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "(" + text + ")";
  };
  throw Refusal("weights must have the shapes (features, " + std::to_string(gates) +
                " hidden) and (hidden, " + std::to_string(gates) + " hidden), but got " +
                shape(input) + " and " + shape(hidden));
}

inline void check_bias(const Tensor& bias, const Tensor& weight) {
  if (bias.defined() && bias.numel() != weight.size(1))
    throw Refusal("a bias must have " + std::to_string(weight.size(1)) + " elements, but got " +
                  std::to_string(bias.numel()));
}

// ---- one layer in one direction; weights are (features, gates) and (hidden, gates) ----

// Each [T, B, H]; y is h without padding.
struct LstmSteps {
  Tensor y, h, c, i, j, f, o, tanh_c;
};
LstmSteps lstm_steps(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                     const Tensor& bias, const Tensor& lengths, const Tensor& h0, const Tensor& c0,
                     const Text& gate_order, double forget_bias, const Text& direction);

struct LstmGradient {
  Tensor weight_input, weight_hidden, bias, x, h, c;
};
// gates: i, j, f, o and tanh(c'). A mask has 0 at the steps that are left out.
LstmGradient lstm_backward(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                           const Tensor& h0, const Tensor& c0, const Tensor& h, const Tensor& c,
                           const Tensor& dy, const Tensor& dh_last, const Tensor& dc_last,
                           const Tensor (&gates)[5], const Tensor& mask, const Text& gate_order,
                           const Text& direction);

// Each [T, B, H]; m is h W + b of the candidate. A mask has 0 at the steps that are left out,
// where h stays.
struct GruSteps {
  Tensor h, z, r, n, m;
};
GruSteps gru_steps(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                   const Tensor& bias_input, const Tensor& bias_hidden, const Tensor& h0,
                   const Tensor& mask, const Text& order, const Text& direction);

struct GruGradient {
  Tensor weight_input, weight_hidden, bias_input, bias_hidden, x, h;
};
GruGradient gru_backward(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                         const Tensor& h0, const Tensor& h, const Tensor& dy, const Tensor& dh_last,
                         const Tensor& z, const Tensor& r, const Tensor& n, const Tensor& m,
                         const Tensor& mask, const Text& order, const Text& direction);

}  // namespace openaclnn::aten
