// SPDX-License-Identifier: Apache-2.0
// The second sweep of the gradient: dx = rstd (γ u - c1 - x̂ c2) = a u + (b + c d), with the u that
// the first sweep kept, or from dy.
#pragma once

#include "core/kernels/group_norm/gradient_sums.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ---- loop over positions ----

// Elements of a row. dx is computed from dy or, if u was kept, from u. later_x is what may be
// fetched meanwhile.
template <class Type, class Raw = typename Type::Raw>
struct RowPart {
  const Raw* dy;
  const float* u;
  const Raw *x, *later_x;
  Raw* dx;
  int64_t n;
  bool stream;
};

template <class Type>
[[gnu::noinline, gnu::flatten]] void input_gradient_of_positions(const GradientFactors& of,
                                                                 int64_t r,
                                                                 const RowPart<Type>& part) {
  const auto [dy, u, x, later_x, dx, n, stream] = part;
  const auto terms = of.row(r);
  if (u == nullptr) {
    const auto of_dy = [&](const auto& g, const auto& in) __attribute__((always_inline)) {
      const auto d = terms.d(in);
      return terms.dx(swish_gradient(g, terms.t(d)), d);
    };
    store_positions<Type>(dx, n, stream, of_dy, Input<Type>(dy), Input<Type>(x));
  } else {
    const auto of_u = [&](const auto& kept, const auto& in)
                          __attribute__((always_inline)) { return terms.dx(kept, terms.d(in)); };
    store_positions<Type>(dx, n, stream, of_u, Input<F32>(u), Input<Type>(x, later_x));
  }
}

// ---- loop over channels ----

template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void input_gradient_of_channels(
    const GradientFactors& of, int64_t channels, const StridedRows<const Raw>& dy,
    const StridedRows<const Raw>& x, const StridedRows<Raw>& dx, int64_t positions, bool stream) {
  const auto make = [&]<int K>(int64_t c, const Registers<K>& g, const Registers<K>& in)
                        __attribute__((always_inline)) {
                          const auto terms = of.at<K>(c);
                          const Registers<K> d = terms.d(in);
                          return terms.dx(swish_gradient(g, terms.t(d)), d);
                        };
  store_channels_last<Type>(dx, channels, positions, stream, make, dy, x);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
