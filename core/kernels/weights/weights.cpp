// SPDX-License-Identifier: Apache-2.0
// Weights of 16-bit floats and of integers with scales, as fp32.
#include "core/kernels/half.h"
#include "core/kernels/weights/call.h"

namespace openaclnn {
namespace OPENACLNN_ISA {
namespace {

// (GCC 12 would widen __builtin_convertvector of bytes one by one. The mask selects every lane.)
inline FloatRegister load_integers(const int8_t* in) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
  const auto words = reinterpret_cast<SignedRegister>(_mm512_maskz_cvtepi8_epi32(0xffff, bytes));
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
  const auto words = reinterpret_cast<SignedRegister>(_mm256_cvtepi8_epi32(bytes));
#else
  SignedRegister words;
  for (int k = 0; k < kRegisterFloats; ++k) words[k] = in[k];
#endif
  return __builtin_convertvector(words, FloatRegister);
}

// Numbers that share a scale, or have one each; offset may be nullptr.
template <bool shared>
inline void widen_scaled(float* out, const int8_t* in, int64_t n, const float* scale,
                         const float* offset) {
  const FloatRegister one = all_of<FloatRegister>(shared ? *scale : 0);
  const FloatRegister add = all_of<FloatRegister>(shared && offset != nullptr ? *offset : 0);
  int64_t i = 0;
  for (; i + kRegisterFloats <= n; i += kRegisterFloats) {
    FloatRegister x = load_integers(in + i);
    if (offset != nullptr) x += shared ? add : load_register<FloatRegister>(offset + i);
    store_register(out + i, x * (shared ? one : load_register<FloatRegister>(scale + i)));
  }
  for (; i < n; ++i) {
    const int64_t at = shared ? 0 : i;
    out[i] = (in[i] + (offset == nullptr ? 0 : offset[at])) * scale[at];
  }
}

// n numbers from n / 2 bytes; (b ^ 8) - 8 extends the sign of four bits.
inline void unpack(int8_t* out, const uint8_t* in, int64_t n) {
  using Bytes [[gnu::vector_size(16)]] = uint8_t;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const Bytes both = load_register<Bytes>(in + i / 2);
    const Bytes low = ((both & 15) ^ 8) - 8, high = ((both >> 4) ^ 8) - 8;
    store_register(out + i, __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                                    21, 6, 22, 7, 23));
    store_register(out + i + 16, __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27,
                                                         12, 28, 13, 29, 14, 30, 15, 31));
  }
  for (; i < n; i += 2) {
    out[i] = static_cast<int8_t>(((in[i / 2] & 15) ^ 8) - 8);
    out[i + 1] = static_cast<int8_t>(((in[i / 2] >> 4) ^ 8) - 8);
  }
}

void widen_integers(const WeightRun& run, float* out) {
  constexpr int64_t kUnpacked = 512;
  const bool packed = run.element == WeightElement::int4;
  int8_t unpacked[kUnpacked];
  const auto* bytes = static_cast<const uint8_t*>(run.from);
  int64_t left = run.group, g = 0;  // of the present group
  for (int64_t begin = 0; begin < run.count; begin += kUnpacked) {
    const int64_t n = run.count - begin < kUnpacked ? run.count - begin : kUnpacked;
    const int8_t* in = reinterpret_cast<const int8_t*>(bytes) + begin;
    if (packed) {
      unpack(unpacked, bytes + begin / 2, n);
      in = unpacked;
    }
    if (run.group == 1) {
      widen_scaled<false>(out + begin, in, n, run.scale + begin,
                          run.offset == nullptr ? nullptr : run.offset + begin);
      continue;
    }
    for (int64_t i = 0; i < n;) {
      const int64_t here = left < n - i ? left : n - i;
      widen_scaled<true>(out + begin + i, in + i, here, run.scale + g,
                         run.offset == nullptr ? nullptr : run.offset + g);
      i += here;
      left -= here;
      if (left == 0) {
        left = run.group;
        ++g;
      }
    }
  }
}

void widen_weight(const WeightRun& run, float* out) {
  const auto* halves = static_cast<const uint16_t*>(run.from);
  switch (run.element) {
    case WeightElement::f16: return widen<F16>(out, halves, run.count);
    case WeightElement::bf16: return widen<Bf16>(out, halves, run.count);
    default: return widen_integers(run, out);
  }
}

}  // namespace
}  // namespace OPENACLNN_ISA

extern const WeightKernels OPENACLNN_OF_ISA(weights_);

const WeightKernels OPENACLNN_OF_ISA(weights_) = {OPENACLNN_ISA::widen_weight};

}  // namespace openaclnn
