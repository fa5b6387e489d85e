// SPDX-License-Identifier: Apache-2.0
// The first sweep of the gradient: Σ u and Σ u d of rows, where u is dy swish'(v) and d is x -
// mean. Loops run from memory of one type through registers, so that memory is read all the time.
// Written as passes over rows of 4 KiB (widen, compute, sum or store), they took 1.4 times as long
// for the largest shape of benchmarks/bench.py group_norm.
#pragma once

#include "core/kernels/group_norm/channels_last.h"
#include "core/kernels/group_norm/needs_exact.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The factors of t = d slope + shift and of dx = a u + (b + c d) in registers.
template <class V>
struct GradientTerms {
  V mean, slope, shift, a, b, c;

  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return x - factor<K>(mean);
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> t(const Registers<K>& d) const {
    return fused(d, factor<K>(slope), factor<K>(shift));
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> dx(const Registers<K>& u, const Registers<K>& d) const {
    return fused(factor<K>(a), u, fused(factor<K>(c), d, factor<K>(b)));
  }
};

// These factors of rows or channels; a, b and c are for the second sweep only.
struct GradientFactors {
  alignas(64) float mean[kMaxRows], slope[kMaxRows], shift[kMaxRows];
  alignas(64) float a[kMaxRows], b[kMaxRows], c[kMaxRows];

  // Gives the channels that fill the last block factors of 0.
  void fill(int64_t count) {
    for (int64_t r = count; r < round_up(count, kBlock); ++r)
      mean[r] = slope[r] = shift[r] = a[r] = b[r] = c[r] = 0;
  }
  GradientTerms<FloatRegister> row(int64_t r) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(mean[r]), all(slope[r]), all(shift[r]), all(a[r]), all(b[r]), all(c[r])};
  }
  template <int K>
  [[gnu::always_inline]] GradientTerms<Registers<K>> at(int64_t r) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + r); };
    return {some(mean), some(slope), some(shift), some(a), some(b), some(c)};
  }
};

// ---- loop over positions ----

// Adds u and u d of n elements to the lanes, and puts u where `keep` is. The last block goes
// through the same loop, filled up with a dy of 0.
template <class Type, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void add_row_terms(const GradientTerms<FloatRegister>& terms,
                                                 NeedsExact& needs_exact, LaneRegisters& lanes,
                                                 Input<Type> dy, Input<Type> x, float* keep,
                                                 int64_t n) {
  float last_u[kBlock];
  const int64_t rest = n % kBlock, whole = n - rest;
  float* to = keep;
  for (int64_t count = whole;; count = kBlock) {
    for (int64_t i = 0; i < count; i += kBlock) {
      fetch_block<Type>(dy.at + i, kAheadBytes), fetch_block<Type>(x.at + i, kAheadBytes);
      const auto d = terms.d(load_registers<Type>(x.at + i));
      const auto t = terms.t(d);
      needs_exact.see(sixteenths(t));
      const auto u = swish_gradient(load_registers<Type>(dy.at + i), t);
      if (to != nullptr) store_registers<F32>(to + i, u);
      lanes.add(u, d);
    }
    if (rest == 0 || x.at == x.last) break;
    dy.take_last(whole, rest), x.take_last(whole, rest);
    for (int64_t k = rest; k < kBlock; ++k) dy.last[k] = 0;
    to = last_u;
  }
  if (keep != nullptr && rest != 0) std::memcpy(keep + whole, last_u, rest * sizeof(float));
}

// Sums `count` rows from r on in the lanes of pieces, row by row. Adding up the lanes of each row
// before the next one left the pipes idle between rows, 55 ns for each.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void sum_positions(const GradientFactors& of, int64_t r,
                                                   int64_t count, const StridedRows<const Raw>& dy,
                                                   const StridedRows<const Raw>& x,
                                                   const StridedRows<float>& keep, int64_t n,
                                                   LaneSums* pieces) {
  for (int64_t i = 0; i < count; ++i) {
    const auto terms = of.row(r + i);
    NeedsExact needs_exact;
    for (int64_t first = 0; first < n; first += kPiece, ++pieces) {
      LaneRegisters lanes;
      add_row_terms<Type>(terms, needs_exact, lanes, Input<Type>(dy.at(i, first)),
                          Input<Type>(x.at(i, first)), keep.at(i, first),
                          smaller(kPiece, n - first));
      lanes.store(*pieces);
    }
    if (needs_exact.any()) pieces[-1].u[0] = __builtin_nanf("");
  }
}

// ---- loop over channels ----

struct ChannelLanes {
  alignas(64) OfChannels u[kLanes], ud[kLanes];
};

// Adds u and u d of a piece to the lanes. Returns false if some t needs exact.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool sum_channels(const GradientFactors& of, int64_t channels,
                                                  const StridedRows<const Raw>& dy,
                                                  const StridedRows<const Raw>& x,
                                                  int64_t positions, ChannelLanes& lanes) {
  NeedsExact needs_exact;
  const auto add = [&]<int K>(int64_t p, int64_t c, int64_t, const Registers<K>& g,
                              const Registers<K>& in) __attribute__((always_inline)) {
    float *const to_u = lanes.u[p % kLanes] + c, *const to_ud = lanes.ud[p % kLanes] + c;
    const auto terms = of.at<K>(c);
    const auto d = terms.d(in), of_t = terms.t(d), u = swish_gradient(g, of_t);
    needs_exact.see(sixteenths(of_t));
    store_registers<F32>(to_u, load_registers<F32, K>(to_u) + u);
    store_registers<F32>(to_ud, fused(u, d, load_registers<F32, K>(to_ud)));
  };
  for_channels_last<Type>(channels, positions, add, dy, x);
  return !needs_exact.any();
}

// Adds up the lanes of a piece in trees.
[[gnu::noinline, gnu::flatten]] inline void channel_trees(const OfChannels* lanes, int64_t channels,
                                                          double* sums) {
  OPENACLNN_INDEPENDENT
  for (int64_t c = 0; c < channels; ++c) {
    double lane[kLanes / 2];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes / 2; ++l)
      lane[l] = static_cast<double>(lanes[l][c]) + static_cast<double>(lanes[l + kLanes / 2][c]);
    sums[c] = tree_sum<kLanes / 2>(lane);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
