// SPDX-License-Identifier: Apache-2.0
// Group norm of DOUBLE tensors, which no product has, serves gradient checks and as a reference. It
// therefore makes plain sweeps over one group at a time. Every sum keeps what its additions lost,
// so that errors do not grow with the number of terms.
#pragma once

#include "core/kernels/fused.h"
#include "core/kernels/group_norm/parameters.h"

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

inline constexpr int64_t kPositions = 512;  // of a channel that are worked on at a time, 8 n

// Reads and writes n positions of one channel of the large tensors.
struct Piece {
  const GroupNormCall& call;
  int64_t sample, channel, first, n;

  void load(const GroupNormTensor& t, double* values) const {
    for_each(t, [=](const double& element, int64_t i) { values[i] = element; });
  }
  void store(const GroupNormTensor& t, const double* values) const {
    for_each(t, [=](double& element, int64_t i) { element = canonical(values[i]); });
  }

 private:
  void for_each(const GroupNormTensor& t, const auto& work) const {
    const int64_t step = t.position[call.spatial_loops - 1];
    for_runs(call, t, sample, channel, first, n, [=](int64_t offset, int64_t i, int64_t count) {
      double* const at = static_cast<double*>(t.data) + offset;
      for (int64_t k = 0; k < count; ++k) work(at[k * step], i + k);
    });
  }
};

// σ(t) and 1 - σ(t). From |t| = 700 on the smaller of the two is below 2^-1009 and counts as 0.
inline Logistic logistic_double(double t) {
  const double size = magnitude(t);
  const ExpF64 power = exp_exact(size > 700 ? -700 : -size, 0);
  const double e =
      size > 700 ? 0 : power_of_2_exact(power.n) * (1 + (power.r + (power.half_square + power.q)));
  const double larger = 1 / (1 + e), smaller = e * larger;
  return {t > 0 ? larger : smaller, t > 0 ? smaller : larger};
}

inline double within_thousand(double t) { return t > 1000 ? 1000 : t < -1000 ? -1000 : t; }

// A group of one sample, with the statistics that normalise its x.
struct DoubleGroup {
  const GroupNormCall& call;
  int64_t index, width = call.channels / call.groups;
  Pair mean = {0, 0};
  double rstd = 0, gamma = 0, beta = 0;

  double centred(double x) const { return (x - mean.high) - mean.low; }
  double h(double x) const { return centred(x) * rstd; }
  double v(double h) const { return fused(h, gamma, beta); }

  // Calls work(c) for each channel, with γ and β of it.
  void for_channels(const auto& work) {
    const int64_t first = index % call.groups * width;
    for (int64_t c = first; c < first + width; ++c) {
      gamma = value_of<double>(call.gamma, c), beta = value_of<double>(call.beta, c);
      work(c);
    }
  }
  void for_pieces(int64_t c, const auto& work) const {
    for (int64_t i = 0; i < call.positions; i += kPositions)
      work(Piece{call, index / call.groups, c, i, smaller(kPositions, call.positions - i)});
  }
  void for_pieces(const auto& work) {
    for_channels([&](int64_t c) { for_pieces(c, work); });
  }
};

inline Pair divided(Pair sum, double n) {
  const double high = sum.high / n, rest = fused(-high, n, sum.high);
  return {high, rest == rest ? (rest + sum.low) / n : 0};
}

