// SPDX-License-Identifier: Apache-2.0
// What a formula is; packed.h has the loops in registers and the ways to them. A formula is
//
//     template <class M>
//     struct name {
//       using T = typename M::T;
//       explicit name(const double* attributes);  // in the order of the row, if it has any
//       T operator()(T x) const;                  // one T for each input; no branches, no libm
//     };
//
// Its NaNs are made canonical by the loops, unless it says `static constexpr bool one_nan`: then it
// does so where it costs least. M says how exact its arithmetic has to be. A formula that has
// several forms offers `visit(loop)`, which calls loop(form) with the one its attributes ask for.
// One that needs no double is a template, `V operator()(V x)`, which packed operands go through in
// registers (registers.h); there NaNs may come out as they are, made canonical or those of an
// input, for to_bf16 (half.h) wants 16 zeros at their end. A form that is right for nearly all
// values only offers
//
//       V quick(V x) const;             // the result, or anything
//       auto unusual(V x) const;        // words above `limit` where quick(x) may be wrong …
//       static constexpr bool finite;   // … and if this is false also where it is NaN or infinite
//       float general(float x) const;   // the result for every x
//
// and `general` runs for whole tiles in which one element asks for it; whose result is taken is
// each element's own affair.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/bits.h"
#include "core/kernels/kernels.h"
#include "core/kernels/registers.h"

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

// A function of its own, where tools/check_kernels.py sees that it vectorises.
template <class F, class T, class... Inputs>
[[gnu::noinline, gnu::flatten]] void run_exact(const F f, T* out, int64_t n, const Inputs... in) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T y = f(in[i]...);
    out[i] = has_one_nan<F> ? y : canonical(y);
  }
}

// One value in the place of many.
template <class T>
struct Same {
  T value;
  Same operator+(int64_t) const { return *this; }
};

// Not 0 where a result is NaN or infinite, if only finite ones are right as they are.
template <class F, class V>
inline auto not_finite(V quick) {
  return F::finite ? decltype(bits_of(quick)){} : bits_of(quick - quick);
}

// The result for one element whose `quick` and `general` are there.
template <class F>
inline float choose(const F& f, float quick, float general, auto... in) {
  const bool usual = all(not_finite<F>(quick) == 0, f.unusual(in...) <= f.limit);
  return usual ? quick : general;
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

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
