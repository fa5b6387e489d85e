// SPDX-License-Identifier: Apache-2.0
// The bodies of the gradient. First sweep: Σ u and Σ u d of rows, where u is dy swish'(v) and d is
// x - mean. Second sweep: dx = rstd (γ u - c1 - x̂ c2) = a u + (b + c d), with the u that the first
// sweep kept, or from dy. Loops run from memory of one type through registers: as passes over rows
// of 4 KiB (widen, compute, sum or store) they took 1.4 times as long for 1x128x512x512.
#pragma once

#include "core/kernels/group_norm/loops.h"
#include "core/kernels/group_norm/swish.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Holds Σ u and Σ u d, where u is dy swish'(v) and d is x - mean or x̂ (numerics.md). Lane l
// adds the values l, l + 32, …
struct LaneSums {
  alignas(64) float u[kLanes], ud[kLanes];
};

// Holds the same sums in registers, while a loop adds to them.
class LaneRegisters {
 public:
  using Values = Registers<kLaneRegisters>;

  // Adds the next value of each lane.
  [[gnu::always_inline]] void add(const Values& u, const Values& d) {
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) u_[k] += u.r[k];
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) ud_[k] = fused(u.r[k], d.r[k], ud_[k]);
  }

  void store(LaneSums& sums) const {
    std::memcpy(sums.u, u_, sizeof sums.u);
    std::memcpy(sums.ud, ud_, sizeof sums.ud);
  }

 private:
  FloatRegister u_[kLaneRegisters] = {}, ud_[kLaneRegisters] = {};
};

// The sum of 32 lanes in fp64.
inline double tree(const float* lanes) {
  constexpr int kWidth = kRegisterBytes / sizeof(double), kRegisters = kLanes / 2 / kWidth;
  DoubleRegister wide[kRegisters];
  for (int k = 0; k < kRegisters; ++k) {
    wide[k] =
        widened_register(lanes + k * kWidth) + widened_register(lanes + kLanes / 2 + k * kWidth);
  }
  return sum_of<kRegisters>(wide);
}

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

// ---- first sweep, positions ----

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

// ---- first sweep, channels ----

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

// ---- second sweep, positions ----

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

// ---- second sweep, channels ----

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