// Items: (sample, group).
inline void group_norm_forward_double(const void* given, void*, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double size = group_size(call);
  alignas(64) double x[kPositions];
  for (int64_t item = begin; item < end; ++item) {
    DoubleGroup group{call, item};
    ExactSum sum, squares;
    group.for_pieces([&](const Piece& at) {
      at.load(call.x, x);
      sum.add(x, at.n);
    });
    group.mean = divided(sum.total(), size);
    group.for_pieces([&](const Piece& at) {
      at.load(call.x, x);
      for (int64_t i = 0; i < at.n; ++i) x[i] = group.centred(x[i]) * group.centred(x[i]);
      squares.add(x, at.n);
    });
    group.rstd = 1 / __builtin_sqrt(number_of(squares.total()) / size + call.eps);
    group.for_pieces([&](const Piece& at) {
      at.load(call.x, x);
      for (int64_t i = 0; i < at.n; ++i) {
        const double v = group.v(group.h(x[i]));
        x[i] = call.swish ? v * logistic_double(call.wide_scale * v).value : v;
      }
      at.store(call.out, x);
    });
    double mean = number_of(group.mean);
    store_values(call.mean, item, 1, &mean);
    store_values(call.rstd, item, 1, &group.rstd);
  }
}

// Returns NaN if one of them is infinite or NaN.
inline double one_if_finite(auto... x) { return 1 + (... + (x - x)); }

// dy σ (1 + t (1 - σ))
inline double swish_gradient_double(double dy, double t) {
  const Logistic l = logistic_double(t);
  return dy * (l.value * (1 + within_thousand(t) * l.rest));
}

// Items: (sample, group). The sums of u and u h of each channel stay for the parameters.
inline void group_norm_backward_double(const void* given, void* workspace, int64_t begin,
                                       int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double size = group_size(call);
  alignas(64) double x[kPositions], u[kPositions], uh[kPositions];
  for (int64_t item = begin; item < end; ++item) {
    const int64_t before = item / call.groups * call.channels;
    double* const beta_sums = doubles_at(workspace, call.beta_sums) + before;
    double* const gamma_sums = doubles_at(workspace, call.gamma_sums) + before;
    DoubleGroup group{call, item};
    group.mean.high = value_of<double>(call.mean, item);
    group.rstd = value_of<double>(call.rstd, item);
    // x becomes h, and dy becomes u: NaN where t is infinite because an input is, since swish' has
    // t (1 - σ), infinity times 0.
    const auto load = [&](const Piece& at) {
      at.load(call.x, x);
      at.load(call.dy, u);
      for (int64_t i = 0; i < at.n; ++i) {
        u[i] *= one_if_finite(group.gamma, group.beta, group.mean.high, group.rstd, x[i]);
        x[i] = group.h(x[i]);
        u[i] = swish_gradient_double(u[i], call.wide_scale * group.v(x[i]));
      }
    };
    ExactSum weighted, weighted_h;
    group.for_channels([&](int64_t c) {
      ExactSum sum, sum_h;
      group.for_pieces(c, [&](const Piece& at) {
        load(at);
        for (int64_t i = 0; i < at.n; ++i) uh[i] = u[i] * x[i];
        sum.add(u, at.n), sum_h.add(uh, at.n);
      });
      beta_sums[c] = number_of(sum.total()), gamma_sums[c] = number_of(sum_h.total());
      const double of_beta = group.gamma * beta_sums[c], of_gamma = group.gamma * gamma_sums[c];
      weighted.add(&of_beta, 1), weighted_h.add(&of_gamma, 1);
    });
    const double c1 = number_of(weighted.total()) / size, c2 = number_of(weighted_h.total()) / size;
    group.for_pieces([&](const Piece& at) {
      load(at);
      for (int64_t i = 0; i < at.n; ++i)
        u[i] = group.rstd * (group.gamma * u[i] - fused(x[i], c2, c1));
      at.store(call.out, u);
    });
  }
}

// Items: channels. Adds up all samples.
inline void group_norm_parameters_double(const void* given, void* workspace, int64_t begin,
                                         int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  combine_parameters(call, workspace, begin, end,
                     [&](const double* parts, int64_t first, int64_t n, double* totals) {
                       for (int64_t i = 0; i < n; ++i) {
                         ExactSum sum;
                         for (int64_t b = 0; b < call.samples; ++b)
                           sum.add(parts + b * call.channels + first + i, 1);
                         totals[i] = number_of(sum.total());
                       }
                     });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
