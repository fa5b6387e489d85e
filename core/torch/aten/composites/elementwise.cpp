// SPDX-License-Identifier: Apache-2.0
// Functions of each element that are a short expression of ATen's, and sums and extremes of lists.
#include <limits>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

using Number = std::optional<at::Scalar>;  // NULL has a default

// ---- activations and their gradients ----

// The derivative of acosh by its result y, and of asin by its argument y.
void acosh_grad(Tensor y, Tensor dy, Out out) { out = dy / at::sinh(y); }
void asin_grad(Tensor y, Tensor dy, Out out) { out = dy * at::rsqrt(1 - y * y); }

void softsign(Tensor x, Out out) { out = x / (1 + x.abs()); }

void squared_relu(Tensor x, Out out) { out = at::square(at::relu(x)); }

// Klambauer et al. 2017: lambda x above 0, lambda alpha (exp(x) - 1) below.
constexpr double kLambda = 1.0507009873554804934193349852946;
constexpr double kAlpha = 1.6732632423543772848170429916717;

// The device takes integers too, and cuts off what is behind the point.
Tensor as_dtype_of(const Out& out, const Tensor& result) {
  return out.tensor().defined() ? result.to(out.tensor().scalar_type()) : result;
}

Tensor floating(const Tensor& x) { return x.is_floating_point() ? x : x.to(at::kFloat); }

void selu(Tensor x, Out out) { out = as_dtype_of(out, at::elu(floating(x), kAlpha, kLambda, 1)); }

void selu_backward(Tensor gradient, Tensor result, Out out) {
  const Tensor made =
      at::elu_backward(floating(gradient), kAlpha, kLambda, 1, true, floating(result));
  out = as_dtype_of(out, made);
}

// x - bias above lambd, x + bias below -lambd, else 0.
void shrink(Tensor x, at::Scalar lambd, at::Scalar bias, Out out) {
  const Tensor zero = at::zeros({}, x.options());
  out = at::where(x > lambd, x - bias, at::where(x < -lambd, x + bias, zero));
}

void swish(Tensor x, Number beta, Out out) {
  out = x * at::sigmoid(x * beta.value_or(at::Scalar(1.0)));
}

void swish_backward(Tensor gradient, Tensor x, Number beta, Out out) {
  const Tensor scaled = x * beta.value_or(at::Scalar(1.0)), s = at::sigmoid(scaled);
  out = gradient * s * (1 + scaled * (1 - s));
}

void silu_mul(Tensor x, Tensor y, Out out) { out = at::silu(x) * y; }

void softmax_grad(Tensor y, Tensor dy, Out out) {
  check_rank(y, "y", 1, 8);
  out = y * (dy - (dy * y).sum(-1, true));
}

void relu_v3(Tensor x, Out out, Out mask) {
  out = at::relu(x);
  mask = x > 0;
}

// x is what the activation was given, y the gradient: of one element or of the shape of x.
void relu_grad_v3(Tensor x, Tensor y, Out out) {
  require_shape(y.numel() == 1 || y.sizes() == x.sizes(), "y must have one element or the shape ",
                "of x, ", x.sizes(), ", but got ", y.sizes());
  out = at::where(x > 0, y, at::zeros({}, y.options()));
}

void relu_grad_v4(Tensor gradient, Tensor mask, Number threshold, Out out) {
  if (threshold) require(threshold->equal(0), "threshold must be 0 or NULL, but is ", *threshold);
  out = at::where(mask != 0, gradient, at::zeros({}, gradient.options()));
}

