// SPDX-License-Identifier: Apache-2.0
// Indices, masks, and results whose shape depends on the data.
#include <algorithm>

#include "core/torch/aten/composites/checks.h"
#include "core/torch/aten/floats.h"

namespace openaclnn::aten {
namespace {

// torch_npu passes an empty tensor of self's dtype or of integers where ATen has None, and one of
// integers where a mask takes nothing. The second has an empty result, as has an empty mask.
void index(Tensor self, OptionalTensors indices, Out out) {
  const bool empty = std::any_of(indices.begin(), indices.end(), [](const Tensor& tensor) {
    return tensor.defined() && tensor.numel() == 0;
  });
  if (empty && out.tensor().defined() && out.tensor().numel() == 0) return;
  c10::List<std::optional<Tensor>> given;
  for (const Tensor& tensor : indices) {
    const bool all =
        !tensor.defined() || (indices.size() > 1 && tensor.numel() == 0 && tensor.dim() == 1);
    given.push_back(all ? std::nullopt : std::optional(tensor));
  }
  out = at::index(self, given);
}

// Here it passes an empty tensor of self's dtype where ATen has None. Beside an index of one
// element, an empty index of an integer self means None: the two cannot be told apart.
void index_put(Tensor self, OptionalTensors indices, Tensor values, bool accumulate, bool) {
  require(!indices.empty(), "indices must have a tensor, but has none");
  const auto may_be_all = [&](const Tensor& tensor) {
    return !tensor.defined() ||
           (tensor.dim() == 1 && tensor.numel() == 0 && tensor.scalar_type() == self.scalar_type());
  };
  // ATen refuses a list of None only, so these are indices that select nothing.
  const bool nothing = std::all_of(indices.begin(), indices.end(), may_be_all);
  c10::List<std::optional<Tensor>> given;
  for (const Tensor& tensor : indices)
    given.push_back(!nothing && may_be_all(tensor)
                        ? std::nullopt
                        : std::optional(copy_if_overlapping(tensor, self)));
  values = copy_if_overlapping(values, self);
  if (!accumulate || !has_16_bits(self.scalar_type())) {
    self.index_put_(given, values, accumulate);
    return;
  }
  Tensor sums = self.to(at::kFloat);  // rounded once, however many values an element takes
  put(self, sums.index_put_(given, values.to(at::kFloat), true));
}

// reduction: 0 none, 1 add, 2 multiply.
void scatter(Tensor self, int64_t dim, Tensor index, Either src, int64_t reduction, Out out) {
  const char* reduce = reduction == 1 ? "add" : "multiply";
  if (reduction != 0 && has_16_bits(self.scalar_type())) {
    self = self.to(at::kFloat);
    if (src.is_tensor()) src.value = src.tensor().to(at::kFloat);
  }
  if (src.is_tensor()) {
    out = reduction == 0 ? at::scatter(self, dim, index, src.tensor())
                         : at::scatter(self, dim, index, src.tensor(), reduce);
  } else {
    out = reduction == 0 ? at::scatter(self, dim, index, src.number())
                         : at::scatter(self, dim, index, src.number(), reduce);
  }
}

// reduction: 0 none, 1 sum, 2 product, 3 and 4 extremes, 5 mean.
void scatter_reduce(Tensor self, int64_t dim, Tensor index, Tensor src, int64_t reduction,
                    bool include_self, Out out) {
  constexpr const char* reductions[] = {"", "sum", "prod", "amax", "amin", "mean"};
  index = index.to(at::kLong);
  out = reduction == 0
            ? at::scatter(self, dim, index, src)
            : at::scatter_reduce(self, dim, index, src, reductions[reduction], include_self);
}

void one_hot(Tensor self, int64_t depth, Tensor on, Tensor off, int64_t axis, Out out) {
  require(depth > 0, "depth must be at least 1, but got ", depth);
  need_data(self);
  const Tensor hot = at::one_hot(self.to(at::kLong), depth).to(at::kBool);
  out = at::where(hot.movedim(-1, axis), on, off);
}

// how: 0 the sum of a bag, 1 the mean, 2 the maximum.
void embedding_bag_of(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                      const Tensor& weights, int64_t how, bool by_frequency, bool last_offset,
                      int64_t padding, const Out& out, const Out& bag, const Out& size,
                      const Out& largest) {
  need_data(weight);  // ATen's form without data has other shapes
  need_data(indices);
  const Ints starts = numbers_in(offsets, "offsets");
  require(std::is_sorted(starts.begin(), starts.end()) && !starts.empty() && starts[0] == 0 &&
              starts.back() <= indices.numel(),
          "offsets must go from 0 up to at most ", indices.numel(),
          ", the number of indices, but are ", at::IntArrayRef(starts));
  require(!last_offset || starts.back() == indices.numel(),
          "the last offset must be the number of indices, ", indices.numel(), ", but is ",
          starts.back());
  // ATen's kernels take strided weights for packed ones.
  const auto packed = [](const Tensor& x) { return x.defined() ? x.contiguous() : x; };
  const auto [value, its_bag, its_size, its_largest] = at::_embedding_bag_forward_only(
      packed(weight), packed(indices), packed(offsets), by_frequency, how, false, packed(weights),
      last_offset, padding);
  out = value;
  size = its_size.narrow(0, 0, value.size(0));
  largest = its_largest.narrow(0, 0, std::min(its_largest.size(0), value.size(0)));
  // ATen does not return the bag of each index if its own gradient does not need it; that of
  // torch_npu does, but for sums, to which it passes an empty tensor.
  if (how == 0 && bag.tensor().numel() == 0) return;
  const Tensor places = at::arange(indices.numel(), offsets.options());
  bag = at::searchsorted(offsets, places, false, true) - 1;
}

void embedding_bag_by_type(Tensor weight, Tensor indices, Tensor offsets, Tensor weights, Out out,
                           Out bag, Out size, Out largest, Text mode, bool by_frequency, bool,
                           bool last_offset, int64_t padding) {
  const int64_t how = mode == "sum" ? 0 : mode == "mean" ? 1 : 2;
  if (how == 2 && mode != "max") throw Refusal("mode must be sum, mean or max, but got " + mode);
  embedding_bag_of(weight, indices, offsets, weights, how, by_frequency, last_offset, padding, out,
                   bag, size, largest);
}

// Any other mode than 0 and 1 is the maximum, which has the index of each number.
void embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool by_frequency, int64_t mode,
                   bool, Tensor weights, bool last_offset, int64_t padding, Out out, Out bag,
                   Out size, Out largest) {
  embedding_bag_of(weight, indices, offsets, weights, mode == 0 || mode == 1 ? mode : 2,
                   by_frequency, last_offset, padding, out, bag, size, largest);
}

void masked_select(Tensor self, Tensor mask, Sized out) { out = at::masked_select(self, mask); }

void nonzero(Tensor self, Sized out) { out = at::nonzero(self); }

// A row for each dim.
void nonzero_v2(Tensor self, Sized out) { out = at::nonzero(self).t(); }

// A row for each dim if transposed, else one for each element that is not 0.
void nonzero_by_type(Tensor x, Sized out, bool transposed) {
  const Tensor places = at::nonzero(x);
  out = transposed ? places.t() : places;
}

void unique2(Tensor self, bool sorted, bool inverse, bool counts, Sized out, Out inverse_out,
             Sized counts_out) {
  const auto [values, where, how_many] = at::_unique2(self, sorted, inverse, counts);
  out = values;
  if ((inverse || counts) && where.numel() > 0) inverse_out = where;
  if (counts) counts_out = how_many;
}

// A dim of 1000 and above means all elements.
void unique_consecutive(Tensor self, bool inverse, bool counts, int64_t dim, Sized out,
                        Out inverse_out, Sized counts_out) {
  const auto along = dim >= 1000 ? std::nullopt : std::optional(dim);
  const auto [values, where, how_many] = at::unique_consecutive(self, inverse, counts, along);
  out = values;
  if (inverse) inverse_out = where;
  if (counts) counts_out = how_many;
}

void unique(Tensor self, bool sorted, bool inverse, Sized out, Out inverse_out) {
  const auto [values, where] = at::_unique(self, sorted, inverse);
  out = values;
  if (inverse) inverse_out = where;
}

void unique_dim(Tensor self, bool sorted, bool inverse, int64_t dim, Sized out, Sized inverse_out,
                Sized counts_out) {
  const auto [values, where, counts] = at::unique_dim(self, dim, sorted, true, true);
  out = values;
  if (inverse) inverse_out = where;
  counts_out = counts;
}

// Entry i of a sparse tensor is part of entry groups[i] of the result, which begins as zeros.
void coalesce(Tensor, Tensor groups, Tensor indices, Tensor values, Tensor new_indices,
              Tensor new_values) {
  const Tensor where = groups.to(at::kLong);
  new_indices.index_copy_(0, where, indices.to(new_indices.scalar_type()));
  const Tensor wide = at_least_float(new_values);
  new_values.copy_(wide.index_add(0, where, values.to(wide.scalar_type())));
}

void index_fill_places(Tensor self, int64_t dim, Ints places, at::Scalar value, Out out) {
  out = at::index_fill(self, dim, at::tensor(places, self.options().dtype(at::kLong)), value);
}

// The last dim of indices selects an element, or a slice, of self.
void scatter_nd_update(Tensor self, Tensor indices, Tensor updates) {
  check_given(self, "self");
  check_given(indices, "indices");
  const int64_t depth = indices.dim() == 0 ? 0 : indices.size(-1);
  require(depth > 0 && depth <= self.dim(), "indices must have a last dim from 1 to the dims of ",
          "self, ", self.dim(), ", but has shape ", indices.sizes());
  c10::List<std::optional<Tensor>> places;
  for (const Tensor& place : copy_if_overlapping(indices, self).to(at::kLong).unbind(-1))
    places.push_back(place);
  self.index_put_(places, copy_if_overlapping(updates, self));
}

void inplace_copy(Tensor self, Tensor src) { copy_into(self, src); }

void inplace_zero(Tensor self) { self.zero_(); }

// The value is a tensor of one element, of any rank.
void inplace_fill(Tensor self, Tensor value) {
  if (value.numel() != 1)
    throw Refusal("value must have one element, but has " + std::to_string(value.numel()));
  need_data(value);
  self.fill_(value.item());  // a number, since ATen refuses a tensor for an expanded self
}

void fill_by_type(Tensor, Tensor value, Tensor out) { inplace_fill(out, value); }

void inplace_one(Tensor self) { self.fill_(1); }

// Modes of CANN's casts: 1 to nearest even, 2 down, 3 up, 5 towards zero, 7 what is behind the
// point.
void foreach_round_off(Tensors x, Either mode, Tensors out) {
  for (size_t i = 0; i < x.size(); ++i) check_result(out[i], x[i], "out");
  const int64_t how = mode.is_tensor() ? number_in(mode.tensor()) : mode.number().toLong();
  for (size_t i = 0; i < x.size(); ++i) {
    switch (how) {
      case 1: put(out[i], at::round(x[i])); break;
      case 2: put(out[i], at::floor(x[i])); break;
      case 3: put(out[i], at::ceil(x[i])); break;
      case 5: put(out[i], at::trunc(x[i])); break;
      case 7: put(out[i], at::frac(x[i])); break;
      default: throw Refusal("roundMode must be 1, 2, 3, 5 or 7, but got " + std::to_string(how));
    }
  }
}

void foreach_copy(Tensors from, Tensors out) {
  for (size_t i = 0; i < from.size(); ++i) put(out[i], from[i]);
}

void foreach_zero(Tensors x) {
  for (const Tensor& tensor : x) tensor.zero_();
}

}  // namespace

const Composite indexing_composites[] = {
    ENTRY(index),
    ENTRY(index_put),
    ENTRY(scatter),
    ENTRY(one_hot),
    ENTRY(embedding_bag),
    ENTRY(embedding_bag_by_type),
    ENTRY(masked_select),
    ENTRY(nonzero),
    ENTRY(nonzero_v2),
    ENTRY(nonzero_by_type),
    ENTRY(scatter_reduce),
    ENTRY(unique2),
    ENTRY(unique_consecutive),
    ENTRY(unique),
    ENTRY(unique_dim),
    ENTRY(index_fill_places),
    ENTRY(scatter_nd_update),
    ENTRY(inplace_copy),
    ENTRY(inplace_fill),
    ENTRY(fill_by_type),
    ENTRY(coalesce),
    ENTRY(inplace_zero),
    ENTRY(inplace_one),
    ENTRY(foreach_copy),
    ENTRY(foreach_round_off),
    ENTRY(foreach_zero),
    {},
};

}  // namespace openaclnn::aten
