// SPDX-License-Identifier: Apache-2.0
// The loops of GroupNormSwishGrad over the positions of a channel: block by block from memory of
// one type through registers, so that memory is read all the time. As passes over rows of 4 KiB
// (widen, compute, sum or store) the largest shape of benchmarks/group_norm.py took 1.4 times as
// long.
#pragma once

#include "core/kernels/group_norm_dense.h"
#include "core/kernels/group_norm_factors.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Of u and of u x̂.
struct Sums {
  double u, ux;
};

struct Statistics {
  int64_t index = -1;  // sample × groups + group
  float mean, rstd;
};

// What one channel of one sample needs for u.
struct GradientRow {
  GradientRow() = default;
  float mean, rstd, gamma, beta;  // γ and β times s
  double wide_gamma, wide_beta;

  GradientRow(const GroupNormCall& call, const Statistics& of, int64_t channel)
      : mean(of.mean), rstd(of.rstd) {
    const double s = call.scale;
    wide_gamma = s * static_cast<double>(value_of(call.gamma, channel));
    wide_beta = s * static_cast<double>(value_of(call.beta, channel));
    gamma = fp32_or_nan(wide_gamma), beta = fp32_or_nan(wide_beta);
  }
};

// a, b and c of dx = a u + (b + c x̂).
struct InputRow {
  float a, b, c;
  double wide_a, wide_b, wide_c;
  InputRow() = default;
  InputRow(const GradientRow& row, float gamma, const double* mean) {
    const double rstd = row.rstd;
    wide_a = rstd * static_cast<double>(gamma);
    wide_b = -rstd * mean[0], wide_c = -rstd * mean[1];
    a = fp32_or_nan(wide_a), b = fp32_or_nan(wide_b), c = fp32_or_nan(wide_c);
  }

  bool enough(const GradientRow& row) const {
    return a == a && b == b && c == c && magnitude(row.mean) < kHugeMean;
  }
};

template <int K>
struct Terms {
  Registers<K> u, h;  // h: x̂
};

// u and x̂; sees the largest |t|.
template <int K>
[[gnu::always_inline]] inline Terms<K> terms_near(const Registers<K>& dy, const Registers<K>& x,
                                                  const Registers<K>& mean,
                                                  const Registers<K>& rstd,
                                                  const Registers<K>& gamma,
                                                  const Registers<K>& beta, WordRegister& largest) {
  const Registers<K> h = (x - mean) * rstd, t = fused(h, gamma, beta);
  largest = largest_of(largest, t);
  return {swish_gradient_near(dy, t), h};
}

// Of a row.
class TermsOf {
 public:
  explicit TermsOf(const GradientRow& row)
      : mean_(all_of<FloatRegister>(row.mean)),
        rstd_(all_of<FloatRegister>(row.rstd)),
        gamma_(all_of<FloatRegister>(row.gamma)),
        beta_(all_of<FloatRegister>(row.beta)) {}

  template <int K>
  [[gnu::always_inline]] Terms<K> operator()(const Registers<K>& dy, const Registers<K>& x) {
    return terms_near(dy, x, spread<K>(mean_), spread<K>(rstd_), spread<K>(gamma_),
                      spread<K>(beta_), largest_);
  }

  bool near() const { return at_most(largest_, bits_of(kNear)); }

 private:
  FloatRegister mean_, rstd_, gamma_, beta_;
  WordRegister largest_ = {};
};

// Adds u and u x̂ of n elements to the lanes, and puts u where `keep` is.
template <class Type, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void add_terms(TermsOf& terms_of, LaneRegisters& lanes, const Raw* dy,
                                             const Raw* x, float* keep, int64_t n) {
  int64_t i = 0;
  const auto add = [&]<int K>(Registers<K>) __attribute__((always_inline)) {
    constexpr int64_t kStep = K * kRegisterFloats;
    for (; i + kStep <= n; i += kStep) {
      for (int64_t k = 0; k < kStep; k += kBlock)
        fetch_block<Type>(dy + i + k, kAheadBytes), fetch_block<Type>(x + i + k, kAheadBytes);
      const auto [u, h] = terms_of(load_registers<Type, K>(dy + i), load_registers<Type, K>(x + i));
      if (keep != nullptr) store_registers(keep + i, u);
      lanes.add(u, h);
    }
  };
  add(Registers<kTogether>{});
  if (i == n) return;
  add(Registers<kBlockRegisters>{});
  if (i == n) return;
  const Block last_dy = load_part<Type>(dy + i, n - i), last_x = load_part<Type>(x + i, n - i);
  const auto whole = [](const float* block) { return load_registers<F32, kBlockRegisters>(block); };
  const auto [last_u, last_h] = terms_of(whole(last_dy.value), whole(last_x.value));
  Block u, h;
  store_registers(u.value, last_u), store_registers(h.value, last_h);
  if (keep != nullptr) std::memcpy(keep + i, u.value, (n - i) * sizeof(float));
  for (int64_t k = n - i; k < kBlock; ++k) u.value[k] = h.value[k] = 0;  // 0 * inf is no 0
  lanes.add(whole(u.value), whole(h.value));
}