// a = min(a, limit), b = clamp(b, -limit, limit): a sigmoid(alpha a) (b + bias) of the halves, or
// of the even and odd columns. Rows behind the groups are 0.
void clipped_swiglu(Tensor x, Tensor groups, int64_t dim, double alpha, double limit, double bias,
                    bool interleaved, Out out) {
  require(-x.dim() <= dim && dim < x.dim(), "dim must be a dim of x, whose shape is ", x.sizes(),
          ", but got ", dim);
  const int64_t first = at::maybe_wrap_dim(dim, x.dim());
  Ints shape = x.sizes().slice(0, static_cast<size_t>(first)).vec();
  shape.push_back(c10::multiply_integers(x.sizes().slice(static_cast<size_t>(first))));
  const Tensor rows = x.reshape(shape);
  Tensor a, b;
  if (interleaved) {
    const int64_t pairs = halves(rows, -1).first.size(-1);
    const auto parts = rows.unflatten(-1, {pairs, 2}).unbind(-1);
    a = parts[0];
    b = parts[1];
  } else {
    std::tie(a, b) = halves(rows, -1);
  }
  a = at::clamp_max(a, limit);
  Tensor y = a * at::sigmoid(a * alpha) * (at::clamp(b, -limit, limit) + bias);
  Ints half_sizes = x.sizes().vec();
  half_sizes[static_cast<size_t>(first)] /= 2;
  require_shape(x.size(first) % 2 == 0, "x must have an even size along dim, but has shape ",
                x.sizes());
  y = y.reshape(half_sizes);
  if (groups.defined()) {
    check_result(out.tensor(), y, "out");
    const int64_t all = c10::multiply_integers(x.sizes().slice(0, static_cast<size_t>(first)));
    const auto count = number_in(groups.sum());
    require(count >= 0 && count <= all, "groupIndex must have a sum from 0 to ", all,
            ", the rows of x, but has ", count);
    y = y.reshape({all, y.numel() / std::max<int64_t>(all, 1)});
    const Tensor behind = at::arange(all) >= count;
    y = y.masked_fill(behind.unsqueeze(1), 0).reshape(half_sizes);
  }
  out = y;
}

// ---- arithmetic ----

// self + alpha other, alpha a tensor of one element.
void axpy(Tensor self, Tensor other, Tensor alpha, Out out) {
  out = self + alpha.reshape({}) * other;
}

void fused_mul_add_n(Tensor x1, Tensor x2, Tensor x3, Out out) { out = x1 * x3.reshape({}) + x2; }

// x + bias along the channels: dim 1 of NCHW and NCDHW, the last of NHWC (NULL too) and NDHWC.
void bias_add(Tensor x, Tensor bias, Text format, Out out) {
  const bool second = format == "NCHW" || format == "NCDHW";
  require(second || format == "NHWC" || format == "NDHWC" || format.empty(),
          "dataFormat must be NCHW, NHWC, NCDHW or NDHWC, but got ", format);
  check_rank(x, "x", 2, 8);
  const int64_t dim = second ? 1 : x.dim() - 1;
  require_shape(x.size(dim) == bias.size(0), "bias must have an element for each of the ",
                x.size(dim), " channels of x, but has ", bias.size(0));
  Ints shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = bias.size(0);
  out = x + bias.reshape(shape);
}

// x scale + bias; scale stands for numAxes dims of x (-1: all) from axis on, or for as many as it
// has dims itself.
void scale(Tensor x, Tensor scale, Tensor bias, int64_t axis, int64_t count, bool from_blob,
           Out out) {
  const int64_t first = at::maybe_wrap_dim(axis, x.dim(), /*wrap_scalar=*/false);
  const int64_t dims = !from_blob ? scale.dim() : count == -1 ? x.dim() - first : count;
  require(dims <= x.dim() - first, "scale must stand for dims of x from axis ", axis,
          " on, but for ", dims, " of shape ", x.sizes());
  const auto wanted = x.sizes().slice(static_cast<size_t>(first), static_cast<size_t>(dims));
  const bool one = scale.numel() == 1 && dims <= 1;
  if (!one) check_shape(scale, "scale", wanted);
  if (bias.defined()) check_shape(bias, "bias", scale.sizes());
  const auto wide = [&](const Tensor& given) {
    if (one) return given.reshape({});
    Ints shape(static_cast<size_t>(x.dim()), 1);
    std::copy(wanted.begin(), wanted.end(), shape.begin() + first);
    return given.reshape(shape);
  };
  const Tensor y = x * wide(scale);
  out = bias.defined() ? y + wide(bias) : y;
}

