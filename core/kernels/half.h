// SPDX-License-Identifier: Apache-2.0
// The half types convert to and from float: one value, one register (two, to half types) or an
// array. They round to nearest even and keep subnormals, and all variants below give the same bits
// (except for NaN). A NaN stays a NaN; the conversion to bf16, which rounds with integers,
// guarantees this only if its low 16 bits are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/kernels/element.h"
#include "core/kernels/conditions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Rounds to odd: truncates and, when inexact, sets the last bit, so that a following rounding to a
// half type gives the same as a single rounding.
inline float to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double magnitude = __builtin_fabs(x);
  const uint32_t overshoot = static_cast<double>(__builtin_fabsf(nearest)) > magnitude ? 1 : 0;
  const uint32_t inexact = static_cast<double>(nearest) != x && x == x ? 1 : 0;
  return float_of((bits_of(nearest) - overshoot) | inexact);
}

#if !defined(__AVX512BW__)
// Joins the words of two registers, none of which is above 0xffff.
inline auto joined(WordRegister lower, WordRegister upper) {
#if defined(__AVX2__)
  const __m256i in_halves =
      _mm256_packus_epi32(reinterpret_cast<__m256i>(lower), reinterpret_cast<__m256i>(upper));
  return _mm256_permute4x64_epi64(in_halves, 0xd8);
#elif defined(__x86_64__)
  return _mm_packus_epi32(reinterpret_cast<__m128i>(lower), reinterpret_cast<__m128i>(upper));
#else
  return vuzp1q_u16(reinterpret_cast<uint16x8_t>(lower), reinterpret_cast<uint16x8_t>(upper));
#endif
}
#endif

// In the templates of both types, W is uint32_t or WordRegister. The bits of a half type are the
// lower 16 of a word, whose upper 16 are 0.
//
// `store` narrows two registers and calls put(out, values), with both joined or with one after the
// other: F16C converts to half a register, and two stores take less time than to join the halves.
// With AVX-512 the joined values are a whole line, for a non-temporal store.
struct Bf16 {
  static constexpr Element kElement = Element::bf16;
  using Raw = uint16_t;

  static float from(Raw raw) { return float_of(uint32_t{raw} << 16); }
  static Raw to(float x) { return static_cast<Raw>(to_bits(bits_of(x))); }
  static Raw rounded(double x) { return to(to_odd(x)); }

  static FloatRegister load(const Raw* in) {
#if defined(__AVX512BW__)
    const __m512i words =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
    return reinterpret_cast<FloatRegister>(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(kEachTwice), words));
#else
    return float_of(__builtin_convertvector(load_register<ShortRegister>(in), WordRegister) << 16);
#endif
  }

  [[gnu::always_inline]] static void store(Raw* out, FloatRegister lower, FloatRegister upper,
                                           const auto& put) {
#if defined(__AVX512BW__)
    const auto rounded = [](FloatRegister x) {
      const auto u = reinterpret_cast<__m512i>(x);
      const __m512i up = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
      return _mm512_mask_add_epi32(up, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), up,
                                   _mm512_set1_epi32(1));
    };
    put(out,
        _mm512_permutex2var_epi16(rounded(lower), _mm512_loadu_si512(kHighWords), rounded(upper)));
#else
    put(out, joined(to_bits(bits_of(lower)), to_bits(bits_of(upper))));
