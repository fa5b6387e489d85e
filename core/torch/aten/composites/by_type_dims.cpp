// SPDX-License-Identifier: Apache-2.0
// Operators by type along dims that are tensors or attributes: sums, running sums, lists, indices.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- reductions: no axes leave x as it is ----

template <class F>
void reduced(const Tensor& x, const Tensor& axes, const Out& out, F f) {
  const Ints dims = numbers_in(axes, "axes");
  out = dims.empty() || x.dim() == 0 ? x : f(dims);
}

void reduce_sum_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out,
          [&](const Ints& dims) { return at_least_float(x).sum(dims, keep.value_or(false)); });
}
void reduce_mean_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out,
          [&](const Ints& dims) { return at_least_float(x).mean(dims, keep.value_or(false)); });
}
void reduce_mean_d(Tensor x, Out out, Ints axes, std::optional<bool> keep) {
  out = axes.empty() ? x : at_least_float(x).mean(axes, keep.value_or(false));
}
void reduce_max_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out, [&](const Ints& dims) { return x.amax(dims, keep.value_or(false)); });
}
void reduce_min_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out, [&](const Ints& dims) { return x.amin(dims, keep.value_or(false)); });
}
void reduce_all_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out,
          [&](const Ints& dims) { return at::all(x.to(at::kBool), dims, keep.value_or(false)); });
}
void reduce_any_by_type(Tensor x, Tensor axes, Out out, std::optional<bool> keep) {
  reduced(x, axes, out,
          [&](const Ints& dims) { return at::any(x.to(at::kBool), dims, keep.value_or(false)); });
}

// ---- running sums and products ----

void check_running(std::optional<bool> exclusive, std::optional<bool> reverse) {
  require(!exclusive.value_or(false) && !reverse.value_or(false),
          "exclusive and reverse must be false");
}

void cumsum_by_type(Tensor x, Tensor axis, Out out, std::optional<bool> exclusive,
                    std::optional<bool> reverse) {
  check_running(exclusive, reverse);
  out = at_least_float(x).cumsum(number_in(axis));
}

void cumprod_by_type(Tensor x, Tensor axis, Out out, std::optional<bool> exclusive,
                     std::optional<bool> reverse) {
  check_running(exclusive, reverse);
  out = at_least_float(x).cumprod(number_in(axis));
}

void cummax_by_type(Tensor x, Out values, Out indices, int64_t dim) {
  const auto [found, at] = x.cummax(dim);
  values = found;
  indices = at;
}

void cummin_by_type(Tensor x, Out values, Out indices, int64_t dim) {
  const auto [found, at] = x.cummin(dim);
  values = found;
  indices = at;
}

// ---- lists, repetition, order ----

void check_count(const Tensors& x, int64_t count) {
  require(static_cast<int64_t>(x.size()) == count && count > 0,
          "N must be the number of inputs, which is ", x.size(), ", but is ", count);
}

void concat_by_type(Tensors x, Out out, int64_t count, int64_t concat_dim) {
  check_count(x, count);
  out = at::cat(x, concat_dim);
}

void pack_by_type(Tensors x, Out out, int64_t count, int64_t axis) {
  check_count(x, count);
  out = at::stack(x, axis);
}

void tile_by_type(Tensor x, Tensor multiples, Out out) {
  out = x.repeat(numbers_in(multiples, "multiples"));
}

void reverse_by_type(Tensor x, Tensor axis, Out out) { out = x.flip(numbers_in(axis, "axis")); }

// start, start + delta, ...: as many as y has.
void range_by_type(Tensor start, Tensor, Tensor delta, Out out) {
  check_rank(out.tensor(), "y", 1, 1);
  const auto kind = start.scalar_type() == at::kLong ? at::kLong : at::kDouble;
  const Tensor place = at::arange(out.tensor().size(0), start.options().dtype(kind));
  out = place * delta.to(kind).reshape(Ints{}) + start.to(kind).reshape(Ints{});
}

void top_k_by_type(Tensor x, Tensor k, Out values, Out indices, std::optional<bool> sorted,
                   std::optional<int64_t> dim, std::optional<bool> largest) {
  const auto [found, at] =
      x.topk(number_in(k), dim.value_or(-1), largest.value_or(true), sorted.value_or(true));
  values = found;
  indices = at;
}

// ---- indices ----

void gather_v2_by_type(Tensor x, Tensor indices, Tensor axis, Out out) {
  const int64_t given = number_in(axis), dim = given < 0 ? given + x.dim() : given;
  require(dim >= 0 && dim < x.dim(), "axis must be a dim of x, whose shape is ", x.sizes(),
          ", but is ", given);
  check_positions(indices, "indices", x.size(dim));
  Ints shape = x.sizes().slice(0, static_cast<size_t>(dim)).vec();
  shape.insert(shape.end(), indices.sizes().begin(), indices.sizes().end());
  shape.insert(shape.end(), x.sizes().begin() + dim + 1, x.sizes().end());
  out = x.index_select(dim, indices.flatten().to(at::kLong)).reshape(shape);
}

void gather_elements_by_type(Tensor x, Tensor index, Out out, int64_t dim) {
  out = x.gather(dim, index.to(at::kLong));
}

