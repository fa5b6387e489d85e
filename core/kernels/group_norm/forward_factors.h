// SPDX-License-Identifier: Apache-2.0
// What GroupNormSwish needs of a channel of one sample, and y from it: the same for rows, which
// spread the factors of one channel, and for positions, which load those of many.
#pragma once

#include "core/kernels/group_norm/dense.h"
#include "core/kernels/group_norm/factors.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The factors of v and t in registers, and what they make. No value is NaN, because where fp32 is
// enough the mean and so every x is finite.
template <class V>
struct Normal {
  V high, low, gamma, beta, slope, shift;

  template <int K>
  [[gnu::always_inline]] Registers<K> value(const Registers<K>& x) const {
    return fused(d(x), factor<K>(gamma), factor<K>(beta));
  }

  // Records whether some t is unusual.
  template <int K>
  [[gnu::always_inline]] Registers<K> swish(const Registers<K>& x, SwishDoubts& doubts) const {
    const Registers<K> t = fused(d(x), factor<K>(slope), factor<K>(shift));
    doubts.see(sixteenths_of_minus(t));
    return swish_quick(value(x), t);
  }

  // The same for t = v.
  template <int K>
  [[gnu::always_inline]] Registers<K> swish_of_value(const Registers<K>& x,
                                                     SwishDoubts& doubts) const {
    const Registers<K> v = value(x);
    doubts.see(sixteenths_of_minus(v));
    return swish_quick(v, v);
  }

  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return (x - factor<K>(high)) - factor<K>(low);
  }
};

// The quick formula has v = (x - high - low) γ + β and t = (x - high - low) slope + shift = s v,
// where γ includes rstd, and slope and shift include s. γ and slope are NaN where fp32 is not
// enough. The mean has two parts, because one would be too coarse if |mean| >> std; high is NaN
// where the mean is too small.
template <int64_t N>
struct ForwardFactors {
  alignas(64) float high[N], low[N], gamma[N], beta[N], slope[N], shift[N];
  alignas(64) double mean[N], wide_gamma[N];  // for unusual elements

  // Sets the factors of n channels from `first` on, whose high parts are set, and rstd in
  // wide_gamma.
  void set(const GroupNormCall& call, int64_t first, int64_t n) {
    values_of(call.gamma, first, n, gamma);
    values_of(call.beta, first, n, beta);
    for (int64_t c = 0; c < n; ++c) {
      wide_gamma[c] *= static_cast<double>(gamma[c]);
      const QuickFactors quick =
          quick_factors(call, static_cast<double>(high[c]), wide_gamma[c], beta[c]);
      gamma[c] = quick.gamma, slope[c] = quick.slope, shift[c] = quick.shift;
    }
  }

  // Gives the channels that fill the last block factors of 0: their t is usual.
  void fill(int64_t count) {
    for (int64_t c = count; c < round_up(count, kBlock); ++c)
      high[c] = low[c] = gamma[c] = beta[c] = slope[c] = shift[c] = 0;
  }

  // Returns whether fp32 is enough for n channels. (With swish, some t is unusual if it is not.)
  [[gnu::noinline, gnu::flatten]] bool fits_fp32(int64_t c, int64_t n) const {
    return largest_bits(n, [&](int64_t i) { return gamma[c + i]; }) <= bits_of(kLargest);
  }

  Normal<FloatRegister> row(int64_t c) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(high[c]), all(low[c]), all(gamma[c]), all(beta[c]), all(slope[c]), all(shift[c])};
  }
  template <int K>
  [[gnu::always_inline]] Normal<Registers<K>> at(int64_t c) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + c); };
    return {some(high), some(low), some(gamma), some(beta), some(slope), some(shift)};
  }
  GeneralFactors general(int64_t c, double scale) const {
    return {
        {gamma[c], beta[c], slope[c], shift[c]}, high[c], low[c], mean[c], wide_gamma[c], scale};
  }
};

// Stores y of n elements of channel c or, without swish, v. Returns false if some t is unusual.
template <class Type, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_values(const ForwardFactors<N>& of, int64_t c,
                                                       bool swish, const Raw* x, Raw* y, int64_t n,
                                                       bool stream) {
  const Normal<FloatRegister> row = of.row(c);
  SwishDoubts doubts;
  const auto store = [&](const auto& make) __attribute__((always_inline)) {
    store_each<Type>(y, n, stream, make, Input<Type>{x});
  };
  if (!swish) {
    store([&](const auto& in) __attribute__((always_inline)) { return row.value(in); });
  } else if (of.slope[c] == of.gamma[c] && of.shift[c] == of.beta[c]) {  // s is 1, or both are 0
    store([&](const auto& in)
              __attribute__((always_inline)) { return row.swish_of_value(in, doubts); });
  } else {
    store([&](const auto& in) __attribute__((always_inline)) { return row.swish(in, doubts); });
  }
  return !doubts.any();
}

// The exact form, for every t: of channel c or, if `across`, of the channels from c on.
template <bool across, int64_t N>
[[gnu::noinline, gnu::flatten]] void group_norm_values_general(const ForwardFactors<N>& of,
                                                               int64_t c, bool swish, double scale,
                                                               const float* x, float* y,
                                                               int64_t n) {
  const GeneralFactors row = of.general(c, scale);
  const auto store = [&](const auto& make) __attribute__((always_inline)) {
    OPENACLNN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      y[i] = canonical(make(across ? of.general(c + i, scale) : row, x[i]));
  };
  if (swish) {
    store([](const GeneralFactors& one, float in)
              __attribute__((always_inline)) { return one.swish(in); });
  } else {
    store([](const GeneralFactors& one, float in)
              __attribute__((always_inline)) { return one.value(in); });
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
