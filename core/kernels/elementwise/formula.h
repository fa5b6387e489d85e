// SPDX-License-Identifier: Apache-2.0
// From a formula to a loop over a tile. A formula is
//
//     template <class M>
//     struct name {
//       using T = typename M::T;
//       explicit name(const double* attributes);  // in the order of the row, if it has any
//       T operator()(T x) const;                  // one T for each input; no branches, no libm
//     };
//
// M says how exact the arithmetic has to be. The loops make NaNs canonical, unless the formula has
// `static constexpr bool one_nan` and does so itself where it costs least. A formula with several
// forms offers `visit(loop)`, which calls loop(form) with the form that suits its attributes.
//
// A formula that needs no double is a template, `V operator()(V x)`. Packed operands then pass
// through it in registers (registers.h), four at a time or `static constexpr int together`. In
// registers a NaN may be any NaN that ends in 16 zero bits, which to_bf16 (half.h) requires: a
// canonical one, or that of an input.
//
// A form that is right for nearly all values, but not for all, offers
//
//       V quick(V x) const;             // the result, or a wrong number
//       auto unusual(V x) const;        // words above `limit` where quick(x) may be wrong …
//       static constexpr bool finite;   // … which it may also be at NaN and infinity, if false
//       float general(float x) const;   // the result for every x
//
// Where one element of a tile, or of a group of packed values (packed_loops.h), may be wrong,
// `general` runs for all of them; each element then takes the result that is right for it. A form
// may also offer `careful()`, which returns a form with the same members. The `quick` of that form
// takes a few steps more, has the same bits where this one is right, makes NaNs canonical, and
// leaves few values to `general`, or none (NoDoubts). It runs over data with special values, such
// as 0, infinities and NaN.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/bits.h"
#include "core/kernels/elementwise/call.h"
#include "core/kernels/several.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct Half {  // in float, to be rounded to 16 bits: relative error below 2^-21
  using T = float;
};
struct Single {  // in float, at most 1 ulp
  using T = float;
};
struct Double {
  using T = double;
};

template <class F>
inline constexpr bool has_one_nan = requires { F::one_nan; };

template <class F>
inline constexpr int registers_together = kTogether;
template <class F>
  requires requires { F::together; }
inline constexpr int registers_together<F> = F::together;

// The members of a form whose `quick` is right for every value.
struct NoDoubts {
  static constexpr bool finite = true;
  static constexpr uint32_t limit = 0;
  static auto unusual(auto x, auto...) { return bits_of(x) & 0u; }
};

// This loop and run_quick are functions of their own, so that tools/check_kernels.py can see that
// they vectorise.
template <class F, class T, class... Inputs>
[[gnu::noinline, gnu::flatten]] void run_exact(const F f, T* out, int64_t n, const Inputs... in) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T y = f(in[i]...);
    out[i] = has_one_nan<F> ? y : canonical(y);
  }
}

// Stands for an array whose elements all have one value.
template <class T>
struct Same {
  T value;
  Same operator+(int64_t) const { return *this; }
};

// Is not 0 where a result is NaN or infinite, if `quick` may be wrong there.
template <class F, class V>
inline auto not_finite(V quick) {
  return F::finite ? decltype(bits_of(quick)){} : bits_of(quick - quick);
}

// Selects the result of one element from those of `quick` and `general`.
template <class F>
inline float choose(const F& f, float quick, float general, auto... in) {
  const bool usual = all(not_finite<F>(quick) == 0, f.unusual(in...) <= f.limit);
  return usual ? quick : general;
}

// Collects whether `quick` may be wrong for any of the values it has seen. A sum is finite only if
// all its terms are. If finite terms overflow, the answer is yes, which costs time and no digits.
template <class F>
struct Doubts {
  FloatRegister sum = {};
  WordRegister worst = {};
  void see(const F& f, const auto&... x) { worst = larger(worst, f.unusual(x...)); }
  void add(FloatRegister y) {
    if constexpr (!F::finite) sum += y;
  }
  bool any(const F& f) const { return !at_most(not_finite<F>(sum), 0) || !at_most(worst, f.limit); }
};

// The loop is written in registers, because the compiler makes a loop over a table slow: strided
// logit takes 4.6 ns an element with AVX-512 in the compiler's loop and 0.6 in this one.
template <class F>
[[gnu::always_inline]] inline bool quick_results(const F& f, float* __restrict out, int64_t n,
                                                 const auto*... in) {
  Doubts<F> doubts;
  const auto compute = [&](float* to, const auto*... from) {
    const auto make = [&](const auto&... x) {
      const FloatRegister y = f.quick(x...);
      doubts.see(f, x...);
      doubts.add(y);
      store_register(to, y);
    };
    make(load_register<FloatRegister>(from)...);
  };
  int64_t i = 0;
  for (; i + kRegisterFloats <= n; i += kRegisterFloats) compute(out + i, (in + i)...);
  if (i == n) return doubts.any(f);
  float values[sizeof...(in) + 1][kRegisterFloats];
  auto* next = values;
  const auto filled = [&](const float* from) -> const float* {
    float* const to = *++next;
    for (int64_t k = 0; k < kRegisterFloats; ++k) to[k] = from[i + k < n ? i + k : n - 1];
    return to;
  };
  compute(values[0], filled(in)...);
  std::memcpy(out + i, values[0], (n - i) * sizeof(float));
  return doubts.any(f);
}

template <class F, class... Inputs>
[[gnu::noinline, gnu::flatten]] void run_quick(const F f, float* out, int64_t n,
                                               const Inputs... in) {
  alignas(64) float other[kTile<float>];
  const bool apart = ((out != in) && ...);  // if not, `general` still needs what `out` holds
  float* const quick = apart ? out : other;
  if (apart ? quick_results(f, out, n, in...) : quick_results(f, other, n, in...)) {
    if constexpr (requires { f.careful(); }) return run_quick(f.careful(), out, n, in...);
    alignas(64) float general[kTile<float>];
    for (int64_t i = 0; i < n; ++i) general[i] = canonical(f.general(in[i]...));
    OPENACLNN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = choose(f, quick[i], general[i], in[i]...);
  } else if (!apart) {
    std::memcpy(out, quick, n * sizeof(float));
  }
}

template <class F, class T, class... Inputs>
void run(const F& f, T* out, int64_t n, const Inputs... in) {
  if constexpr (requires { f.limit; }) {
    run_quick(f, out, n, in...);
  } else {
    run_exact(f, out, n, in...);
  }
}

template <class F>
inline F make(const double* attributes) {
  if constexpr (requires { F(attributes); }) {
    return F(attributes);
  } else {
    return F{};
  }
}

// Calls loop(form) with the form that the attributes ask for.
template <class F, class Loop>
inline void visit_form(const double* attributes, const Loop& loop) {
  const F f = make<F>(attributes);
  if constexpr (requires { f.visit(loop); }) {
    f.visit(loop);
  } else {
    loop(f);
  }
}

template <class F, int inputs, class T = typename F::T>
void apply(const double* attributes, T* out, const T* const* in, int64_t n) {
  visit_form<F>(attributes, [=](const auto& form) {
    if constexpr (inputs == 1) {
      run(form, out, n, in[0]);
    } else {
      run(form, out, n, in[0], in[1]);
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
