// SPDX-License-Identifier: Apache-2.0
// Optimisers, mixed precision, normalisation by the root mean square.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// Decoupled weight decay, p -= lr * wd * p, then Adam. torch_npu passes the step minus one.
void adamw(Tensor p, Tensor m, Tensor v, Tensor largest, Tensor gradient, Tensor step, double lr,
           double beta1, double beta2, double decay, double eps, bool amsgrad, bool maximize) {
  check_given(p, "var");
  check_shape(m, "m", p.sizes());
  check_shape(v, "v", p.sizes());
  check_shape(gradient, "grad", p.sizes());
  if (amsgrad) check_shape(largest, "maxGradNorm", p.sizes());
  const double t = number_in<double>(step) + 1;
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
  check_given(found_inf, "foundInf");
  check_given(inverse_scale, "inverseScale");
  require(inverse_scale.numel() == 1, "inverseScale must have one element, but has shape ",
          inverse_scale.sizes());
  for (const Tensor& gradient : gradients) {
    if (!number_in<bool>(at::isfinite(gradient).all())) found_inf.fill_(1);
    gradient.mul_(inverse_scale);
  }
}

void amp_update_scale(Tensor scale, Tensor growth, Tensor found_inf, double growth_factor,
                      double backoff_factor, int64_t interval, Out scale_out, Out growth_out) {
  check_given(scale, "currentScale");
  check_given(growth, "growthTracker");
  at::_amp_update_scale_(scale, growth, found_inf, growth_factor, backoff_factor, interval);
  scale_out = scale;
  growth_out = growth;
}

// ---- root mean square normalisation over the dims of gamma ----

void rms_norm(Tensor x, Tensor gamma, double eps, Out out, Out rstd) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor r =
      at::rsqrt(at::mean(at::square(wide), trailing_dims(x, gamma, "self"), true) + eps);
  out = wide * r * gamma;
  rstd = r;
}

void rms_norm_grad(Tensor dy, Tensor x, Tensor rstd, Tensor gamma, Out dx, Out dgamma) {
  const Ints dims = trailing_dims(x, gamma, "self"), shape = reduced_shape(x, gamma);
  check_shape(dy, "dy", x.sizes());
  Ints before;
  for (int64_t i = 0; i < x.dim() - gamma.dim(); ++i) before.push_back(i);
  const Tensor r = rstd.to(at::kFloat).reshape(shape), wide = dy.to(at::kFloat);
  const Tensor h = x.to(at::kFloat) * r, g = wide * gamma.to(at::kFloat);
  dx = r * (g - h * at::mean(g * h, dims, true));
  dgamma = before.empty() ? wide * h : (wide * h).sum(before);
}

}  // namespace

const Composite training_composites[] = {
    ENTRY(adamw),    ENTRY(unscale),       ENTRY(amp_update_scale),
    ENTRY(rms_norm), ENTRY(rms_norm_grad), {},
};

}  // namespace openaclnn::aten
