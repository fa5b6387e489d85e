// SPDX-License-Identifier: Apache-2.0
// Comparisons and choices lane by lane, and what works on the bits of numbers.
#pragma once

#include "core/kernels/registers.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Zen 4 compares floats, and words for a mask, in the pipes that multiply, 16 a cycle; it computes
// 32 minima or maxima of words a cycle, in any pipe. The bits of positive numbers have the order of
// the numbers, those of negative numbers the reversed order. As signed words negative numbers are
// the smaller ones, as unsigned words the larger ones.
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

// x, loaded here and in this order: GCC 12 would load it under the mask of a zero_if, which waits
// for the comparison, or line 1 before line 0, which no hardware foresees (hardshrink_backward, 16
// Mi, 2 threads, Zen 5: fp16 2.1 and fp32 3.8 ms instead of 1.35 and 3.1).
inline double loaded(double x) { return x; }
inline FloatRegister loaded(FloatRegister x) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(x));
#endif
  return x;
}

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

inline WordRegister all_words(uint32_t x) { return x - WordRegister{}; }

// Reads the words as signed numbers (two's complement).
inline FloatRegister as_signed(WordRegister bits) {
  return __builtin_convertvector(reinterpret_cast<SignedRegister>(bits), FloatRegister);
}

// A condition for each lane. Comparisons of registers give registers; GCC 12 would turn the masks
// of AVX-512 into registers to combine them.
#if defined(__AVX512F__)
using Lanes = __mmask16;
inline Lanes above(WordRegister x, uint32_t limit) {
  return _mm512_cmpgt_epu32_mask(reinterpret_cast<__m512i>(x),
                                 _mm512_set1_epi32(static_cast<int>(limit)));
}
inline Lanes below(FloatRegister x, float limit) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_LT_OQ);
}
inline Lanes not_at_least(FloatRegister x, float limit) {  // true for NaN
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NGE_UQ);
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
inline Lanes not_at_least(FloatRegister x, float limit) { return ~(x >= limit); }
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
