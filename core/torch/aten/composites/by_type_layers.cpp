// SPDX-License-Identifier: Apache-2.0
// Layers by type: batch norm in its two halves, pooling whose attributes are those of four dims,
// deviations, and what else layers call for their gradients.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- batch norm over all dims but the second; statistics have C elements in any shape ----

struct Channels {
  Tensor x;
  Ints others{0};
  Ints shape{1};
  double count;

  explicit Channels(const Tensor& given) : x(at_least_float(given)) {
    check_rank(given, "x", 2, 6);
    shape.push_back(x.size(1));
    for (int64_t dim = 2; dim < x.dim(); ++dim) {
      others.push_back(dim);
      shape.push_back(1);
    }
    count = x.size(1) == 0 ? 0 : static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
  }
  Tensor spread(const Tensor& statistic, const char* name) const {
    check_given(statistic, name);
    require_shape(statistic.numel() == x.size(1), name, " must have ", x.size(1),
                  " elements, but has shape ", statistic.sizes());
    return at_least_float(statistic).reshape(shape);
  }
  Tensor sum(const Tensor& values) const { return values.sum(others, true); }
};

Tensor like(const Tensor& result, const Out& out) { return result.reshape(out.tensor().sizes()); }

void bn_reduce(Tensor x, Out sum, Out square_sum, double) {
  const Channels c(x);
  sum = like(c.sum(c.x), sum);
  square_sum = like(c.sum(c.x * c.x), square_sum);
}

// The running variance counts one element less.
void bn_update(Tensor x, Tensor sum, Tensor square_sum, Tensor scale, Tensor offset, Tensor mean,
               Tensor variance, Out y, Out mean_out, Out variance_out, Out batch_mean,
               Out batch_variance, double factor, double epsilon) {
  const Channels c(x);
  const Tensor m = c.spread(sum, "sum").to(at::kDouble) / c.count;
  const Tensor v =
      (c.spread(square_sum, "square_sum").to(at::kDouble) / c.count - m * m).clamp_min(0);
  y = (c.x - m) * (v + epsilon).rsqrt() * c.spread(scale, "scale") + c.spread(offset, "offset");
  mean_out = like(factor * m + (1 - factor) * c.spread(mean, "mean"), mean_out);
  const double unbiased = c.count > 1 ? c.count / (c.count - 1) : 1;
  variance_out =
      like(factor * unbiased * v + (1 - factor) * c.spread(variance, "variance"), variance_out);
  batch_mean = like(m, batch_mean);
  batch_variance = like(v, batch_variance);
}

void bn_update_grad(Tensor gradient, Tensor x, Tensor mean, Tensor variance, Out diff_scale,
                    Out diff_offset, double epsilon) {
  const Channels c(x);
  check_shape(gradient, "grads", x.sizes());
  const Tensor g = at_least_float(gradient);
  const Tensor normal = (c.x - c.spread(mean, "batch_mean")) *
                        (c.spread(variance, "batch_variance") + epsilon).rsqrt();
  diff_scale = like(c.sum(g * normal), diff_scale);
  diff_offset = like(c.sum(g), diff_offset);
}

void bn_reduce_grad(Tensor gradient, Tensor x, Tensor diff_scale, Tensor diff_offset, Tensor scale,
                    Tensor mean, Tensor variance, Out y, double epsilon) {
  const Channels c(x);
  check_shape(gradient, "grads", x.sizes());
  const Tensor r = (c.spread(variance, "batch_variance") + epsilon).rsqrt();
  const Tensor normal = (c.x - c.spread(mean, "batch_mean")) * r;
  const Tensor centred = at_least_float(gradient) - (c.spread(diff_offset, "diff_offset") +
                                                     normal * c.spread(diff_scale, "diff_scale")) /
                                                        c.count;
  y = c.spread(scale, "scale") * r * centred;
}

void bn_infer(Tensor x, Tensor scale, Tensor offset, Tensor mean, Tensor variance, Out y,
              double epsilon) {
  const Channels c(x);
  y = (c.x - c.spread(mean, "mean")) * (c.spread(variance, "variance") + epsilon).rsqrt() *
          c.spread(scale, "scale") +
      c.spread(offset, "offset");
}

