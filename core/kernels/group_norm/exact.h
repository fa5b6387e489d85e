// SPDX-License-Identifier: Apache-2.0
// The exact form of group norm: plain sweeps over one group in fp64, for every value, layout and
// dtype. It computes DOUBLE tensors, and of others the groups that fp32 is not enough for. Every
// sum keeps what its additions lost, so that errors do not grow with the number of terms.
#pragma once

#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// A sum in 8 lanes: term i of what is added at a time goes to lane i % 8, whatever the layout, and
// the loop vectorises.
class ExactSum {
 public:
  void add(const double* terms, int64_t n) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) add_lanes(terms + i, kWidth);
    add_lanes(terms + i, n - i);
  }

  // If `high` is infinite or NaN, `low` is 0.
  Pair total() const {
    Pair sum = {0, 0};
    for (int64_t l = 0; l < kWidth; ++l) {
      const Pair next = sum_of(sum.high, sum_[l]);
      sum = {next.high, sum.low + next.low + lost_[l]};
    }
    return sum.low == sum.low ? sum_of(sum.high, sum.low) : Pair{sum.high, 0};
  }

 private:
  static constexpr int64_t kWidth = 8;

  void add_lanes(const double* terms, int64_t n) {
    for (int64_t l = 0; l < n; ++l) {
      const Pair next = sum_of(sum_[l], terms[l]);
      sum_[l] = next.high, lost_[l] += next.low;
    }
  }

  double sum_[kWidth] = {}, lost_[kWidth] = {};
};

inline double number_of(Pair x) { return x.high + x.low; }

// σ(t) and 1 - σ(t); t is clamped to ±1400, where exp(-|t|) is 0 already.
struct Logistic {
  double value, rest;
};
inline Logistic logistic(double t) {
  const Exponential power = exponential(clamped(-magnitude(t), -1400, 0).value);
  const double e = (1 + power.m) * power.first * power.second, larger = 1 / (1 + e);
  return {(t > 0 ? 1 : e) * larger, (t > 0 ? e : 1) * larger};
}

// What one channel of a group is computed with.
struct ExactRow {
  Pair mean;
  double rstd, gamma, beta, scale;
  bool swish;

  double centred(double x) const { return (x - mean.high) - mean.low; }
  double h(double x) const { return centred(x) * rstd; }
  double t(double h) const { return scale * fused(h, gamma, beta); }
};

// Turns x into y.
[[gnu::noinline, gnu::flatten]] inline void exact_normalise(const ExactRow row, double* x,
                                                            int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) x[i] = fused(row.h(x[i]), row.gamma, row.beta);
  if (!row.swish) return;
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) x[i] *= logistic(row.scale * x[i]).value;
}

// Turns x into h = x̂, and dy into u = dy σ (1 + t (1 - σ)): NaN where t is infinite because an
// input is (not_finite is NaN, or x is), since swish' has t (1 - σ), infinity times 0.
[[gnu::noinline, gnu::flatten]] inline void exact_terms(const ExactRow row, double not_finite,
                                                        double* x, double* dy, int64_t n) {
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double g = dy[i] * (not_finite + (x[i] - x[i]));
    x[i] = row.h(x[i]);
    const double t = row.t(x[i]);
    const Logistic l = logistic(t);
    dy[i] = g * (l.value * (1 + (t > 1000 ? 1000 : t < -1000 ? -1000 : t) * l.rest));
  }
}

// One group of one sample.
class ExactGroup {
 public:
  ExactGroup(const GroupNormCall& call, int64_t index) : call_(call), index_(index) {}

  [[gnu::noinline]] void forward() {
    alignas(64) double x[kPiece];
    const double size = group_size(call_);
    ExactSum sum, squares;
    for_pieces([&](int64_t c, int64_t i, int64_t n) {
      load(call_.x, c, i, n, x);
      sum.add(x, n);
    });
    row_.mean = divided(sum.total(), size);
    for_pieces([&](int64_t c, int64_t i, int64_t n) {
      load(call_.x, c, i, n, x);
      for (int64_t k = 0; k < n; ++k) x[k] = row_.centred(x[k]) * row_.centred(x[k]);
      squares.add(x, n);
    });
    row_.rstd = 1 / __builtin_sqrt(number_of(squares.total()) / size + call_.eps);
    for_pieces([&](int64_t c, int64_t i, int64_t n) {
      load(call_.x, c, i, n, x);
      exact_normalise(row_, x, n);
      store(call_.out, c, i, n, x);
    });
    double mean = number_of(row_.mean);
    store_values(call_.mean, index_, 1, &mean);
    store_values(call_.rstd, index_, 1, &row_.rstd);
  }

