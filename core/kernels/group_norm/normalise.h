// SPDX-License-Identifier: Apache-2.0
// The second sweep of the forward call: y = swish(v) or v, with v = (x - mean) rstd γ + β.
#pragma once

#include "core/kernels/group_norm/channels_last.h"
#include "core/kernels/group_norm/needs_exact.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The mean in two parts, because one would be too coarse if |mean| >> std.
inline float low_part(double mean, float high) {
  return static_cast<float>(mean - static_cast<double>(high));
}

// The factors of v = (x - high - low) gamma + beta and of t = (x - high - low) slope + shift = s v
// in registers: gamma includes rstd, and slope and shift include s.
template <class V>
struct Normal {
  V high, low, gamma, beta, slope, shift;

  template <int K>
  [[gnu::always_inline]] Registers<K> value(const Registers<K>& x) const {
    return fused(d(x), factor<K>(gamma), factor<K>(beta));
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> swish_of(const Registers<K>& x) const {
    return swish(value(x), fused(d(x), factor<K>(slope), factor<K>(shift)));
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return (x - factor<K>(high)) - factor<K>(low);
  }
};

// These factors of N channels or rows.
template <int64_t N>
struct NormalFactors {
  alignas(64) float high[N], low[N], gamma[N], beta[N], slope[N], shift[N];
  alignas(64) double wide_gamma[N];

  // Sets the factors of n channels from `first` on, whose mean is set, and
  // rstd in wide_gamma.
  void set(const GroupNormCall& call, int64_t first, int64_t n) {
    values_of(call.gamma, first, n, gamma);
    values_of(call.beta, first, n, beta);
    for (int64_t c = 0; c < n; ++c) {
      wide_gamma[c] *= static_cast<double>(gamma[c]);
      const double s = call.scale;
      gamma[c] = static_cast<float>(wide_gamma[c]);
      slope[c] = static_cast<float>(s * wide_gamma[c]);
      shift[c] = static_cast<float>(s * static_cast<double>(beta[c]));
    }
  }
  // Gives the channels that fill the last block factors of 0.
  void fill(int64_t n) {
    for (int64_t c = n; c < round_up(n, kBlock); ++c)
      high[c] = low[c] = gamma[c] = beta[c] = slope[c] = shift[c] = 0;
  }

  Normal<FloatRegister> row(int64_t r) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(high[r]), all(low[r]), all(gamma[r]), all(beta[r]), all(slope[r]), all(shift[r])};
  }
  template <int K>
  [[gnu::always_inline]] Normal<Registers<K>> at(int64_t c) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + c); };
    return {some(high), some(low), some(gamma), some(beta), some(slope), some(shift)};
  }
};

// ---- loop over positions ----

// Stores y of n elements of row r.
template <class Type, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void normalise_positions(const NormalFactors<N>& of, int64_t r,
                                                         bool activate, const Raw* x, Raw* y,
                                                         int64_t n, bool stream) {
  const Normal<FloatRegister> row = of.row(r);
  const auto store = [&](const auto& make) __attribute__((always_inline)) {
    store_positions<Type>(y, n, stream, make, Input<Type>(x));
  };
  if (!activate) {
    store([&](const auto& in) __attribute__((always_inline)) { return row.value(in); });
  } else {
    store([&](const auto& in) __attribute__((always_inline)) { return row.swish_of(in); });
  }
}

// ---- loop over channels ----

template <class Type, From from = From::memory, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void normalise_channels(const NormalFactors<N>& of,
                                                        int64_t channels, bool activate,
                                                        const StridedRows<const Raw>& x,
                                                        const StridedRows<Raw>& y,
                                                        int64_t positions, bool stream) {
  const auto make = [&]<int K>(int64_t c, const Registers<K>& in) __attribute__((always_inline)) {
    return activate ? of.template at<K>(c).swish_of(in) : of.template at<K>(c).value(in);
  };
  store_channels_last<Type, from>(y, channels, positions, stream, make, x);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
