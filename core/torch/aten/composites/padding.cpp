// SPDX-License-Identifier: Apache-2.0
// Gradients of padding. ATen's kernels trust that the gradient has the shape of the padded tensor.
#include "core/torch/aten/composites/entry.h"

namespace openaclnn::aten {
namespace {

using PadBackward = Tensor (*)(const Tensor& gradient, const Tensor& self, at::IntArrayRef padding);

template <PadBackward backward, bool reflects>
void pad_backward(Tensor gradient, Tensor self, Ints padding, Out out) {
  Ints padded = self.sizes().vec();
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = self.size(-1 - static_cast<int64_t>(i / 2));
    if (reflects && padding[i] >= size)
      throw Refusal(c10::str("padding must be less than the size of its dim, ", size, ", but has ",
                             padding[i]));
    padded[padded.size() - 1 - i / 2] += padding[i];
  }
  if (gradient.sizes() != at::IntArrayRef(padded))
    throw Refusal(c10::str("gradOutput must have shape ", at::IntArrayRef(padded),
                           ", that of self with padding ", at::IntArrayRef(padding), ", but got ",
                           gradient.sizes()));
  out = backward(gradient, self, padding);
}

constexpr auto reflection_pad1d_backward = pad_backward<at::reflection_pad1d_backward, true>;
constexpr auto reflection_pad2d_backward = pad_backward<at::reflection_pad2d_backward, true>;
constexpr auto reflection_pad3d_backward = pad_backward<at::reflection_pad3d_backward, true>;
constexpr auto replication_pad1d_backward = pad_backward<at::replication_pad1d_backward, false>;
constexpr auto replication_pad2d_backward = pad_backward<at::replication_pad2d_backward, false>;
constexpr auto replication_pad3d_backward = pad_backward<at::replication_pad3d_backward, false>;

}  // namespace

const Composite padding_composites[] = {
    ENTRY(reflection_pad1d_backward),
    ENTRY(reflection_pad2d_backward),
    ENTRY(reflection_pad3d_backward),
    ENTRY(replication_pad1d_backward),
    ENTRY(replication_pad2d_backward),
    ENTRY(replication_pad3d_backward),
    {},
};

}  // namespace openaclnn::aten
