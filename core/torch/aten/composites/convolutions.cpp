// SPDX-License-Identifier: Apache-2.0
// Convolutions. ATen has no form of them for meta tensors, and its gradients trust their shapes.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// The number for one of `count` spatial dims, from a list of one or of all.
int64_t of_dim(const Ints& list, const char* name, size_t dim, size_t count) {
  require(list.size() == 1 || list.size() == count, name, " must have 1 or ", count,
          " numbers, but has ", list.size());
  return list[list.size() == 1 ? 0 : dim];
}

// What both directions of a convolution take.
struct Window {
  const Ints &stride, &padding, &dilation;
  bool transposed;
  const Ints& output_padding;
  int64_t groups;

  // The size of a dim of the result. Numbers have up to 40 binary digits, their products more.
  int64_t size(size_t dim, size_t count, int64_t in, int64_t taps) const {
    const int64_t step = of_dim(stride, "stride", dim, count);
    const int64_t gap = of_dim(dilation, "dilation", dim, count);
    const int64_t pad = of_dim(padding, "padding", dim, count);
    require(step > 0 && gap > 0 && pad >= 0, "stride and dilation must be above 0 and padding at ",
            "least 0, but are ", step, ", ", gap, " and ", pad);
    require(taps > 0, "weight must have a kernel of at least one tap in each dim");
    int64_t reach, grown;
    const bool fits = !__builtin_mul_overflow(gap, taps - 1, &reach) &&
                      !__builtin_mul_overflow(in - 1, step, &grown) && reach < INT64_MAX / 4 &&
                      grown < INT64_MAX / 4;
    require(fits, "the sizes of the result must fit 63 bits");
    if (transposed) {
      const int64_t more = of_dim(output_padding, "outputPadding", dim, count);
      require(more >= 0 && (more < step || more < gap), "outputPadding must be at least 0 and ",
              "below stride or dilation, but is ", more);
      return grown - 2 * pad + reach + more + 1;
    }
    const int64_t room = in + 2 * pad - reach - 1;
    require(room >= 0, "the kernel must not be larger than the padded input: it reaches over ",
            reach + 1, " elements, and the padded input has ", in + 2 * pad);
    return room / step + 1;
  }

  Ints shape(const Tensor& input, const Tensor& weight) const {
    check_rank(input, "input", 3, 5);
    check_rank(weight, "weight", input.dim(), input.dim());
    const int64_t first = weight.size(0), second = weight.size(1);
    const int64_t taken = transposed ? first : second * groups;
    require(input.size(1) == taken && first % groups == 0, "weight must have the channels of ",
            "input in ", groups, " groups, but has shape ", weight.sizes(), ", and input ",
            input.sizes());
    Ints found = {input.size(0), transposed ? second * groups : first};
    const auto count = static_cast<size_t>(input.dim() - 2);
    for (size_t i = 0; i < count; ++i) {
      const auto dim = static_cast<int64_t>(i) + 2;
      found.push_back(size(i, count, input.size(dim), weight.size(dim)));
      require(found.back() > 0, "the result must not be empty, but dim ", dim, " has size ",
              found.back());
    }
    return found;
  }
};

void convolution(Tensor input, Tensor weight, Tensor bias, Ints stride, Ints padding, Ints dilation,
                 bool transposed, Ints output_padding, int64_t groups, Out out, int64_t) {
  const Window window = {stride, padding, dilation, transposed, output_padding, groups};
  const Ints shape = window.shape(input, weight);
  check_shape(out.tensor(), "out", shape);
  check_optional(bias, "bias", {shape[1]});
  if (input.is_meta()) return;
  out = at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                        groups);
}

void put_where(bool is_computed, const Out& out, const Tensor& result) {
  if (is_computed) {
    out = result;
  } else {
    leave(out.tensor());
  }
}

void convolution_backward(Tensor gradient, Tensor input, Tensor weight, Ints bias_sizes,
                          Ints stride, Ints padding, Ints dilation, bool transposed,
                          Ints output_padding, int64_t groups, Bools mask, int64_t, Out grad_input,
                          Out grad_weight, Out grad_bias) {
  const Window window = {stride, padding, dilation, transposed, output_padding, groups};
  check_shape(gradient, "gradOutput", window.shape(input, weight));
  const bool has_bias = mask[2] && !bias_sizes.empty();
  require(!has_bias || bias_sizes == Ints{gradient.size(1)}, "biasSizes must be [",
          gradient.size(1), "], but is ", at::IntArrayRef(bias_sizes));
  if (mask[0]) check_shape(grad_input.tensor(), "gradInput", input.sizes());
  if (mask[1]) check_shape(grad_weight.tensor(), "gradWeight", weight.sizes());
  if (has_bias) check_shape(grad_bias.tensor(), "gradBias", bias_sizes);
  if (input.is_meta()) return;
  const auto [dx, dw, db] = at::convolution_backward(
      gradient, input, weight, at::OptionalIntArrayRef(bias_sizes), stride, padding, dilation,
      transposed, output_padding, groups, {mask[0], mask[1], mask[2]});
  put_where(mask[0], grad_input, dx);
  put_where(mask[1], grad_weight, dw);
  put_where(has_bias, grad_bias, db);
}

void conv_depthwise2d(Tensor self, Tensor weight, Ints, Tensor bias, Ints stride, Ints padding,
                      Ints dilation, Out out, int64_t) {
  out = at::conv2d(self, weight, bias, stride, padding, dilation, self.size(-3));
}

// Over time, batch and channels. ATen's conv_tbc loops over the taps of the kernel, meta tensors
// included, and computes lengths in int.
Tensor channels_before_time(const Tensor& x) { return x.permute({1, 2, 0}); }

void check_conv_tbc(const Tensor& y, const char* name, const Tensor& x, const Tensor& weight,
                    int64_t pad) {
  check_shape(y, name, {x.size(0) + 2 * pad - weight.size(0) + 1, x.size(1), weight.size(2)});
}

void conv_tbc(Tensor self, Tensor weight, Tensor bias, int64_t pad, Out out, int64_t) {
  check_conv_tbc(out.tensor(), "out", self, weight, pad);
  const Tensor y = at::conv1d(channels_before_time(self), weight.permute({2, 1, 0}), bias, 1, pad);
  out = y.permute({2, 0, 1});
}

void conv_tbc_backward(Tensor gradient, Tensor input, Tensor weight, Tensor bias, int64_t pad,
                       int64_t, Out grad_input, Out grad_weight, Out grad_bias) {
  check_conv_tbc(gradient, "gradOutput", input, weight, pad);
  const auto [dx, dw, db] = at::convolution_backward(
      channels_before_time(gradient), channels_before_time(input), weight.permute({2, 1, 0}),
      at::OptionalIntArrayRef(bias.sizes()), 1, pad, 1, false, 0, 1, {true, true, true});
  grad_input = dx.permute({2, 0, 1});
  grad_weight = dw.permute({2, 1, 0});
  grad_bias = db;
}

}  // namespace

const Composite convolution_composites[] = {
    ENTRY(convolution), ENTRY(convolution_backward), ENTRY(conv_depthwise2d),
    ENTRY(conv_tbc),    ENTRY(conv_tbc_backward),    {},
};

}  // namespace openaclnn::aten
