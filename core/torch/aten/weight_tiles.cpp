// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/weight_tiles.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

#include "core/ops/weights.h"

namespace openaclnn::aten {
namespace {

constexpr int64_t kSmall = int64_t{1} << 16;  // numbers: conversion costs less than tiles

std::optional<WeightElement> element_of(const Weight& weight) {
  if (weight.packed != 0) return WeightElement::int4;
  switch (weight.stored.scalar_type()) {
    case at::kHalf: return WeightElement::f16;
    case at::kBFloat16: return WeightElement::bf16;
    case at::kChar: return WeightElement::int8;
    default: return std::nullopt;
  }
}

bool is_float(const Tensor& x) {
  const at::ScalarType dtype = x.scalar_type();
  return dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16;
}

// A parameter as (groups, N), or undefined.
Tensor of_groups(const Tensor& given, int64_t columns, int64_t groups) {
  if (!is_float(given) || given.dim() > 2) return {};
  const Tensor rows = given.dim() == 2 ? given : given.reshape({1, -1});
  const bool fits = (rows.size(0) == 1 || rows.size(0) == groups) &&
                    (rows.size(1) == 1 || rows.size(1) == columns);
  return fits ? rows.expand({groups, columns}) : Tensor();
}

// The lines of a weight that lie side by side in memory: its columns, or its rows.
class Tiles {
 public:
  // False where the weight is not in such an order, or a parameter does not fit.
  bool set(const Weight& weight) {
    const Tensor& stored = weight.stored;
    if (stored.dim() != 2 || stored.is_meta()) return false;
    const auto element = element_of(weight);
    if (!element) return false;
    element_ = *element;
    in_byte_ = element_ == WeightElement::int4 ? 2 : 1;
    by_columns_ = in_byte_ == 2 ? weight.packed == -2 : stored.stride(0) == 1;
    const Tensor lines = by_columns_ ? stored.t() : stored;
    if (lines.stride(1) != 1) return false;
    data_ = static_cast<const char*>(stored.const_data_ptr());
    size_ = static_cast<int64_t>(stored.element_size());
    pitch_ = lines.stride(0) * size_;
    k_ = stored.size(0) * (weight.packed == -2 ? 2 : 1);
    n_ = stored.size(1) * (weight.packed == -1 ? 2 : 1);
    return k_ * n_ >= kSmall && set_parameters(weight);
  }

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }

  struct Size {
    int64_t rows, columns;
  };
  // Lines as long as they are, for the least calls, and columns for each thread. Two thirds of a
  // megabyte of fp32 leave room in L2; many rows of x are read less often with larger tiles.
  Size tile_size(int64_t rows_of_x) const {
    const int64_t numbers = (rows_of_x <= 8     ? 160
                             : rows_of_x <= 128 ? 2560
                                                : 8192)
                            << 10,
                  threads = at::get_num_threads();
    const int64_t each = std::max<int64_t>((n_ + threads - 1) / threads, 1);
    const int64_t fit = by_columns_ ? std::clamp<int64_t>(numbers / k_, 8, 512) : 4096;
    const int64_t columns = (std::min(fit, each) + 7) / 8 * 8;
    return {by_columns_ ? k_ : std::clamp<int64_t>(numbers / columns, 1, k_), columns};
  }

  // Rows first to last of the columns begin to end, in the buffer.
  Tensor tile(int64_t first, int64_t last, int64_t begin, int64_t end, const Tensor& buffer) const {
    const int64_t rows = last - first, columns = end - begin;
    const int64_t group = first / group_, groups = (last - 1) / group_ + 1 - group;
    Tensor scale, offset;  // of this tile
    const auto part = [&](const Tensor& parameter) {
      const Tensor own = parameter.slice(0, group, group + groups).slice(1, begin, end);
      return (by_columns_ ? own.t() : own).to(at::kFloat).contiguous();
    };
    if (scale_.defined()) scale = part(scale_);
    if (offset_.defined()) offset = part(offset_);
    const auto* scales = scale.defined() ? scale.const_data_ptr<float>() : nullptr;
    const auto* offsets = offset.defined() ? offset.const_data_ptr<float>() : nullptr;
    auto* to = buffer.data_ptr<float>();
    const auto convert = [&](int64_t place, int64_t count, int64_t parameter, int64_t numbers) {
      const WeightRun run{data_ + place,
                          count,
                          element_,
                          scales == nullptr ? nullptr : scales + parameter,
                          offsets == nullptr ? nullptr : offsets + parameter,
                          numbers};
      openaclnn_widen_weight(&run, to);
      to += count;
    };
    const Tensor made = buffer.narrow(0, 0, rows * columns);
    if (by_columns_) {  // whole ones
      for (int64_t i = 0; i < columns; ++i) convert((begin + i) * pitch_, rows, i * groups, group_);
      return made.view({columns, rows}).t();
    }
    for (int64_t i = first; i < last; ++i)
      convert(i * pitch_ + begin * size_ / in_byte_, columns, (i / group_ - group) * columns, 1);
    return made.view({rows, columns});
  }

