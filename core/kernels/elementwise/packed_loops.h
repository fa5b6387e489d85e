// SPDX-License-Identifier: Apache-2.0
// Loops over operands of one type whose elements lie side by side. Values pass from memory through
// registers to memory, those of 16 bits too. Tiles that are widened, computed and narrowed one
// after the other take 1.3 times as long (leaky_relu, fp16 in L2).
#pragma once

#include <cstdint>

#include "core/kernels/block.h"
#include "core/kernels/elementwise/formula.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// An input of a loop. If all its values are the same, `data` holds kRepeated of them, which a loop
// may load at once, and `advance` is 0.
inline constexpr int64_t kRepeated = kGroup;
template <class Raw>
struct Source {
  const Raw* data;
  int64_t advance = -1;  // a mask for the index
  const Raw* at(int64_t i) const { return data + (i & advance); }
  Source behind(int64_t i) const { return {at(i), advance}; }
};

// kAhead says how many bytes ahead a streaming pass fetches its inputs. leaky_relu, 64 Mi, 2
// threads, Zen 4, ms with 0, 512, 2048, 4096: fp32 12.4, 10.5, 10.8, 11.6, fp16 6.9, 6.1, 5.4, 5.2.
// On Zen 5 all operators take 0.97 of the time with 2048 that they take with 512.
template <class Type>
inline constexpr int kAhead = sizeof(typename Type::Raw) == 2 ? 4096 : 2048;
template <class Type, class... In>
inline void fetch_sources(int64_t i, const In&... in) {
  (fetch_block<Type>(in.at(i), kAhead<Type>), ...);
}

// The loop computes n values block by block, in float or double, for formulas that the compiler
// vectorises. It prefetches only with non-temporal stores; in the cache that takes 1.6 times as
// long (leaky_relu, fp32, 1 Mi, 2 threads).
template <class Type, class F, class... In>
[[gnu::noinline, gnu::flatten]] void run_blocks(const F f, typename Type::Raw* out, int64_t n,
                                                bool stream, const In... in) {
  using T = typename Type::Computed;
  constexpr bool typed = __is_same(T, typename Type::Raw);
  const auto compute = [&](T* y, const auto*... x) {
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kBlock; ++k) y[k] = canonical(f(x[k]...));
  };
  Block<T> y;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    if (stream) fetch_sources<Type>(i, in...);
    if constexpr (typed) {
      compute(stream ? y.value : out + i, in.at(i)...);
      if (stream) stream_lines(out + i, y.value, sizeof y);
    } else {
      compute(y.value, load_block<Type>(in.at(i)).value...);
      store_registers<Type>(out + i, load_registers<F32>(y.value), stream);
    }
  }
  if (i == n) return;
  compute(y.value, load_part<Type>(in.at(i), n - i).value...);
  store_part<Type>(out + i, y, n - i);
}

// The loop computes n values register by register: make(registers…) computes one register, and
// look(Registers) sees some before they are stored. The compiler's loop over a block keeps inputs
// and results on the stack. It also loads after each store, and a load waits for a store that lies
// a multiple of 4 KiB away. This loop loads four registers before it stores any: 85 instead of 100
// us (leaky_relu_backward, 1 Mi, 2 threads, results one line further in their page than inputs).
template <class Type, int unroll, class... In>
[[gnu::always_inline]] inline void each_register(const auto& make, const auto& look,
                                                 typename Type::Raw* out, int64_t n, bool stream,
                                                 const In&... in) {
  for_registers<unroll>(n, [&]<int K>(Registers<K>, int64_t i, int64_t count) {
    static_assert(K * kRegisterFloats <= kRepeated);
    for (int64_t k = 0; stream && k < count; k += kBlock) fetch_sources<Type>(i + k, in...);
    const auto compute = [&](const auto&... x) {
      return map<FloatRegister, K>([&](int k) { return make(x.r[k]...); });
    };
    const Registers<K> y = compute(load_some<Type, K>(in.at(i), count, in.at(i)[count - 1])...);
    look(y);
    store_some<Type>(out + i, y, count, stream);
  });
}

// The loop leaves NaNs as they are and returns false if there may be one, which it finds out from
// the sum of all results. Making each NaN canonical would take a comparison. Zen 4 executes one
// comparison or product a cycle, while sums are free: leaky_relu fp32 in L1, 0.071 -> 0.045 ns.
template <class Type, class F, class... In>
[[gnu::noinline, gnu::flatten]] bool run_registers_summed(const F f, typename Type::Raw* out,
                                                          int64_t n, bool stream, const In... in) {
  FloatRegister total = {};
  const auto look = [&](const auto& y) { total += sum_of(y); };
  each_register<Type, unroll_of<F>>(f, look, out, n, stream, in...);
  return at_most(bits_of(magnitude(total)), bits_of(__builtin_inff()));
}

