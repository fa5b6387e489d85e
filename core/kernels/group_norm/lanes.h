// SPDX-License-Identifier: Apache-2.0
// Sums in a fixed number of lanes and a fixed tree over them, in native registers: the same bits on
// every instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/register_pack.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// How far ahead sweeps of the gradient, and sweeps that fill tiles, prefetch memory.
inline constexpr int64_t kAheadBytes = 2048;

inline constexpr int kLanes = 32, kLaneRegisters = kLanes / kRegisterFloats;

// Holds Σ u and Σ u d, where u is dy swish'(v) and d is x - mean or x̂ (docs/numerics.md). Lane l
// adds the values l, l + 32, …
struct LaneSums {
  alignas(64) float u[kLanes], ud[kLanes];
};

// Holds the same sums in registers, while a loop adds to them.
class LaneRegisters {
 public:
  using Values = Registers<kLaneRegisters>;

  // Adds the next value of each lane.
  [[gnu::always_inline]] void add(const Values& u, const Values& d) {
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) u_[k] += u.r[k];
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) ud_[k] = fused(u.r[k], d.r[k], ud_[k]);
  }

  void store(LaneSums& sums) const {
    std::memcpy(sums.u, u_, sizeof sums.u);
    std::memcpy(sums.ud, ud_, sizeof sums.ud);
  }

 private:
  FloatRegister u_[kLaneRegisters] = {}, ud_[kLaneRegisters] = {};
};

// The sum of n values; the upper half is added to the lower one until one value is left.
template <int n>
inline double tree_sum(double* lanes) {
#pragma GCC unroll 8
  for (int half = n / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum of the lanes of n registers.
template <int n>
inline double sum_of(DoubleRegister* r) {
  for (int half = n / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) r[k] += r[k + half];
  }
  double lanes[kRegisterBytes / sizeof(double)];
  std::memcpy(lanes, r, sizeof lanes);
  return tree_sum<kRegisterBytes / sizeof(double)>(lanes);
}

// The sum of 32 lanes in fp64.
inline double tree(const float* lanes) {
  constexpr int kWidth = kRegisterBytes / sizeof(double), kRegisters = kLanes / 2 / kWidth;
  DoubleRegister wide[kRegisters];
  for (int k = 0; k < kRegisters; ++k) {
    wide[k] =
        widened_register(lanes + k * kWidth) + widened_register(lanes + kLanes / 2 + k * kWidth);
  }
  return sum_of<kRegisters>(wide);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
