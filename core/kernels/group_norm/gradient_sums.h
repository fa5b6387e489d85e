// SPDX-License-Identifier: Apache-2.0
// The first sweep of the gradient: Σ u and Σ u d of rows, where u is dy swish'(v) and d is x -
// mean. Loops run from memory of one type through registers, so that memory is read all the time.
// Written as passes over rows of 4 KiB (widen, compute, sum or store), they took 1.4 times as long
// for the largest shape of benchmarks/bench.py group_norm.
#pragma once

#include "core/kernels/group_norm/channels_last.h"
#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/group_norm/swish.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The Part of the gradient: Σ u and Σ u d; NaN if some p needs exact.
struct Sums {
  double u, ud;

  static Sums none() { return {0, 0}; }
  static Sums unknown() { return {__builtin_nan(""), 0}; }
  void add(const Sums& more) { u += more.u, ud += more.ud; }
};
static_assert(sizeof(Sums) == kSumsBytes);

// The factors of p = -t log2(e) = d slope + shift in registers.
template <class V>
struct SumTerms {
  V mean, slope, shift;

  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return x - factor<K>(mean);
  }
  // It does not return d too, because a pair of both would go through memory.
  template <int K>
  [[gnu::always_inline]] Registers<K> u(const Registers<K>& dy, const Registers<K>& d,
                                        NeedsExact& needs_exact) const {
    const Registers<K> p = fused(d, factor<K>(slope), factor<K>(shift));
    needs_exact.see(sixteenths(p));
    return swish_gradient(dy, p);
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> u(const Registers<K>& dy, const Registers<K>& d) const {
    return swish_gradient(dy, fused(d, factor<K>(slope), factor<K>(shift)));
  }
};

// These factors of rows or channels.
struct SumFactors {
  alignas(64) float mean[kMaxRows], slope[kMaxRows], shift[kMaxRows];

  void set(int64_t r, float of_mean, double of_slope, double of_shift) {
    mean[r] = of_mean;
    slope[r] = static_cast<float>(of_slope), shift[r] = static_cast<float>(of_shift);
  }
  // Gives the channels that fill the last block factors of 0.
  void fill(int64_t count) {
    for (int64_t r = count; r < round_up(count, kBlock); ++r) set(r, 0, 0, 0);
  }
  SumTerms<FloatRegister> row(int64_t r) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(mean[r]), all(slope[r]), all(shift[r])};
  }
  template <int K>
  [[gnu::always_inline]] SumTerms<Registers<K>> at(int64_t c) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + c); };
    return {some(mean), some(slope), some(shift)};
  }
};

// ---- loop over positions ----

// Adds u and u d of n elements to the lanes, and puts u where `keep` is.
template <class Type, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void add_row_terms(const SumTerms<FloatRegister>& terms,
                                                 NeedsExact& needs_exact, LaneRegisters& lanes,
                                                 const Raw* dy, const Raw* x, float* keep,
                                                 int64_t n) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    fetch_block<Type>(dy + i, kAheadBytes), fetch_block<Type>(x + i, kAheadBytes);
    const auto d = terms.d(load_registers<Type>(x + i));
    const auto u = terms.u(load_registers<Type>(dy + i), d, needs_exact);
    if (keep != nullptr) store_registers<F32>(keep + i, u);
    lanes.add(u, d);
  }
  if (i == n) return;
  const Block<> last_dy = load_part<Type>(dy + i, n - i), last_x = load_part<Type>(x + i, n - i);
  const auto last_d = terms.d(load_registers<F32>(last_x.value));
  const auto last_u = terms.u(load_registers<F32>(last_dy.value), last_d, needs_exact);
  Block<> u, d;
  store_registers<F32>(u.value, last_u), store_registers<F32>(d.value, last_d);
  if (keep != nullptr) std::memcpy(keep + i, u.value, (n - i) * sizeof(float));
  for (int64_t k = n - i; k < kBlock; ++k) u.value[k] = d.value[k] = 0;  // 0 * inf is NaN
  lanes.add(load_registers<F32>(u.value), load_registers<F32>(d.value));
}

// Sums `count` rows from r on in the lanes of pieces, row by row. Adding up the lanes of each row
// before the next one left the pipes idle between rows, 55 ns for each.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void sum_positions(const SumFactors& of, int64_t r, int64_t count,
                                                   const StridedRows<const Raw>& dy,
                                                   const StridedRows<const Raw>& x,
                                                   const StridedRows<float>& keep, int64_t n,
                                                   LaneSums* pieces) {
  for (int64_t i = 0; i < count; ++i) {
    const auto terms = of.row(r + i);
    NeedsExact needs_exact;
    for (int64_t first = 0; first < n; first += kPiece, ++pieces) {
      LaneRegisters lanes;
      add_row_terms<Type>(terms, needs_exact, lanes, dy.at(i, first), x.at(i, first),
                          keep.at(i, first), smaller(kPiece, n - first));
      lanes.store(*pieces);
    }
    if (needs_exact.any()) pieces[-1].u[0] = __builtin_nanf("");
  }
}

// ---- loop over channels ----

struct ChannelLanes {
  alignas(64) OfChannels u[kLanes], ud[kLanes];
};

// Adds u and u d of a piece to the lanes. Returns false if some p needs exact.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool sum_channels(const SumFactors& of, int64_t channels,
                                                  const StridedRows<const Raw>& dy,
                                                  const StridedRows<const Raw>& x,
                                                  int64_t positions, ChannelLanes& lanes) {
  NeedsExact needs_exact;
  const auto add = [&]<int K>(int64_t p, int64_t c, int64_t, const Registers<K>& g,
                              const Registers<K>& in) __attribute__((always_inline)) {
    float *const to_u = lanes.u[p % kLanes] + c, *const to_ud = lanes.ud[p % kLanes] + c;
    const auto terms = of.at<K>(c);
    const auto d = terms.d(in), u = terms.u(g, d, needs_exact);
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
