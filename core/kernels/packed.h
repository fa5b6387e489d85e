// SPDX-License-Identifier: Apache-2.0
// A formula over packed operands of one type that is computed in float: blocks go from memory
// through registers to memory, 16-bit values too. leaky_relu against tiles that are widened,
// computed and narrowed one after the other: fp16 in L2 0.104 -> 0.078 ns an element; fp32 past the
// cache 11.7 -> 10.2 ms for 32 Mi on one thread (a loop that stores each register: 10.2).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/formula.h"
#include "core/kernels/half.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr int kBlock = 32;  // at least a cache line of the narrowest type

struct Block {
  alignas(64) float value[kBlock];
};

// kAhead: how many bytes ahead of a streaming pass inputs are fetched. leaky_relu, 64 Mi, 2
// threads, ms with 0, 512, 1024, 2048, 4096: fp32 12.4, 10.5, 10.7, 10.8, 11.6 (a loop without
// conversion and driver: 10.3), fp16 6.9, 6.1, 6.0, 5.4, 5.2 (5.0), bf16 7.0, 6.0, 5.7, 5.9, 5.3
// (5.0).
struct F32 {
  static constexpr int kAhead = 512;
  using Raw = float;
  static void widen(float* out, const Raw* in) {
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kBlock; ++k) out[k] = in[k];
  }
  static void narrow(Raw* out, const float* in) {
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kBlock; ++k) out[k] = in[k];
  }
};
struct F16 {
  static constexpr int kAhead = 4096;
  using Raw = uint16_t;
  static void widen(float* out, const Raw* in) { widen_f16(out, in, kBlock); }
  static void narrow(Raw* out, const float* in) { narrow_f16(out, in, kBlock); }
};
struct Bf16 {
  static constexpr int kAhead = 4096;
  using Raw = uint16_t;
  static void widen(float* out, const Raw* in) { widen_bf16(out, in, kBlock); }
  static void narrow(Raw* out, const float* in) { narrow_bf16(out, in, kBlock); }
};

// In the cache a distance of 1 KiB serves all types: elu_backward, fp16, 1 Mi: 0.129 -> 0.117 ns.
template <class Type>
inline void fetch_ahead(const typename Type::Raw* in, bool stream) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(in) + (stream ? Type::kAhead : 1024);
  constexpr int kBytes = kBlock * sizeof(typename Type::Raw);
  for (int k = 0; k < kBytes; k += 64) __builtin_prefetch(reinterpret_cast<const char*>(at + k));
}

template <class Type>
inline Block load_block(const typename Type::Raw* in) {
  Block block;
  Type::widen(block.value, in);
  return block;
}

// `stream` needs `out` at a cache line.
template <class Type>
inline void store_block(typename Type::Raw* out, const Block& block, bool stream) {
  if (!stream) return Type::narrow(out, block.value);
  alignas(64) typename Type::Raw raw[kBlock];
  Type::narrow(raw, block.value);
  stream_lines(out, raw, sizeof raw);
}

template <class F>
inline Block exact_block(const F& f, const auto&... in) {
  Block y;
  OPENACLNN_INDEPENDENT
  for (int k = 0; k < kBlock; ++k) y.value[k] = canonical(f(in.value[k]...));
  return y;
}

// What asks for `general`, lane by lane.
struct Worst {
  alignas(64) uint32_t size[kBlock], unusual[kBlock];
  bool beyond(uint32_t limit) const {
    uint32_t largest = 0, worst = 0;
    for (int k = 0; k < kBlock; ++k) {
      largest = largest > size[k] ? largest : size[k];
      worst = worst > unusual[k] ? worst : unusual[k];
    }
    return largest >= kInfinity || worst > limit;
  }
};

template <class F>
inline Block quick_block(const F& f, Worst& worst, const auto&... in) {
  Block y;
  OPENACLNN_INDEPENDENT
  for (int k = 0; k < kBlock; ++k) {
    y.value[k] = f.quick(in.value[k]...);
    const uint32_t size = size_of<F>(y.value[k]), unusual = f.unusual(in.value[k]...);
    worst.size[k] = worst.size[k] > size ? worst.size[k] : size;
    worst.unusual[k] = worst.unusual[k] > unusual ? worst.unusual[k] : unusual;
  }
  return y;
}

template <class F>
inline Block general_block(const F& f, const auto&... in) {
  Block y;
  for (int k = 0; k < kBlock; ++k) y.value[k] = canonical(f.general(in.value[k]...));
  OPENACLNN_INDEPENDENT
  for (int k = 0; k < kBlock; ++k)
    y.value[k] = choose(f, f.quick(in.value[k]...), y.value[k], in.value[k]...);
  return y;
}

