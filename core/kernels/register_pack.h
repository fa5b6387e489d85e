// SPDX-License-Identifier: Apache-2.0
// Several registers go through a formula together, step by step.
#pragma once

#include <cstdint>

#include "core/kernels/conditions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// With few registers at a time, a chain of some 20 dependent steps leaves the pipes idle; with
// many, some are spilled to the stack.
inline constexpr int kUnroll = 4;  // where nothing else was measured

template <class R, int K>
struct RegisterPack {
  R r[K];
};
template <int K>
using Registers = RegisterPack<FloatRegister, K>;

// Functions of several registers are always inlined: GCC 12 would pass them through the stack at
// -O2, and swish took 1.75 times as long with AVX2.
//
// Without fused products in hardware, a fused product is a call, and unrolled code gains nothing. A
// loop takes less time to compile.
template <class R, int K>
[[gnu::always_inline]] inline RegisterPack<R, K> map(auto step) {
  RegisterPack<R, K> y;
#if defined(__FMA__) || defined(__aarch64__)
#pragma GCC unroll 8
#else
#pragma GCC unroll 1
#endif
  for (int k = 0; k < K; ++k) y.r[k] = step(k);
  return y;
}

template <class V>
  requires(sizeof(V::r) > 0)
[[gnu::always_inline]] inline V all_of(float x) {
  constexpr int K = sizeof(V::r) / sizeof(FloatRegister);
  return map<FloatRegister, K>([=](int) { return all_of<FloatRegister>(x); });
}

template <class R, int K>
[[gnu::always_inline]] inline RegisterPack<R, K> operator+(const RegisterPack<R, K>& a,
                                                           const RegisterPack<R, K>& b) {
  return map<R, K>([&](int k) { return a.r[k] + b.r[k]; });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> operator-(const Registers<K>& a, const Registers<K>& b) {
  return map<FloatRegister, K>([&](int k) { return a.r[k] - b.r[k]; });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> operator-(const Registers<K>& a) {
  return map<FloatRegister, K>([&](int k) { return -a.r[k]; });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> operator*(const Registers<K>& a, const Registers<K>& b) {
  return map<FloatRegister, K>([&](int k) { return a.r[k] * b.r[k]; });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> operator/(const Registers<K>& a, const Registers<K>& b) {
  return map<FloatRegister, K>([&](int k) { return a.r[k] / b.r[k]; });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> fused(const Registers<K>& a, const Registers<K>& b,
                                                 const Registers<K>& c) {
  return map<FloatRegister, K>([&](int k) { return fused(a.r[k], b.r[k], c.r[k]); });
}
template <int K>
[[gnu::always_inline]] inline RegisterPack<WordRegister, K> operator<<(
    const RegisterPack<WordRegister, K>& a, int by) {
  return map<WordRegister, K>([&](int k) { return a.r[k] << by; });
}
template <int K>
[[gnu::always_inline]] inline RegisterPack<WordRegister, K> bits_of(const Registers<K>& x) {
  return map<WordRegister, K>([&](int k) { return bits_of(x.r[k]); });
}
template <int K>
[[gnu::always_inline]] inline RegisterPack<WordRegister, K> pick(
    const uint32_t (&table)[16], const RegisterPack<WordRegister, K>& x) {
  return map<WordRegister, K>([&](int k) { return pick(table, x.r[k]); });
}
template <int K>
[[gnu::always_inline]] inline Registers<K> float_of(const RegisterPack<WordRegister, K>& x) {
  return map<FloatRegister, K>([&](int k) { return float_of(x.r[k]); });
}

// Works lane by lane, in pairs.
template <int K>
[[gnu::always_inline]] inline FloatRegister sum_of(const Registers<K>& x) {
  if constexpr (K == 1) {
    return x.r[0];
  } else {
    return sum_of(map<FloatRegister, K / 2>([&](int k) { return x.r[2 * k] + x.r[2 * k + 1]; }));
  }
}

// Returns the same register K times.
template <int K>
[[gnu::always_inline]] inline Registers<K> spread(FloatRegister x) {
  return map<FloatRegister, K>([=](int) { return x; });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
