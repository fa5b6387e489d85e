// SPDX-License-Identifier: Apache-2.0
// Fused operators of transformer models: rotary embedding, gated activations, masked softmax.
#include "core/torch/aten/composites/rotary.h"

namespace openaclnn::aten {
namespace {

// ---- rotary embedding ----

// mode 3: neighbours, which become halves.
void rotary_position_embedding(Tensor x, Tensor cos, Tensor sin, int64_t mode, Out out) {
  check_given(x, "x");
  const Tensor v = at_least_float(x);
  out = mode == 3 ? rotated(deinterleaved(v), cos, sin, 0) : rotated(v, cos, sin, mode);
}

// rotate takes the place of turning by the mode: [D, D].
void rotary_position_embedding_v2(Tensor x, Tensor cos, Tensor sin, int64_t mode, Tensor rotate,
                                  Out out) {
  if (!rotate.defined()) {
    rotary_position_embedding(x, cos, sin, mode, out);
    return;
  }
  check_rank(x, "x", 1, 8);
  check_shape(rotate, "rotate", {x.size(-1), x.size(-1)});
  const Tensor v = at_least_float(x);
  out = v * at_least_float(cos) + at::matmul(v, rotate.to(v.scalar_type())) * at_least_float(sin);
}

void rotary_grad(Tensor dy, Tensor cos, Tensor sin, Tensor x, int64_t mode, Out dx, Out dcos,
                 Out dsin) {
  const Tensor g = dy.to(at::kFloat);
  const int64_t turn = mode == 3 ? 0 : mode;
  const Tensor back = g * cos - turned(g * sin, turn);
  dx = mode == 3 ? paired(back) : back;
  if (!x.defined()) return;
  check_shape(x, "x", dy.sizes());
  const Tensor wide = mode == 3 ? deinterleaved(x.to(at::kFloat)) : x.to(at::kFloat);
  dcos = (g * wide).sum_to_size(cos.sizes());
  dsin = (g * turned(wide, turn)).sum_to_size(sin.sizes());
}

// layout: 1 BSND, 2 SBND, 3 BNSD, 4 TND; cos and sin have one head.
void apply_rotary_v2(Tensor query, Tensor key, Tensor cos, Tensor sin, int64_t layout, Text text) {
  if (layout < 1 || layout > 4)
    throw Refusal("layout must be in [1, 4], but got " + std::to_string(layout));
  const int64_t mode = text == "half" ? 0 : text == "interleave" ? 1 : text == "quarter" ? 2 : -1;
  if (mode < 0) throw Refusal("rotaryMode must be half, interleave or quarter, but got " + text);
  check_given(query, "query");
  check_given(key, "key");
  for (const Tensor& x : {query, key}) x.copy_(rotated(at_least_float(x), cos, sin, mode));
}

void apply_rotary(Tensor query, Tensor key, Tensor cos, Tensor sin, int64_t layout) {
  apply_rotary_v2(query, key, cos, sin, layout, "half");
}

void interleave_rope(Tensor x, Tensor cos, Tensor sin, Out out) {
  out = rotated(deinterleaved(x.to(at::kFloat)), cos, sin, 0);
}

// ---- activations ----

// x sigmoid(1.702 x)
void fast_gelu(Tensor x, Out out) {
  const Tensor wide = x.to(at::kFloat);
  out = wide * at::sigmoid(wide * 1.702);
}

void fast_gelu_backward(Tensor gradient, Tensor x, Out out) {
  const Tensor wide = x.to(at::kFloat), s = at::sigmoid(wide * 1.702);
  out = gradient * (s + 1.702 * wide * s * (1 - s));
}

void gelu_mul(Tensor x, Text approximate, Out out) {
  const auto [first, second] = halves(x.to(at::kFloat), -1, "input");
  out = at::gelu(first, approximate) * second;
}

// y = silu(a) b of the halves (a, b).
void swi_glu_grad(Tensor gradient, Tensor x, int64_t dim, Out out) {
  const auto [a, b] = halves(x.to(at::kFloat), dim, "self");
  check_shape(gradient, "gradOutput", a.sizes());
  const Tensor g = gradient.to(at::kFloat);
  out = at::cat({at::silu_backward(g * b, a), g * at::silu(a)}, dim);
}

// ---- softmax ----

void masked_softmax_with_bias(Tensor x, Tensor mask, Tensor bias, double scale, int64_t, Out out) {
  Tensor s = x.to(at::kFloat) * scale;
  // The mask belongs to windows, and serves all heads: [W, S, S] or [1, W, 1, S, S].
  if (mask.defined()) s = s + (mask.dim() == 3 ? mask.unsqueeze(1) : mask);
  out = at::softmax(s + bias, -1);
}

Tensor masked_out(const Tensor& mask, const Tensor& x, bool triangle) {
  if (triangle) return at::ones({x.size(-2), x.size(-1)}, x.options().dtype(at::kBool)).triu(1);
  check_given(mask, "mask");
  return mask.to(at::kBool);
}

// Masked elements count as -10000.
void scaled_masked_softmax(Tensor x, Tensor mask, double scale, bool triangle, Out out) {
  const Tensor s = x.to(at::kFloat) * scale;
  out = at::softmax(s.masked_fill(masked_out(mask, x, triangle), -10000), -1);
}

void scaled_masked_softmax_backward(Tensor gradient, Tensor y, Tensor mask, double scale,
                                    bool triangle, Out out) {
  const Tensor g = gradient.to(at::kFloat), p = y.to(at::kFloat);
  const Tensor ds = p * (g - (g * p).sum(-1, true));
  out = (ds * scale).masked_fill(masked_out(mask, y, triangle), 0);
}

}  // namespace

const Composite transformer_composites[] = {
    ENTRY(rotary_grad),
    ENTRY(rotary_position_embedding),
    ENTRY(rotary_position_embedding_v2),
    ENTRY(apply_rotary),
    ENTRY(apply_rotary_v2),
    ENTRY(interleave_rope),
    ENTRY(fast_gelu),
    ENTRY(fast_gelu_backward),
    ENTRY(gelu_mul),
    ENTRY(swi_glu_grad),
    ENTRY(masked_softmax_with_bias),
    ENTRY(scaled_masked_softmax),
    ENTRY(scaled_masked_softmax_backward),
    {},
};

}  // namespace openaclnn::aten
