// SPDX-License-Identifier: Apache-2.0
// Operators whose attributes differ in meaning from ATen's.
#include "core/torch/aten/checks.h"

namespace openaclnn::aten {
namespace {

// mode: 0 exact, 1 towards zero, 2 down.
void div_mod(Tensor self, Either other, int64_t mode, Out out) {
  const Tensor by = other.tensor();
  out = mode == 0 ? at::div(self, by) : at::div(self, by, mode == 1 ? "trunc" : "floor");
}

void gelu_v2(Tensor x, int64_t tanh, Out out) { out = at::gelu(x, tanh != 0 ? "tanh" : "none"); }

// No dims means all of them.
void all(Tensor self, Ints dims, bool keep, Out out) {
  out = dims.empty() ? at::all(self) : at::all(self, at::OptionalIntArrayRef(dims), keep);
}

void any(Tensor self, Ints dims, bool keep, Out out) {
  out = dims.empty() ? at::any(self) : at::any(self, at::OptionalIntArrayRef(dims), keep);
}

void aminmax(Tensor self, Ints dims, bool keep, Out low, Out high) {
  low = at::amin(self, dims, keep);
  high = at::amax(self, dims, keep);
}

void equal(Tensor self, Tensor other, Tensor out) {
  need_data(self);
  out.fill_(at::equal(self, other));
}

// ---- sequences fill an out of any shape, in order ----

void in_order(const Out& out, const Tensor& numbers) {
  const Tensor& room = out.tensor();
  out = room.numel() == numbers.numel() ? numbers.reshape(room.sizes()) : numbers;
}

void arange(at::Scalar start, at::Scalar end, at::Scalar step, Out out) {
  in_order(out, at::arange(start, end, step, out.tensor().options()));
}

// ATen divides by the step in the dtype of out.
void range(at::Scalar start, at::Scalar end, at::Scalar step, Out out) {
  const at::ScalarType dtype = out.tensor().scalar_type();
  if (c10::isIntegralType(dtype, true) && step.toLong() == 0)
    throw Refusal(c10::str("step must not round to 0 for an out of ", dtype, ", but got ", step));
  in_order(out, at::range(start, end, step, out.tensor().options()));
}

void linspace(at::Scalar start, at::Scalar end, int64_t steps, Out out) {
  in_order(out, at::linspace(start, end, steps, out.tensor().options()));
}

// Counts integers too; bins are those of double.
void histc(Tensor self, int64_t bins, at::Scalar low, at::Scalar high, Out out) {
  const bool whole = c10::isIntegralType(self.scalar_type(), true);
  const Tensor counts =
      at::histc(whole ? self.to(at::kDouble) : at_least_float(self), bins, low, high);
  out = counts.to(out.tensor().scalar_type());
}

// Slices along dim whose norm exceeds the limit are scaled down to it. Unlike ATen takes p = 0, the
// number of elements that are not 0.
void renorm(Tensor self, at::Scalar p, int64_t dim, at::Scalar limit, Out out) {
  if (p.isComplex() || p.toDouble() != 0) {
    out = at::renorm(self, p, dim, limit);
    return;
  }
  const Tensor x = at_least_float(self);
  Ints others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != at::maybe_wrap_dim(dim, x.dim())) others.push_back(i);
  }
  const Tensor norm = at::linalg_vector_norm(x, 0, others, true);
  out = x * at::where(norm > limit, limit / (norm + 1e-7), 1);
}

// The result may have another dtype than the gradient.
void softmax_backward(Tensor gradient, Tensor y, int64_t dim, Out out) {
  const at::ScalarType dtype = c10::promoteTypes(gradient.scalar_type(), y.scalar_type());
  out = at::_softmax_backward_data(gradient.to(dtype), y.to(dtype), dim, dtype);
}

void log_softmax_backward(Tensor gradient, Tensor y, int64_t dim, Out out) {
  const at::ScalarType dtype = c10::promoteTypes(gradient.scalar_type(), y.scalar_type());
  out = at::_log_softmax_backward_data(gradient.to(dtype), y.to(dtype), dim, dtype);
}

// ---- pooling: a divisor of 0 means none ----

std::optional<int64_t> divisor(int64_t given) {
  return given == 0 ? std::nullopt : std::optional(given);
}

void avg_pool2d(Tensor self, Ints kernel, Ints stride, Ints padding, bool ceil, bool pad,
                int64_t divide, int64_t, Out out) {
  out = at::avg_pool2d(self, kernel, stride, padding, ceil, pad, divisor(divide));
}

void avg_pool2d_backward(Tensor gradient, Tensor self, Ints kernel, Ints stride, Ints padding,
                         bool ceil, bool pad, int64_t divide, int64_t, Out out) {
  out =
      at::avg_pool2d_backward(gradient, self, kernel, stride, padding, ceil, pad, divisor(divide));
}

