// SPDX-License-Identifier: Apache-2.0
// Losses by type, whose reduction is a word, with their gradients; and gradients of activations
// that give more than ATen needs.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// The only element of a reduced loss has no dims in ATen.
Tensor as_out(const Tensor& result, const Out& out) {
  return result.numel() == 1 ? result.reshape(out.tensor().sizes()) : result;
}

Tensor as_gradient(const Tensor& dout, const Text& reduction) {
  const Tensor wide = at_least_float(dout);
  return reduction == "none" || wide.numel() != 1 ? wide : wide.reshape({});
}

void mse_loss_by_type(Tensor predict, Tensor label, Out out, Text reduction) {
  out = as_out(
      at::mse_loss(at_least_float(predict), at_least_float(label), reduction_of(reduction)), out);
}

void mse_loss_grad_by_type(Tensor predict, Tensor label, Tensor dout, Out out, Text reduction) {
  out = at::mse_loss_backward(as_gradient(dout, reduction), at_least_float(predict),
                              at_least_float(label), reduction_of(reduction));
}

void smooth_l1_by_type(Tensor predict, Tensor label, Out out, double sigma, Text reduction) {
  out = as_out(at::smooth_l1_loss(at_least_float(predict), at_least_float(label),
                                  reduction_of(reduction), sigma),
               out);
}

void smooth_l1_grad_by_type(Tensor predict, Tensor label, Tensor dout, Out out, double sigma,
                            Text reduction) {
  out = at::smooth_l1_loss_backward(as_gradient(dout, reduction), at_least_float(predict),
                                    at_least_float(label), reduction_of(reduction), sigma);
}

void l1_grad_by_type(Tensor gradient, Tensor predict, Tensor label, Out out, Text reduction) {
  const Tensor sign = at::sign(at_least_float(predict) - at_least_float(label));
  const Tensor whole = sign * as_gradient(gradient, reduction);
  out = reduction_of(reduction) == at::Reduction::Mean ? whole / sign.numel() : whole;
}

void bce_by_type(Tensor x, Tensor target, Tensor weight, Out out, Text reduction) {
  out = as_out(at::binary_cross_entropy(at_least_float(x), at_least_float(target), weight,
                                        reduction_of(reduction)),
               out);
}

void bce_grad_by_type(Tensor x, Tensor target, Tensor gradient, Tensor weight, Out out,
                      Text reduction) {
  const Tensor wide = at_least_float(x);
  out = at::binary_cross_entropy_backward(as_gradient(gradient, reduction).expand_as(wide), wide,
                                          at_least_float(target), weight, reduction_of(reduction));
}

void bce_logits_by_type(Tensor predict, Tensor target, Tensor weight, Tensor pos_weight, Out out,
                        Text reduction) {
  out = as_out(at::binary_cross_entropy_with_logits(at_least_float(predict), at_least_float(target),
                                                    weight, pos_weight, reduction_of(reduction)),
               out);
}

// The derivative by x of w (q t softplus(-x) + (1 - t) softplus(x)).
void bce_logits_grad_by_type(Tensor predict, Tensor target, Tensor dout, Tensor weight,
                             Tensor pos_weight, Out out, Text reduction) {
  const Tensor x = at_least_float(predict), t = at_least_float(target);
  const Tensor q = pos_weight.defined() ? at_least_float(pos_weight) * t : t;
  Tensor made = ((q + 1 - t) * at::sigmoid(x) - q) * as_gradient(dout, reduction);
  if (weight.defined()) made = made * weight;
  out = reduction_of(reduction) == at::Reduction::Mean ? made / x.numel() : made;
}

void kl_div_by_type(Tensor x, Tensor target, Out out, Text reduction, bool log_target) {
  const bool batch = reduction == "batchmean";
  require_shape(!batch || x.dim() > 0, "x must have a batch dim for batchmean");
  const Tensor loss = at::kl_div(
      at_least_float(x), at_least_float(target),
      batch ? static_cast<int64_t>(at::Reduction::Sum) : reduction_of(reduction), log_target);
  out = as_out(batch ? loss / x.size(0) : loss, out);
}

void kl_div_grad_by_type(Tensor gradient, Tensor x, Tensor target, Out out, Text reduction,
                         bool log_target) {
  const Tensor t = at_least_float(target);
  const Tensor made = as_gradient(gradient, reduction) * -(log_target ? t.exp() : t);
  if (reduction == "batchmean") {
    require_shape(x.dim() > 0, "input must have a batch dim for batchmean");
    out = (made / x.size(0)).expand(out.tensor().sizes());
  } else {
    const bool mean = reduction_of(reduction) == at::Reduction::Mean;
    out = (mean ? made / x.numel() : made).expand(out.tensor().sizes());
  }
}

