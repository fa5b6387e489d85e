// SPDX-License-Identifier: Apache-2.0
// Numbers as bit patterns and back.
#pragma once

#include <cstdint>

// Put this before a loop whose iterations are independent although its output may be one of its
// inputs.
#if defined(__clang__)
#define OPENACLNN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPENACLNN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline double double_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// These two functions have no branches.
inline bool all(bool a, bool b, bool c = true) {
  return (static_cast<int>(a) & static_cast<int>(b) & static_cast<int>(c)) != 0;
}
inline bool any(bool a, bool b) { return (static_cast<int>(a) | static_cast<int>(b)) != 0; }

inline float magnitude(float x) { return __builtin_fabsf(x); }
inline double magnitude(double x) { return __builtin_fabs(x); }
inline double copy_sign(double x, double y) { return __builtin_copysign(x, y); }
inline bool within(double x, double least, double most) {
  return magnitude(x) >= least && magnitude(x) <= most;
}
// condition ? 0 : x, by a mask. With a conditional expression, GCC interleaves the choice with that
// of `canonical`, which costs two more comparisons.
inline double zero_if(bool condition, double x) {
  return double_of(bits_of(x) & (static_cast<uint64_t>(condition) - 1));
}
inline uint32_t zero_unless(bool condition, uint32_t x) { return condition ? x : 0; }

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
