// SPDX-License-Identifier: Apache-2.0
// Native registers are types here, with what formulas need beyond arithmetic. A formula that is a
// template over its type runs on float and, lane by lane with the same bits, on FloatRegister. Sums
// and many values then stay in registers; in a loop that the compiler vectorises, it would put them
// on the stack.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/kernels/fused.h"

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

// Rounds the values of two registers to float and joins them.
inline FloatRegister narrowed(DoubleRegister lower, DoubleRegister upper) {
#if defined(__AVX512F__)
  const auto half = [](DoubleRegister r) { return _mm512_maskz_cvtpd_ps(0xff, r); };
  return _mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512(half(lower)), half(upper), 1);
#else
  const HalfRegister halves[2] = {__builtin_convertvector(lower, HalfRegister),
                                  __builtin_convertvector(upper, HalfRegister)};
  FloatRegister r;
  std::memcpy(&r, halves, sizeof r);
  return r;
#endif
}

// Computes f(a, b) in double and rounds it.
inline float in_double(const auto& f, float a, float b) {
  return static_cast<float>(f(static_cast<double>(a), static_cast<double>(b)));
}
inline FloatRegister in_double(const auto& f, FloatRegister a, FloatRegister b) {
  return narrowed(f(widened_half(a, 0), widened_half(b, 0)),
                  f(widened_half(a, 1), widened_half(b, 1)));
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

// a * b - c, rounded once.
inline FloatRegister fused_less(FloatRegister a, FloatRegister b, FloatRegister c) {
#if defined(__AVX512F__)
  return _mm512_fmsub_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmsub_ps(a, b, c);
#else
  return fused(a, b, -c);
#endif
}

// Zen 4 compares floats, and words for a mask, in the pipes that multiply, 16 a cycle; it computes
// 32 minima or maxima of words a cycle, in any pipe. The bits of positive numbers have the order of
// the numbers, those of negative numbers the reversed order. As signed words negative numbers are
// the smaller ones, as unsigned words the larger ones.
inline uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
inline WordRegister smaller(WordRegister a, WordRegister b) { return a < b ? a : b; }
inline WordRegister larger(WordRegister a, WordRegister b) { return a > b ? a : b; }
inline WordRegister smaller_signed(WordRegister a, WordRegister b) {
  const auto x = reinterpret_cast<SignedRegister>(a), y = reinterpret_cast<SignedRegister>(b);
  return reinterpret_cast<WordRegister>(x < y ? x : y);
}
inline WordRegister larger_signed(WordRegister a, WordRegister b) {
  const auto x = reinterpret_cast<SignedRegister>(a), y = reinterpret_cast<SignedRegister>(b);
  return reinterpret_cast<WordRegister>(x > y ? x : y);
}

inline FloatRegister magnitude(FloatRegister x) { return float_of(bits_of(x) & 0x7fffffff); }
inline FloatRegister zero_if(SignedRegister condition, FloatRegister x) {
  return condition ? FloatRegister{} : x;
}
inline WordRegister zero_unless(SignedRegister condition, WordRegister x) {
  return condition ? x : WordRegister{};
}

// Every NaN result becomes the quiet NaN 0x7fc0…, because instruction sets differ in which payload
// survives x * y.
template <class V>
inline V canonical(V x) {
  return x == x ? x : all_of<V>(__builtin_nanf(""));
}

// |x| with the sign of y.
template <class V>
inline V copy_sign(V x, V y) {
  return float_of((bits_of(x) & 0x7fffffff) | (bits_of(y) & 0x80000000));
}

// Computes so_far | (a ^ b) in one instruction, where GCC 12 uses two.
inline WordRegister or_different(WordRegister so_far, WordRegister a, WordRegister b) {
#if defined(__AVX512F__)
  const auto bits = [](WordRegister r) { return reinterpret_cast<__m512i>(r); };
  return reinterpret_cast<WordRegister>(
      _mm512_ternarylogic_epi32(bits(so_far), bits(a), bits(b), 0xf0 | (0xcc ^ 0xaa)));
#else
  return so_far | (a ^ b);
#endif
}
inline WordRegister all_words(uint32_t x) { return x - WordRegister{}; }

// Reads the words as signed numbers (two's complement).
inline FloatRegister as_signed(WordRegister bits) {
  return __builtin_convertvector(reinterpret_cast<SignedRegister>(bits), FloatRegister);
}

// Returns whether no lane is above the limit.
inline bool at_most(WordRegister r, uint32_t limit) {
#if defined(__AVX512F__)
  return _mm512_cmpgt_epu32_mask(reinterpret_cast<__m512i>(r),
                                 _mm512_set1_epi32(static_cast<int>(limit))) == 0;
#else
  uint32_t most = 0;
  for (int k = 0; k < kRegisterFloats; ++k) most = most > r[k] ? most : r[k];
  return most <= limit;
#endif
}

// A condition for each lane. Comparisons of registers give registers; GCC 12 would turn the masks of
// AVX-512 into registers to combine them.
#if defined(__AVX512F__)
using Lanes = __mmask16;
inline Lanes above(WordRegister x, uint32_t limit) {
  return _mm512_cmpgt_epu32_mask(reinterpret_cast<__m512i>(x),
                                 _mm512_set1_epi32(static_cast<int>(limit)));
}
inline Lanes below(FloatRegister x, float limit) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_LT_OQ);
}
inline Lanes at_least(FloatRegister x, float limit) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_GE_OQ);
}
inline Lanes is_nan(FloatRegister x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
inline Lanes infinite_or_nan(FloatRegister x) { return _mm512_fpclass_ps_mask(x, 0x99); }
inline bool any(Lanes lanes) { return lanes != 0; }
inline FloatRegister select(Lanes lanes, FloatRegister yes, FloatRegister no) {
  return _mm512_mask_blend_ps(lanes, no, yes);
}
#else
using Lanes = SignedRegister;
inline Lanes above(WordRegister x, uint32_t limit) { return x > limit; }
inline Lanes below(FloatRegister x, float limit) { return x < limit; }
inline Lanes at_least(FloatRegister x, float limit) { return x >= limit; }
inline Lanes is_nan(FloatRegister x) { return x != x; }
inline Lanes infinite_or_nan(FloatRegister x) { return x - x != 0; }
inline FloatRegister select(Lanes lanes, FloatRegister yes, FloatRegister no) {
  return lanes ? yes : no;
}
inline bool any(Lanes lanes) {
#if defined(__AVX__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(lanes)) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(lanes)) != 0;
#else
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(lanes)) != 0;
#endif
}
#endif

