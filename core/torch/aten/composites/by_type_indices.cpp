// SPDX-License-Identifier: Apache-2.0
// Indices by type, what finds places, and what counts, sums or measures along dims.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- x[:, i, j]: flags say which dims have an index ----

c10::List<std::optional<Tensor>> indices_of(const Tensor& x, const Tensor& flags,
                                            const Tensors& indices) {
  const Ints indexed = numbers_in(flags, "indexed_sizes");
  require(static_cast<int64_t>(indexed.size()) <= x.dim(),
          "indexed_sizes must have at most a number for each dim of x, whose shape is ", x.sizes(),
          ", but has ", indexed.size());
  c10::List<std::optional<Tensor>> found;
  size_t next = 0;
  for (const int64_t flag : indexed) {
    require(flag == 0 || next < indices.size(), "indices must be as many as indexed_sizes has 1, ",
            "but are ", indices.size());
    found.push_back(flag == 0 ? std::nullopt : std::optional(indices[next++].to(at::kLong)));
  }
  require(next == indices.size() && next > 0,
          "indices must be as many as indexed_sizes has 1, and at least one, but are ",
          indices.size());
  return found;
}

void index_by_type(Tensor x, Tensor sizes, Tensor, Tensors indices, Out y) {
  y = at::index(x, indices_of(x, sizes, indices));
}

void index_put_by_type(Tensor x, Tensor value, Tensor sizes, Tensor, Tensors indices, Out y,
                       bool accumulate) {
  const Tensor wide = accumulate ? at_least_float(x) : x;
  y = at::index_put(wide, indices_of(x, sizes, indices), value.to(wide.scalar_type()), accumulate);
}

void arg_max_by_type(Tensor x, Tensor dimension, Out y, std::optional<bool> keep) {
  y = at::argmax(x, number_in(dimension), keep.value_or(false));
}

void arg_min_by_type(Tensor x, Tensor dimension, Out y, std::optional<bool> keep) {
  y = at::argmin(x, number_in(dimension), keep.value_or(false));
}

void bin_count_by_type(Tensor x, Tensor size, Tensor weights, Out bins) {
  const int64_t count = number_in(size);
  check_shape(bins.tensor(), "bins", {count});
  check_shape(weights, "weights", x.sizes());
  check_positions(x, "array", count);
  bins = at::zeros({count}, weights.options())
             .index_add(0, x.flatten().to(at::kLong), weights.flatten());
}

// ---- sequences and matrices: as many elements as the output has ----

void linear_space_by_type(Tensor start, Tensor stop, Tensor count, Out y) {
  check_shape(y.tensor(), "y", {number_in(count)});
  y = at::linspace(number_in<double>(start), number_in<double>(stop), y.tensor().size(0),
                   y.tensor().options());
}

void log_space_by_type(Tensor, Out y, double start, double end, int64_t steps, double base) {
  const Tensor& out = y.tensor();
  require(steps == out.numel(), "steps must be the number of elements of y, ", out.numel(),
          ", but is ", steps);
  y = at::logspace(start, end, steps, base, out.options()).reshape(out.sizes());
}

void eye_by_type(Out y, int64_t rows, int64_t columns) {
  check_shape(y.tensor(), "y", {rows, columns});
  y = at::eye(rows, columns, y.tensor().options());
}

// ---- along dims ----

void reduce_prod_by_type(Tensor x, Tensor axes, Out y, std::optional<bool> keep) {
  Ints dims = numbers_in(axes, "axes");
  for (int64_t& dim : dims) {
    const int64_t rank = std::max<int64_t>(x.dim(), 1);
    require(dim >= -rank && dim < rank, "axes must be dims of x, whose shape is ", x.sizes(),
            ", but have ", dim);
    if (dim < 0) dim += rank;
  }
  std::sort(dims.begin(), dims.end(), std::greater<>());  // the last first: others stay in place
  Tensor product = at_least_float(x);
  for (const int64_t dim : dims) product = product.prod(dim, keep.value_or(false));
  y = product;
}

void reduce_log_sum_exp_by_type(Tensor x, Tensor axes, Out y, std::optional<bool> keep) {
  y = at::logsumexp(at_least_float(x), numbers_in(axes, "axes"), keep.value_or(false));
}

// torch_npu 2.8 passes -1 for an infinite p.
void cdist_by_type(Tensor x1, Tensor x2, Out y, double p) {
  const Tensor difference = at_least_float(x1) - at_least_float(x2);
  const bool has_none =
      difference.size(-1) == 0;  // a norm with an infinite p has no value for that
  y = has_none ? difference.sum(-1) : at::norm(difference, p < 0 ? INFINITY : p, Ints{-1});
}

// The factor of each slice along dim whose norm is above the greatest.
void renorm_factors(Tensor x, Out y, double p, double most, int64_t dim) {
  const int64_t own = dim < 0 ? dim + x.dim() : dim;
  require(own >= 0 && own < x.dim(), "dim must be a dim of x, whose shape is ", x.sizes(),
          ", but is ", dim);
  require(most >= 0, "maxnorm must not be negative, but is ", most);
  Ints others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != own) others.push_back(i);
  }
  const Tensor wide = at_least_float(x);
  const Tensor norms = others.empty() ? wide.abs() : at::norm(wide, p, others, true);
  y = at::where(norms > most, most / (norms + 1e-7), at::ones({}, norms.options()));
}

}  // namespace

const Composite by_type_index_composites[] = {
    ENTRY(index_by_type),
    ENTRY(index_put_by_type),
    ENTRY(arg_max_by_type),
    ENTRY(arg_min_by_type),
    ENTRY(bin_count_by_type),
    ENTRY(linear_space_by_type),
    ENTRY(eye_by_type),
    ENTRY(reduce_prod_by_type),
    ENTRY(reduce_log_sum_exp_by_type),
    ENTRY(cdist_by_type),
    ENTRY(renorm_factors),
    ENTRY(log_space_by_type),
    {},
};

}  // namespace openaclnn::aten