void avg_pool3d(Tensor self, Ints kernel, Ints stride, Ints padding, bool ceil, bool pad,
                int64_t divide, Out out) {
  out = at::avg_pool3d(at_least_float(self), kernel, stride, padding, ceil, pad, divisor(divide));
}

void avg_pool3d_backward(Tensor gradient, Tensor self, Ints kernel, Ints stride, Ints padding,
                         bool ceil, bool pad, int64_t divide, Out out) {
  out = at::avg_pool3d_backward(at_least_float(gradient), at_least_float(self), kernel, stride,
                                padding, ceil, pad, divisor(divide));
}

// The mask serves only the backward pass, which finds the positions anew; so it is zero.
void max_pool2d_mask(Tensor self, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil,
                     Out out, Tensor mask) {
  out = std::get<0>(at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil));
  mask.zero_();
}

void max_pool2d_mask_backward(Tensor gradient, Tensor self, Tensor, Ints kernel, Ints stride,
                              Ints padding, Ints dilation, bool ceil, Out out) {
  const Tensor places =
      std::get<1>(at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil));
  out = at::max_pool2d_with_indices_backward(gradient, self, kernel, stride, padding, dilation,
                                             ceil, places);
}

// CANN's positions are 32-bit.
void max_pool3d_backward(Tensor gradient, Tensor self, Tensor places, Ints kernel, Ints stride,
                         Ints padding, Ints dilation, bool ceil, Out out) {
  out = at::max_pool3d_with_indices_backward(gradient, self, kernel, stride, padding, dilation,
                                             ceil, places.to(at::kLong));
}

void max_pool2d_backward(Tensor gradient, Tensor self, Tensor places, Ints kernel, Ints stride,
                         Ints padding, Ints dilation, bool ceil, Out out) {
  out = at::max_pool2d_with_indices_backward(gradient, self, kernel, stride, padding, dilation,
                                             ceil, places.to(at::kLong));
}

void conv_depthwise2d(Tensor self, Tensor weight, Ints, Tensor bias, Ints stride, Ints padding,
                      Ints dilation, Out out, int64_t) {
  out = at::conv2d(self, weight, bias, stride, padding, dilation, self.size(-3));
}

void confusion_transpose(Tensor self, Ints perm, Ints shape, bool transpose_first, Out out) {
  out = transpose_first ? self.permute(perm).reshape(shape) : self.reshape(shape).permute(perm);
}

void repeat_interleave_grad(Tensor gradient, Tensor repeats, int64_t dim, Tensor out) {
  check_given(out, "out");
  check_given(repeats, "repeats");
  need_data(repeats);
  const Tensor wide = at::zeros(out.sizes(), gradient.options());
  const Tensor places = repeats.numel() == 1
                            ? at::repeat_interleave(repeats.expand({out.size(dim)}).contiguous())
                            : at::repeat_interleave(repeats);
  out.copy_(wide.index_add(dim, places, gradient));
}

// ATen's kernel trusts that every tensor has the dim.
void chunk_cat(Tensors tensors, int64_t dim, int64_t chunks, Out out) {
  for (const Tensor& tensor : tensors) {
    check_given(tensor, "tensors");
    (void)at::maybe_wrap_dim(dim, tensor.dim(), /*wrap_scalar=*/false);
  }
  out = at::_chunk_cat(tensors, dim, chunks);
}

// ATen's kernel trusts that the gradient has the shape of the unfolded tensor.
void unfold_grad(Tensor gradient, Ints sizes, int64_t dim, int64_t size, int64_t step, Out out) {
  if (gradient.is_meta()) {  // phase 1
    const auto unfolded =
        at::empty(sizes, gradient.options()).unfold(dim, size, step).sizes().vec();
    if (gradient.sizes() != at::IntArrayRef(unfolded))
      throw Refusal(c10::str("gradOut must have shape ", at::IntArrayRef(unfolded),
                             ", that of the unfolded tensor, but got ", gradient.sizes()));
  }
  out = at::unfold_backward(gradient, sizes, dim, size, step);
}

// ---- matrices ----

// ATen has no 16-bit floats here.
void triangular_solve(Tensor b, Tensor a, bool upper, bool transpose, bool unit, Out x, Out copy) {
  const at::ScalarType dtype =
      c10::promoteTypes(c10::promoteTypes(a.scalar_type(), b.scalar_type()), at::kFloat);
  const Tensor matrix = (transpose ? a.mT() : a).to(dtype);
  x = at::linalg_solve_triangular(matrix, b.to(dtype), upper != transpose, true, unit);
  copy = a;
}

void svd(Tensor self, bool full, bool vectors, Out s, Out u, Out v) {
  const auto [left, values, right] = at::_linalg_svd(self, full, vectors);
  s = values;
  if (!vectors) return;
  u = left;
  v = right.mH();
}

