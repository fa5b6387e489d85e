// SPDX-License-Identifier: Apache-2.0
// Scales, rounding and products of quantised numbers. Products of integers are exact (INT32);
// all after them is float, rounded once to the result. A bias of integers is added before the
// scales, one of floats after them.
#pragma once

#include <limits>

#include "core/torch/aten/composites/packed.h"
#include "core/torch/aten/weight_tiles.h"

namespace openaclnn::aten {

// An optional tensor without elements is absent: torch_npu passes such for NULL.
inline bool has(const Tensor& x) { return x.defined() && x.numel() > 0; }
inline bool has(const Tensors& list) {
  return !list.empty() && (list.size() > 1 || list[0].numel() > 0);
}

inline bool is_real(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat ||
         dtype == at::kDouble;
}
inline void check_real(const Tensor& x, const char* name) {
  check_given(x, name);
  require(!at::isFloat8Type(x.scalar_type()), name, " is ", x.scalar_type(),
          ", which only Ascend 950 computes");
  require(is_real(x.scalar_type()), name, " must have floating-point numbers, but is ",
          x.scalar_type());
}
// INT8, INT4, or INT32 words of eight.
inline void check_integers(const Tensor& x, const char* name) {
  check_given(x, name);
  const at::ScalarType dtype = x.scalar_type();
  require(dtype == at::kChar || dtype == at::kInt || dtype == at::ScalarType::Int4, name,
          " must be INT8, INT4, or INT32 with eight 4-bit integers in each, but is ", dtype);
}

// The float in the low 32 bits of a 64-bit parameter; floats as they are.
inline Tensor scale_of(const Tensor& given) {
  const bool bits = given.scalar_type() == at::kLong || given.scalar_type() == at::kUInt64;
  if (!bits) return given.to(at::kFloat);
  const Tensor dense = given.contiguous().reshape({-1});
  return dense.view(at::kFloat)
      .slice(0, 0, std::numeric_limits<int64_t>::max(), 2)
      .reshape(given.sizes());
}

// Of such a parameter for an INT8 result: the 9 bits from bit 37 on, a whole number.
inline Tensor offset_of(const Tensor& given) {
  const Tensor bits = given.contiguous().view(at::kLong);
  return at::bitwise_right_shift(at::bitwise_left_shift(bits, 64 - 46), 64 - 9).to(at::kFloat);
}

// ---- what ATen has without data only in processes with Python's torch ----

// Rows of x.
inline Tensor select_rows(const Tensor& x, const Tensor& index) {
  if (!x.is_meta()) return x.index_select(0, index);
  Ints sizes = x.sizes().vec();
  sizes[0] = index.numel();
  return at::empty(sizes, x.options());
}

inline Tensor choose(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (!condition.is_meta()) return at::where(condition, a, b);
  const Tensor sum = a + b;
  return sum + condition.to(sum.scalar_type());
}
inline Tensor choose(const Tensor& condition, const Tensor& a, const at::Scalar& b) {
  return choose(condition, a, at::full({}, b, a.options()));
}
inline Tensor choose(const Tensor& condition, const at::Scalar& a, const Tensor& b) {
  return choose(condition, at::full({}, a, b.options()), b);
}

// max |x|
inline Tensor largest(const Tensor& x, at::IntArrayRef dims) {
  return at::maximum(at::amax(x, dims, true), -at::amin(x, dims, true));
}

// ---- rounding ----

enum class Bits { four = 4, eight = 8 };
inline double top_of(Bits bits) { return bits == Bits::eight ? 127 : 7; }

// Of a rounded x: clamped, NaN as 0.
inline Tensor clamped(const Tensor& x, Bits bits = Bits::eight) {
  const double top = top_of(bits);
  if (x.is_meta()) return at::empty(x.sizes(), x.options().dtype(at::kChar));
  return at::nan_to_num(x, 0, INFINITY, -INFINITY).clamp_(-top - 1, top).to(at::kChar);
}
// Rounds half to even.
inline Tensor to_integers(const Tensor& x, Bits bits = Bits::eight) {
  return clamped(at::round(x), bits);
}

struct Quantised {
  Tensor numbers, scale;
};
// scale = max |x| / top of each row; a row of zeros has scale 0.
inline Quantised quantised_rows(const Tensor& x, Bits bits = Bits::eight) {
  const Tensor scale = largest(x, {-1}) / top_of(bits);
  return {to_integers(x / scale, bits), scale.squeeze(-1)};
}

// For k rows of a weight: (N) and (1, N) hold for all of them, (G, N) for k / G rows each, or for
// `group` rows each, of which the last may be fewer.
inline Tensor of_rows(const Tensor& given, int64_t k, int64_t group = 0) {
  const Tensor x = given.to(at::kFloat);
  if (x.dim() < 2 || x.size(-2) == 1 || x.numel() == 1) return x;
  const int64_t groups = x.size(-2);
  if (group <= 0) {
    require_shape(groups > 0 && k % groups == 0, "a parameter of ", groups,
                  " groups must divide the ", k, " rows of the weight");
    group = k / groups;
  }
  group = std::min(group, std::max<int64_t>(k, 1));
  require_shape(groups == (k + group - 1) / group, "a parameter must have a row for each ", group,
                " of the ", k, " rows of the weight, but has ", groups);
  return x.repeat_interleave(group, -2).slice(-2, 0, k);
}

// (weight + offset) scale, not rounded.
inline Tensor dequantised(const Packed& weight, const Tensor& scale, const Tensor& offset,
                          int64_t group = 0) {
  Tensor w = weight.numbers().to(at::kFloat);
  const int64_t k = weight.size(-2);
  const Tensor s = scale_of(scale);
  const int64_t groups = s.dim() == w.dim() ? s.size(-2) : 1;
  const bool even = groups > 1 && k % groups == 0 && (group <= 0 || group * groups == k);
  if (even && (!has(offset) || offset.sizes() == s.sizes())) {
    w = w.unflatten(-2, {groups, k / groups});
    if (has(offset)) w = w + offset.to(at::kFloat).unsqueeze(-2);
    return (w * s.unsqueeze(-2)).flatten(-3, -2);
  }
  if (has(offset)) w = w + of_rows(offset, k, group);
  return w * of_rows(s, k, group);
}

// Floats of 16 bits are summed in fp32.
inline Tensor product_of_floats(const Tensor& x, const Tensor& weight) {
  const Tensor y = promoted_product(x, weight, at::kFloat);
  return y.defined() ? y : at::matmul(at_least_float(x), at_least_float(weight));
}

// x (weight + offset) scale in fp32; x has floats.
inline Tensor product_with(const Tensor& x, const Packed& weight, const Tensor& scale,
                           const Tensor& offset, int64_t group = 0) {
  const Tensor s = is_real(scale.scalar_type()) ? scale : scale_of(scale);
  const Tensor y = product_in_tiles(
      x, {weight.stored(), weight.along(), s, has(offset) ? offset : Tensor(), group});
  if (y.defined()) return y;
  return at::matmul(x.to(at::kFloat), dequantised(weight, scale, offset, group));
}

// Exact: floats hold whole numbers up to 2^24, so many rows of the weight are summed at once.
inline Tensor integer_product(const Packed& a, const Packed& b) {
  const int64_t most = (a.four_bits() ? 8 : 128) * (b.four_bits() ? 8 : 128);
  const int64_t rows = (int64_t{1} << 24) / most, k = a.size(-1);
  const Tensor x = a.numbers(), y = b.numbers();
  const auto part = [&](int64_t begin) {
    const int64_t end = std::min(k, begin + rows);
    return at::matmul(x.slice(-1, begin, end).to(at::kFloat),
                      y.slice(-2, begin, end).to(at::kFloat))
        .to(at::kInt);
  };
  Tensor sum = part(0);
  for (int64_t begin = rows; begin < k; begin += rows) sum.add_(part(begin));
  return sum;
}

struct Scales {
  Tensor bias, scale, offset, per_token;
};

// x (weight - 8) + bias, the last two in the form that cancels: x is split into halves of 4 bits on
// a device, where the low one loses 8, and callers pass bias = 8 sum weight. Without bias neither.
inline Tensor product_8_by_4(const Packed& x, const Packed& weight, const Scales& s) {
  const Tensor w = dequantised(weight, s.scale, Tensor()), a = x.numbers().to(at::kFloat);
  Tensor y = at::matmul(a, w);
  if (has(s.bias)) y = y - 8 * w.sum(-2) + s.bias.to(at::kFloat);
  if (has(s.offset)) y = y + at::matmul(a, of_rows(s.offset, w.size(-2)).expand_as(w));
  return y;
}

// Integers: INT32 where the result is, otherwise floats before the last rounding.
inline Tensor quantised_product(const Packed& x, const Packed& weight, const Scales& s,
                                at::ScalarType result) {
  if (result == at::kInt) {
    const Tensor y = integer_product(x, weight);
    if (!has(s.bias)) return y;
    require(s.bias.scalar_type() == at::kInt, "bias must be INT32 where the result is, but is ",
            s.bias.scalar_type());
    return y + s.bias;
  }
  require(result == at::kChar || is_real(result),
          "the result must be INT32, INT8, or float, but is ", result);
  check_given(s.scale, "scale");
  const bool mixed = !x.four_bits() && weight.four_bits();
  const bool whole_bias = has(s.bias) && at::isIntegralType(s.bias.scalar_type(), false);
  Tensor y;
  if (mixed) {
    y = product_8_by_4(x, weight, s);
  } else if (s.scale.dim() > 1 && s.scale.size(-2) > 1) {
    require(!whole_bias, "bias must be float beside scales of groups");
    y = at::matmul(x.numbers().to(at::kFloat), dequantised(weight, s.scale, s.offset));
  } else {
    y = integer_product(x, weight);
    if (whole_bias) y = y + s.bias;
    y = y.to(at::kFloat) * scale_of(s.scale);
    const bool in_bits = result == at::kChar && !is_real(s.scale.scalar_type());
    if (has(s.offset))
      y = y + s.offset.to(at::kFloat);
    else if (in_bits)
      y = y + offset_of(s.scale);
  }
  if (has(s.per_token)) y = y * s.per_token.to(at::kFloat).reshape({-1, 1});
  if (!mixed && has(s.bias) && !whole_bias) y = y + s.bias.to(at::kFloat);
  return y;
}

// In the dtype of the result, floats rounded to whole numbers for INT8.
inline Tensor rounded_to(const Tensor& y, at::ScalarType result) {
  return result == at::kChar && y.is_floating_point() ? to_integers(y) : y.to(result);
}

}  // namespace openaclnn::aten
