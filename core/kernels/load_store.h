// SPDX-License-Identifier: Apache-2.0
// Values move between memory, where they are fp32, fp16, bf16 or fp64, and registers or arrays,
// where they are float, or double for fp64.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/half.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline int64_t bytes_of(Element element) {
  return element == Element::f64 ? 8 : element == Element::f32 ? 4 : 2;
}
inline void* element_at(void* data, Element element, int64_t index) {
  return static_cast<char*>(data) + index * bytes_of(element);
}

// The types of elements are structs; those of 16 bits are in half.h.
struct F32 {
  static constexpr Element kElement = Element::f32;
  using Raw = float;
  static FloatRegister load(const Raw* in) { return load_register<FloatRegister>(in); }
  static float from(Raw raw) { return raw; }
  static Raw rounded(double x) { return static_cast<float>(x); }
};
struct F64 {  // for loops over blocks, not registers
  static constexpr Element kElement = Element::f64;
  using Raw = double;
};

// Calls work(Type{}) with the type of an element that is not double.
inline auto with_type(Element element, const auto& work) {
  return element == Element::f32   ? work(F32{})
         : element == Element::f16 ? work(F16{})
                                   : work(Bf16{});
}

// Converts n contiguous values of any element type to the compute type; a DOUBLE input makes that
// double.
template <class T>
[[gnu::noinline, gnu::flatten]] void widen(T* out, const void* in, Element element, int64_t n) {
  if (bytes_of(element) == sizeof(T)) return void(std::memcpy(out, in, n * sizeof(T)));
  with_type(element, [=]<class Type>(Type) {
    const auto* const from = static_cast<const typename Type::Raw*>(in);
    if constexpr (__is_same(T, float) && !__is_same(Type, F32)) {
      widen<Type>(out, from, n);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = Type::from(from[i]);
    }
  });
}

// … and back, rounding once.
template <class T>
[[gnu::noinline, gnu::flatten]] void narrow(void* out, const T* in, Element element, int64_t n) {
  if (bytes_of(element) == sizeof(T)) return void(std::memcpy(out, in, n * sizeof(T)));
  if (element == Element::f64) {
    for (int64_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = in[i];
    return;
  }
  with_type(element, [=]<class Type>(Type) {
    auto* const to = static_cast<typename Type::Raw*>(out);
    if constexpr (__is_same(T, float) && !__is_same(Type, F32)) {
      narrow<Type>(to, in, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = Type::rounded(in[i]);
    }
  });
}

// ---- registers ----

inline constexpr int kBlock = 32;  // at least a cache line of the narrowest type

inline constexpr int kBlockRegisters = kBlock / kRegisterFloats;

// The values of K registers, or of a block.
template <class Type, int K = kBlockRegisters>
[[gnu::always_inline]] inline Registers<K> load_registers(const typename Type::Raw* in) {
  return map<K>([&](int k) { return Type::load(in + k * kRegisterFloats); });
}

// Fetches the lines of the block that lies `bytes` further on, to L1 or only to L2. (Always
// inlined, as all functions that only fetch: GCC drops calls of functions without an effect that it
// sees.)
enum class Cache { l1, l2 };
template <class Type, Cache to = Cache::l1>
[[gnu::always_inline]] inline void fetch_block(const typename Type::Raw* in, int64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(in) + static_cast<uintptr_t>(bytes);
  constexpr int kBytes = kBlock * sizeof(typename Type::Raw);
  for (int k = 0; k < kBytes; k += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(at + k), 0, to == Cache::l1 ? 3 : 2);
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

// Calls work(Registers<K>, first, count) for all of n values: for kUnroll registers at a time, then
// for a block, then for one, of which the last may have fewer values.
[[gnu::always_inline]] inline void for_registers(int64_t n, const auto& work) {
  constexpr int kMost = kBlockRegisters > kUnroll ? kBlockRegisters : kUnroll;
  int64_t i = 0;
  for (; i + kMost * kRegisterFloats <= n; i += kMost * kRegisterFloats)
    work(Registers<kMost>{}, i, kMost * kRegisterFloats);
  if constexpr (kBlockRegisters < kMost) {
    for (; i + kBlock <= n; i += kBlock) work(Registers<kBlockRegisters>{}, i, kBlock);
  }
  for (; i < n; i += kRegisterFloats)
    work(Registers<1>{}, i, n - i < kRegisterFloats ? n - i : kRegisterFloats);
}

// Not inlined: every loop ends with it.
template <class Type>
[[gnu::noinline]] FloatRegister load_last(const typename Type::Raw* in, int64_t n,
                                          typename Type::Raw others) {
  typename Type::Raw part[kRegisterFloats];
  for (int64_t k = 0; k < kRegisterFloats; ++k) part[k] = k < n ? in[k] : others;
  return Type::load(part);
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
    narrow(out, part, Type::kElement, n);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