// n values, whole blocks and one that is filled up with the last value; make(blocks…) computes one.
template <class Type, class Raw = typename Type::Raw, class... In>
inline void each_block(const auto& make, Raw* out, int64_t n, bool stream, const In*... in) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    (fetch_ahead<Type>(in + i, stream), ...);
    store_block<Type>(out + i, make(load_block<Type>(in + i)...), stream);
  }
  if (i == n) return;
  const auto part = [&](const Raw* from) {
    Raw filled[kBlock];
    for (int64_t k = 0; k < kBlock; ++k) filled[k] = from[k < n - i ? i + k : n - 1];
    return load_block<Type>(filled);
  };
  Raw last[kBlock];
  store_block<Type>(last, make(part(in)...), false);
  std::memcpy(out + i, last, (n - i) * sizeof(Raw));
}

template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] void run_packed_exact(const F f, Raw* out, int64_t n, bool stream,
                                                      const In*... in) {
  each_block<Type>([&](const auto&... x) { return exact_block(f, x...); }, out, n, stream, in...);
}

// Of a tile, so that one element costs the others of its tile no more than `general`.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] bool run_packed_quick(const F f, Raw* out, int64_t n, bool stream,
                                                      const In*... in) {
  Worst worst = {};
  each_block<Type>([&](const auto&... x) { return quick_block(f, worst, x...); }, out, n, stream,
                   in...);
  return !worst.beyond(f.limit);
}

template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] void run_packed_general(const F f, Raw* out, int64_t n,
                                                        const In*... in) {
  each_block<Type>([&](const auto&... x) { return general_block(f, x...); }, out, n, false, in...);
}

template <class Type, class F, class Raw, class... In>
void run_packed(const F& f, Raw* out, int64_t n, bool stream, const In*... in) {
  constexpr bool quick = requires { f.limit; };
  constexpr int64_t kTile = kTileBytes / sizeof(float);
  const bool apart = ((out != in) && ...);  // if not, `general` still needs what `out` holds
  const auto pass = [&](Raw* to, int64_t count, bool past, const In*... from) {
    if constexpr (quick) {
      if (!run_packed_quick<Type>(f, to, count, past, from...))
        run_packed_general<Type>(f, to, count, from...);
    } else {
      run_packed_exact<Type>(f, to, count, past, from...);
    }
  };
  // Floats need no conversion: unless they stream, straight from memory to memory, but for one
  // input and much work, where fetching ahead pays (logit, 1 Mi: 0.267 -> 0.222 ns; logit_grad:
  // 0.205 -> 0.226).
  if constexpr (__is_same(Raw, float) && !(quick && sizeof...(In) == 1)) {
    const int64_t step = quick ? kTile : n;
    for (int64_t i = 0; !stream && i < n; i += step)
      run(f, out + i, step < n - i ? step : n - i, in + i...);
    if (!stream) return;
  }
  if constexpr (!quick) return pass(out, n, stream, in...);
  Raw other[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = kTile < n - i ? kTile : n - i;
    pass(apart ? out + i : other, count, apart && stream, in + i...);
    if (!apart) std::memcpy(out + i, other, count * sizeof(Raw));
  }
}

// The elements before the first cache line of `out` go first.
template <class Type, class F, int inputs>
void apply_packed(const double* attributes, void* out, const void* const* in, int64_t n,
                  bool stream) {
  using Raw = typename Type::Raw;
  auto* to = static_cast<Raw*>(out);
  const int64_t before = (-reinterpret_cast<intptr_t>(out) & 63) / sizeof(Raw);
  const int64_t head = n > kBlock ? before : 0;
  visit_form<F>(attributes, [&](const auto& f) {
    const auto pass = [&](int64_t from, int64_t count, bool past) {
      const auto* x = static_cast<const Raw*>(in[0]) + from;
      if constexpr (inputs == 1) {
        run_packed<Type>(f, to + from, count, past, x);
      } else {
        run_packed<Type>(f, to + from, count, past, x, static_cast<const Raw*>(in[1]) + from);
      }
    };
    if (head != 0) pass(0, head, false);
    pass(head, n - head, stream);
  });
}

template <template <class> class F, int inputs>
constexpr FormulaEntry formula_entry() {
  Formula<double> f64 =
      nullptr;  // a formula whose T is float all the same has no DOUBLE in its row
  if constexpr (sizeof(typename F<Double>::T) == sizeof(double)) f64 = apply<F<Double>, inputs>;
  return {apply<F<Half>, inputs>,
          apply<F<Single>, inputs>,
          f64,
          {apply_packed<F32, F<Single>, inputs>, apply_packed<F16, F<Half>, inputs>,
           apply_packed<Bf16, F<Half>, inputs>}};
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