void scatter_elements_by_type(Tensor x, Tensor index, Tensor updates, Out out, int64_t axis,
                              Text reduction) {
  require(reduction.empty() || reduction == "none" || reduction == "add",
          "reduction must be none or add, but is ", reduction);
  const Tensor places = index.to(at::kLong);
  out =
      reduction == "add" ? x.scatter_add(axis, places, updates) : x.scatter(axis, places, updates);
}

// ---- with a factor or a limit as a tensor ----

void axpy_by_type(Tensor x1, Tensor x2, Tensor alpha, Out out) {
  out = at_least_float(x1) + at_least_float(x2) * at_least_float(alpha);
}

void addcmul_by_type(Tensor x, Tensor x1, Tensor x2, Tensor value, Out out) {
  out = at_least_float(x) + at_least_float(x1) * at_least_float(x2) * at_least_float(value);
}

void addcdiv_by_type(Tensor x, Tensor x1, Tensor x2, Tensor value, Out out) {
  out = at_least_float(x) + at_least_float(x1) / at_least_float(x2) * at_least_float(value);
}

void log_add_exp_by_type(Tensor x1, Tensor x2, Out out, std::optional<double> base,
                         std::optional<double> scale, std::optional<double> shift) {
  const double b = base.value_or(-1);
  require((b == -1 || b == 2) && scale.value_or(1) == 1 && shift.value_or(0) == 0,
          "base must be -1 for e, or 2, scale 1 and shift 0, but they are ", b, ", ",
          scale.value_or(1), " and ", shift.value_or(0));
  out = b == 2 ? at::logaddexp2(x1, x2) : at::logaddexp(x1, x2);
}

void round_by_type(Tensor x, Out out, std::optional<int64_t> decimals) {
  out = at::round(at_least_float(x), decimals.value_or(0));
}

void tensor_equal_by_type(Tensor x1, Tensor x2, Out out) {
  out = x1.sizes() == x2.sizes() ? x1.eq(x2).all() : at::zeros({}, x1.options().dtype(at::kBool));
}

// ---- normalisation ----

// Statistics over the dims from begin_norm_axis on; the third result is the variance.
void layer_norm_by_type(Tensor x, Tensor gamma, Tensor beta, Out y, Out mean, Out variance,
                        int64_t begin_norm_axis, int64_t, double epsilon) {
  const int64_t first = begin_norm_axis < 0 ? begin_norm_axis + x.dim() : begin_norm_axis;
  require(first >= 0 && first < x.dim(), "begin_norm_axis must be a dim of x, whose shape is ",
          x.sizes(), ", but is ", begin_norm_axis);
  const auto shape = x.sizes().slice(static_cast<size_t>(first));
  const Tensor wide = at_least_float(x).flatten(first);
  const auto [v, m] = at::var_mean(wide, Ints{-1}, false, true);
  const Tensor normal = ((wide - m) * (v + epsilon).rsqrt()).reshape(x.sizes());
  y = normal * at_least_float(gamma).reshape(shape) + at_least_float(beta).reshape(shape);
  mean = m.reshape(mean.tensor().sizes());
  variance = v.reshape(variance.tensor().sizes());
}

int64_t only_one(const Ints& list, const char* name) {
  require(list.size() == 1, name, " must have one number, but has ", list.size());
  return list[0];
}

void softmax_grad_by_type(Tensor y, Tensor dy, Out out, Ints axes) {
  const int64_t axis = only_one(axes, "axes");
  const Tensor p = at_least_float(y), g = at_least_float(dy);
  out = p * (g - (g * p).sum(axis, true));
}

// x is the result of the forward pass.
void log_softmax_grad_by_type(Tensor gradient, Tensor x, Out out, Ints axis) {
  check_shape(gradient, "grad", x.sizes());
  const Tensor g = at_least_float(gradient);
  out = g - at_least_float(x).exp() * g.sum(only_one(axis, "axis"), true);
}

}  // namespace

const Composite by_type_dim_composites[] = {
    ENTRY(reduce_sum_by_type),
    ENTRY(reduce_mean_by_type),
    ENTRY(reduce_mean_d),
    ENTRY(reduce_max_by_type),
    ENTRY(reduce_min_by_type),
    ENTRY(reduce_all_by_type),
    ENTRY(reduce_any_by_type),
    ENTRY(cumsum_by_type),
    ENTRY(cumprod_by_type),
    ENTRY(cummax_by_type),
    ENTRY(cummin_by_type),
    ENTRY(concat_by_type),
    ENTRY(pack_by_type),
    ENTRY(tile_by_type),
    ENTRY(reverse_by_type),
    ENTRY(range_by_type),
    ENTRY(top_k_by_type),
    ENTRY(gather_v2_by_type),
    ENTRY(gather_elements_by_type),
    ENTRY(scatter_elements_by_type),
    ENTRY(axpy_by_type),
    ENTRY(addcmul_by_type),
    ENTRY(addcdiv_by_type),
    ENTRY(log_add_exp_by_type),
    ENTRY(round_by_type),
    ENTRY(tensor_equal_by_type),
    ENTRY(layer_norm_by_type),
    ENTRY(softmax_grad_by_type),
    ENTRY(log_softmax_grad_by_type),
    {},
};

}  // namespace openaclnn::aten
