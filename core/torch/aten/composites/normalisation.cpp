// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over several devices, in parts; layer normalisation of sums; group
// normalisation with an activation. All in float.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

Tensor as_float(const Tensor& x) { return x.defined() ? x.to(at::kFloat) : x; }

// ---- batch normalisation: dim 1 is the channel ----

Ints all_but_channels(const Tensor& x) {
  check_rank(x, "input", 2, 8);
  Ints dims;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != 1) dims.push_back(i);
  }
  return dims;
}

// Gives a vector of channels the rank of x.
Tensor along_channels(const Tensor& vector, const Tensor& x) {
  check_rank(x, "input", 2, 8);
  Ints shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  return as_float(vector).reshape(shape);
}

// In evaluation the batch has no statistics: mean and invstd are left as they are, of any shape.
void batch_norm(Tensor x, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var,
                bool training, double momentum, double eps, Out out, Out mean, Out invstd) {
  const auto wide = [&](const Tensor& running) {
    return running.defined() ? running.to(x.scalar_type()) : running;
  };
  const Tensor new_mean = wide(running_mean), new_var = wide(running_var);
  const auto [y, batch_mean, batch_invstd] =
      at::native_batch_norm(x, weight, bias, new_mean, new_var, training, momentum, eps);
  out = y;
  if (!training) {
    leave(mean.tensor());
    return leave(invstd.tensor());
  }
  mean = batch_mean;
  invstd = batch_invstd;
  if (running_mean.defined()) running_mean.copy_(new_mean);
  if (running_var.defined()) running_var.copy_(new_var);
}

void batch_norm_stats(Tensor x, double eps, Out mean, Out invstd) {
  const Ints dims = all_but_channels(x);
  mean = as_float(x).mean(dims);
  invstd = at::rsqrt(as_float(x).var(dims, false) + eps);
}

void batch_norm_elemt(Tensor x, Tensor weight, Tensor bias, Tensor mean, Tensor invstd, double,
                      Out out) {
  Tensor y = (as_float(x) - along_channels(mean, x)) * along_channels(invstd, x);
  if (weight.defined()) y = y * along_channels(weight, x);
  if (bias.defined()) y = y + along_channels(bias, x);
  out = y;
}

// Running values take the share `momentum` of the batch's values, with the unbiased variance.
void update_running(const Tensor& mean, const Tensor& squares, const Tensor& count, double momentum,
                    const Tensor& running_mean, const Tensor& running_var) {
  if (running_mean.defined())
    running_mean.copy_(as_float(running_mean) * (1 - momentum) + mean * momentum);
  if (running_var.defined())
    running_var.copy_(as_float(running_var) * (1 - momentum) + squares / (count - 1) * momentum);
}

// Joins the means and 1/std of W devices, [W, C], with the counts of their elements.
void batch_norm_gather_stats(Tensor, Tensor mean, Tensor invstd, Tensor running_mean,
                             Tensor running_var, double momentum, double eps, Tensor counts,
                             Out mean_out, Out invstd_out) {
  const Tensor n = as_float(counts).reshape({-1, 1}), count = n.sum(), m = as_float(mean);
  const Tensor joined = (n * m).sum(0) / count;
  const Tensor variance = at::pow(as_float(invstd), -2) - eps;
  const Tensor squares = (n * (variance + at::square(m - joined))).sum(0);
  mean_out = joined;
  invstd_out = at::rsqrt(squares / count + eps);
  update_running(joined, squares, count, momentum, running_mean, running_var);
}

void sync_batch_norm_gather_stats(Tensor sum, Tensor square_sum, Tensor counts, Tensor running_mean,
                                  Tensor running_var, double momentum, double eps, Out mean_out,
                                  Out invstd_out) {
  const Tensor count = as_float(counts).sum();
  const Tensor mean = as_float(sum).sum(0) / count;
  const Tensor squares = as_float(square_sum).sum(0) - count * at::square(mean);
  mean_out = mean;
  invstd_out = at::rsqrt(squares / count + eps);
  update_running(mean, squares, count, momentum, running_mean, running_var);
}

void batch_norm_reduce(Tensor x, Out sum, Out square_sum) {
  const Ints dims = all_but_channels(x);
  sum = as_float(x).sum(dims);
  square_sum = at::square(as_float(x)).sum(dims);
}

void batch_norm_reduce_backward(Tensor gradient, Tensor x, Tensor mean, Tensor invstd, Tensor,
                                bool of_input, bool of_weight, bool of_bias, Out sum_dy,
                                Out sum_dy_xmu, Out weight_gradient, Out bias_gradient) {
  const Ints dims = all_but_channels(x);
  const Tensor dy = as_float(gradient), sum = dy.sum(dims);
  const Tensor product = (dy * (as_float(x) - along_channels(mean, x))).sum(dims);
  if (of_input) {
    sum_dy = sum;
    sum_dy_xmu = product;
  }
  if (of_weight) weight_gradient = product * as_float(invstd);
  if (of_bias) bias_gradient = sum;
}

void batch_norm_elemt_backward(Tensor gradient, Tensor x, Tensor mean, Tensor invstd, Tensor weight,
                               Tensor sum_dy, Tensor sum_dy_xmu, Tensor counts, Out out) {
  const Tensor count = as_float(counts).sum(), r = along_channels(invstd, x);
  const Tensor slope = along_channels(sum_dy_xmu, x) / count * at::square(r);
  const Tensor centred = as_float(x) - along_channels(mean, x);
  Tensor dx = (as_float(gradient) - along_channels(sum_dy, x) / count - centred * slope) * r;
  if (weight.defined()) dx = dx * along_channels(weight, x);
  out = dx;
}

