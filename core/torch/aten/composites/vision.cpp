// SPDX-License-Identifier: Apache-2.0
// Circular padding, pooling with ONNX's arguments, point clouds.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// Pads the last dims, the last one first, with what lies at their other end.
void circular_pad(Tensor self, Ints padding, Out out) {
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = self.size(-1 - static_cast<int64_t>(i / 2));
    require(padding[i] <= size, "padding must be at most the size of its dim, ", size, ", but has ",
            padding[i]);
  }
  out = at::pad(self, padding, "circular");
}

// Each dim of the gradient is folded back onto self.
void circular_pad_backward(Tensor gradient, Tensor self, Ints padding, Out out) {
  Tensor g = gradient;
  for (size_t i = 0; i < padding.size(); i += 2) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i / 2), size = self.size(dim);
    const int64_t before = padding[i], after = padding[i + 1];
    require(before <= size && after <= size, "padding must be at most the size of its dim, ", size,
            ", but has ", std::max(before, after));
    require_shape(g.size(dim) == before + size + after, "gradOutput must have the size ",
                  before + size + after, " of the padded dim ", dim, ", but has shape ",
                  gradient.sizes());
    const Tensor body = g.narrow(dim, before, size).clone();
    body.narrow(dim, size - before, before).add_(g.narrow(dim, 0, before));
    body.narrow(dim, 0, after).add_(g.narrow(dim, before + size, after));
    g = body;
  }
  out = g;
}

// Four numbers each, of which the last two are height and width; or one or two.
Ints last_two(const Ints& list, const char* name) {
  require(list.size() == 1 || list.size() == 2 || list.size() == 4, name,
          " must have 1, 2 or 4 numbers, but has ", list.size());
  return {list[list.size() == 1 ? 0 : list.size() - 2], list.back()};
}

// pads: top, bottom, left, right, of -inf.
void max_pool_v3(Tensor x, Ints kernel, Ints strides, Ints pads, std::optional<at::Scalar> ceil,
                 Out out) {
  require(pads.size() == 4, "pads must have 4 numbers, but has ", pads.size());
  const Ints window = last_two(kernel, "ksize"), step = last_two(strides, "strides");
  for (size_t i = 0; i < 4; ++i)
    require(pads[i] >= 0 && pads[i] < std::max<int64_t>(window[i / 2], 1),
            "pads must be at least 0 and below the size of the window, but has ", pads[i]);
  require(x.is_floating_point(), "x must have floating-point numbers, but is ", x.scalar_type());
  const Tensor padded = at::constant_pad_nd(x, {pads[2], pads[3], pads[0], pads[1]}, -INFINITY);
  out = at::max_pool2d(padded, window, step, {0}, {1}, ceil && ceil->toDouble() != 0);
}

// CANN's positions may be 32-bit.
void adaptive_max_pool3d_backward(Tensor gradient, Tensor self, Tensor places, Out out) {
  out = at::adaptive_max_pool3d_backward(gradient, self, places.to(at::kLong));
}

// What lies where the pooled elements were put.
Tensor unpooled(const Tensor& gradient, const Tensor& places, const Ints& size, int64_t dims) {
  require_shape(
      gradient.sizes().slice(static_cast<size_t>(gradient.dim() - dims)) == at::IntArrayRef(size),
      "gradOutput must have the size outputSize, ", at::IntArrayRef(size), ", but has shape ",
      gradient.sizes());
  const int64_t first = gradient.dim() - dims;
  return gradient.flatten(first)
      .gather(first, places.to(at::kLong).flatten(first))
      .reshape(places.sizes());
}

void max_unpool2d_backward(Tensor gradient, Tensor, Tensor places, Ints size, Out out) {
  out = unpooled(gradient, places, size, 2);
}

void max_unpool3d_backward(Tensor gradient, Tensor, Tensor places, Ints size, Ints, Ints, Out out) {
  out = unpooled(gradient, places, size, 3);
}

// Each of n points gave its gradient, by three weights, to three of m: [b, c, n] to [b, c, m].
void three_interpolate_backward(Tensor gradient, Tensor index, Tensor weight, int64_t m, Out out) {
  check_rank(gradient, "gradX", 3, 4);
  check_rank(index, "idx", 3, 3);
  const int64_t b = gradient.size(0), c = gradient.size(1), n = gradient.size(2);
  require_shape(gradient.dim() == 3 || gradient.size(3) == 1,
                "gradX must have shape [b, c, n] or [b, c, n, 1], but got ", gradient.sizes());
  check_shape(index, "idx", {b, n, 3});
  const Tensor g = gradient.reshape({b, c, n, 1}) * weight.unsqueeze(1);
  check_result(out.tensor(), at::empty({b, c, m}, gradient.options()), "gradY");
  out = at::zeros({b, c, m}, g.options())
            .scatter_add(2, index.to(at::kLong).reshape({b, 1, n * 3}).expand({b, c, n * 3}),
                         g.reshape({b, c, n * 3}));
}

}  // namespace

const Composite vision_composites[] = {
    ENTRY(circular_pad),
    ENTRY(circular_pad_backward),
    ENTRY(max_pool_v3),
    ENTRY(adaptive_max_pool3d_backward),
    ENTRY(max_unpool2d_backward),
    ENTRY(max_unpool3d_backward),
    ENTRY(three_interpolate_backward),
    {},
};

}  // namespace openaclnn::aten
