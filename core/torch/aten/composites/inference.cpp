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

// ---- quantised weights ----

// 4-bit integers lie two in a byte, the first in the low half; their strides count halves of bytes.
Tensor unpacked(const Tensor& packed) {
  if (packed.scalar_type() != at::ScalarType::Int4) return packed;
  need_data(packed);
  const Tensor made = at::empty(packed.sizes(), at::kChar);
  const auto* bytes = static_cast<const uint8_t*>(packed.const_data_ptr());
  auto* to = data_of<int8_t>(made);
  Ints at(static_cast<size_t>(packed.dim()));
  for (int64_t i = 0; i < made.numel(); ++i) {
    int64_t place = 0, rest = i;
    for (int64_t d = packed.dim(); d-- > 0;) {
      place += rest % packed.size(d) * packed.stride(d);
      rest /= packed.size(d);
    }
    const int half = bytes[place / 2] >> (place % 2 * 4) & 15;
    to[i] = static_cast<int8_t>(half < 8 ? half : half - 16);
  }
  return made;
}

// One number for each group of `group` rows of the weight, or for all rows when it is 0.
Tensor of_groups(const Tensor& given, const Tensor& weight, int64_t group) {
  const Tensor x = given.to(at::kFloat);
  if (x.numel() == 1 || group <= 0 || x.dim() < 2) return x;
  const int64_t rows = weight.size(-2);  // a longer group is cut off
  return x.repeat_interleave(std::min(group, std::max<int64_t>(rows, 1)), -2).narrow(-2, 0, rows);
}

// x ((weight + offset) scale) + bias
void weight_quant_matmul(Tensor x, Tensor weight, Tensor scale, Tensor offset, Tensor quant_scale,
                         Tensor, Tensor bias, int64_t group, Out out) {
  if (quant_scale.defined())
    throw Refusal("quantScale must be NULL: results are not quantised here", Reason::not_supported);
  check_rank(weight, "weight", 2, 6);
  check_given(scale, "antiquantScale");
  Tensor w = unpacked(weight).to(at::kFloat);
  if (offset.defined()) w = w + of_groups(offset, w, group);
  w = w * of_groups(scale, w, group);
  Tensor y = at::matmul(x.to(at::kFloat), w);
  if (bias.defined()) y = y + bias;
  out = y;
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

// Matrices stay as they are: a CPU does not need another order in memory.
void trans_matmul_weight(Tensor) {}

Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = at::matmul(at_least_float(x), at_least_float(weight));
  return bias.defined() ? y + at_least_float(bias) : y;
}

// Without groupList y[i] = x[i] weight[i] + bias[i]; with it rows up to groupList[i] of the one x
// go with weight i.
void grouped_matmul(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                    Tensors antiquant_scale, Tensors antiquant_offset, Tensor groups, int64_t,
                    int64_t type, Tensors out) {
  for (const Tensors* list : {&scale, &offset, &antiquant_scale, &antiquant_offset}) {
    if (!list->empty())
      throw Refusal("quantised groups are not supported here; pass NULL", Reason::not_supported);
  }
  const auto bias_of = [&](size_t i) { return bias.empty() ? Tensor() : bias[i]; };
  const auto check_bias = [&] {
    require(bias.empty() || bias.size() == weight.size(),
            "bias must have a tensor or row for each of the ", weight.size(), " weights, but has ",
            bias.size());
  };
  if (!groups.defined()) {
    require(x.size() == weight.size() && x.size() == out.size(),
            "x, weight and y must have as many tensors as each other without groupList, but have ",
            x.size(), ", ", weight.size(), " and ", out.size());
    check_bias();
    for (size_t i = 0; i < x.size(); ++i) put(out[i], product(x[i], weight[i], bias_of(i)));
    return;
  }
  if (type != 0 || x.size() != 1 || out.size() != 1)
    throw Refusal("groupType must be 0, with one tensor in x and in y, where groupList is given");
  if (weight.size() == 1) {
    check_rank(weight[0], "weight[0]", 3, 3);
    weight = weight[0].unbind(0);
  }
  if (bias.size() == 1) {
    check_rank(bias[0], "bias[0]", 2, 2);
    bias = bias[0].unbind(0);
  }
  check_rank(x[0], "x[0]", 2, 2);
  check_shape(groups, "groupList", {static_cast<int64_t>(weight.size())});
  check_bias();
  for (size_t k = 0; k < weight.size(); ++k)
    require(weight[k].dim() == 2 && weight[k].size(0) == x[0].size(1),
            "weights must have as many rows as x[0] has columns, ", x[0].size(1),
            ", but one has shape ", weight[k].sizes());
  int64_t begin = 0;
  Tensors made;
  for (size_t k = 0; k < weight.size(); ++k) {
    const auto end = number_in(groups[static_cast<int64_t>(k)]);
    require(begin <= end && end <= x[0].size(0), "groupList must ascend up to the rows of x[0], ",
            x[0].size(0), ", but goes from ", begin, " to ", end);
    made.push_back(product(x[0].slice(0, begin, end), weight[k], bias_of(k)));
    begin = end;
  }
  put(out[0], at::cat(made));
}

}  // namespace

const Composite inference_composites[] = {
    ENTRY(add_rms_norm),
    ENTRY(gather_v2),
    ENTRY(ge_glu),
    ENTRY(ge_glu_backward),
    ENTRY(ge_glu_right),
    ENTRY(ge_glu_right_backward),
    ENTRY(quantize),
    ENTRY(grouped_matmul),
    ENTRY(index_fill_ints),
    ENTRY(max_pool),
    ENTRY(softmax_cross_entropy),
    ENTRY(swi_glu),
    ENTRY(trans_matmul_weight),
    ENTRY(weight_quant_matmul),
    {},
};

}  // namespace openaclnn::aten