// Σ u and Σ u x̂ of a row of whole pieces but for the last; false where some |t| is beyond the
// formula.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_row_sums(const GradientRow& row, const Raw* dy,
                                                         const Raw* x, float* keep, int64_t n,
                                                         Sums& sums) {
  TermsOf terms_of(row);
  sums = {};
  for (int64_t first = 0; first < n; first += kPiece) {
    LaneRegisters lanes;
    add_terms<Type>(terms_of, lanes, dy + first, x + first,
                    keep == nullptr ? nullptr : keep + first, least(kPiece, n - first));
    LaneSums piece;
    lanes.store(piece);
    sums.u += tree(piece.u), sums.ux += tree(piece.ux);
  }
  return terms_of.near();
}

// Those of several rows of at most a piece, in lanes. Sums and their trees row by row left the
// pipes idle between rows: 55 ns for each.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_short_row_sums(
    const GradientRow* rows, int64_t count, const RowsOf<const Raw>& dy, const RowsOf<const Raw>& x,
    const RowsOf<float>& keep, int64_t n, LaneSums* sums) {
  bool near = true;
  for (int64_t r = 0; r < count; ++r) {
    TermsOf terms_of(rows[r]);
    LaneRegisters lanes;
    add_terms<Type>(terms_of, lanes, dy[r], x[r], keep[r], n);
    lanes.store(sums[r]);
    near &= terms_of.near();
  }
  return near;
}

// Adds those of a part of a piece in fp32 to its lanes.
[[gnu::noinline, gnu::flatten]] inline bool group_norm_sums_near(const GradientRow& row,
                                                                 const float* dy, const float* x,
                                                                 float* keep, int64_t n,
                                                                 LaneSums& sums) {
  TermsOf terms_of(row);
  LaneRegisters lanes(sums);
  add_terms<F32>(terms_of, lanes, dy, x, keep, n);
  lanes.store(sums);
  return terms_of.near();
}

// u and x̂ of rows in fp32, for every t.
[[gnu::noinline, gnu::flatten]] inline void group_norm_terms_far(const GradientRow row,
                                                                 const float* dy, const float* x,
                                                                 float* u, float* xh, int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const FarTerms far(dy[i], x[i], row.mean, row.rstd, row.gamma, row.beta, row.wide_gamma,
                       row.wide_beta);
    xh[i] = far.h, u[i] = far.u;
  }
}

struct InputRegisters {
  FloatRegister a, b, c;
  explicit InputRegisters(const InputRow& row)
      : a(all_of<FloatRegister>(row.a)),
        b(all_of<FloatRegister>(row.b)),
        c(all_of<FloatRegister>(row.c)) {}
  template <int K>
  [[gnu::always_inline]] Registers<K> of(const Registers<K>& u, const Registers<K>& h) const {
    return canonical(fused(spread<K>(a), u, fused(spread<K>(c), h, spread<K>(b))));
  }
};

// dx of n elements; false where some |t| is beyond the formula.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_gradient_near(const InputRow& row,
                                                              const GradientRow& from,
                                                              const Raw* dy, const Raw* x, Raw* dx,
                                                              int64_t n, bool stream) {
  TermsOf terms_of(from);
  const InputRegisters input(row);
  const auto make = [&](const auto& g, const auto& in) __attribute__((always_inline)) {
    const auto [u, h] = terms_of(g, in);
    return input.of(u, h);
  };
  store_each<Type>(dx, n, stream, make, Input<Type>{dy}, Input<Type>{x});
  return terms_of.near();
}

// The same from u that was kept, for every t.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void group_norm_gradient_kept(const InputRow& row,
                                                              const GradientRow& from,
                                                              const float* u, const Raw* x, Raw* dx,
                                                              int64_t n, bool stream) {
  const FloatRegister mean = all_of<FloatRegister>(from.mean),
                      rstd = all_of<FloatRegister>(from.rstd);
  const InputRegisters input(row);
  const auto make = [&]<int K>(const Registers<K>& kept, const Registers<K>& in)
                        __attribute__((always_inline)) {
                          return input.of(kept, (in - spread<K>(mean)) * spread<K>(rstd));
                        };
  store_each<Type>(dx, n, stream, make, Input<F32>{u}, Input<Type>{x});
}

// The same from rows in fp32, for every t …
[[gnu::noinline, gnu::flatten]] inline void group_norm_gradient_rows(const InputRow row,
                                                                     const float* u,
                                                                     const float* xh, float* dx,
                                                                     int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) dx[i] = canonical(fused(row.a, u[i], fused(row.c, xh[i], row.b)));
}

// … and for a mean or coefficients that fp32 is not enough for.
[[gnu::noinline, gnu::flatten]] inline void group_norm_gradient_far(const InputRow row,
                                                                    const GradientRow from,
                                                                    const float* u, const float* x,
                                                                    float* dx, int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double h = normalised_wide(x[i], from.mean, from.rstd);
    const double rest = row.wide_b + row.wide_c * h;
    dx[i] = canonical(static_cast<float>(row.wide_a * static_cast<double>(u[i]) + rest));
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
