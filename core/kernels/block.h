// SPDX-License-Identifier: Apache-2.0
// Blocks of values move between memory, where they are fp32, fp16, bf16 or fp64, and registers or
// the stack, where they are float, or double for fp64.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/half.h"
#include "core/kernels/several.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr int kBlock = 32;  // at least a cache line of the narrowest type

template <class T = float>
struct Block {
  alignas(64) T value[kBlock];
};

inline constexpr int kBlockRegisters = kBlock / kRegisterFloats;

// kAhead says how many bytes ahead a streaming pass fetches its inputs. leaky_relu, 64 Mi, 2
// threads, Zen 4, ms with 0, 512, 1024, 2048, 4096: fp32 12.4, 10.5, 10.7, 10.8, 11.6 (a loop
// without conversion and driver: 10.3), fp16 6.9, 6.1, 6.0, 5.4, 5.2 (5.0), bf16 7.0, 6.0, 5.7,
// 5.9, 5.3 (5.0). Zen 5, memory at its fastest, share of that loop with 512, 1024, 2048, 4096:
// elu_backward 82, 82, 91, 96 %, elu 89, 96, 101, 100 %; there all operators take 0.97 of the time
// with 2048 that they take with 512.
template <class T>
struct AsItIs {  // the values are the same in memory and out of it
  static constexpr int kAhead = 2048;
  using Raw = T;
  using Computed = T;
  static void widen(T* out, const T* in) { std::memcpy(out, in, kBlock * sizeof(T)); }
  static void narrow(T* out, const T* in) { std::memcpy(out, in, kBlock * sizeof(T)); }
};
struct F32 : AsItIs<float> {
  static constexpr Element kElement = Element::f32;
  static FloatRegister load(const Raw* in) { return load_register<FloatRegister>(in); }
  static float from(Raw raw) { return raw; }
  static Raw canonical(Raw raw) { return openaclnn::OPENACLNN_ISA::canonical(raw); }
};
struct F16 {
  static constexpr Element kElement = Element::f16;
  static constexpr int kAhead = 4096;
  using Raw = uint16_t;
  using Computed = float;
  static void widen(float* out, const Raw* in) { widen_f16(out, in, kBlock); }
  static void narrow(Raw* out, const float* in) { narrow_f16(out, in, kBlock); }
  static FloatRegister load(const Raw* in) { return register_from_f16(in); }
  static void store(Raw* out, FloatRegister a, FloatRegister b, const auto& put) {
    store_f16(out, a, b, put);
  }
  static float from(Raw raw) { return from_f16(raw); }
  static Raw canonical(Raw raw) { return (raw & 0x7fff) > 0x7c00 ? 0x7e00 : raw; }
};
struct Bf16 {
  static constexpr Element kElement = Element::bf16;
  static constexpr int kAhead = 4096;
  using Raw = uint16_t;
  using Computed = float;
  static void widen(float* out, const Raw* in) { widen_bf16(out, in, kBlock); }
  static void narrow(Raw* out, const float* in) { narrow_bf16(out, in, kBlock); }
  static FloatRegister load(const Raw* in) { return register_from_bf16(in); }
  static void store(Raw* out, FloatRegister a, FloatRegister b, const auto& put) {
    store_bf16(out, a, b, put);
  }
  static float from(Raw raw) { return from_bf16(raw); }
  static Raw canonical(Raw raw) { return (raw & 0x7fff) > 0x7f80 ? 0x7fc0 : raw; }
};

struct F64 : AsItIs<double> {  // for loops over blocks, not registers
  static constexpr Element kElement = Element::f64;
};

// Calls work(Type{}) with the type of an element that is not double.
template <class Work>
inline auto with_type(Element element, const Work& work) {
  return element == Element::f32   ? work(F32{})
         : element == Element::f16 ? work(F16{})
                                   : work(Bf16{});
}

// The values of K registers, or of a block.
template <class Type, int K = kBlockRegisters>
[[gnu::always_inline]] inline Registers<K> load_registers(const typename Type::Raw* in) {
  return each<FloatRegister, K>([&](int k) { return Type::load(in + k * kRegisterFloats); });
}

