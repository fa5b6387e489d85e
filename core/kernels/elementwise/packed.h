// SPDX-License-Identifier: Apache-2.0
// Runs a form over contiguous operands of one type. `fast` computes pack after pack of registers
// until a value needs `exact`; then `exact` computes the next values in double, a tile of them,
// those for which `fast` is right keep its result, and `fast` goes on. Values of 16 bits are
// converted in registers: tiles that are widened, computed and narrowed one after the other
// take 1.3 times as long (leaky_relu, fp16 in L2).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/elementwise/call.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The least and the most values that `exact` computes at a time: twice as many as before where
// `fast` does not get on. elu takes 1.6 times its ordinary time with 0.1 % NaN and 9 times with 20
// %; with 128 values always, 2 and 9.3 times.
inline constexpr int64_t kLeastExactTile = 64, kExactTile = 256;

// An input of a loop. If all its values are the same, `data` holds kLeastExactTile of them, as many
// as a loop loads at once, and `advance` is 0.
template <class Raw>
struct Source {
  const Raw* data;
  int64_t advance = -1;  // a mask for the index
  const Raw* at(int64_t i) const { return data + (i & advance); }
  Source behind(int64_t i) const { return {at(i), advance}; }
};

// How many bytes ahead a streaming pass fetches its input, if it is the only one. leaky_relu, 64
// Mi, 2 threads, ms with 0, 512, 2048, 4096: Zen 4 fp32 12.4, 10.5, 10.8, 11.6,
// fp16 6.9, 6.1, 5.4, 5.2; on Zen 5 fp32 takes up to 1.1 of the time with 2048, and so does
// leaky_relu_backward, which has two inputs, with any distance.
inline constexpr int kAhead = 4096;
template <class Type, class... In>
[[gnu::always_inline]] inline void fetch_single_source(int64_t i, const In&... in) {
  if constexpr (sizeof...(In) == 1) (fetch_block<Type>(in.at(i), kAhead), ...);
}

// Right for every value, in double.
template <class F, class... X>
inline double exact_of(const F& f, X... x) {
  if constexpr (HasExact<F, X...>) {
    return f.exact(x...);
  } else {
    return f.fast(x...);
  }
}

// Loads four registers before it stores any: a load waits for a store that lies a multiple of 4 KiB
// away (leaky_relu_backward, 1 Mi, 2 threads, results one line further in their page than inputs:
// 85 instead of 100 us). Returns the number of values computed: n, or those before a pack in which
// a value needs `exact`.
template <class Type, class F, class... In>
[[gnu::noinline, gnu::flatten]] int64_t run_fast(const F f, typename Type::Raw* out, int64_t n,
                                                 bool stream, const In... in) {
  constexpr bool always_right = !HasExact<F, In...>;
  const auto compute_pack = [&]<int K>(Registers<K>, int64_t i, int64_t count) {
    for (int64_t k = 0; stream && k < count; k += kBlock) fetch_single_source<Type>(i + k, in...);
    Lanes needs = {};
    const auto compute = [&](const auto&... x) {
      return map<K>([&](int k) {
        needs |= needs_exact(f, x.r[k]...);
        return always_right ? canonical(f.fast(x.r[k]...)) : f.fast(x.r[k]...);
      });
    };
    const Registers<K> y = compute(load_some<Type, K>(in.at(i), count, in.at(i)[count - 1])...);
    // The sum of finite results may overflow: then they are computed again, with the same bits.
    if constexpr (!always_right && !special_results_of<F>) needs |= infinite_or_nan(sum_of(y));
    if (!always_right && any(needs)) return false;
    store_some<Type>(out + i, y, count, stream);
    return true;
  };
  constexpr int kRegisters = kBlockRegisters > unroll_of<F> ? kBlockRegisters : unroll_of<F>;
  constexpr int64_t kPack = kRegisters * kRegisterFloats;
  static_assert(kLeastExactTile % kPack == 0,
                "after a tile, non-temporal stores begin at a line again");
  int64_t i = 0;
  for (; i + kPack <= n; i += kPack) {
    if (!compute_pack(Registers<kRegisters>{}, i, kPack)) return i;
  }
  for (; i < n; i += kRegisterFloats) {
    if (!compute_pack(Registers<1>{}, i, smaller(kRegisterFloats, n - i))) return i;
  }
  return n;
}

// Computes n values, a multiple of kBlock, from inputs in float.
template <class F, class... X>
[[gnu::noinline, gnu::flatten]] void compute_exact(const F f, float* y, int64_t n, const X*... x) {
  for (int64_t i = 0; i < n; i += kBlock) {
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kBlock; ++k)
      y[i + k] = canonical(static_cast<float>(f.exact(static_cast<double>(x[i + k])...)));
  }
  if constexpr (HasFast<F, X...>) {
    for (int64_t i = 0; i < n; i += kRegisterFloats) {
      const FloatRegister fast = f.fast(load_register<FloatRegister>(x + i)...);
      Lanes needs = needs_exact(f, load_register<FloatRegister>(x + i)...);
      if constexpr (!special_results_of<F>) needs |= infinite_or_nan(fast);
      const auto exact = load_register<FloatRegister>(y + i);
      store_register(y + i, select(needs, exact, fast));
    }
  }
}

