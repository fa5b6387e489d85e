// SPDX-License-Identifier: Apache-2.0
// Optimisers, mixed precision, and gradients that ATen has under no name of their own.
#include "core/torch/aten/composite.h"

namespace openaclnn::aten {
namespace {

enum Reduction : int64_t { none, mean, sum };

Tensor reduced(const Tensor& gradient, const Tensor& of, int64_t reduction) {
  return reduction == mean ? gradient / of.numel() : gradient;
}

// Decoupled weight decay, p -= lr * wd * p, then Adam. torch_npu passes the step less one.
void adamw(Tensor p, Tensor m, Tensor v, Tensor largest, Tensor gradient, Tensor step, double lr,
           double beta1, double beta2, double decay, double eps, bool amsgrad, bool maximize) {
  const double t = step.item().toDouble() + 1;
  if (maximize) gradient = -gradient;
  p.mul_(1 - lr * decay);
  m.lerp_(gradient, 1 - beta1);
  v.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  if (amsgrad) at::maximum_out(largest, largest, v);
  const Tensor& second = amsgrad ? largest : v;
  const Tensor scale = (second.sqrt() / std::sqrt(1 - std::pow(beta2, t))).add_(eps);
  p.addcdiv_(m, scale, -lr / (1 - std::pow(beta1, t)));
}

void unscale(Tensors gradients, Tensor found_inf, Tensor inverse_scale) {
  for (const Tensor& gradient : gradients) {
    if (!at::isfinite(gradient).all().item().toBool()) found_inf.fill_(1);
    gradient.mul_(inverse_scale);
  }
}

void amp_update_scale(Tensor scale, Tensor growth, Tensor found_inf, double growth_factor,
                      double backoff_factor, int64_t interval, Out scale_out, Out growth_out) {
  at::_amp_update_scale_(scale, growth, found_inf, growth_factor, backoff_factor, interval);
  scale_out = scale;
  growth_out = growth;
}

void l1_loss_backward(Tensor gradient, Tensor self, Tensor target, int64_t reduction, Out out) {
  const Tensor difference = self - target;
  out =
      reduced(gradient * at::sign(difference), difference, reduction).expand(out.tensor().sizes());
}

void kl_div_backward(Tensor gradient, Tensor, Tensor target, int64_t reduction, bool log_target,
                     Out out) {
  const Tensor made =
      log_target ? -at::exp(target) * gradient : at::where(target > 0, -target * gradient, 0);
  out = reduced(made, target, reduction).expand(out.tensor().sizes());
}

// x: the logits; weight w; positive weight q: ((q t + 1 - t) sigmoid(x) - q t) w.
void bce_with_logits_backward(Tensor gradient, Tensor x, Tensor target, Tensor weight,
                              Tensor positive, int64_t reduction, Out out) {
  Tensor made;
  if (positive.defined()) {
    const Tensor q = positive * target;
    made = (q + 1 - target) * at::sigmoid(x) - q;
  } else {
    made = at::sigmoid(x) - target;
  }
  made = made * gradient;
  if (weight.defined()) made = made * weight;
  out = reduced(made, x, reduction);
}

// ---- root mean square normalisation over the dims of gamma ----

Ints last_dims(const Tensor& x, const Tensor& gamma) {
  Ints dims;
  for (int64_t i = x.dim() - gamma.dim(); i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

void rms_norm(Tensor x, Tensor gamma, double eps, Out out, Out rstd) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor r = at::rsqrt(at::mean(at::square(wide), last_dims(x, gamma), true) + eps);
  out = wide * r * gamma;
  rstd = r;
}

void rms_norm_grad(Tensor dy, Tensor x, Tensor rstd, Tensor gamma, Out dx, Out dgamma) {
  const Ints dims = last_dims(x, gamma);
  Ints shape = x.sizes().vec(), before;
  for (const int64_t dim : dims) shape[static_cast<size_t>(dim)] = 1;
  for (int64_t i = 0; i < x.dim() - gamma.dim(); ++i) before.push_back(i);
  const Tensor r = rstd.to(at::kFloat).reshape(shape), wide = dy.to(at::kFloat);
  const Tensor h = x.to(at::kFloat) * r, g = wide * gamma.to(at::kFloat);
  dx = r * (g - h * at::mean(g * h, dims, true));
  dgamma = before.empty() ? wide * h : (wide * h).sum(before);
}

}  // namespace

const Composite training_composites[] = {
    ENTRY(adamw),
    ENTRY(unscale),
    ENTRY(amp_update_scale),
    ENTRY(l1_loss_backward),
    ENTRY(kl_div_backward),
    ENTRY(bce_with_logits_backward),
    ENTRY(rms_norm),
    ENTRY(rms_norm_grad),
    {},
};

}  // namespace openaclnn::aten