void bn_infer_grad(Tensor gradient, Tensor scale, Tensor variance, Out x_backprop, double epsilon) {
  const Channels c(gradient);
  x_backprop =
      c.x * c.spread(scale, "scale") * (c.spread(variance, "batch_variance") + epsilon).rsqrt();
}

// ---- layer norm ----

// The forward pass gives the variance, and no epsilon comes with it: that of torch's default.
void layer_norm_grad_by_type(Tensor gradient, Tensor x, Tensor variance, Tensor mean, Tensor gamma,
                             Out pd_x, Out pd_gamma, Out pd_beta) {
  constexpr double kEpsilon = 1e-5;
  check_shape(gradient, "dy", x.sizes());
  const Ints shape = reduced_shape(x, gamma);
  for (const auto& [statistic, name] : {std::pair(variance, "variance"), std::pair(mean, "mean")}) {
    check_given(statistic, name);
    require_shape(statistic.numel() == c10::multiply_integers(shape), name,
                  " must have an element for each row of x, but has shape ", statistic.sizes());
  }
  const Tensor g = at_least_float(gamma);
  const auto [dx, dgamma, dbeta] =
      at::native_layer_norm_backward(at_least_float(gradient), at_least_float(x), gamma.sizes(),
                                     at_least_float(mean).reshape(shape),
                                     (at_least_float(variance) + kEpsilon).rsqrt().reshape(shape),
                                     g, at::zeros_like(g), {true, true, true});
  pd_x = dx;
  pd_gamma = dgamma;
  pd_beta = dbeta;
}

// ---- pooling: lists have a number for each of the four dims of x ----

Ints middle(const Ints& list, const char* name, size_t first) {
  require(list.size() == 4, name, " must have 4 numbers, but has ", list.size());
  return {list[first], list[first + 1]};
}

struct Average {
  Ints kernel, stride, pads;

  Average(const Ints& ksize, const Ints& strides, const Text& mode, const Ints& around,
          const Text& format, bool global)
      : kernel(middle(ksize, "ksize", 2)), stride(middle(strides, "strides", 2)) {
    require(format == "NCHW", "data_format must be NCHW, but is ", format);
    require(mode == "CALCULATED", "padding_mode must be CALCULATED, but is ", mode);
    require(!global, "global_pooling must be false");
    require(around.size() == 4 && around[0] == around[1] && around[2] == around[3],
            "pads must have equal numbers above and below, and left and right, but are ", around);
    pads = {around[0], around[2]};
  }
};

std::optional<int64_t> divisor(std::optional<int64_t> given) {
  return given.value_or(0) == 0 ? std::nullopt : given;
}

void avg_pool_by_type(Tensor x, Out y, Ints ksize, Ints strides, Text padding_mode, Ints pads,
                      Text data_format, bool global_pooling, bool ceil_mode, bool exclusive,
                      std::optional<int64_t> divide) {
  const Average a(ksize, strides, padding_mode, pads, data_format, global_pooling);
  y = at::avg_pool2d(at_least_float(x), a.kernel, a.stride, a.pads, ceil_mode, !exclusive,
                     divisor(divide));
}

void avg_pool_grad_by_type(Tensor orig_input_shape, Tensor gradient, Out out, Ints ksize,
                           Ints strides, Text padding_mode, Ints pads, Text data_format,
                           bool global_pooling, bool ceil_mode, bool exclusive,
                           std::optional<int64_t> divide) {
  const Average a(ksize, strides, padding_mode, pads, data_format, global_pooling);
  const Tensor g = at_least_float(gradient);
  const Ints shape = numbers_in(orig_input_shape, "orig_input_shape");
  out = at::avg_pool2d_backward(g, at::empty(shape, g.options()), a.kernel, a.stride, a.pads,
                                ceil_mode, !exclusive, divisor(divide));
}

// As in aclnnMaxPool2dWithMask the second result serves only the backward pass, which finds the
// positions again.
void max_pool_by_type(Tensor x, Out y, Tensor argmax, Ints ksize, Ints strides, Ints pads,
                      Ints dilation, bool ceil_mode) {
  y = std::get<0>(at::max_pool2d_with_indices(
      x, middle(ksize, "ksize", 1), middle(strides, "strides", 1), middle(pads, "pads", 1),
      middle(dilation, "dilation", 1), ceil_mode));
  argmax.zero_();
}

