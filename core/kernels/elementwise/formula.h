// SPDX-License-Identifier: Apache-2.0
// A formula is one element-wise operator as arithmetic, in two strengths
// (docs/contribute/element_wise_kernels.md):
//
//     struct name {
//       explicit name(const double* attributes);         // in the order of its row; or none
//       double exact(double x) const;                    // right for every value and attribute
//       template <class V> V fast(V x) const;            // V = FloatRegister
//       Lanes needs_exact(FloatRegister x) const;        // where `fast` may be wrong
//     };
//
// with one argument for each input; no branches, no libm. A result of `fast` that is infinite or
// NaN counts as possibly wrong too, unless `static constexpr bool special_results = true` says that
// `fast` gives infinities, and the canonical NaN, where they are due. Every value takes the result
// that is right for it, so bits do not depend on its neighbours. DOUBLE tensors run `exact`.
//
// Without `fast`, `exact` computes everything. Without `exact`, `fast` is right for every value,
// of V = double too. A formula with several forms offers
//
//     template <class M> static void choose(const double* attributes, const auto& use);
//
// which calls use(form) with the form for these attributes. M is Half (float arithmetic for results
// of 16 bits: relative error below 2^-21), Single (at most 1 ulp) or Double.
//
// A product or quotient that is subnormal, or made of subnormal numbers, may take a processor a
// hundred cycles: `fast` avoids that where the result does not need it.
#pragma once

#include <cstdint>

#include "core/kernels/conditions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct Half {};
struct Single {};
struct Double {};

// An attribute, or a product of some, for which float arithmetic does: positive, and neither huge
// nor tiny.
inline bool usual(double x, double least) { return x >= least && x <= 0x1p60; }

// Registers that pass through `fast` together; a form may declare its own `unroll`.
template <class F>
inline constexpr int unroll_of = kUnroll;
template <class F>
  requires requires { F::unroll; }
inline constexpr int unroll_of<F> = F::unroll;

// One type for each input.
template <class F, class... In>
concept HasExact =
    requires(const F& f, const In&... in) { f.exact((static_cast<void>(in), 0.0)...); };
template <class F, class... In>
concept HasFast =
    requires(const F& f, const In&... in) { f.fast((static_cast<void>(in), FloatRegister{})...); };

// Whether `needs_exact` alone decides.
template <class F>
inline constexpr bool special_results_of = false;
template <class F>
  requires requires { F::special_results; }
inline constexpr bool special_results_of<F> = F::special_results;

template <class F, class... X>
[[gnu::always_inline]] inline Lanes needs_exact(const F& f, X... x) {
  if constexpr (requires { f.needs_exact(x...); }) {
    return f.needs_exact(x...);
  } else {
    return Lanes{};
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
