// SPDX-License-Identifier: Apache-2.0
// The second sweep of the gradient: dx = rstd (γ u - c1 - x̂ c2) = a u + (b + c d), with the u that
// the first sweep kept, or from dy.
#pragma once

#include "core/kernels/group_norm/gradient_sums.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The factors of dx in registers.
template <class V>
struct InputTerms {
  V a, b, c;

  template <int K>
  [[gnu::always_inline]] Registers<K> dx(const Registers<K>& u, const Registers<K>& d) const {
    return fused(factor<K>(a), u, fused(factor<K>(c), d, factor<K>(b)));
  }
};

// These factors of rows or channels.
struct InputFactors {
  alignas(64) float a[kMaxRows], b[kMaxRows], c[kMaxRows];

  void set(int64_t r, double of_u, double alone, double of_d) {
    a[r] = static_cast<float>(of_u), b[r] = static_cast<float>(alone);
    c[r] = static_cast<float>(of_d);
  }
  void fill(int64_t count) {
    for (int64_t r = count; r < round_up(count, kBlock); ++r) set(r, 0, 0, 0);
  }
  InputTerms<FloatRegister> row(int64_t r) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(a[r]), all(b[r]), all(c[r])};
  }
  template <int K>
  [[gnu::always_inline]] InputTerms<Registers<K>> at(int64_t r) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + r); };
    return {some(a), some(b), some(c)};
  }
};

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
[[gnu::noinline, gnu::flatten]] void input_gradient_of_positions(const SumFactors& of_sums,
                                                                 const InputFactors& of, int64_t r,
                                                                 const RowPart<Type>& part) {
  const auto [dy, u, x, later_x, dx, n, stream] = part;
  const auto sum = of_sums.row(r);
  const auto input = of.row(r);
  if (u == nullptr) {
    const auto of_dy = [&](const auto& g, const auto& in) __attribute__((always_inline)) {
      const auto d = sum.d(in);
      return input.dx(sum.u(g, d), d);
    };
    store_positions<Type>(dx, n, stream, of_dy, Input<Type>{dy}, Input<Type>{x});
  } else {
    const auto of_u = [&](const auto& kept, const auto& in)
                          __attribute__((always_inline)) { return input.dx(kept, sum.d(in)); };
    store_positions<Type>(dx, n, stream, of_u, Input<F32>{u}, Input<Type>{x, later_x});
  }
}

// ---- loop over channels ----

template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void input_gradient_of_channels(
    const SumFactors& of_sums, const InputFactors& of, int64_t channels,
    const StridedRows<const Raw>& dy, const StridedRows<const Raw>& x, const StridedRows<Raw>& dx,
    int64_t positions, bool stream) {
  const auto make = [&]<int K>(int64_t c, const Registers<K>& g, const Registers<K>& in)
                        __attribute__((always_inline)) {
                          const auto sum = of_sums.at<K>(c);
                          const Registers<K> d = sum.d(in);
                          return of.at<K>(c).dx(sum.u(g, d), d);
                        };
  store_channels_last<Type>(dx, channels, positions, stream, make, dy, x);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
