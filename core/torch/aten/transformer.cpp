// SPDX-License-Identifier: Apache-2.0
// Fused operators of transformer models: rotary embedding, gated activations, masked softmax.
#include "core/torch/aten/checks.h"

namespace openaclnn::aten {
namespace {

// ---- rotary embedding: y = x cos + turned(x) sin ----

// Neighbours along the last dim, [..., size / 2, 2].
Tensor paired(const Tensor& x) { return x.unflatten(-1, {halves(x, -1).first.size(-1), 2}); }

// mode 0: of the halves (a, b) it is (-b, a); mode 1: of neighbours.
Tensor turned(const Tensor& x, int64_t mode) {
  if (mode == 0) {
    const auto [first, second] = halves(x, -1);
    return at::cat({-second, first}, -1);
  }
  require(mode == 1, "mode must be 0 or 1, but got ", mode);
  const auto pairs = paired(x).unbind(-1);
  return at::stack({-pairs[1], pairs[0]}, -1).flatten(-2);
}

void rotary_grad(Tensor dy, Tensor cos, Tensor sin, Tensor x, int64_t mode, Out dx, Out dcos,
                 Out dsin) {
  const Tensor g = dy.to(at::kFloat);
  // Turning is a rotation by 90 degrees: its transpose is its negative.
  dx = g * cos - turned(g * sin, mode);
  if (!x.defined()) return;
  check_shape(x, "x", dy.sizes());
  const Tensor wide = x.to(at::kFloat);
  dcos = (g * wide).sum_to_size(cos.sizes());
  dsin = (g * turned(wide, mode)).sum_to_size(sin.sizes());
}

void rotate_in_place(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t mode) {
  const Tensor wide = x.to(at::kFloat);
  x.copy_(wide * cos + turned(wide, mode) * sin);
}

// layout: 1 BSND, the only one of ApplyRotaryPosEmb; cos and sin have one head.
void apply_rotary(Tensor query, Tensor key, Tensor cos, Tensor sin, int64_t layout) {
  if (layout != 1) throw Refusal("layout must be 1, BSND, but got " + std::to_string(layout));
  rotate_in_place(query, cos, sin, 0);
  rotate_in_place(key, cos, sin, 0);
}

void apply_rotary_v2(Tensor query, Tensor key, Tensor cos, Tensor sin, int64_t layout, Text mode) {
  if (mode != "half") throw Refusal("rotaryMode must be half, but got " + mode);
  apply_rotary(query, key, cos, sin, layout);
}

// The neighbours become halves first.
void interleave_rope(Tensor x, Tensor cos, Tensor sin, Out out) {
  const Tensor v = paired(x.to(at::kFloat)).transpose(-1, -2).flatten(-2);
  out = v * cos + turned(v, 0) * sin;
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