// ---- layer normalisation of a sum, over the dims of gamma ----

struct Normalised {
  Tensor mean, rstd, y;
};

Normalised normalised(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  (void)trailing_dims(x, gamma);
  check_optional(beta, "beta", gamma.sizes());
  auto [y, mean, rstd] =
      at::native_layer_norm(x, gamma.sizes(), as_float(gamma), as_float(beta), eps);
  return {mean, rstd, y};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_gradients(const Tensor& dy, const Tensor& x,
                                                        const Tensor& mean, const Tensor& rstd,
                                                        const Tensor& gamma) {
  const Ints shape = reduced_shape(x, gamma);
  check_shape(dy, "dy", x.sizes());
  return at::native_layer_norm_backward(
      as_float(dy), x, gamma.sizes(), as_float(mean).reshape(shape), as_float(rstd).reshape(shape),
      as_float(gamma), at::zeros_like(as_float(gamma)), {true, true, true});
}

void add_layer_norm(Tensor x1, Tensor x2, Tensor gamma, Tensor beta, Tensor bias, double eps,
                    bool with_sum, Out y, Out mean, Out rstd, Out sum) {
  Tensor x = as_float(x1) + as_float(x2);
  if (bias.defined()) x = x + as_float(bias);
  const Normalised n = normalised(x, gamma, beta, eps);
  y = n.y;
  mean = n.mean;
  rstd = n.rstd;
  if (with_sum) sum = x;
}

void add_layer_norm_grad(Tensor dy, Tensor x1, Tensor x2, Tensor rstd, Tensor mean, Tensor gamma,
                         Tensor dsum, Out dx, Out dgamma, Out dbeta) {
  const Tensor x = as_float(x1) + as_float(x2);
  const auto [of_x, of_gamma, of_beta] = layer_norm_gradients(dy, x, mean, rstd, gamma);
  dx = dsum.defined() && dsum.numel() > 0 ? of_x + as_float(dsum) : of_x;
  dgamma = of_gamma;
  dbeta = of_beta;
}

// y = layer norm of alpha x + gx.
void deep_norm(Tensor x, Tensor gx, Tensor beta, Tensor gamma, double alpha, double eps, Out mean,
               Out rstd, Out y) {
  const Normalised n = normalised(as_float(x) * alpha + as_float(gx), gamma, beta, eps);
  mean = n.mean;
  rstd = n.rstd;
  y = n.y;
}

void deep_norm_grad(Tensor dy, Tensor x, Tensor gx, Tensor gamma, Tensor mean, Tensor rstd,
                    double alpha, Out dx, Out dgx, Out dbeta, Out dgamma) {
  const auto [of_sum, of_gamma, of_beta] =
      layer_norm_gradients(dy, as_float(x) * alpha + as_float(gx), mean, rstd, gamma);
  dx = of_sum * alpha;
  dgx = of_sum;
  dbeta = of_beta;
  dgamma = of_gamma;
}

// Like RmsNorm, with 1 + gamma in place of gamma.
void gemma_rms_norm(Tensor x, Tensor gamma, double eps, Out y, Out rstd) {
  const Ints dims = trailing_dims(x, gamma);
  const Tensor r = at::rsqrt(at::mean(at::square(as_float(x)), dims, true) + eps);
  y = as_float(x) * r * (1 + as_float(gamma));
  rstd = r;
}

void group_norm_silu_v2(Tensor x, Tensor gamma, Tensor beta, int64_t groups, double eps,
                        bool activate, Out out, Out mean, Out rstd) {
  check_rank(x, "self", 2, 8);
  const int64_t n = x.size(0), channels = x.size(1);
  require(groups > 0 && channels % groups == 0,
          "group must be at least 1 and divide the channels, ", channels, ", but is ", groups);
  check_optional(gamma, "gamma", {channels});
  check_optional(beta, "beta", {channels});
  const int64_t positions = n * channels == 0 ? 1 : x.numel() / (n * channels);
  const auto [y, m, r] = at::native_group_norm(as_float(x).contiguous(), as_float(gamma),
                                               as_float(beta), n, channels, positions, groups, eps);
  out = activate ? at::silu(y) : y;
  mean = m;
  rstd = r;
}

void group_norm_silu(Tensor x, Tensor gamma, Tensor beta, int64_t groups, double eps, Out out,
                     Out mean, Out rstd) {
  group_norm_silu_v2(x, gamma, beta, groups, eps, true, out, mean, rstd);
}

}  // namespace

const Composite normalisation_composites[] = {
    ENTRY(batch_norm),
    ENTRY(batch_norm_stats),
    ENTRY(batch_norm_elemt),
    ENTRY(batch_norm_gather_stats),
    ENTRY(sync_batch_norm_gather_stats),
    ENTRY(batch_norm_reduce),
    ENTRY(batch_norm_reduce_backward),
    ENTRY(batch_norm_elemt_backward),
    ENTRY(add_layer_norm),
    ENTRY(add_layer_norm_grad),
    ENTRY(deep_norm),
    ENTRY(deep_norm_grad),
    ENTRY(gemma_rms_norm),
    ENTRY(group_norm_silu),
    ENTRY(group_norm_silu_v2),
    {},
};

}  // namespace openaclnn::aten