// Computes at most kExactTile values; `out` may be an input.
template <class Type, class F, class... In>
[[gnu::noinline]] void run_exact(const F& f, typename Type::Raw* out, int64_t n, bool stream,
                                 const In... in) {
  constexpr int64_t kBytes = sizeof(typename Type::Raw);
  alignas(64) float y[kExactTile], values[sizeof...(In)][kExactTile];
  const int64_t whole = (n + kBlock - 1) / kBlock * kBlock;
  float* next = values[0];
  const auto widened = [&](const auto& from) -> const float* {
    float* const to = next;
    next += kExactTile;
    const int64_t given = from.advance == 0 ? 1 : n;
    widen(to, from.data, Type::kElement, given);
    for (int64_t i = given; i < whole; ++i) to[i] = to[given - 1];
    return to;
  };
  compute_exact(f, y, whole, widened(in)...);
  alignas(64) typename Type::Raw raw[kExactTile];
  narrow(raw, y, Type::kElement, n);
  if (stream) return stream_copy(out, raw, n * kBytes);
  std::memcpy(out, raw, static_cast<size_t>(n * kBytes));
}

// DOUBLE. Copies of the last value fill the last block.
template <class F, class... In>
[[gnu::noinline, gnu::flatten]] void run_double(const F f, double* out, int64_t n, bool stream,
                                                const In... in) {
  struct alignas(64) Block {
    double value[kBlock];
  };
  const auto compute = [&](double* y, const auto*... x) {
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kBlock; ++k) y[k] = canonical(exact_of(f, x[k]...));
  };
  Block y;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    if (stream) fetch_single_source<F64>(i, in...);
    compute(stream ? y.value : out + i, in.at(i)...);
    if (stream) stream_lines(out + i, y.value, sizeof y);
  }
  if (i == n) return;
  const auto last = [&](const auto& from) {
    Block x;
    for (int64_t k = 0; k < kBlock; ++k) x.value[k] = from.at(i)[smaller(k, n - i - 1)];
    return x;
  };
  compute(y.value, last(in).value...);
  std::memcpy(out + i, y.value, static_cast<size_t>(n - i) * sizeof(double));
}

template <class Type, class F, class... In>
void run_tiles(const F& f, typename Type::Raw* out, int64_t n, bool stream, const In... in) {
  if constexpr (__is_same(Type, F64)) {
    run_double(f, out, n, stream, in...);
  } else {
    int64_t tile = kLeastExactTile;
    for (int64_t i = 0; i < n;) {
      int64_t done = 0;
      if constexpr (HasFast<F, In...>)
        done = run_fast<Type>(f, out + i, n - i, stream, in.behind(i)...);
      i += done;
      if constexpr (HasExact<F, In...>) {
        tile = done == 0 ? smaller(2 * tile, kExactTile) : kLeastExactTile;
        const int64_t count = smaller(tile, n - i);
        if (count > 0) run_exact<Type>(f, out + i, count, stream, in.behind(i)...);
        i += count;
      }
    }
  }
}

// A store that crosses the end of a cache line takes two cycles, and parts of registers at both
// ends of a row 40 ns: rows of this size or more begin at a line. (256 rows of 256 fp32 values, 16
// bytes behind a line, would take 20 us instead of 9.)
inline constexpr int64_t kLongBytes = 8192;

// A PackedLoop. In long rows the elements before the first whole cache line of `out` are computed
// first; non-temporal stores write whole lines.
template <class Type, class Form, int inputs>
void run_packed(const void* form, void* out, const PackedInput* in, int64_t n, bool stream) {
  static_assert(inputs <= kMaxInputs);
  using Raw = typename Type::Raw;
  const Form& f = *static_cast<const Form*>(form);
  auto* const to = static_cast<Raw*>(out);
  const int64_t before = (-reinterpret_cast<intptr_t>(out) & 63) / sizeof(Raw);
  const bool align = (stream && n >= kBlock) || n * int64_t{sizeof(Raw)} >= kLongBytes;
  const int64_t head = align ? before : 0;
  alignas(64) Raw repeated[inputs][kLeastExactTile];
  const auto source = [&](int i) -> Source<Raw> {
    const auto* const data = static_cast<const Raw*>(in[i].data);
    if (!in[i].same) return {data};
    for (Raw& value : repeated[i]) value = *data;
    return {repeated[i], 0};
  };
  const auto run = [&](const auto... from) {
    if (head != 0) run_tiles<Type>(f, to, head, false, from...);
    run_tiles<Type>(f, to + head, n - head, stream, from.behind(head)...);
  };
  if constexpr (inputs == 1) {
    run(source(0));
  } else {
    run(source(0), source(1));
  }
}

template <class M, class F, int inputs, class... Types>
void choose_form_of(const double* attributes, Element type, ChosenForm& to) {
  const auto use = [&]<class Form>(const Form& form) {
    static_assert(sizeof form <= sizeof to.form && alignof(Form) <= 16 &&
                  __is_trivially_copyable(Form));
    std::memcpy(to.form, &form, sizeof form);
    ((type == Types::kElement ? void(to.loop = run_packed<Types, Form, inputs>) : void()), ...);
  };
  if constexpr (requires { F::template choose<M>(attributes, use); }) {
    F::template choose<M>(attributes, use);
  } else if constexpr (requires { F(attributes); }) {
    use(F(attributes));
  } else {
    use(F{});
  }
}

// A ChooseForm.
template <class F, int inputs>
void choose_form(const double* attributes, Element type, ChosenForm& to) {
  switch (type) {
    case Element::f32: return choose_form_of<Single, F, inputs, F32>(attributes, type, to);
    case Element::f64: return choose_form_of<Double, F, inputs, F64>(attributes, type, to);
    default: return choose_form_of<Half, F, inputs, F16, Bf16>(attributes, type, to);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
