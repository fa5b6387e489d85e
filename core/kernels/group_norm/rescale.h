// SPDX-License-Identifier: Apache-2.0
// In some rows of the gradient, fp32 would hold dy, or its products with x̂, as subnormal numbers,
// or not at all. Their u and x̂ are multiplied by powers of two that bring the largest of each near
// 1.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct Rescale {
  double u = 1, h = 1;  // powers of two
};
inline constexpr int8_t kNoRescale = -128;  // in place of the exponent of u

inline double power_of_two(int exponent) {
  return double_of(static_cast<uint64_t>(1023 + exponent) << 52);
}
// Returns the exponent of the power of two that brings a normal fp64 x to [1, 2), or as near to it
// as an int8_t allows.
inline int exponent_to_one(double x) {
  const int exponent = x == 0 ? 0 : 1023 - static_cast<int>(bits_of(magnitude(x)) >> 52);
  return exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
}

// The largest |dy| and |d| of some positions; NaNs do not count. d is x - mean, or x̂ where that is
// summed.
struct Extent {
  double dy = 0, d = 0;
};

// Returns whether sums of u and u d in fp32 need a rescale. u is at most 1.1 |dy|; subnormal values
// of u are wrong by up to 2^-150, and so are products. A piece of 512 adds 16 products to each
// lane.
inline bool is_lost(const Extent& of, bool outside_fp32) {
  const double largest = kLargest, product = of.dy * of.d;
  if (of.dy == 0 || !all(of.dy <= largest, of.d < 0x1p300)) return false;
  const bool small = of.dy < 0x1p-80 || (of.d > 0 && product < 0x1p-100);
  const bool large = of.dy > 0x1p120 || product > 0x1p120;
  return small || large || (outside_fp32 && of.d > 0 && (of.d < 0x1p-100 || of.d > 0x1p120));
}

// A segment of one channel of one sample.
struct RowPart {
  const GroupNormCall& call;
  int64_t sample, channel, begin;
  float mean, factor;  // factor: d / (x - mean)

  double dy(int64_t i) const { return size(call.dy, i, 0); }
  double d(int64_t i) const {
    return size(call.x, i, mean) * magnitude(static_cast<double>(factor));
  }
  int64_t count() const { return smaller(kSegment, call.positions - begin); }

  int64_t offset(const GroupNormTensor& t, int64_t i) const {
    return offset_of(call, t, sample, channel, begin + i);
  }

 private:
  double size(const GroupNormTensor& t, int64_t i, float from) const {
    const float value = float_at(element_at(t.data, t.element, offset(t, i)), t.element);
    return magnitude(static_cast<double>(value) - static_cast<double>(from));
  }
};

inline bool is_ordinary(float x) { return all(magnitude(x) >= 0x1p-40f, magnitude(x) <= 0x1p60f); }
inline bool is_ordinary(double x) { return all(x >= 0x1p-40, x <= 0x1p60); }

// Returns whether the row has no rescale, judged by its first positions: some dy and some d are
// ordinary (mostly the first ones). Zeros at all of them count as ordinary.
inline constexpr int64_t kLookedAt = 16;
inline bool starts_ordinary(const RowPart& part) {
  const int64_t n = smaller(kLookedAt, part.count());
  const auto first_ordinary = [n](const auto& size) __attribute__((always_inline)) {
    bool zeros = true;
    for (int64_t i = 0; i < n; ++i) {
      const double x = size(i);
      if (is_ordinary(x)) return true;
      zeros &= x == 0;
    }
    return zeros;
  };
  return (first_ordinary([&](int64_t i) { return part.dy(i); }) &&
          first_ordinary([&](int64_t i) { return part.d(i); }));
}
inline Extent extent_of(const RowPart& part) {
  Extent largest;
  for (int64_t i = 0; i < part.count(); ++i) {
    const double size = part.dy(i), distance = part.d(i);
    largest.dy = size > largest.dy ? size : largest.dy;
    largest.d = distance > largest.d ? distance : largest.d;
  }
  return largest;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
