// SPDX-License-Identifier: Apache-2.0
// The loops of GroupNormSwishGrad run over the positions of a channel, block by block from memory
// of one type through registers, so that memory is read all the time. Written as passes over rows
// of 4 KiB (widen, compute, sum or store), they took 1.4 times as long for the largest shape of
// benchmarks/bench.py group_norm.
#pragma once

#include "core/kernels/group_norm/dense.h"
#include "core/kernels/group_norm/factors.h"
#include "core/kernels/group_norm/rescale.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The sums of u and of u x̂, or first of u d: see GradientRow.
struct Sums {
  double u, ux;

  void add(const Sums& more) { u += more.u, ux += more.ux; }
};

struct Statistics {
  int64_t index = -1;  // sample × groups + group
  float mean, rstd;
};

// x̂ / d is between 1 / kMostUnits and kMostUnits, so u d has at least the range of 2^±116.
inline constexpr float kMostUnits = 0x1p10f;

// What one channel of one sample needs for u and p = d slope + shift, where d = x - mean. A row
// sums u d and multiplies the sum by rstd, instead of each element by rstd for u x̂. Where d or u d
// could leave fp32 long before x̂ and u x̂ do, the row is beyond the formula and sums u x̂.
struct GradientRow {
  GradientRow() = default;
  float mean, rstd, slope, shift;
  bool outside_fp32;
  double wide_slope, wide_shift;  // t of x̂
  Rescale rescale;                // times which u and x̂ are summed, beyond the formula

  GradientRow(const GroupNormCall& call, const Statistics& of, int64_t channel)
      : mean(of.mean), rstd(of.rstd) {
    const double s = call.scale;
    wide_slope = s * static_cast<double>(value_of(call.gamma, channel));
    wide_shift = s * static_cast<double>(value_of(call.beta, channel));
    outside_fp32 = !all(magnitude(mean) < kHugeMean, rstd >= 1 / kMostUnits, rstd <= kMostUnits);
    const double to = -kLog2e * wide_slope * static_cast<double>(rstd);
    slope = outside_fp32 ? __builtin_nanf("") : fp32_or_nan(to);
    shift = fp32_or_nan(-kLog2e * wide_shift);
  }

  void take(const Rescale& by) {
    rescale = by;
    outside_fp32 = true, slope = __builtin_nanf("");
  }

  // The factor that turns a sum of u d into one of u x̂ (x̂ / d where d is summed), and the factor
  // for a sum of u.
  double unit() const {
    return outside_fp32 ? 1 / (rescale.u * rescale.h) : static_cast<double>(rstd);
  }
  double u_unit() const { return 1 / rescale.u; }
};

// a, b and c of dx = a u + (b + c d). fp32 is not enough if a or c is subnormal and lacks digits,
// if roundings of subnormal numbers count beside b, or if a sum with b and c may overflow.
struct InputRow {
  float a, b, c;
  double wide_a, wide_b, wide_c;  // wide_c: of x̂
  InputRow() = default;
  InputRow(const GradientRow& row, float gamma, const double* mean) {
    const double rstd = row.rstd;
    wide_a = rstd * static_cast<double>(gamma) * row.u_unit();
    wide_b = -rstd * mean[0], wide_c = -rstd * mean[1];
    const double quick_c = wide_c * row.unit();
    a = fp32_or_nan(wide_a), b = fp32_or_nan(wide_b), c = fp32_or_nan(quick_c);
    if (!all(is_within(wide_a, kLeastFactor, kLargest), is_within(wide_b, kLeastAlone),
             is_within(quick_c, kLeastFactor)))
      c = __builtin_nanf("");
  }

  bool fits_fp32(const GradientRow& row) const {
    return a == a && b == b && c == c && !row.outside_fp32;
  }
};

// The factors of u and dx in registers, and what they make. dx is never NaN: where fp32 is enough
// for b and c, u and d are finite, so infinite products of opposite sign cannot meet.
template <class V>
struct Terms {
  V mean, slope, shift, a, b, c;

  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return x - factor<K>(mean);
  }

  // Records whether some p is unusual. It does not return d too, because a pair of both would go
  // through memory.
  template <int K>
  [[gnu::always_inline]] Registers<K> u(const Registers<K>& dy, const Registers<K>& d,
                                        SwishDoubts& doubts) const {
    const Registers<K> p = fused(d, factor<K>(slope), factor<K>(shift));
    doubts.see(sixteenths(p));
    return swish_gradient_quick(dy, p);
  }

  template <int K>
  [[gnu::always_inline]] Registers<K> dx(const Registers<K>& u, const Registers<K>& d) const {
    return fused(factor<K>(a), u, fused(factor<K>(c), d, factor<K>(b)));
  }
};

// These factors of rows or of channels; a, b and c are for dx only.
struct GradientFactors {
  alignas(64) float mean[kMaxRows], slope[kMaxRows], shift[kMaxRows];
  alignas(64) float a[kMaxRows], b[kMaxRows], c[kMaxRows];

  void set(int64_t r, const GradientRow& row) {
    mean[r] = row.mean, slope[r] = row.slope, shift[r] = row.shift;
  }
  void set(int64_t r, const InputRow& row) { a[r] = row.a, b[r] = row.b, c[r] = row.c; }
  // Gives the channels that fill the last block factors of 0: their p is usual.
  void fill(int64_t count) {
    for (int64_t r = count; r < round_up(count, kBlock); ++r)
      mean[r] = slope[r] = shift[r] = a[r] = b[r] = c[r] = 0;
  }