#endif
  }

 private:
  template <class W>
  static W to_bits(W u) {
    return (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  }

  // With AVX-512, one permutation moves the words where the compiler would shift and pack, which
  // takes leaky_relu 1.7 times as long. (vcvtneps2bf16 would be shorter still, but it treats
  // subnormals as zero.)
  static constexpr uint16_t kHighWords[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                              23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                              45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  static constexpr uint16_t kEachTwice[32] = {0,  0,  1,  1,  2,  2,  3,  3,  4,  4,  5,
                                              5,  6,  6,  7,  7,  8,  8,  9,  9,  10, 10,
                                              11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
};

struct F16 {
  static constexpr Element kElement = Element::f16;
  using Raw = uint16_t;

  static float from(Raw raw) { return from_bits(uint32_t{raw}); }
  static Raw to(float x) { return static_cast<Raw>(to_bits(bits_of(x))); }
  static Raw rounded(double x) { return to(to_odd(x)); }

  // (The masks select every lane, here and below; without them GCC 12 warns about its own header.)
  static FloatRegister load(const Raw* in) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
#else
    return from_bits(__builtin_convertvector(load_register<ShortRegister>(in), WordRegister));
#endif
  }

  [[gnu::always_inline]] static void store(Raw* out, FloatRegister lower, FloatRegister upper,
                                           const auto& put) {
#if defined(__AVX512F__)
    const auto half = [](FloatRegister x) {
      return _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    put(out, _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(half(lower)), half(upper), 1));
#elif defined(__F16C__)
    const auto half = [](FloatRegister x) {
      __m128i y = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      // Otherwise GCC 12 converts before it branches on the kind of store, and once more where it
      // stores: hardshrink takes 1.25 times as long.
      asm("" : "+x"(y));
      return y;
    };
    put(out, half(lower)), put(out + kRegisterFloats, half(upper));
#else
    put(out, joined(to_bits(bits_of(lower)), to_bits(bits_of(upper))));
#endif
  }

 private:
  // Exponent and fraction move up 13 bits and the bias grows by 112; a subnormal is normalised by
  // subtracting 2^-14.
  template <class W>
  static decltype(float_of(W{})) from_bits(W h) {
    const W shifted = (h & 0x7fff) << 13;
    const W exponent = shifted & 0x0f800000;
    const W bias = exponent == 0x0f800000 ? W{} + (224u << 23) : W{} + (112u << 23);
    const W subnormal = bits_of(float_of(shifted + (113u << 23)) - 0x1p-14f);
    return float_of((exponent == 0 ? subnormal : shifted + bias) | (h & 0x8000) << 16);
  }

  // Below 2^-14, adding 0.5 rounds at the last bit of an fp16 subnormal. From 65520 on the carry
  // produces infinity.
  template <class W>
  static W to_bits(W bits) {
    const W sign = bits & 0x80000000;
    const W u = bits ^ sign;
    const W subnormal = bits_of(float_of(u) + 0.5f) - 0x3f000000;
    const W normal = (u + 0xc8000fff + ((u >> 13) & 1)) >> 13;
    const W special = u > 0x7f800000 ? W{} + 0x7e00 : W{} + 0x7c00;
    const W finite = u < 0x38800000 ? subnormal : normal;
    return (u >= 0x47800000 ? special : finite) | sign >> 16;
  }
};

// Arrays are converted register by register, and what is left value by value.
template <class Type>
inline void widen(float* out, const uint16_t* in, int64_t n) {
  int64_t i = 0;
  for (; i + kRegisterFloats <= n; i += kRegisterFloats)
    store_register(out + i, Type::load(in + i));
  for (int64_t rest = n - i; rest > 0; --rest, ++i) out[i] = Type::from(in[i]);
}

template <class Type>
inline void narrow(uint16_t* out, const float* in, int64_t n) {
  constexpr int kBoth = 2 * kRegisterFloats;
  const auto load = [=](int64_t i) { return load_register<FloatRegister>(in + i); };
  const auto put = [](auto* to, auto values) { store_register(to, values); };
  int64_t i = 0;
  for (; i + kBoth <= n; i += kBoth) Type::store(out + i, load(i), load(i + kRegisterFloats), put);
  if (i + kRegisterFloats <= n) {
    uint16_t both[kBoth];
    Type::store(both, load(i), FloatRegister{}, put);
    std::memcpy(out + i, both, sizeof both / 2);
    i += kRegisterFloats;
  }
  for (int64_t rest = n - i; rest > 0; --rest, ++i) out[i] = Type::to(in[i]);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
