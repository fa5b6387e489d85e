// SPDX-License-Identifier: Apache-2.0
// Losses whose reduction is a text, and those without one.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// NULL is mean, torch's default.
Tensor reduced(const Tensor& loss, const Text& reduction) {
  require(reduction.empty() || reduction == "none" || reduction == "mean" || reduction == "sum",
          "reduction must be none, mean or sum, but got ", reduction);
  return reduction == "none" ? loss : reduction == "sum" ? loss.sum() : loss.mean();
}

double share(const Tensor& loss, const Text& reduction) {
  (void)reduced(loss, reduction);
  const bool is_mean = reduction.empty() || reduction == "mean";
  return is_mean ? 1 / static_cast<double>(std::max<int64_t>(loss.numel(), 1)) : 1;
}

// The variance: as input, without its last dim, or with a last dim of 1.
Tensor spread(const Tensor& var, const Tensor& input) {
  if (var.sizes() == input.sizes()) return var;
  require_shape(input.dim() > 0, "var must have the shape of input, [], but got ", var.sizes());
  const auto front = input.sizes().slice(0, static_cast<size_t>(input.dim() - 1));
  if (var.sizes() == front) return var.unsqueeze(-1);
  Ints last = front.vec();
  last.push_back(1);
  require_shape(var.sizes() == at::IntArrayRef(last), "var must have the shape of input, ",
                input.sizes(), ", or that with a last dim of 1 or without it, but got ",
                var.sizes());
  return var;
}

// ln(v) / 2 + (x - t)^2 / 2 v, with v = max(var, eps); full: + ln(2 pi) / 2.
void gaussian_nll_loss(Tensor x, Tensor target, Tensor var, bool full, double eps, Text reduction,
                       Out out) {
  const Tensor v = at::clamp_min(spread(var, x), eps);
  Tensor loss = 0.5 * (at::log(v) + at::square(x - target) / v);
  if (full) loss = loss + 0.91893853320467274178;  // ln(2 pi) / 2
  out = reduced(loss, reduction);
}

void gaussian_nll_loss_grad(Tensor gradient, Tensor x, Tensor target, Tensor var, bool, double eps,
                            Text reduction, Out dx, Out dvar) {
  const Tensor wide = spread(var, x), v = at::clamp_min(wide, eps), d = x - target;
  require_shape(gradient.numel() == 1 || gradient.sizes() == x.sizes(),
                "gradOutput must have one element or the shape of input, ", x.sizes(), ", but got ",
                gradient.sizes());
  const Tensor g = (gradient.numel() == 1 ? gradient.reshape({}) : gradient) * share(d, reduction);
  dx = g * d / v;
  dvar = (g * 0.5 * (1 / v - at::square(d / v))).sum_to_size(wide.sizes()).reshape(var.sizes());
}

void hinge_loss(Tensor predict, Tensor target, Out loss) {
  loss = at::clamp_min(1 - predict * target, 0);
}

void lp_loss(Tensor predict, Tensor label, int64_t, Text reduction, Out out) {
  out = reduced((predict - label).abs(), reduction);
}

void mse_loss_grad(Tensor gradient, Tensor self, Tensor target, Text reduction, Out out) {
  const Tensor d = self - target;
  out = 2 * share(d, reduction) * gradient * d;
}

// ---- layers whose scale and shift are data: x (1 + scale) + shift ----

// One row for each batch of x [B, S, H]: [B, H], [B, 1, H]; also [B, S, H].
Tensor of_batches(const Tensor& given, const Tensor& x, const char* name) {
  const int64_t b = x.size(0), h = x.size(2);
  const auto sizes = given.sizes();
  require_shape(
      sizes == at::IntArrayRef{b, h} || sizes == at::IntArrayRef{b, 1, h} || sizes == x.sizes(),
      name, " must have shape [", b, ", ", h, "] or [", b, ", 1, ", h, "], but got ", sizes);
  return given.dim() == 2 ? given.unsqueeze(1) : given;
}

Tensor modulated(const Tensor& y, const Tensor& scale, const Tensor& shift) {
  Tensor made = y;
  if (scale.defined()) made = made * (1 + of_batches(scale, y, "scale"));
  return shift.defined() ? made + of_batches(shift, y, "shift") : made;
}

void modulate(Tensor x, Tensor scale, Tensor shift, Out out) { out = modulated(x, scale, shift); }

// scale is the factor itself, 1 + that of the forward.
void modulate_backward(Tensor gradient, Tensor x, Tensor scale, Tensor, Out dx, Out dscale,
                       Out dshift) {
  const Ints batches = {x.size(0), 1, x.size(2)};
  dx = scale.defined() ? gradient * scale.reshape(batches) : gradient;
  dscale = (gradient * x).sum(1);
  dshift = gradient.sum(1);
}

void ada_layer_norm_v2(Tensor x, Tensor scale, Tensor shift, Tensor weight, Tensor bias, double eps,
                       Out out, Out mean, Out rstd) {
  const auto [y, m, r] = at::native_layer_norm(x, {x.size(2)}, weight, bias, eps);
  out = modulated(y, scale, shift);
  mean = m;
  rstd = r;
}

void ada_layer_norm(Tensor x, Tensor scale, Tensor shift, Tensor weight, Tensor bias, double eps,
                    Out out) {
  ada_layer_norm_v2(x, scale, shift, weight, bias, eps, out, Out({}, "mean"), Out({}, "rstd"));
}

void ada_layer_norm_backward(Tensor gradient, Tensor x, Ints shape, Tensor rstd, Tensor mean,
                             Tensor scale, Tensor, Tensor weight, Tensor bias, Out dx, Out dscale,
                             Out dshift, Out dweight, Out dbias) {
  require(shape[0] == x.size(2), "normalizedShape must be the last dim of input, ", x.size(2),
          ", but is ", shape[0]);
  const Ints rows = {x.size(0), x.size(1), 1};
  const Tensor r = rstd.reshape(rows), z = (x - mean.reshape(rows)) * r;
  const Tensor d = gradient * (1 + scale.reshape({x.size(0), 1, x.size(2)}));
  const Tensor t = weight.defined() ? d * weight : d;
  Tensor y = weight.defined() ? z * weight : z;
  if (bias.defined()) y = y + bias;
  dx = r * (t - t.mean(-1, true) - z * (t * z).mean(-1, true));
  dscale = (gradient * y).sum(1).reshape(scale.sizes());
  dshift = gradient.sum(1).reshape(scale.sizes());
  dweight = (d * z).sum(Ints{0, 1});
  dbias = d.sum(Ints{0, 1});
}

}  // namespace

const Composite plain_loss_composites[] = {
    ENTRY(gaussian_nll_loss),
    ENTRY(gaussian_nll_loss_grad),
    ENTRY(hinge_loss),
    ENTRY(lp_loss),
    ENTRY(mse_loss_grad),
    ENTRY(modulate),
    ENTRY(modulate_backward),
    ENTRY(ada_layer_norm),
    ENTRY(ada_layer_norm_v2),
    ENTRY(ada_layer_norm_backward),
    {},
};

}  // namespace openaclnn::aten
