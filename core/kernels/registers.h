// SPDX-License-Identifier: Apache-2.0
// Native registers, one or several, are types here, with what formulas need beyond arithmetic.
// Sums and many values then stay in registers; in a loop that the compiler vectorises, it would put
// them on the stack.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/kernels/numbers.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif
inline constexpr int kRegisterFloats = kRegisterBytes / sizeof(float);

using FloatRegister [[gnu::vector_size(kRegisterBytes)]] = float;
using WordRegister [[gnu::vector_size(kRegisterBytes)]] = uint32_t;
using SignedRegister [[gnu::vector_size(kRegisterBytes)]] = int32_t;
using DoubleRegister [[gnu::vector_size(kRegisterBytes)]] = double;
using HalfRegister [[gnu::vector_size(kRegisterBytes / 2)]] = float;  // as many floats as doubles
using ShortRegister [[gnu::vector_size(kRegisterBytes / 2)]] = uint16_t;  // as many as floats

template <class R, class T>
inline R load_register(const T* from) {
  R r;
  std::memcpy(&r, from, sizeof r);
  return r;
}

// Returns a number, or a register full of it.
template <class V>
inline V all_of(float x) {
  if constexpr (sizeof(V) <= sizeof(double)) {
    return x;
  } else {
    return x - V{};
  }
}
template <class V>
  requires(__is_same(V, double))
inline V all_of(double x) {
  return x;
}

// GCC 12 would widen in halves and join them. (The masks select every lane; without them GCC warns
// about its own header.)
inline DoubleRegister widened_register(const float* from) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
#else
  return __builtin_convertvector(load_register<HalfRegister>(from), DoubleRegister);
#endif
}

// Returns the lower half of a register, or the upper.
inline DoubleRegister widened_half(FloatRegister r, int half) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(
      0xff, half == 0 ? _mm512_castps512_ps256(r) : _mm512_maskz_extractf32x8_ps(0xff, r, 1));
#else
  HalfRegister halves[2];
  std::memcpy(halves, &r, sizeof halves);
  return __builtin_convertvector(halves[half], DoubleRegister);
#endif
}

template <class R>
inline void store_register(void* to, R r) {
  std::memcpy(to, &r, sizeof r);
}

// Non-temporal store to an address that is a multiple of the size.
template <class R>
inline void stream_register(void* to, R r) {
  static_assert(sizeof r == 16 || sizeof r == kRegisterBytes);
#if defined(__x86_64__)
  if constexpr (sizeof r == 16)
    _mm_stream_si128(static_cast<__m128i*>(to), reinterpret_cast<__m128i>(r));
#endif
#if defined(__AVX__)
  if constexpr (sizeof r == 32)
    _mm256_stream_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(r));
#endif
#if defined(__AVX512F__)
  if constexpr (sizeof r == 64)
    _mm512_stream_si512(static_cast<__m512i*>(to), reinterpret_cast<__m512i>(r));
#endif
#if !defined(__x86_64__)
  store_register(to, r);
#endif
}

inline WordRegister bits_of(FloatRegister x) { return reinterpret_cast<WordRegister>(x); }
inline FloatRegister float_of(WordRegister bits) { return reinterpret_cast<FloatRegister>(bits); }

#if !defined(__FMA__) && !defined(__aarch64__)
[[gnu::noinline]]  // it is long, and formulas over eight registers have it a hundred times
#endif
inline FloatRegister fused(FloatRegister a, FloatRegister b, FloatRegister c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  FloatRegister y;
  for (int k = 0; k < kRegisterFloats; ++k) y[k] = fused(a[k], b[k], c[k]);
  return y;
#endif
}

// Computes a - b as a * 1 - b, with the same bits, in the pipes for products: on Zen 4 the moments
// of group norm keep the pipes for sums and conversions busy.
inline DoubleRegister difference_by_product(DoubleRegister a, DoubleRegister b) {
#if defined(__AVX512F__)
  return _mm512_fmsub_pd(a, _mm512_set1_pd(1), b);
#elif defined(__FMA__)
  return _mm256_fmsub_pd(a, _mm256_set1_pd(1), b);
#else
  return a - b;
#endif
}

// Stays one instruction even if -a is used twice, where GCC 12 would compute -a into a register.
inline FloatRegister fused_minus(FloatRegister a, FloatRegister b, FloatRegister c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fnmadd_ps(a, b, c);
#else
  return fused(a, -b, c);
#endif
}

// ---- several registers, which go through a formula one after the other ----

// With few in an unrolled loop, a chain of some 20 dependent steps leaves the pipes idle; with
// many, some are spilled to the stack.
inline constexpr int kUnroll = 4;  // where nothing else was measured

template <int K>
struct Registers {
  FloatRegister r[K];
};

// Without fused products in hardware, a fused product is a call, and unrolled code gains nothing. A
// loop takes less time to compile.
template <int K>
[[gnu::always_inline]] inline Registers<K> map(auto step) {
  Registers<K> y;
#if defined(__FMA__) || defined(__aarch64__)
#pragma GCC unroll 8
#else
#pragma GCC unroll 1
#endif
  for (int k = 0; k < K; ++k) y.r[k] = step(k);
  return y;
}

// Works lane by lane, in pairs.
template <int K>
[[gnu::always_inline]] inline FloatRegister sum_of(const Registers<K>& x) {
  if constexpr (K == 1) {
    return x.r[0];
  } else {
    return sum_of(map<K / 2>([&](int k) { return x.r[2 * k] + x.r[2 * k + 1]; }));
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