  Terms<FloatRegister> row(int64_t r) const {
    const auto all = [](float x) { return all_of<FloatRegister>(x); };
    return {all(mean[r]), all(slope[r]), all(shift[r]), all(a[r]), all(b[r]), all(c[r])};
  }
  template <int K>
  [[gnu::always_inline]] Terms<Registers<K>> at(int64_t r) const {
    const auto some = [=](const float* values) { return load_registers<F32, K>(values + r); };
    return {some(mean), some(slope), some(shift), some(a), some(b), some(c)};
  }
};

// Adds u and u d of n elements to the lanes, and puts u where `keep` is.
template <class Type, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void add_terms(const Terms<FloatRegister>& terms, SwishDoubts& doubts,
                                             LaneRegisters& lanes, const Raw* dy, const Raw* x,
                                             float* keep, int64_t n) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    fetch_block<Type>(dy + i, kAheadBytes), fetch_block<Type>(x + i, kAheadBytes);
    const auto d = terms.d(load_registers<Type>(x + i));
    const auto u = terms.u(load_registers<Type>(dy + i), d, doubts);
    if (keep != nullptr) store_registers<F32>(keep + i, u);
    lanes.add(u, d);
  }
  if (i == n) return;
  const Block<> last_dy = load_part<Type>(dy + i, n - i), last_x = load_part<Type>(x + i, n - i);
  const auto last_d = terms.d(load_registers<F32>(last_x.value));
  const auto last_u = terms.u(load_registers<F32>(last_dy.value), last_d, doubts);
  Block<> u, d;
  store_registers<F32>(u.value, last_u), store_registers<F32>(d.value, last_d);
  if (keep != nullptr) std::memcpy(keep + i, u.value, (n - i) * sizeof(float));
  for (int64_t k = n - i; k < kBlock; ++k) u.value[k] = d.value[k] = 0;  // 0 * inf is NaN
  lanes.add(load_registers<F32>(u.value), load_registers<F32>(d.value));
}

// Sums u and u d of `count` rows from r on in the lanes of pieces, row by row, all pieces of a row
// whole except the last. Returns false if some t is unusual. Adding up the lanes of each row
// before the next one left the pipes idle between rows, 55 ns for each.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_row_sums(
    const GradientFactors& of, int64_t r, int64_t count, const StridedRows<const Raw>& dy,
    const StridedRows<const Raw>& x, const StridedRows<float>& keep, int64_t n, LaneSums* pieces) {
  bool usual = true;
  for (int64_t i = 0; i < count; ++i) {
    const auto terms = of.row(r + i);
    SwishDoubts doubts;
    for (int64_t first = 0; first < n; first += kPiece, ++pieces) {
      LaneRegisters lanes;
      add_terms<Type>(terms, doubts, lanes, dy.at(i, first), x.at(i, first), keep.at(i, first),
                      smaller(kPiece, n - first));
      lanes.store(*pieces);
    }
    usual &= !doubts.any();
  }
  return usual;
}

// Computes u and d, or x̂, of rows in fp32, for every t.
[[gnu::noinline, gnu::flatten]] inline void group_norm_terms_general(const GradientRow row,
                                                                     const float* dy,
                                                                     const float* x, float* u,
                                                                     float* d, int64_t n) {
  const float summed = row.outside_fp32 ? -1 : __builtin_inff();  // as a number: GCC vectorises it
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double h = normalised_wide(x[i], row.mean, row.rstd);
    const float usual = x[i] - row.mean;
    d[i] = magnitude(usual) <= summed ? usual : static_cast<float>(h * row.rescale.h);
    u[i] = swish_gradient_general(dy[i], fused(usual, row.slope, row.shift),
                                  h * row.wide_slope + row.wide_shift, row.rescale.u);
  }
}

// Elements of a row. dx is computed from dy or, if u was kept, from u. later_x is what may be
// fetched meanwhile.
template <class Type, class Raw = typename Type::Raw>
struct GradientPart {
  const Raw* dy;
  const float* u;
  const Raw *x, *later_x;
  Raw* dx;
  int64_t n;
  bool stream;
};

// Stores dx of a part of row r. Returns false if some t is unusual, which does not matter if u was
// kept.
template <class Type>
[[gnu::noinline, gnu::flatten]] bool group_norm_gradient(const GradientFactors& of, int64_t r,
                                                         const GradientPart<Type>& part) {
  const auto [dy, u, x, later_x, dx, n, stream] = part;
  const auto terms = of.row(r);
  SwishDoubts doubts;
  const auto of_dy = [&](const auto& g, const auto& in) __attribute__((always_inline)) {
    const auto d = terms.d(in);
    return terms.dx(terms.u(g, d, doubts), d);
  };
  const auto of_u = [&](const auto& kept, const auto& in)
                        __attribute__((always_inline)) { return terms.dx(kept, terms.d(in)); };
  if (u == nullptr) {
    store_each<Type>(dx, n, stream, of_dy, Input<Type>{dy}, Input<Type>{x});
  } else {
    store_each<Type>(dx, n, stream, of_u, Input<F32>{u}, Input<Type>{x, later_x});
  }
  return !doubts.any();
}

// Computes dx of rows beyond the formula, or with coefficients that fp32 is not enough for.
[[gnu::noinline, gnu::flatten]] inline void group_norm_gradient_general(const InputRow row,
                                                                        const GradientRow from,
                                                                        const float* u,
                                                                        const float* x, float* dx,
                                                                        int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double h = normalised_wide(x[i], from.mean, from.rstd);
    const double rest = row.wide_b + row.wide_c * h;
    dx[i] = canonical(static_cast<float>(row.wide_a * static_cast<double>(u[i]) + rest));
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
