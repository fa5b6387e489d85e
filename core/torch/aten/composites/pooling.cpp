// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling. CANN writes a divisor of 0 for none.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

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

// The mask serves only the backward pass, which finds the positions again; so it is zero.
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

}  // namespace

const Composite pooling_composites[] = {
    ENTRY(avg_pool2d),          ENTRY(avg_pool2d_backward), ENTRY(avg_pool3d),
    ENTRY(avg_pool3d_backward), ENTRY(max_pool2d_mask),     ENTRY(max_pool2d_mask_backward),
    ENTRY(max_pool3d_backward), ENTRY(max_pool2d_backward), {},
};

}  // namespace openaclnn::aten
