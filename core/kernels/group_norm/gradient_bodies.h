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

// Σ u and Σ u d, where u is dy swish'(v) and d is x - mean or x̂ (numerics.md). Lane l, counted over
// the registers, adds the values l, l + 32, …
struct LaneSums {
  FloatRegister u[kLaneRegisters], ud[kLaneRegisters];

  // Adds the next values of register k.
  void add(int k, FloatRegister of_u, FloatRegister d) {
    u[k] += of_u;
    ud[k] = fused(of_u, d, ud[k]);
  }
};

// The sum of 32 lanes in fp64.
inline double tree(const FloatRegister* registers) {
  constexpr int kWidth = kRegisterBytes / sizeof(double), kRegisters = kLanes / 2 / kWidth;
  const float* const lanes = reinterpret_cast<const float*>(registers);
  DoubleRegister wide[kRegisters];
  for (int k = 0; k < kRegisters; ++k) {
    wide[k] =
        widened_register(lanes + k * kWidth) + widened_register(lanes + kLanes / 2 + k * kWidth);
  }
  return sum_of<kRegisters>(wide);
}

// The factors of t = d slope + shift and of dx = a u + (b + c d) in registers.
struct GradientTerms {
  FloatRegister mean, slope, shift, a, b, c;

  FloatRegister d(FloatRegister x) const { return x - mean; }
  FloatRegister t(FloatRegister d) const { return fused(d, slope, shift); }
  FloatRegister dx(FloatRegister u, FloatRegister d) const { return fused(a, u, fused(c, d, b)); }
  FloatRegister dx_from_dy(FloatRegister dy, FloatRegister x) const {
    return dx(swish_gradient(dy, t(d(x))), d(x));
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
  // Those of a row, the same in all lanes, or of the channels from r on.
  GradientTerms row(int64_t r) const {
    const auto all = [=](const float* of) { return all_of<FloatRegister>(of[r]); };
    return {all(mean), all(slope), all(shift), all(a), all(b), all(c)};
  }
  GradientTerms at(int64_t r) const {
    const auto some = [=](const float* of) { return load_register<FloatRegister>(of + r); };
    return {some(mean), some(slope), some(shift), some(a), some(b), some(c)};
  }
};

// ---- first sweep, positions ----

// Adds u and u d of n elements to the lanes, and puts u where `keep` is. The last block goes
// through the same loop, filled up with a dy of 0.
template <class Type, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void add_row_terms(const GradientTerms& terms,
                                                 NeedsExact& needs_exact, LaneSums& lanes,
                                                 Input<Type> dy, Input<Type> x, float* keep,
                                                 int64_t n) {
  float last_u[kBlock];
  const int64_t rest = n % kBlock, whole = n - rest;
  float* to = keep;
  for (int64_t count = whole;; count = kBlock) {
    for (int64_t i = 0; i < count; i += kBlock) {
      fetch_block<Type>(dy.at + i, kAheadBytes), fetch_block<Type>(x.at + i, kAheadBytes);
      const auto u = map<kLaneRegisters>([&](int k) {
        const FloatRegister d = terms.d(Type::load(x.at + i + k * kRegisterFloats));
        const FloatRegister t = terms.t(d);
        needs_exact.see(sixteenths(t));
        const FloatRegister u = swish_gradient(Type::load(dy.at + i + k * kRegisterFloats), t);
        lanes.add(k, u, d);
        return u;
      });
      if (to != nullptr) store_registers<F32>(to + i, u);
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
      LaneSums lanes = {};
      add_row_terms<Type>(terms, needs_exact, lanes, Input<Type>(dy.at(i, first)),
                          Input<Type>(x.at(i, first)), keep.at(i, first),
                          smaller(kPiece, n - first));
      *pieces = lanes;
    }
    if (needs_exact.any()) pieces[-1].u[0] = all_of<FloatRegister>(__builtin_nanf(""));
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
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k, c += kRegisterFloats) {
      float *const to_u = lanes.u[p % kLanes] + c, *const to_ud = lanes.ud[p % kLanes] + c;
      const GradientTerms terms = of.at(c);
      const FloatRegister d = terms.d(in.r[k]), t = terms.t(d), u = swish_gradient(g.r[k], t);
      needs_exact.see(sixteenths(t));
      store_register(to_u, load_register<FloatRegister>(to_u) + u);
      store_register(to_ud, fused(u, d, load_register<FloatRegister>(to_ud)));
    }
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

// Stores dx of n elements of a row, from dy or, if u was kept, from u.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void input_gradient_of_positions(const GradientTerms& of_row,
                                                                 const Raw* dy, const float* u,
                                                                 const Input<Type>& x, Raw* dx,
                                                                 int64_t n, bool stream) {
  const GradientTerms terms = of_row;
  if (u == nullptr) {
    const auto of_dy = [&](FloatRegister g, FloatRegister in) { return terms.dx_from_dy(g, in); };
    store_positions<Type>(dx, n, stream, of_dy, Input<Type>(dy), x);
  } else {
    const auto of_u = [&](FloatRegister kept, FloatRegister in) {
      return terms.dx(kept, terms.d(in));
    };
    store_positions<Type>(dx, n, stream, of_u, Input<F32>(u), x);
  }
}

// ---- second sweep, channels ----

template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void input_gradient_of_channels(
    const GradientFactors& of, int64_t channels, const StridedRows<const Raw>& dy,
    const StridedRows<const Raw>& x, const StridedRows<Raw>& dx, int64_t positions, bool stream) {
  const auto make = [&](int64_t c, FloatRegister g, FloatRegister in)
                        __attribute__((always_inline)) { return of.at(c).dx_from_dy(g, in); };
  store_channels_last<Type>(dx, channels, positions, stream, make, dy, x);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
