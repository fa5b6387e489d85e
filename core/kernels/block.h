// SPDX-License-Identifier: Apache-2.0
// Blocks of values move between memory, where they are fp32, fp16, bf16 or fp64, and registers or
// the stack, where they are float, or double for fp64.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/register_pack.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr int kBlock = 32;  // at least a cache line of the narrowest type

template <class T = float>
struct Block {
  alignas(64) T value[kBlock];
};

inline constexpr int kBlockRegisters = kBlock / kRegisterFloats;

// The values of K registers, or of a block.
template <class Type, int K = kBlockRegisters>
[[gnu::always_inline]] inline Registers<K> load_registers(const typename Type::Raw* in) {
  return map<FloatRegister, K>([&](int k) { return Type::load(in + k * kRegisterFloats); });
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
  widen(block.value, in, Type::kElement, kBlock);
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
  narrow(raw, block.value, Type::kElement, kBlock);
  std::memcpy(out, raw, static_cast<size_t>(n) * sizeof raw[0]);
}

// Calls work(Registers<K>, first, count) for all of n values; count is less than K registers hold
// only in the last call. K registers are `unroll` registers, and at least a block.
template <int unroll = kUnroll, class Work>
[[gnu::always_inline]] inline void for_registers(int64_t n, const Work& work) {
  constexpr int kMost = kBlockRegisters > unroll ? kBlockRegisters : unroll;
  constexpr int64_t kMany = kMost * kRegisterFloats;
  int64_t i = 0;
  for (; i + kMany <= n; i += kMany) work(Registers<kMost>{}, i, kMany);
  if constexpr (kBlockRegisters < kMost) {
    for (; i + kBlock <= n; i += kBlock) work(Registers<kBlockRegisters>{}, i, kBlock);
  }
  for (; i < n; i += kRegisterFloats)
    work(Registers<1>{}, i, n - i < kRegisterFloats ? n - i : kRegisterFloats);
}

// Not inlined: every loop ends with them.
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