// table[i % 16] for the index i of every lane.
inline uint32_t pick(const uint32_t (&table)[16], uint32_t index) { return table[index % 16]; }
inline WordRegister pick(const uint32_t (&table)[16], WordRegister index) {
#if defined(__AVX512F__)
  const __m512i found = _mm512_maskz_permutexvar_epi32(0xffff, reinterpret_cast<__m512i>(index),
                                                       _mm512_loadu_si512(table));
  return reinterpret_cast<WordRegister>(found);
#elif defined(__AVX2__)
  const auto half = [=](const uint32_t* from) {
    return _mm256_castsi256_ps(
        _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                                    reinterpret_cast<__m256i>(index)));
  };
  const __m256 upper = reinterpret_cast<__m256>(index << 28);  // its sign: index % 16 >= 8
  return reinterpret_cast<WordRegister>(_mm256_blendv_ps(half(table), half(table + 8), upper));
#elif defined(__aarch64__)
  const uint8x16x4_t bytes = vld1q_u8_x4(reinterpret_cast<const uint8_t*>(table));
  const WordRegister four = index % 16 * 0x04040404u + 0x03020100u;  // where those of a lane are
  return reinterpret_cast<WordRegister>(vqtbl4q_u8(bytes, reinterpret_cast<uint8x16_t>(four)));
#else
  WordRegister found;
  for (int k = 0; k < kRegisterFloats; ++k) found[k] = table[index[k] % 16];
  return found;
#endif
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