// The quotient in float, rounded down, as far as integers reach; 0 / 0 is 0 for them.
void floor_div(Tensor x, Tensor y, Out out) {
  Tensor q = at::floor(x.to(at::kFloat) / y.to(at::kFloat));
  const at::ScalarType dtype = out.tensor().scalar_type();
  if (c10::isIntegralType(dtype, true)) {
    q = at::nan_to_num(q.to(at::kDouble), 0, INFINITY, -INFINITY);
    switch (dtype) {
      case at::kChar: q = at::clamp(q, -128, 127); break;
      case at::kByte: q = at::clamp(q, 0, 255); break;
      case at::kInt: q = at::clamp(q, -2147483648.0, 2147483647.0); break;
      default: throw Refusal("out must have dtype INT8, UINT8, INT32 or a floating-point one");
    }
    q = q.to(dtype);
  }
  out = q;
}

// The least integer divided by -1 has no result: the CPU raises a signal, so -x stands for x / -1.
void truncate_div(Tensor x, Tensor y, Out out) {
  if (x.is_floating_point() || y.is_floating_point()) {
    out = at::div(x, y, "trunc");
    return;
  }
  const Tensor minus = y == -1, one = at::ones({}, y.options());
  out = at::where(minus, -x, at::div(x, at::where(minus, one, y), "trunc"));
}

void truncate_mod(Tensor x, Tensor y, Out out) {
  if (x.is_floating_point() || y.is_floating_point()) {
    out = at::fmod(x, y);
    return;
  }
  out = at::fmod(x, at::where(y == -1, at::ones({}, y.options()), y));
}

// INT32 results lose what is behind the point.
void real_div(Tensor self, Tensor other, Out out) {
  Tensor q = at::div(self, other);
  if (c10::isIntegralType(out.tensor().scalar_type(), true)) {
    constexpr double kLeast = -2147483648.0, kMost = 2147483647.0;
    q = at::clamp(at::nan_to_num(q.to(at::kDouble), 0, INFINITY, -INFINITY), kLeast, kMost)
            .to(at::kLong);
  }
  out = q;
}

// ---- lists ----

template <class F>
Tensor folded(const Tensors& list, F f) {
  require(!list.empty(), "tensors must have a tensor, but has none");
  for (size_t i = 0; i < list.size(); ++i)
    if (!list[i].defined()) throw missing_element("tensors", i);
  Tensor made = list[0];
  for (size_t i = 1; i < list.size(); ++i) made = f(made, list[i]);
  return made;
}

void sum_of_list(Tensors list, Out out) {
  out = folded(list, [&](const Tensor& a, const Tensor& b) {
    check_shape(b, "tensors", list[0].sizes());
    return a + b;
  });
}

void max_of_list(Tensors list, Out out) {
  out = folded(list, [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); });
}

void min_of_list(Tensors list, Out out) {
  out = folded(list, [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); });
}

}  // namespace

const Composite elementwise_composites[] = {
    ENTRY(acosh_grad),
    ENTRY(asin_grad),
    ENTRY(softsign),
    ENTRY(squared_relu),
    ENTRY(selu),
    ENTRY(selu_backward),
    ENTRY(shrink),
    ENTRY(swish),
    ENTRY(swish_backward),
    ENTRY(silu_mul),
    ENTRY(softmax_grad),
    ENTRY(relu_v3),
    ENTRY(relu_grad_v3),
    ENTRY(relu_grad_v4),
    ENTRY(clipped_swiglu),
    ENTRY(axpy),
    ENTRY(fused_mul_add_n),
    ENTRY(bias_add),
    ENTRY(scale),
    ENTRY(floor_div),
    ENTRY(truncate_div),
    ENTRY(truncate_mod),
    ENTRY(real_div),
    ENTRY(sum_of_list),
    ENTRY(max_of_list),
    ENTRY(min_of_list),
    {},
};

}  // namespace openaclnn::aten
