// SPDX-License-Identifier: Apache-2.0
// Loops over packed operands of one type, computed in float: blocks pass from memory
// through registers to memory, those of 16-bit values too. Tiles that are widened, computed and
// narrowed one after the other take longer: leaky_relu, fp16 in L2, 0.104 instead of 0.078 ns an
// element; fp32 past the cache, 32 Mi on one thread, 11.7 instead of 10.2 ms (a hand-written loop
// that stores each register: 10.2).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/kernels/block.h"
#include "core/kernels/elementwise/formula.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// How registers are loaded from inputs that have one type.
template <class Type>
struct Source {
  using Raw = typename Type::Raw;
  static void fetch(const Raw* in) { fetch_block<Type>(in, Type::kAhead); }
  template <int K>
  static Registers<K> registers(const Raw* in, int64_t n) {
    return load_some<Type, K>(in, n, in[n - 1]);
  }

  static void fetch(Same<Raw>) {}
  template <int K>
  static Registers<K> registers(Same<Raw> in, int64_t) {
    return all_of<Registers<K>>(Type::from(in.value));
  }
};

template <class F>
inline Block exact_block(const F& f, const auto&... in) {
  Block y;
  OPENACLNN_INDEPENDENT
  for (int k = 0; k < kBlock; ++k) y.value[k] = canonical(f(in.value[k]...));
  return y;
}

// The loop computes n values: whole blocks, then one that is filled up. It fetches ahead only past
// the cache; in the cache the processor does better by itself: leaky_relu, 1 Mi, 2 threads, with
// and without fetching 1 KiB ahead, fp32 0.105 and 0.065 ns, bf16 0.063 and 0.057.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] void run_blocks(const F f, Raw* out, int64_t n, bool stream,
                                                const In... in) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    if (stream) (fetch_block<Type>(in + i, Type::kAhead), ...);
    store_block<Type>(out + i, exact_block(f, load_block<Type>(in + i)...), stream);
  }
  if (i != n) store_part<Type>(out + i, exact_block(f, load_part<Type>(in + i, n - i)...), n - i);
}

// The loop computes n values register by register: make(registers…) computes one register, and
// look(Registers) sees some before they are stored. The compiler's loop over a block keeps inputs
// and results on the stack: an older logit took 0.49 instead of 0.42 ns an element in L1 (Zen 4).
// It also loads after each store, and a load waits for a store that lies a multiple of 4 KiB away:
// leaky_relu_backward, 1 Mi, 2 threads, with results one line further in their page than the
// inputs, took 100 us instead of 80. This loop loads four registers before it stores any: 85 us.
template <class Type, int together, class Raw = typename Type::Raw, class... In>
[[gnu::always_inline]] inline void each_register(const auto& make, const auto& look, Raw* out,
                                                 int64_t n, bool stream, const In... in) {
  for_registers<together>(n, [&]<int K>(Registers<K>, int64_t i, int64_t count) {
    for (int64_t k = 0; stream && k < count; k += kBlock) (Source<Type>::fetch(in + i + k), ...);
    const auto compute = [&](const auto&... x) {
      return each<FloatRegister, K>([&](int k) { return make(x.r[k]...); });
    };
    const Registers<K> y = compute(Source<Type>::template registers<K>(in + i, count)...);
    look(y);
    store_some<Type>(out + i, y, count, stream);
  });
}

// The loop leaves NaNs as they are and returns false if there may be one, which it finds out from
// the sum of all results. Making each NaN canonical would take a comparison. Zen 4 executes one
// comparison or product a cycle, while sums are free: leaky_relu in L1, ns an element, fp32
// 0.071 -> 0.045, fp16 0.091 -> 0.082, bf16 0.093 -> 0.079.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] bool run_registers_summed(const F f, Raw* out, int64_t n,
                                                          bool stream, const In... in) {
  FloatRegister total = {};
  const auto look = [&](const auto& y) {
    if constexpr (!has_one_nan<F>) total += sum_of(y);
  };
  each_register<Type, registers_together<F>>(f, look, out, n, stream, in...);
  return at_most(bits_of(magnitude(total)), bits_of(__builtin_inff()));
}

// Makes NaNs canonical where they lie.
template <class Type>
[[gnu::noinline]] void make_canonical(typename Type::Raw* out, int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) out[i] = Type::canonical(out[i]);
}

// Returns false if `quick` may be wrong for some value.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] bool run_registers_quick(const F f, Raw* out, int64_t n,
                                                         bool stream, const In... in) {
  Doubts<F> doubts;
  const auto make = [&](const auto&... x) {
    doubts.see(f, x...);
    return f.quick(x...);
  };
  const auto look = [&](const auto& y) { doubts.add(sum_of(y)); };
  each_register<Type, registers_together<F>>(make, look, out, n, stream, in...);
  return !doubts.any(f);
}

// Whether a formula has a form for registers: formulas with `quick` do, formulas in double do not.
template <class F, class... In>
inline constexpr bool in_registers = [] {
  const auto x = [](const auto&) { return FloatRegister{}; };
  return requires(const F& f, In... in) { f(x(in)...); };
}();

// Widens, computes and narrows tile by tile, as for strided operands: for results that registers
// cannot give. `out` must not be an input.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline]] void run_widened(const F& f, Raw* out, int64_t n, const In... in) {
  if constexpr (__is_same(Raw, float)) return run(f, out, n, in...);
  constexpr int64_t kSome = 256;
  alignas(64) float result[kSome], values[sizeof...(In)][kSome];
  for (int64_t i = 0; i < n; i += kSome) {
    const int64_t count = kSome < n - i ? kSome : n - i;
    auto* next = values;
    const auto widened = [&](const Raw* from) -> const float* {
      float* to = *next++;
      widen(to, from, Type::kElement, count);
      return to;
    };
    run(f, result, count, widened(in + i)...);
    narrow(out + i, result, Type::kElement, count);
  }
}

template <class F>
inline constexpr bool has_careful = requires(const F& f) { f.careful(); };

template <class F>
inline auto careful_form(const F& f) {
  if constexpr (has_careful<F>) {
    return f.careful();
  } else {
    return f;
  }
}

template <class F>
inline constexpr bool has_cheap_careful =
    requires { decltype(careful_form(std::declval<F>()))::cheap; };

// The number of elements that are computed again if `quick` may be wrong for one of them.
inline constexpr int64_t kGroup = 128;

// Computes group by group, and those for which `quick` may be wrong again: by the careful form, and
// by `general` where that may be wrong too. Returns their number. With `doubted`, the careful form
// computes all groups. `out` must not be an input.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline, gnu::flatten]] int64_t run_groups(const F f, Raw* out, int64_t n, bool stream,
                                                   bool doubted, const In... in) {
  const auto careful = careful_form(f);
  int64_t i = 0, again = 0;
  const auto right = [&](const auto& form, bool past) __attribute__((always_inline)) {
    Doubts<std::remove_cvref_t<decltype(form)>> doubts;
    const auto make = [&](const auto&... x) {
      doubts.see(form, x...);
      return form.quick(x...);
    };
    const auto look = [&](const auto& y) { doubts.add(sum_of(y)); };
    each_register<Type, registers_together<F>>(make, look, out + i, kGroup, past, in + i...);
    return !doubts.any(form);
  };
  for (; i + kGroup <= n; i += kGroup) {
    if (!doubted && right(f, stream)) continue;
    ++again;
    if (!has_careful<F> || !right(careful, doubted && stream))
      run_widened<Type>(careful, out + i, kGroup, in + i...);
  }
  if (i != n) run_widened<Type>(careful, out + i, n - i, in + i...);
  return again;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
