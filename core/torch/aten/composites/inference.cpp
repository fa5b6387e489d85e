// SPDX-License-Identifier: Apache-2.0
// Layers for inference. 16-bit floats are computed in float and rounded once.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

void add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, double eps, Out out, Out rstd, Out sum) {
  const Tensor x = at_least_float(x1) + at_least_float(x2);
  const Tensor r = at::rsqrt(at::mean(at::square(x), trailing_dims(x, gamma, "x1"), true) + eps);
  out = x * r * gamma;
  rstd = r;
  sum = x;
}

// Takes self at the positions of index, whose dims replace dim.
void gather_v2(Tensor self, int64_t dim, Tensor index, Out out) {
  if (self.dim() == 0) throw Refusal("self must have at least one dim, but has none");
  const int64_t d = at::maybe_wrap_dim(dim, self.dim());
  Ints shape(self.sizes().begin(), self.sizes().begin() + d);
  shape.insert(shape.end(), index.sizes().begin(), index.sizes().end());
  shape.insert(shape.end(), self.sizes().begin() + d + 1, self.sizes().end());
  out = at::index_select(self, d, index.flatten().to(at::kLong)).reshape(shape);
}

void index_fill_ints(Tensor self, int64_t dim, Ints index, at::Scalar value) {
  self.index_fill_(dim, at::tensor(index, self.options().dtype(at::kLong)), value);
}

// ---- gates: one half of x is activated and multiplies the other ----

void swi_glu(Tensor x, int64_t dim, Out out) {
  const auto [gate, value] = halves(at_least_float(x), dim);
  out = at::silu(gate) * value;
}

void ge_glu(Tensor x, int64_t dim, int64_t tanh, bool left, Out out, Out gelu) {
  const auto [first, second] = halves(at_least_float(x), dim);
  const Tensor active = at::gelu(left ? first : second, tanh != 0 ? "tanh" : "none");
  out = active * (left ? second : first);
  gelu = active;
}

// In the order of x: the derivative by the activated half is dy b gelu'(a), by the other dy
// gelu(a).
void ge_glu_backward(Tensor gradient, Tensor x, Tensor, int64_t dim, int64_t tanh, bool left,
                     Out out) {
  const auto [first, second] = halves(at_least_float(x), dim);
  const Tensor &active = left ? first : second, &other = left ? second : first;
  const Text how = tanh != 0 ? "tanh" : "none";
  const Tensor dy = at_least_float(gradient);
  const Tensor by_active = at::gelu_backward(dy * other, active, how);
  const Tensor by_other = dy * at::gelu(active, how);
  out = left ? at::cat({by_active, by_other}, dim) : at::cat({by_other, by_active}, dim);
}

// The forms that activate the second half.
void ge_glu_right(Tensor x, int64_t dim, int64_t tanh, Out out, Out gelu) {
  ge_glu(x, dim, tanh, false, out, gelu);
}

void ge_glu_right_backward(Tensor gradient, Tensor x, Tensor gelu, int64_t dim, int64_t tanh,
                           Out out) {
  ge_glu_backward(gradient, x, gelu, dim, tanh, false, out);
}

// loss = sum(labels (ln sum(exp x) - x)) of each row, backprop = softmax(x) - labels.
void softmax_cross_entropy(Tensor x, Tensor labels, Out loss, Out backprop) {
  const Tensor log = at::log_softmax(at_least_float(x), -1), target = at_least_float(labels);
  loss = -(target * log).sum(-1);
  backprop = at::exp(log) - target;
}

// pads: one for all sides, height and width, or top, bottom, left, right.
void max_pool(Tensor self, Ints kernel, Ints stride, int64_t auto_pad, Ints pads, Ints dilation,
              int64_t ceil, Out out) {
  if (auto_pad != 0)
    throw Refusal("autoPad must be 0, pads as they are given, but got " + std::to_string(auto_pad));
  if (pads.empty()) pads = {0};
  if (pads.size() == 1) pads = Ints(4, pads[0]);
  if (pads.size() == 2) pads = {pads[0], pads[0], pads[1], pads[1]};
  if (pads.size() != 4)
    throw Refusal("pads must have 1, 2 or 4 numbers, but has " + std::to_string(pads.size()));
  if (dilation.empty()) dilation = {1};
  Tensor x = self;
  if (pads != Ints(4, 0)) {
    x = at::constant_pad_nd(self, {pads[2], pads[3], pads[0], pads[1]},
                            -std::numeric_limits<double>::infinity());
  }
  out = at::max_pool2d(x, kernel, stride, {0}, dilation, ceil != 0);
}

// rint(x / scale) + zero, as far as the integers of out reach; one scale, or one for each index
// along axis.
void quantize(Tensor x, Tensor scales, Tensor zeros, int64_t, int64_t axis, Out out) {
  const auto along = [&](const Tensor& given) {
    if (given.numel() == 1) return given.reshape({}).to(at::kDouble);
    Ints shape(static_cast<size_t>(x.dim()), 1);
    const int64_t dim = at::maybe_wrap_dim(axis, x.dim(), /*wrap_scalar=*/false);
    require(given.numel() == x.size(dim), "scales and zeroPoints must have 1 or ", x.size(dim),
            " elements, the size of x along axis, but have ", given.numel());
    shape[static_cast<size_t>(dim)] = given.numel();
    return given.to(at::kDouble).reshape(shape);
  };
  Tensor y = at::round(x.to(at::kDouble) / along(scales));
  if (zeros.defined()) y = y + along(zeros);
  y = at::nan_to_num(y, 0, INFINITY, -INFINITY);  // 0 / 0
  const at::ScalarType whole = out.tensor().scalar_type();
  switch (whole) {
    case at::kChar: y = at::clamp(y, -128, 127); break;
    case at::kByte: y = at::clamp(y, 0, 255); break;
    case at::kInt: y = at::clamp(y, -2147483648.0, 2147483647.0); break;
    default: throw Refusal("out must have dtype INT8, UINT8 or INT32");
  }
  out = y.to(whole);
}

void quantize_by_type(Tensor x, Tensor scales, Tensor zeros, Text, int64_t axis, Out y) {
  quantize(x, scales, zeros, 0, axis, y);
}

// Matrices stay as they are: a CPU does not need another order in memory.
void trans_matmul_weight(Tensor) {}

}  // namespace

const Composite inference_composites[] = {
    ENTRY(add_rms_norm),
    ENTRY(gather_v2),
    ENTRY(ge_glu),
    ENTRY(ge_glu_backward),
    ENTRY(ge_glu_right),
    ENTRY(ge_glu_right_backward),
    ENTRY(quantize),
    ENTRY(quantize_by_type),
    ENTRY(index_fill_ints),
    ENTRY(max_pool),
    ENTRY(softmax_cross_entropy),
    ENTRY(swi_glu),
    ENTRY(trans_matmul_weight),
    {},
};

}  // namespace openaclnn::aten