 private:
  bool set_parameters(const Weight& weight) {
    const bool integers = element_ == WeightElement::int8 || element_ == WeightElement::int4;
    if (!integers) return true;
    const Tensor &scale = weight.scale, &offset = weight.offset;
    const auto rows = [](const Tensor& x) {
      return x.defined() && x.dim() == 2 ? x.size(0) : int64_t{1};
    };
    groups_ = std::max(rows(scale), rows(offset));
    group_ = k_;
    if (groups_ > 1) {
      if (weight.group <= 0 && k_ % groups_ != 0) return false;
      group_ = weight.group > 0 ? std::min(weight.group, k_) : k_ / groups_;
      if (groups_ != (k_ + group_ - 1) / group_) return false;
    }
    scale_ = of_groups(scale, n_, groups_);
    if (offset.defined()) offset_ = of_groups(offset, n_, groups_);
    // A group of one number would read as a scale for each number of a line.
    return scale_.defined() && (!offset.defined() || offset_.defined()) && group_ > 1;
  }

  const char* data_ = nullptr;
  int64_t size_ = 0, pitch_ = 0;  // bytes
  int64_t in_byte_ = 1;
  WeightElement element_ = WeightElement::f16;
  bool by_columns_ = false;
  int64_t k_ = 0, n_ = 0, groups_ = 1, group_ = 1;
  Tensor scale_, offset_;
};

// Calls f(begin, end) for ranges of [0, count) on torch's threads. (at::parallel_for is a template
// that needs OpenMP where it is compiled; the loop of an iterator runs in torch's library.)
template <class F>
void on_threads(int64_t count, const F& f) {
  const Tensor places = at::empty({count}, at::kByte);
  const char* const base = static_cast<const char*>(places.const_data_ptr());
  auto iterator = at::TensorIterator::borrowing_nullary_op(places);
  iterator.for_each(
      [&](char** data, const int64_t*, int64_t size) { f(data[0] - base, data[0] - base + size); },
      1);
}

void multiply(const Tensor& x, const Tiles& tiles, const Tensor& y) {
  const Tiles::Size size = tiles.tile_size(x.size(0));
  const int64_t k = tiles.k(), n = tiles.n(), width = size.columns;
  on_threads((n + width - 1) / width, [&](int64_t from, int64_t to) {
    const Tensor buffer = at::empty({width * size.rows}, y.options());
    for (int64_t begin = from * width; begin < std::min(to * width, n); begin += width) {
      const int64_t end = std::min(begin + width, n);
      const Tensor part = y.slice(1, begin, end);
      for (int64_t first = 0; first < k; first += size.rows) {
        const int64_t last = std::min(first + size.rows, k);
        const Tensor tile = tiles.tile(first, last, begin, end, buffer);
        const Tensor own = x.slice(1, first, last);
        const int before = first == 0 ? 0 : 1;
        if (x.size(0) == 1)
          part[0].addmv_(tile.t(), own[0], before);
        else
          part.addmm_(own, tile, before);
      }
    }
  });
}

}  // namespace

Tensor product_in_tiles(const Tensor& x, const Weight& weight) {
  Tiles tiles;
  if (x.dim() == 0 || x.is_meta() || x.numel() == 0 || !is_float(x) || !tiles.set(weight) ||
      x.size(-1) != tiles.k())
    return {};
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = tiles.n();
  const Tensor rows = x.reshape({-1, tiles.k()}).to(at::kFloat).contiguous();
  const Tensor y = at::empty({rows.size(0), tiles.n()}, rows.options());
  multiply(rows, tiles, y);
  return y.view(sizes);
}

Tensor promoted_product(const Tensor& x, const Tensor& weight, at::ScalarType out) {
  const bool mixed = x.defined() && weight.defined() && is_float(x) && is_float(weight) &&
                     c10::promoteTypes(c10::promoteTypes(x.scalar_type(), weight.scalar_type()),
                                       out) == at::kFloat;
  if (!mixed || x.is_meta() || weight.scalar_type() == at::kFloat || x.dim() == 0 ||
      weight.dim() < 2)
    return {};
  if (weight.dim() == 2) return product_in_tiles(x, {weight});
  if (x.dim() < 2 || x.size(-1) != weight.size(-2)) return {};
  const int64_t m = x.size(-2), k = x.size(-1), n = weight.size(-1);
  const auto lead = [](const Tensor& t) { return t.sizes().slice(0, t.dim() - 2); };
  std::vector<int64_t> sizes = at::infer_size(lead(x), lead(weight));
  const int64_t batch = c10::multiply_integers(sizes);
  sizes.insert(sizes.end(), {m, n});
  std::vector<int64_t> of_x = sizes, of_weight = sizes;
  of_x.back() = k;
  of_weight[of_weight.size() - 2] = k;
  const Tensor left = x.to(at::kFloat).expand(of_x).reshape({batch, m, k});
  const Tensor all = weight.expand(of_weight);
  const Tensor y = at::empty({batch, m, n}, left.options());
  for (int64_t b = 0; b < batch; ++b) {
    Tensor right = all;
    int64_t rest = b;
    for (size_t d = sizes.size() - 2; d-- > 0;) {
      right = right.select(static_cast<int64_t>(d), rest % sizes[d]);
      rest /= sizes[d];
    }
    Tiles tiles;
    if (left.numel() == 0 || !tiles.set({right})) return {};
    multiply(left[b], tiles, y[b]);
  }
  return y.view(sizes);
}

}  // namespace openaclnn::aten