void soft_margin_by_type(Tensor predict, Tensor label, Out out, Text reduction) {
  out = as_out(
      at::soft_margin_loss(at_least_float(predict), at_least_float(label), reduction_of(reduction)),
      out);
}

void soft_margin_grad_by_type(Tensor predict, Tensor label, Tensor dout, Out out, Text reduction) {
  out = at::soft_margin_loss_backward(as_gradient(dout, reduction), at_least_float(predict),
                                      at_least_float(label), reduction_of(reduction));
}

void nll_loss_by_type(Tensor x, Tensor target, Tensor weight, Out out, Out total, Text reduction,
                      int64_t ignored) {
  const auto [loss, weights] = at::nll_loss_forward(
      at_least_float(x), target.to(at::kLong), weight.defined() ? at_least_float(weight) : weight,
      reduction_of(reduction), ignored);
  out = as_out(loss, out);
  total = as_out(weights, total);
}

void nll_loss_grad_by_type(Tensor x, Tensor gradient, Tensor target, Tensor weight, Tensor total,
                           Out out, Text reduction, std::optional<int64_t> ignored) {
  out = at::nll_loss_backward(
      as_gradient(gradient, reduction), at_least_float(x), target.to(at::kLong),
      weight.defined() ? at_least_float(weight) : weight, reduction_of(reduction),
      ignored.value_or(-100), at_least_float(total).reshape({}));
}

// ---- activations ----

void gelu_grad_by_type(Tensor dy, Tensor x, Tensor, Out out) { out = at::gelu_backward(dy, x); }

void mish_grad_by_type(Tensor gradient, Tensor x, Out out) {
  out = at::mish_backward(at_least_float(gradient), at_least_float(x));
}

void softplus_grad_by_type(Tensor gradient, Tensor x, Out out, double beta, double threshold) {
  out = at::softplus_backward(at_least_float(gradient), at_least_float(x), beta, threshold);
}

void log_sigmoid_grad_by_type(Tensor gradient, Tensor x, Out out) {
  out = at_least_float(gradient) * at::sigmoid(-at_least_float(x));
}

// One dim: a weight for each channel, which is dim 1 of x.
Tensor slopes(const Tensor& weight, const Tensor& x) {
  check_given(x, "x");
  check_given(weight, "weight");
  if (weight.dim() != 1 || x.dim() < 2) return weight;
  Ints shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = weight.size(0);
  return weight.reshape(shape);
}

void prelu_by_type(Tensor x, Tensor weight, Out out) {
  out = at::where(x > 0, x, x * slopes(weight, x));
}

void prelu_grad_by_type(Tensor gradient, Tensor x, Tensor weight, Out dx, Out da) {
  const Tensor g = at_least_float(gradient), v = at_least_float(x);
  const Tensor w = at_least_float(slopes(weight, x));
  dx = at::where(v > 0, g, g * w);
  da = at::where(v > 0, at::zeros({}, v.options()), g * v)
           .sum_to_size(w.sizes())
           .reshape(da.tensor().sizes());
}

}  // namespace

const Composite by_type_loss_composites[] = {
    ENTRY(mse_loss_by_type),         ENTRY(mse_loss_grad_by_type),
    ENTRY(smooth_l1_by_type),        ENTRY(smooth_l1_grad_by_type),
    ENTRY(l1_grad_by_type),          ENTRY(bce_by_type),
    ENTRY(bce_grad_by_type),         ENTRY(bce_logits_by_type),
    ENTRY(bce_logits_grad_by_type),  ENTRY(kl_div_by_type),
    ENTRY(kl_div_grad_by_type),      ENTRY(soft_margin_by_type),
    ENTRY(soft_margin_grad_by_type), ENTRY(nll_loss_by_type),
    ENTRY(nll_loss_grad_by_type),    ENTRY(gelu_grad_by_type),
    ENTRY(mish_grad_by_type),        ENTRY(softplus_grad_by_type),
    ENTRY(log_sigmoid_grad_by_type), ENTRY(prelu_by_type),
    ENTRY(prelu_grad_by_type),       {},
};

}  // namespace openaclnn::aten