// Fetches the lines of the block that lies `bytes` further on, to L1 or only to L2.
enum class Cache { l1, l2 };
template <class Type, Cache to = Cache::l1>
inline void fetch_block(const typename Type::Raw* in, int64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(in) + static_cast<uintptr_t>(bytes);
  constexpr int kBytes = kBlock * sizeof(typename Type::Raw);
  for (int k = 0; k < kBytes; k += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(at + k), 0, to == Cache::l1 ? 3 : 2);
}

template <class Type>
using BlockOf = Block<typename Type::Computed>;

template <class Type>
inline BlockOf<Type> load_block(const typename Type::Raw* in) {
  BlockOf<Type> block;
  Type::widen(block.value, in);
  return block;
}

// Loads the first n > 0 values, and copies of the last one behind them.
template <class Type>
inline BlockOf<Type> load_part(const typename Type::Raw* in, int64_t n) {
  typename Type::Raw filled[kBlock];
  for (int64_t k = 0; k < kBlock; ++k) filled[k] = in[k < n ? k : n - 1];
  return load_block<Type>(filled);
}

// Stores the values of K registers. With `stream`, `out` must begin a cache line.
template <class Type, int K>
[[gnu::always_inline]] inline void store_registers(typename Type::Raw* out, const Registers<K>& y,
                                                   bool stream = false) {
  constexpr int kStep = __is_same(Type, F32) ? 1 : 2;  // registers that are stored together
  static_assert(K % kStep == 0);
  const auto store_by = [&](const auto& put) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int k = 0; k < K; k += kStep) {
      auto* const to = out + k * kRegisterFloats;
      if constexpr (kStep == 1) {
        put(to, y.r[k]);
      } else {
        Type::store(to, y.r[k], y.r[k + 1], put);
      }
    }
  };
  if (stream) {
    store_by([](auto* to, auto values) { stream_register(to, values); });
  } else {
    store_by([](auto* to, auto values) { store_register(to, values); });
  }
}

template <class Type>
inline void store_part(typename Type::Raw* out, const BlockOf<Type>& block, int64_t n) {
  typename Type::Raw raw[kBlock];
  Type::narrow(raw, block.value);
  std::memcpy(out, raw, static_cast<size_t>(n) * sizeof raw[0]);
}

// Calls work(Registers<K>, first, count) for all of n values; count is less than K registers hold
// only in the last call. K registers are `together` registers, and at least a block.
template <int together = kTogether, class Work>
[[gnu::always_inline]] inline void for_registers(int64_t n, const Work& work) {
  constexpr int kMost = kBlockRegisters > together ? kBlockRegisters : together;
  constexpr int64_t kMany = kMost * kRegisterFloats;
  int64_t i = 0;
  for (; i + kMany <= n; i += kMany) work(Registers<kMost>{}, i, kMany);
  if constexpr (kBlockRegisters < kMost) {
    for (; i + kBlock <= n; i += kBlock) work(Registers<kBlockRegisters>{}, i, kBlock);
  }
  for (; i < n; i += kRegisterFloats)
    work(Registers<1>{}, i, n - i < kRegisterFloats ? n - i : kRegisterFloats);
}

// Functions of their own, because every loop ends with them.
template <class Type>
[[gnu::noinline]] FloatRegister load_last(const typename Type::Raw* in, int64_t n,
                                          typename Type::Raw others) {
  typename Type::Raw part[kRegisterFloats];
  for (int64_t k = 0; k < kRegisterFloats; ++k) part[k] = k < n ? in[k] : others;
  return Type::load(part);
}
template <class Type>
[[gnu::noinline]] void narrow_last(typename Type::Raw* out, const float* values, int64_t n) {
  narrow(out, values, Type::kElement, n);
}

// Loads n values; `others` fills the rest of the register.
template <class Type, int K>
[[gnu::always_inline]] inline Registers<K> load_some(const typename Type::Raw* in, int64_t n,
                                                     typename Type::Raw others = 0) {
  if (K > 1 || n == kRegisterFloats) return load_registers<Type, K>(in);
  return {load_last<Type>(in, n, others)};
}

template <class Type, int K>
[[gnu::always_inline]] inline void store_some(typename Type::Raw* out, const Registers<K>& y,
                                              int64_t n, bool stream) {
  if constexpr (K > 1) {
    store_registers<Type>(out, y, stream);
  } else if (__is_same(Type, F32) && n == kRegisterFloats) {
    store_register(out, y.r[0]);
  } else {
    float part[kRegisterFloats];
    store_register(part, y.r[0]);
    narrow_last<Type>(out, part, n);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