void max_pool_grad_by_type(Tensor x, Tensor gradient, Tensor, Out y, Ints ksize, Ints strides,
                           Ints pads, Ints dilation, bool ceil_mode) {
  const Ints k = middle(ksize, "ksize", 1), s = middle(strides, "strides", 1);
  const Ints p = middle(pads, "pads", 1);
  const Ints d = dilation.empty() ? Ints{1, 1} : middle(dilation, "dilation", 1);
  const Tensor places = std::get<1>(at::max_pool2d_with_indices(x, k, s, p, d, ceil_mode));
  y = at::max_pool2d_with_indices_backward(gradient, x, k, s, p, d, ceil_mode, places);
}

void adaptive_avg_grad_by_type(Tensor gradient, Out out, Ints orig_input_shape) {
  const Tensor g = at_least_float(gradient);
  out = at::_adaptive_avg_pool2d_backward(g, at::empty(orig_input_shape, g.options()));
}

// ---- deviations from a given mean ----

Tensor squares(const Tensor& x, const Tensor& mean, const Ints& dims, bool unbiased, bool keep,
               std::optional<int64_t> correction) {
  const Tensor difference = at_least_float(x) - at_least_float(mean);
  double count = 1;
  for (const int64_t dim : dims) count *= static_cast<double>(difference.size(dim));
  const auto less = static_cast<double>(correction.value_or(unbiased ? 1 : 0));
  return (difference * difference).sum(dims, keep) / std::max(count - less, 0.0);
}

void deviation_with_mean(Tensor x, Tensor mean, Out y, Ints dim, bool unbiased, bool keepdim,
                         std::optional<int64_t> correction) {
  y = like(squares(x, mean, dim, unbiased, keepdim, correction).sqrt(), y);
}

void deviation_update(Tensor x, Tensor mean, Out y, Ints dim, bool if_std, bool unbiased,
                      bool keepdim, std::optional<int64_t> correction) {
  const Tensor v = squares(x, mean, dim, unbiased, keepdim, correction);
  y = like(if_std ? v.sqrt() : v, y);
}

// ---- places ----

void one_hot_by_type(Tensor x, Tensor depth, Tensor on, Tensor off, Out y, int64_t axis) {
  const int64_t count = number_in(depth);
  require(count >= 0, "depth must not be negative, but is ", count);
  const int64_t rank = x.dim(), dim = axis < 0 ? axis + rank + 1 : axis;
  require(dim >= 0 && dim <= rank, "axis must be from -", rank + 1, " to ", rank, ", but is ",
          axis);
  Ints shape(static_cast<size_t>(rank) + 1, 1);
  shape[static_cast<size_t>(dim)] = count;
  const Tensor hot = x.unsqueeze(dim).eq(at::arange(count, x.options()).reshape(shape));
  y = at::where(hot, on.reshape({}), off.reshape({}));
}

void index_add_by_type(Tensor var, Tensor indices, Tensor updates, Tensor alpha, Out out,
                       int64_t axis) {
  need_data(indices);
  if (alpha.defined()) need_data(alpha);
  out = at::index_add(var, axis, indices, updates, alpha.defined() ? alpha.item() : at::Scalar(1));
}

}  // namespace

const Composite by_type_layer_composites[] = {
    ENTRY(bn_reduce),
    ENTRY(bn_update),
    ENTRY(bn_update_grad),
    ENTRY(bn_reduce_grad),
    ENTRY(bn_infer),
    ENTRY(bn_infer_grad),
    ENTRY(layer_norm_grad_by_type),
    ENTRY(avg_pool_by_type),
    ENTRY(avg_pool_grad_by_type),
    ENTRY(max_pool_by_type),
    ENTRY(max_pool_grad_by_type),
    ENTRY(deviation_with_mean),
    ENTRY(deviation_update),
    ENTRY(one_hot_by_type),
    ENTRY(index_add_by_type),
    ENTRY(adaptive_avg_grad_by_type),
    {},
};

}  // namespace openaclnn::aten