// Makes NaNs canonical where they lie.
template <class Type>
[[gnu::noinline]] void make_canonical(typename Type::Raw* out, int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) out[i] = Type::canonical(out[i]);
}

// Returns false if `quick` may be wrong for some value.
template <class Type, class F, class... In>
[[gnu::noinline, gnu::flatten]] bool run_registers_quick(const F f, typename Type::Raw* out,
                                                         int64_t n, bool stream, const In... in) {
  Doubts<F> doubts;
  const auto make = [&](const auto&... x) {
    doubts.see(f, x...);
    return f.quick(x...);
  };
  const auto look = [&](const auto& y) { doubts.add(sum_of(y)); };
  each_register<Type, unroll_of<F>>(make, look, out, n, stream, in...);
  return !doubts.any(f);
}

// Computes at most kGroup results from inputs of any type. `out` must not be an input.
template <class Type, class F, class... In>
void run_group(const F& f, typename Type::Raw* out, int64_t n, const In... in) {
  alignas(64) float y[kGroup], values[sizeof...(In)][kGroup];
  auto* next = values;
  const auto widened = [&](const auto& from) -> const float* {
    float* const to = *next++;
    widen(to, from.data, Type::kElement, n);
    return to;
  };
  run_general(f, y, n, widened(in)...);
  narrow_last<Type>(out, y, n);
}

template <class F>
inline constexpr bool has_doubts = !__is_base_of(NoDoubts, F);
template <class F>
inline constexpr bool has_careful = requires(const F& f) { f.careful(); };

// Computes a group for which `quick` may be wrong. `out` must not be an input.
template <class Type, class F, class... In>
void compute_again(const F& f, typename Type::Raw* out, int64_t n, const In... in) {
  if constexpr (has_careful<F>) {
    const auto careful = f.careful();
    const bool right = run_registers_quick<Type>(careful, out, n, false, in...);
    if constexpr (has_doubts<decltype(careful)>) {
      if (!right) run_group<Type>(careful, out, n, in...);
    }
  } else {
    run_group<Type>(f, out, n, in...);
  }
}

inline constexpr int64_t kGroups = 16;  // that one call computes

// Returns the groups for which `quick` may be wrong: a bit for each. (A body shared with
// run_registers_quick takes 1.05 times as long there: elu_backward fp32, GCC 12, Zen 4.)
template <class Type, class F, class... In>
[[gnu::noinline, gnu::flatten]] uint32_t run_registers_marked(const F f, typename Type::Raw* out,
                                                              int64_t n, bool fetch,
                                                              const In... in) {
  uint32_t marks = 0, mark = 1;
  for (int64_t i = 0; i < n; i += kGroup, mark *= 2) {
    const int64_t count = smaller(kGroup, n - i);
    for (int64_t k = 0; fetch && k < count; k += kBlock) fetch_sources<Type>(i + k, in...);
    Doubts<F> doubts;
    const auto make = [&](const auto&... x) {
      doubts.see(f, x...);
      return f.quick(x...);
    };
    const auto look = [&](const auto& y) { doubts.add(sum_of(y)); };
    each_register<Type, unroll_of<F>>(make, look, out + i, count, false, in.behind(i)...);
    marks |= doubts.any(f) ? mark : 0;
  }
  return marks;
}

// Computes groups, and those for which `quick` may be wrong again: by the careful form, and by
// `general` where that may be wrong too. Returns their number. With `doubted`, the careful form
// computes all groups. `out` must not be an input. With `stream`, groups are stored when they are
// right, because storing them twice would read their lines from memory again; until then they are
// in `spare`. (0.1 % unusual values, 16 Mi, 2 threads: logit fp32 5.5 -> 4.4 ms.)
template <class Type, class F, class... In>
[[gnu::noinline]] int64_t run_groups(const F& f, typename Type::Raw* out, int64_t n, bool stream,
                                     bool doubted, typename Type::Raw* spare, const In... in) {
  int64_t again = 0;
  for (int64_t i = 0, count; i < n; i += count) {
    count = smaller(kGroups * kGroup, n - i);
    auto* const to = stream ? spare : out + i;
    for (int64_t k = 0; doubted && stream && k < count; k += kBlock)
      fetch_sources<Type>(i + k, in...);
    const uint32_t marks =
        doubted ? ~0u : run_registers_marked<Type>(f, to, count, stream, in.behind(i)...);
    for (int64_t k = 0; k < count; k += kGroup) {
      if ((marks >> (k / kGroup) & 1) == 0) continue;
      ++again;
      compute_again<Type>(f, to + k, smaller(kGroup, count - k), in.behind(i + k)...);
    }
    if (stream) stream_copy(out + i, spare, count * sizeof spare[0]);
  }
  return again;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
