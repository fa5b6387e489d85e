// SPDX-License-Identifier: Apache-2.0
// Operators of the interface before aclnn (types.txt) whose inputs or attributes are not those of
// an operator of ATen: sizes that are tensors, attributes for four dims.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- sizes and positions as tensors ----

void transpose_by_type(Tensor x, Tensor perm, Out out) {
  out = x.permute(numbers_in(perm, "perm"));
}

void broadcast_by_type(Tensor x, Tensor, Out out) { out = x.expand(out.tensor().sizes()); }

// size -1: to the end of the dim.
void slice_by_type(Tensor x, Tensor offsets, Tensor size, Out out) {
  const Ints from = numbers_in(offsets, "offsets"), counts = numbers_in(size, "size");
  const auto rank = static_cast<size_t>(x.dim());
  require(from.size() == rank && counts.size() == rank,
          "offsets and size must have a number for each dim of x, whose shape is ", x.sizes(),
          ", but have ", from.size(), " and ", counts.size());
  Tensor y = x;
  for (size_t i = 0; i < rank; ++i) {
    const auto dim = static_cast<int64_t>(i);
    const int64_t whole = x.size(dim), at = from[i];
    const bool starts = at >= 0 && at <= whole;
    const int64_t count = counts[i] == -1 && starts ? whole - at : counts[i];
    require(starts && count >= 0 && count <= whole - at, "offsets and size must stay within dim ",
            dim, " of x, which has ", whole, ", but are ", at, " and ", counts[i]);
    y = y.narrow(dim, at, count);
  }
  out = y;
}

// ---- products ----

void matmul_by_type(Tensor x1, Tensor x2, Tensor bias, bool transpose_x1, bool transpose_x2,
                    Out out) {
  check_rank(x1, "x1", 2, 8);
  check_rank(x2, "x2", 2, 8);
  const Tensor a = transpose_x1 ? x1.mT() : x1, b = transpose_x2 ? x2.mT() : x2;
  if (!bias.defined()) {
    out = at::matmul(a, b);
  } else {
    out = at::matmul(at_least_float(a), at_least_float(b)) + at_least_float(bias);
  }
}

void batch_matmul_by_type(Tensor x1, Tensor x2, bool adj_x1, bool adj_x2, Out out) {
  matmul_by_type(x1, x2, {}, adj_x1, adj_x2, out);
}

// ---- along a dim ----

void arg_max_with_value(Tensor x, int64_t dimension, bool keep_dims, Out indice, Out values) {
  const auto [found, at] = at::max(x, dimension, keep_dims);
  indice = at;
  values = found;
}

void arg_min_with_value(Tensor x, int64_t dimension, bool keep_dims, Out indice, Out values) {
  const auto [found, at] = at::min(x, dimension, keep_dims);
  indice = at;
  values = found;
}

int64_t only_axis(const Ints& axes) {
  require(axes.size() == 1, "axes must have one number, but has ", axes.size());
  return axes[0];
}

void softmax_by_type(Tensor x, Ints axes, Out out) {
  out = at::softmax(at_least_float(x), only_axis(axes));
}

void log_softmax_by_type(Tensor x, Ints axes, Out out) {
  out = at::log_softmax(at_least_float(x), only_axis(axes));
}

// Over the dims from begin_norm_axis on; mean and rstd in the shape of their outputs.
void layer_norm_v3(Tensor x, Tensor gamma, Tensor beta, int64_t begin_norm_axis, double epsilon,
                   Out y, Out mean, Out rstd) {
  const int64_t first = begin_norm_axis < 0 ? begin_norm_axis + x.dim() : begin_norm_axis;
  require(first >= 0 && first < x.dim(), "begin_norm_axis must be a dim of x, whose shape is ",
          x.sizes(), ", but is ", begin_norm_axis);
  const auto shape = x.sizes().slice(static_cast<size_t>(first));
  const auto [result, m, r] =
      at::native_layer_norm(at_least_float(x), shape, at_least_float(gamma).reshape(shape),
                            at_least_float(beta).reshape(shape), epsilon);
  y = result;
  mean = m.reshape(mean.tensor().sizes());
  rstd = r.reshape(rstd.tensor().sizes());
}

