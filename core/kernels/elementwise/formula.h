// SPDX-License-Identifier: Apache-2.0
// A formula is
//
//     template <class M>
//     struct name {
//       using T = typename M::T;
//       explicit name(const double* attributes);  // in the order of its row; omitted without any
//       T operator()(T x) const;                  // one T for each input; no branches, no libm
//     };
//
// M (Half, Single or Double, below) states the required accuracy. The loops replace every NaN by
// the canonical one. A formula with several forms offers `visit(loop)`, which calls
// loop(form) with the form that suits its attributes. Phase 1 does this once, for a plan.
//
// If a formula needs no double, its call operator is a template, `V operator()(V x)`. Values then
// pass through it in registers (registers.h): four at a time, or `static constexpr int unroll` of
// them. There a NaN must end in 16 zero bits, because Bf16::to (half.h) requires it; the canonical
// NaN and NaNs taken from an input do.
//
// A form that is right for nearly all values offers
//
//       V quick(V x) const;             // the result, which may be wrong for some x
//       auto unusual(V x) const;        // a word: quick(x) may be wrong if it exceeds `limit`
//       uint32_t limit;                 // for the form, or for all (static constexpr)
//       static constexpr bool finite;   // false: quick(x) may be wrong where it is not finite, too
//       float general(float x) const;   // the right result for every x for which quick is not
//
// If `quick` may be wrong for one of a group of values, `general` is computed for the whole group,
// and each element takes the result that is right for it. If a form offers `careful()`, which
// returns a second form with the same members, that is used instead. Its `quick` takes a few more
// steps, gives the same bits where the first is right, makes NaNs canonical, and leaves few values,
// or none (NoDoubts), to its own `general`. It computes data with many special values, such as 0,
// infinities and NaN; if it declares `static constexpr bool cheap`, data with any. Then this form,
// or its own careful form, must be right for all values.
//
// Processors take a hundred cycles to multiply, divide or produce a subnormal number, so forms
// avoid that where the result does not need it.
#pragma once

#include <cstdint>

#include "core/kernels/bits.h"
#include "core/kernels/elementwise/call.h"
#include "core/kernels/register_pack.h"

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
inline constexpr int unroll_of = kUnroll;
template <class F>
  requires requires { F::unroll; }
inline constexpr int unroll_of<F> = F::unroll;

// Provides the members of a form whose `quick` is right for every value.
struct NoDoubts {
  static constexpr bool finite = true;
  static constexpr uint32_t limit = 0;
  static auto unusual(auto x, auto...) { return bits_of(x) & 0u; }
};

// Returns a word that is not 0 where the result is NaN or infinite and `quick` may be wrong there.
template <class F, class V>
inline auto not_finite(V quick) {
  return F::finite ? decltype(bits_of(quick)){} : bits_of(quick - quick);
}

// Records whether `quick` may be wrong for any value seen so far. A sum is finite only if all its
// terms are. If finite terms overflow, the values are computed again without need, which costs time
// and no digits.
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

// The number of elements that are computed again if `quick` may be wrong for one of them.
inline constexpr int64_t kGroup = 128;

// Computes at most kGroup results, by `quick` where that is right. `out` must not be an input.
template <class F>
[[gnu::noinline, gnu::flatten]] void run_general(const F f, float* out, int64_t n,
                                                 const auto*... in) {
  for (int64_t i = 0; i < n; ++i) out[i] = canonical(f.general(in[i]...));
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const float quick = f.quick(in[i]...);
    const bool usual = all(not_finite<F>(quick) == 0, f.unusual(in[i]...) <= f.limit);
    out[i] = usual ? quick : out[i];
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

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
