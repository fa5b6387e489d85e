// SPDX-License-Identifier: Apache-2.0
// Runs a formula over packed operands of one type, computed in float: blocks pass from memory
// through registers to memory, those of 16-bit values too. Tiles that are widened, computed and
// narrowed one after the other take longer: leaky_relu, fp16 in L2, 0.104 instead of 0.078 ns an
// element; fp32 past the cache, 32 Mi on one thread, 11.7 instead of 10.2 ms (a hand-written loop
// that stores each register: 10.2).
#pragma once

#include <cstdint>
#include <cstring>

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

// L2 holds a tile together with its inputs. Shorter tiles, of 8 KiB, make the loop begin more
// often: logit_grad fp32, 1 Mi, takes 1.03 times as long.
inline constexpr int64_t kLongTile = 16384;

// The number of elements that `general` computes if `quick` may be wrong for one of them.
inline constexpr int64_t kGroup = 64;

// Calls work(first, count) for each tile of n values.
inline void each_tile(int64_t tile, int64_t n, const auto& work) {
  for (int64_t i = 0; i < n; i += tile) work(i, tile < n - i ? tile : n - i);
}

// Computes group by group; returns false if any group needed `general`.
template <class Type, class F, class Raw, class... In>
[[gnu::noinline]] bool run_groups(const F& f, Raw* out, int64_t n, const In... in) {
  const bool apart = ((out != in) && ...);  // if not, `general` still needs what `out` holds
  bool usual = true;
  Raw other[kGroup];
  each_tile(kGroup, n, [&](int64_t i, int64_t count) {
    Raw* const to = apart ? out + i : other;
    if (!run_registers_quick<Type>(f, to, count, false, in + i...)) {
      run_widened<Type>(f, to, count, in + i...);
      usual = false;
    }
    if (!apart) std::memcpy(out + i, other, count * sizeof(Raw));
  });
  return usual;
}

// A tile that has to be computed again costs twice, so the first ones are short: if they show that
// the data has special values, the long ones begin with the careful form. Every so many tiles, the
// quick form is tried again.
inline constexpr int64_t kFirstTile = 1024;
inline constexpr int kCarefulTiles = 15;

template <class F>
inline auto careful_form(const F& f) {
  if constexpr (requires { f.careful(); }) {
    return f.careful();
  } else {
    return f;
  }
}

// Computes whole tiles by the quick form while it is right for every element, then by the careful
// form. Where that one may be wrong too, tiles are computed group by group, until a tile has no
// group that needs `general`.
template <class Type, class F, class Raw, class... In>
void run_tiles(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  const auto careful = careful_form(f);
  constexpr bool has_careful = !__is_same(decltype(careful), const F);
  const bool apart = ((out != in) && ...);
  const int64_t longest = apart ? kLongTile : kTile<float>;
  int64_t tile = kFirstTile;
  int careful_tiles = 0;  // until the quick form is tried again
  bool by_groups = false;
  Raw other[kTile<float>];
  for (int64_t i = 0, count; i < n; i += count) {
    count = tile < n - i ? tile : n - i;
    Raw* const to = apart ? out + i : other;
    tile = 2 * tile < longest ? 2 * tile : longest;
    bool right =
        careful_tiles == 0 && run_registers_quick<Type>(f, to, count, stream && apart, in + i...);
    if (right) {
      by_groups = false;
    } else {
      const bool again = careful_tiles == 0;
      careful_tiles = again ? kCarefulTiles : careful_tiles - 1;
      if (careful_tiles == 0) tile = kFirstTile;
      if constexpr (has_careful) {
        right = !by_groups &&
                run_registers_quick<Type>(careful, to, count, stream && apart && !again, in + i...);
      }
      if (!right) by_groups = !run_groups<Type>(careful, out + i, count, in + i...);
    }
    if (right && !apart) std::memcpy(out + i, other, count * sizeof(Raw));
  }
}

template <class F>
struct OneNan {
  static constexpr bool one_nan = true;
  static constexpr int together = registers_together<F>;
  F form;
  template <class... V>
  auto operator()(V... x) const {
    return with_one_nan(form(x...));
  }
};

// Computes tiles by a formula that is right for every value but leaves NaNs of several kinds. After
// a tile with a NaN, the next tiles make each NaN canonical in registers.
template <class Type, class F, class Raw, class... In>
void run_tiles_summed(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  int64_t tile = kFirstTile;
  int careful_tiles = 0;  // until NaNs are looked for again
  for (int64_t i = 0, count; i < n; i += count) {
    count = tile < n - i ? tile : n - i;
    tile = 2 * tile < kLongTile ? 2 * tile : kLongTile;
    if (careful_tiles > 0) {
      (void)run_registers_summed<Type>(OneNan<F>{f}, out + i, count, stream, in + i...);
      if (--careful_tiles == 0) tile = kFirstTile;
      continue;
    }
    if (run_registers_summed<Type>(f, out + i, count, stream, in + i...)) continue;
    make_canonical<Type>(out + i, count);
    careful_tiles = kCarefulTiles;
  }
}

template <class Type, class F, class Raw, class... In>
void run_packed(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  if constexpr (requires { f.limit; }) {
    run_tiles<Type>(f, out, n, stream, in...);
  } else if constexpr (in_registers<F, In...>) {
    run_tiles_summed<Type>(f, out, n, stream, in...);
  } else {
    if constexpr (__is_same(Raw, float)) {
      if (!stream) return run(f, out, n, in...);  // straight from memory to memory
    }
    run_blocks<Type>(f, out, n, stream, in...);
  }
}

// The elements before the first cache line of `out` go first.
template <class Type, class F, int inputs, bool takes_same>
void apply_packed(const double* attributes, void* out, const PackedInput* in, int64_t n,
                  bool stream) {
  using Raw = typename Type::Raw;
  auto* to = static_cast<Raw*>(out);
  const int64_t before = (-reinterpret_cast<intptr_t>(out) & 63) / sizeof(Raw);
  const int64_t head = n >= kBlock ? before : 0;  // a whole block may be streamed
  const auto at = [=](int i) { return static_cast<const Raw*>(in[i].data); };
  visit_form<F>(attributes, [&](const auto& f) {
    const auto all = [&](const auto... from) {
      if (head != 0) run_packed<Type>(f, to, head, false, from...);
      run_packed<Type>(f, to + head, n - head, stream, (from + head)...);
    };
    if constexpr (takes_same) {
      if (in[0].same) return all(Same<Raw>{*at(0)}, at(1));
      if (in[1].same) return all(at(0), Same<Raw>{*at(1)});
    }
    if constexpr (inputs == 1) {
      all(at(0));
    } else {
      all(at(0), at(1));
    }
  });
}

// Whether a formula has `quick`, or forms that may have it.
template <class F>
inline constexpr bool may_doubt =
    requires(const F& f) { f.limit; } || requires(const F& f) { f.visit([](const auto&) {}); };

// An input that broadcasting repeats may be one value for all elements; it needs no tiles of
// copies.
template <template <class> class F, int inputs, bool takes_same>
constexpr FormulaEntry formula_entry() {
  static_assert(!takes_same || inputs == 2);
  return {apply<F<Half>, inputs>,
          apply<F<Single>, inputs>,
          apply<F<Double>, inputs>,
          {apply_packed<F32, F<Single>, inputs, takes_same>,
           apply_packed<F16, F<Half>, inputs, takes_same>,
           apply_packed<Bf16, F<Half>, inputs, takes_same>},
          takes_same,
          may_doubt<F<Single>> || may_doubt<F<Half>>};
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