void sort_by_type(Tensor x, Out values, Out indices, int64_t axis, std::optional<bool> descending) {
  const auto [found, at] = x.sort(axis, descending.value_or(false));
  values = found;
  indices = at;
}

void sort_v2(Tensor x, Out out, int64_t axis, std::optional<bool> descending) {
  out = std::get<0>(x.sort(axis, descending.value_or(false)));
}

// Line d along the axis gets value[i] from start[i, d] to end[i, d], later ranges over earlier.
void masked_fill_range(Tensor x, Tensor start, Tensor end, Tensor value, Out out, int64_t axis) {
  check_rank(x, "x", 1, 2);
  check_rank(start, "start", 2, 2);
  check_shape(end, "end", start.sizes());
  check_shape(value, "value", {start.size(0)});
  const int64_t dim = axis < 0 ? axis + x.dim() : axis;
  require(dim >= 0 && dim < x.dim(), "axis must be a dim of x, whose shape is ", x.sizes(),
          ", but is ", axis);
  const Tensor filled = x.clone();
  const Tensor lines = (x.dim() == 1 ? filled.unsqueeze(0) : filled.movedim(dim, 1));
  require_shape(start.size(1) <= lines.size(0), "start and end must have at most ", lines.size(0),
                " columns, a line of x each, but have ", start.size(1));
  const Tensor first = lines.narrow(0, 0, start.size(1));
  const Tensor at = at::arange(first.size(1), x.options().dtype(at::kLong));
  for (int64_t i = 0; i < start.size(0); ++i) {
    const Tensor hit = (at >= start[i].unsqueeze(1)).logical_and(at < end[i].unsqueeze(1));
    first.masked_fill_(hit, value[i]);
  }
  out = filled;
}

// ---- others ----

// log(scale x + shift) to the base, e where it is -1.
void log_by_type(Tensor x, Out out, std::optional<double> base, std::optional<double> scale,
                 std::optional<double> shift) {
  const double b = base.value_or(-1);
  require(b == -1 || (b > 0 && b != 1), "base must be -1 for e, or above 0 and not 1, but is ", b);
  const Tensor wide = at_least_float(x);
  const bool plain = scale.value_or(1) == 1 && shift.value_or(0) == 0;
  const Tensor y = plain ? wide : wide * scale.value_or(1) + shift.value_or(0);
  if (b == 2) {
    out = y.log2();
  } else if (b == 10) {
    out = y.log10();
  } else {
    out = b == -1 ? y.log() : y.log() / std::log(b);
  }
}

void swish_by_type(Tensor x, double scale, Out out) { out = x * at::sigmoid(x * scale); }

// The overflows of a device: none, because an overflow is an infinity in the result.
void no_overflow(Out out) { out = at::zeros_like(out.tensor()); }
void no_overflow_at(Tensor, Out out) { no_overflow(out); }

}  // namespace

const Composite by_type_composites[] = {
    ENTRY(transpose_by_type),  ENTRY(broadcast_by_type),    ENTRY(slice_by_type),
    ENTRY(matmul_by_type),     ENTRY(batch_matmul_by_type), ENTRY(arg_max_with_value),
    ENTRY(arg_min_with_value), ENTRY(softmax_by_type),      ENTRY(log_softmax_by_type),
    ENTRY(layer_norm_v3),      ENTRY(sort_by_type),         ENTRY(sort_v2),
    ENTRY(masked_fill_range),  ENTRY(log_by_type),          ENTRY(swish_by_type),
    ENTRY(no_overflow),        ENTRY(no_overflow_at),       {},
};

}  // namespace openaclnn::aten
