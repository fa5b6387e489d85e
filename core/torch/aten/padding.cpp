// SPDX-License-Identifier: Apache-2.0
// Gradients of padding. ATen's kernels trust that the gradient has the shape of the padded tensor.
#include "core/torch/aten/composite.h"

namespace openaclnn::aten {
namespace {

using PadBackward = Tensor (*)(const Tensor& gradient, const Tensor& self, at::IntArrayRef padding);

template <PadBackward backward>
void pad_backward(Tensor gradient, Tensor self, Ints padding, Out out) {
  Ints padded = self.sizes().vec();
  for (size_t i = 0; i < padding.size(); ++i) padded[padded.size() - 1 - i / 2] += padding[i];
  if (gradient.sizes() != at::IntArrayRef(padded))
    throw Refusal(c10::str("gradOutput must have shape ", at::IntArrayRef(padded),
                           ", that of self with padding ", at::IntArrayRef(padding), ", but got ",
                           gradient.sizes()));
  out = backward(gradient, self, padding);
}

constexpr auto reflection_pad1d_backward = pad_backward<at::reflection_pad1d_backward>;
constexpr auto reflection_pad2d_backward = pad_backward<at::reflection_pad2d_backward>;
constexpr auto reflection_pad3d_backward = pad_backward<at::reflection_pad3d_backward>;
constexpr auto replication_pad1d_backward = pad_backward<at::replication_pad1d_backward>;
constexpr auto replication_pad2d_backward = pad_backward<at::replication_pad2d_backward>;
constexpr auto replication_pad3d_backward = pad_backward<at::replication_pad3d_backward>;

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