// mode: 0 reduced, 1 complete, 2 only r.
void qr(Tensor self, int64_t mode, Out q, Out r) {
  constexpr const char* modes[] = {"reduced", "complete", "r"};
  if (mode < 0 || mode > 2)
    throw Refusal("mode must be in [0, 2], but got " + std::to_string(mode));
  const auto [orthogonal, upper] = at::linalg_qr(at_least_float(self), modes[mode]);
  if (mode < 2) q = orthogonal;
  r = upper;
}

// ---- a norm in two steps: the sum of powers, then its root; for infinity, the extreme ----

// torch_npu passes the largest or least 32-bit integer, rounded to float, instead of an infinity.
double power(double p) {
  constexpr double kInfinite = 2147483648.0;
  return std::abs(p) >= kInfinite - 1 ? std::copysign(INFINITY, p) : p;
}

void lp_norm_reduce(Tensor self, Out out, double p, Ints axes, bool keep) {
  const at::OptionalIntArrayRef dims =
      axes.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(axes);
  const double exponent = power(p);
  if (std::isinf(exponent)) {
    out = at::linalg_vector_norm(self, exponent, dims, keep);
  } else {
    out = at::sum(at::pow(at::abs(self), exponent), dims, keep);
  }
}

void lp_norm_update(Tensor self, Out out, double p) {
  const double exponent = power(p);
  out = std::isinf(exponent) ? self : at::pow(self, 1 / exponent);
}

// ATen's kernel trusts that the gradient has the batch that x1 and x2 broadcast to.
void cdist_backward(Tensor gradient, Tensor x1, Tensor x2, Tensor distance, double p, Out out) {
  const auto batch = [](const Tensor& x) { return x.sizes().slice(0, x.dim() - 2); };
  const auto broadcast = at::infer_size(batch(x1), batch(x2));
  if (batch(gradient) != at::IntArrayRef(broadcast))
    throw Refusal(c10::str("grad must have the batch ", at::IntArrayRef(broadcast),
                           " that x1 and x2 broadcast to, but has ", batch(gradient)));
  out = at::_cdist_backward(gradient.contiguous(), x1.contiguous(), x2.contiguous(), p,
                            distance.contiguous());
}

// The gradient of cdist by its first input. Where that is [..., R, M] and the second [..., C, M],
// torch_npu passes every tensor as [..., R, C, M], and -1 for an infinite p.
void cdist_grad(Tensor gradient, Tensor one, Tensor two, Tensor distance, Out out, double p) {
  const auto same = one.sizes();
  if (one.dim() < 3 || gradient.sizes() != same || two.sizes() != same || distance.sizes() != same)
    throw Refusal(c10::str("grad, x1, x2 and cdist must have one shape of at least 3 dimensions, ",
                           "but got ", gradient.sizes(), ", ", same, ", ", two.sizes(), " and ",
                           distance.sizes()));
  const auto sizes = out.tensor().sizes();
  if (one.numel() == 0) {
    out = at::zeros(sizes, one.options());
    return;
  }
  const auto along = [](const Tensor& all, int64_t dim) {
    return at_least_float(all.select(dim, 0)).contiguous();
  };
  out = at::_cdist_backward(along(gradient, -1), along(one, -2), along(two, -3),
                            p < 0 ? INFINITY : p, along(distance, -1))
            .sum_to_size(sizes);
}

}  // namespace

const Composite various_composites[] = {
    ENTRY(div_mod),
    ENTRY(gelu_v2),
    ENTRY(all),
    ENTRY(any),
    ENTRY(aminmax),
    ENTRY(equal),
    ENTRY(arange),
    ENTRY(range),
    ENTRY(linspace),
    ENTRY(histc),
    ENTRY(renorm),
    ENTRY(softmax_backward),
    ENTRY(log_softmax_backward),
    ENTRY(avg_pool2d),
    ENTRY(avg_pool2d_backward),
    ENTRY(avg_pool3d),
    ENTRY(avg_pool3d_backward),
    ENTRY(max_pool2d_mask),
    ENTRY(max_pool2d_mask_backward),
    ENTRY(max_pool3d_backward),
    ENTRY(max_pool2d_backward),
    ENTRY(conv_depthwise2d),
    ENTRY(confusion_transpose),
    ENTRY(repeat_interleave_grad),
    ENTRY(chunk_cat),
    ENTRY(unfold_grad),
    ENTRY(svd),
    ENTRY(triangular_solve),
    ENTRY(qr),
    ENTRY(cdist_backward),
    ENTRY(cdist_grad),
    ENTRY(lp_norm_reduce),
    ENTRY(lp_norm_update),
    {},
};

}  // namespace openaclnn::aten
