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

// ---- by type ----

// strides and dilations have numbers for N, C and the spatial dims; pads a pair for each of these.
struct TypedWindow {
  Ints steps, pads, gaps;
  int64_t groups;

  TypedWindow(const Ints& strides, Ints edges, const Ints& dilations, const Text& format,
              std::optional<int64_t> count)
      : pads(std::move(edges)), groups(count.value_or(1)) {
    require(groups >= 1, "groups must be at least 1, but is ", groups);
    require(format == "NCHW" || format == "NCDHW", "data_format must be NCHW or NCDHW, but is ",
            format);
    const size_t rank = format.size();
    require(strides.size() == rank && dilations.size() == rank && pads.size() == 2 * (rank - 2),
            "strides and dilations must have ", rank, " numbers and pads ", 2 * (rank - 2),
            ", but have ", strides.size(), ", ", dilations.size(), " and ", pads.size());
    for (const int64_t pad : pads)
      require(pad >= 0, "pads must be at least 0, but are ", at::IntArrayRef(pads));
    steps.assign(strides.begin() + 2, strides.end());
    gaps.assign(dilations.begin() + 2, dilations.end());
  }

  size_t count() const { return steps.size(); }
  Ints zeros() const { return Ints(count(), 0); }
  void check(const Tensor& x, const char* name) const {
    const auto rank = static_cast<int64_t>(count()) + 2;
    check_rank(x, name, rank, rank);
  }

  Tensor padded(const Tensor& x) const {  // ATen takes the last dim first
    Ints last_first;
    for (size_t i = count(); i-- > 0;)
      last_first.insert(last_first.end(), {pads[2 * i], pads[2 * i + 1]});
    return at::constant_pad_nd(x, last_first, 0);
  }

  // The gradient of an input of that shape, which is also the transposed convolution.
  Tensor transposed(const Tensor& x, const Tensor& filter, const Ints& shape) const {
    Ints more;
    for (size_t i = 0; i < count(); ++i) {
      const auto dim = static_cast<int64_t>(i) + 2;
      const Window plain = {steps, zeros(), gaps, true, zeros(), groups};
      const int64_t whole = shape[i + 2] + pads[2 * i] + pads[2 * i + 1];
      const int64_t reached = plain.size(i, count(), x.size(dim), filter.size(dim));
      more.push_back(std::max<int64_t>(whole - reached, 0));
      require_shape(more[i] < std::max(steps[i], gaps[i]) && reached <= whole + steps[i], "dim ",
                    dim, " of y must fit ", x.size(dim), " elements of x, but is ", shape[i + 2]);
    }
    const Window window = {steps, zeros(), gaps, true, more, groups};
    const Ints full = window.shape(x, filter);
    require_shape(shape[0] == full[0] && shape[1] == full[1], "y must have ", full[0], " and ",
                  full[1], " as its first sizes, but has shape ", at::IntArrayRef(shape));
    if (x.is_meta()) return at::empty(shape, x.options());
    Tensor y = at::convolution(x, filter, {}, steps, zeros(), gaps, true, more, groups);
    for (size_t i = 0; i < count(); ++i)
      y = y.narrow(static_cast<int64_t>(i) + 2, pads[2 * i], shape[i + 2]);
    return y;
  }
};

Tensor of_channels(const Tensor& bias, int64_t rank) {
  Ints shape(static_cast<size_t>(rank), 1);
  shape[1] = -1;
  return bias.reshape(shape);
}

void conv_by_type(Tensor x, Tensor filter, Tensor bias, Ints strides, Ints pads, Ints dilations,
                  std::optional<int64_t> groups, Text data_format, Out out) {
  const TypedWindow w(strides, std::move(pads), dilations, data_format, groups);
  w.check(x, "x");
  const Tensor padded = w.padded(x);
  const Window window = {w.steps, w.zeros(), w.gaps, false, w.zeros(), w.groups};
  const Ints shape = window.shape(padded, filter);
  check_shape(out.tensor(), "y", shape);
  check_optional(bias, "bias", {shape[1]});
  if (x.is_meta()) return;
  out =
      at::convolution(padded, filter, bias, w.steps, w.zeros(), w.gaps, false, w.zeros(), w.groups);
}

// The shape is that of y: output_padding names it a second time.
void conv_transpose_by_type(Tensor, Tensor x, Tensor filter, Tensor bias, Ints strides, Ints pads,
                            Ints dilations, std::optional<int64_t> groups, Text data_format,
                            Out out) {
  const TypedWindow w(strides, std::move(pads), dilations, data_format, groups);
  w.check(x, "x");
  w.check(out.tensor(), "y");
  const Tensor y = w.transposed(x, filter, out.tensor().sizes().vec());
  check_optional(bias, "bias", {y.size(1)});
  out = bias.defined() ? y + of_channels(bias, y.dim()) : y;
}

void conv_backprop_input(Tensor size, Tensor filter, Tensor gradient, Ints strides, Ints pads,
                         Ints dilations, std::optional<int64_t> groups, Text data_format, Out out) {
  conv_transpose_by_type(std::move(size), std::move(gradient), std::move(filter), {},
                         std::move(strides), std::move(pads), std::move(dilations), groups,
                         std::move(data_format), std::move(out));
}

void conv_backprop_filter(Tensor x, Tensor, Tensor gradient, Ints strides, Ints pads,
                          Ints dilations, std::optional<int64_t> groups, Text data_format,
                          Out out) {
  const TypedWindow w(strides, std::move(pads), dilations, data_format, groups);
  w.check(x, "x");
  w.check(out.tensor(), "y");
  const Tensor padded = w.padded(x), like = at::empty(out.tensor().sizes(), x.options());
  const Window window = {w.steps, w.zeros(), w.gaps, false, w.zeros(), w.groups};
  check_shape(gradient, "out_backprop", window.shape(padded, like));
  if (x.is_meta()) return;
  out = std::get<1>(at::convolution_backward(gradient, padded, like, std::nullopt, w.steps,
                                             w.zeros(), w.gaps, false, w.zeros(), w.groups,
                                             {false, true, false}));
}

void bias_add_grad(Tensor x, Out out, Text data_format) {
  require(data_format == "NCHW" || data_format == "NCDHW", "data_format must be NCHW or NCDHW, ",
          "but is ", data_format);
  check_rank(x, "x", 2, 5);
  out = at_least_float(x).transpose(0, 1).flatten(1).sum(1);
}

}  // namespace

const Composite convolution_composites[] = {
    ENTRY(convolution),
    ENTRY(convolution_backward),
    ENTRY(conv_depthwise2d),
    ENTRY(conv_by_type),
    ENTRY(conv_transpose_by_type),
    ENTRY(conv_backprop_input),
    ENTRY(conv_backprop_filter),
    ENTRY(bias_add_grad),
    ENTRY(conv_tbc),
    ENTRY(conv_tbc_backward),
    {},
};

}  // namespace openaclnn::aten
