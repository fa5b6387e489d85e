// SPDX-License-Identifier: Apache-2.0
// Operators whose attributes differ in meaning from ATen's.
#include "core/torch/aten/composites/checks.h"

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
    ENTRY(confusion_transpose),
    ENTRY(repeat_interleave_grad),
    ENTRY(chunk_cat),
    ENTRY(unfold_grad),
    {},
};

}  // namespace openaclnn::aten