  // Puts Σ u and Σ u x̂ of each channel into [0], [step], …
  [[gnu::noinline]] void gradient(double* sum_u, double* sum_ux, int64_t step) {
    alignas(64) double x[kPiece], u[kPiece], uh[kPiece];
    const double size = group_size(call_);
    row_.mean = {value_of(call_.mean, index_), 0}, row_.rstd = value_of(call_.rstd, index_);
    const auto terms = [&](int64_t c, int64_t i, int64_t n) {
      load(call_.x, c, i, n, x), load(call_.dy, c, i, n, u);
      const double zeros = (row_.gamma - row_.gamma) + (row_.beta - row_.beta) +
                           (row_.mean.high - row_.mean.high) + (row_.rstd - row_.rstd);
      exact_terms(row_, 1 + zeros, x, u, n);
    };
    ExactSum weighted, weighted_h;
    for_channels([&](int64_t c) {
      ExactSum sum, sum_h;
      for_pieces_of_row([&](int64_t i, int64_t n) {
        terms(c, i, n);
        for (int64_t k = 0; k < n; ++k) uh[k] = u[k] * x[k];
        sum.add(u, n), sum_h.add(uh, n);
      });
      const double of_beta = number_of(sum.total()), of_gamma = number_of(sum_h.total());
      const double one = row_.gamma * of_beta, other = row_.gamma * of_gamma;
      weighted.add(&one, 1), weighted_h.add(&other, 1);
      *sum_u = of_beta, *sum_ux = of_gamma;
      sum_u += step, sum_ux += step;
    });
    const double c1 = number_of(weighted.total()) / size, c2 = number_of(weighted_h.total()) / size;
    for_pieces([&](int64_t c, int64_t i, int64_t n) {
      terms(c, i, n);
      for (int64_t k = 0; k < n; ++k) u[k] = row_.rstd * (row_.gamma * u[k] - fused(x[k], c2, c1));
      store(call_.out, c, i, n, u);
    });
  }

 private:
  static Pair divided(Pair sum, double n) {
    const double high = sum.high / n, rest = fused(-high, n, sum.high);
    return {high, rest == rest ? (rest + sum.low) / n : 0};
  }

  // Call work(c), work(i, n) for pieces of n positions from i on, and work(c, i, n); γ and β are
  // those of c.
  void for_channels(const auto& work) {
    const int64_t width = channels_of_group(call_), first = index_ % call_.groups * width;
    for (int64_t c = first; c < first + width; ++c) {
      row_.gamma = value_of(call_.gamma, c), row_.beta = value_of(call_.beta, c);
      work(c);
    }
  }
  void for_pieces_of_row(const auto& work) const {
    for (int64_t i = 0; i < call_.positions; i += kPiece)
      work(i, smaller(kPiece, call_.positions - i));
  }
  void for_pieces(const auto& work) {
    for_channels(
        [&](int64_t c) { for_pieces_of_row([&](int64_t i, int64_t n) { work(c, i, n); }); });
  }

  // Read and write n positions of channel c from i on.
  [[gnu::noinline]] void load(const GroupNormTensor& t, int64_t c, int64_t i, int64_t n,
                              double* values) {
    for_elements(t, c, i, n, [&](void* at, int64_t step, int64_t k, int64_t count) {
      move(raw_, {0, 1}, at, {0, step}, 1, count, t.element);
      widen(values + k, raw_, t.element, count);
    });
  }
  [[gnu::noinline]] void store(const GroupNormTensor& t, int64_t c, int64_t i, int64_t n,
                               double* values) {
    for (int64_t k = 0; k < n; ++k) values[k] = canonical(values[k]);
    for_elements(t, c, i, n, [&](void* at, int64_t step, int64_t k, int64_t count) {
      narrow(raw_, values + k, t.element, count);
      move(at, {0, step}, raw_, {0, 1}, 1, count, t.element);
    });
  }
  void for_elements(const GroupNormTensor& t, int64_t c, int64_t i, int64_t n,
                    const auto& work) const {
    for_runs(call_, t, index_ / call_.groups, c, i, n,
             [&](int64_t offset, int64_t k, int64_t count) {
               work(element_at(t.data, t.element, offset), t.position[call_.spatial_loops - 1], k,
                    count);
             });
  }

  const GroupNormCall& call_;
  const int64_t index_;
  ExactRow row_ = {{0, 0}, 0, 0, 0, call_.scale, call_.swish};
  alignas(64) char raw_[kPiece * sizeof(double)];
};

// DOUBLE tensors. Items: (sample, group).
inline void group_norm_forward_double(const void* call, void*, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) ExactGroup(group_norm_call(call), item).forward();
}
inline void group_norm_backward_double(const void* given, void* workspace, int64_t begin,
                                       int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  for (int64_t item = begin; item < end; ++item) {
    const int64_t first = item * channels_of_group(call);
    ExactGroup(call, item)
        .gradient(doubles_at(workspace, call.beta_sums) + first,
                  doubles_at(workspace, call.gamma_sums) + first, 1);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
