// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of few positions.
#pragma once

#include "core/kernels/group_norm/gradient.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class SmallSpatialGradient : SmallSpatial {
 public:
  explicit SmallSpatialGradient(const GroupNormCall& call) : SmallSpatial(call) {}

  void batch(int64_t item, void* workspace) {
    const GroupBatch batch(call_, item);
    for_samples(call_, batch, workspace, [&](int64_t n, double* beta, double* gamma) {
      sample(n, batch, beta + batch.first_channel, gamma + batch.first_channel);
    });
  }

 private:
  void sample(int64_t n, const GroupBatch& batch, double* beta, double* gamma) {
    const bool once = in_one_tile(batch);
    const int64_t groups = batch.groups, index = n * call_.groups + batch.first_group;
    values_of(call_.mean, index, groups, group_mean_);
    values_of(call_.rstd, index, groups, group_rstd_);
    for (int64_t g = 0; g < groups; ++g) c1_[g] = c2_[g] = 0, exact_[g] = false;
    bool exact = false;
    for_tiles(n, batch, [&](const Region& at) {
      const int64_t first = at.channel - batch.first_channel;
      double *const u = sum_u_ + first, *const ux = sum_ux_ + first;
      set(at);
      load(call_.dy, at, dy_), load(call_.x, at, x_);
      if (!terms(at.rows)) find_unknown(at.rows);
      sum(at.rows, u, ux);
      exact |= mark_exact(at.rows, [&](int64_t c) { return channel_needs_exact(c, u[c], ux[c]); });
      weigh(at, u, c1_), weigh(at, ux, c2_);
    });
    if (finish(groups)) {
      exact = true;
      for (int64_t g = 0; g < groups; ++g) exact_[g] |= group_needs_exact(g);
    }
    for (int64_t g = 0; g < groups && exact; ++g) {
      if (exact_[g])
        ExactGroup(call_, index + g).gradient(sum_u_ + g * width_, sum_ux_ + g * width_, 1);
    }
    for (int64_t c = 0; c < batch.channels; ++c) beta[c] += sum_u_[c], gamma[c] += sum_ux_[c];
    for_tiles(n, batch, [&](const Region& at) {
      if (!once) {
        set(at);
        load(call_.dy, at, dy_), load(call_.x, at, x_);
        terms(at.rows);
      }
      spread(at, group_b_, b_);
      spread(at, group_c_, c_);
      input_gradient(at.rows);
      store(call_.out, at, dy_, exact ? exact_ : nullptr);
    });
  }

  // Sets the factors of a tile: t is that of x̂.
  void set(const Region& at) {
    spread(at, group_mean_, mean_);
    spread(at, group_rstd_, rstd_);
    values_of(call_.gamma, at.channel, at.rows, gamma_);
    values_of(call_.beta, at.channel, at.rows, beta_);
    const double s = call_.scale;
    for (int64_t c = 0; c < at.rows; ++c) {
      slope_[c] = static_cast<float>(s * static_cast<double>(gamma_[c]));
      shift_[c] = static_cast<float>(s * static_cast<double>(beta_[c]));
    }
  }

  // Computes x̂ and u. Returns false if some t needs exact.
  [[gnu::noinline, gnu::flatten]] bool terms(int64_t n) {
    NeedsExact needs_exact;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      for_registers(
          n, [&]<int K>(Registers<K>, int64_t first, int64_t count) __attribute__((always_inline)) {
            Registers<K> h;
            const auto u = map<K>([&](int k) {
              const int64_t c = first + k * kRegisterFloats;
              const auto some = [=](const float* values) {
                return load_some<F32, 1>(values + c, K == 1 ? count : kRegisterFloats).r[0];
              };
              h.r[k] = (some(x_ + i) - some(mean_)) * some(rstd_);
              const FloatRegister t = fused(h.r[k], some(slope_), some(shift_));
              needs_exact.see(sixteenths(t));
              return swish_gradient(some(dy_ + i), t);
            });
            store_some<F32>(xh_ + i + first, h, count, false);
            store_some<F32>(u_ + i + first, u, count, false);
          });
    }
    return !needs_exact.any();
  }

  // Makes the u of elements whose t needs exact NaN.
  void find_unknown(int64_t n) {
    for_each(n, [&](int64_t i, int64_t c) {
      const float t = fused(xh_[i], slope_[c], shift_[c]);
      u_[i] = NeedsExact::of(sixteenths(t)) ? __builtin_nanf("") : u_[i];
    });
  }

  [[gnu::noinline, gnu::flatten]] void sum(int64_t n, double* __restrict u, double* __restrict ux) {
    for (int64_t c = 0; c < n; ++c) u[c] = ux[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      u[c] += static_cast<double>(u_[i]);
      ux[c] += static_cast<double>(u_[i] * xh_[i]);
    });
  }

  // Whether the factors or sums of a channel need exact.
  bool channel_needs_exact(int64_t c, double u, double ux) const {
    const auto fits = [](float x) { return magnitude(x) <= kLargest; };
    const double a = static_cast<double>(rstd_[c]) * static_cast<double>(gamma_[c]);
    return !all(all(fits(slope_[c]), fits(shift_[c])), is_within(a, kLeastFactor, kLargest),
                !GradientRow::needs_exact_sums(u, ux));
  }

  // Adds the sums of channels, times γ, to those of their groups.
  [[gnu::noinline, gnu::flatten]] void weigh(const Region& at, const double* sums,
                                             double* of_group) {
    for (int64_t c = 0; c < at.rows; ++c) weighted_[c] = static_cast<double>(gamma_[c]) * sums[c];
    reduce(at, weighted_, of_group);
  }

  bool group_needs_exact(int64_t g) const {
    return !all(is_within(c1_[g], kLeastAlone), is_within(c2_[g], kLeastFactor));
  }

  // Computes b and c of each group from the sums. Returns whether some group needs exact.
  [[gnu::noinline, gnu::flatten]] bool finish(int64_t groups) {
    const double share = 1 / group_size(call_);
    for (int64_t g = 0; g < groups; ++g) {
      const double rstd = group_rstd_[g];
      c1_[g] = -rstd * (c1_[g] * share), c2_[g] = -rstd * (c2_[g] * share);
      group_b_[g] = static_cast<float>(c1_[g]), group_c_[g] = static_cast<float>(c2_[g]);
    }
    return some(groups, [&](int64_t g) { return group_needs_exact(g); });
  }

  // Writes dx = rstd γ u + (b + c x̂) over dy.
  [[gnu::noinline, gnu::flatten]] void input_gradient(int64_t n) {
    for_each(n, [&](int64_t i, int64_t c) {
      const float rest = fused(c_[c], xh_[i], b_[c]);
      dy_[i] = fused(rstd_[c] * gamma_[c], u_[i], rest);
    });
  }

  alignas(64) Tile dy_, x_, u_, xh_;
  alignas(64) Values mean_, rstd_, gamma_, beta_, slope_, shift_, b_, c_;
  alignas(64) Values group_mean_, group_rstd_, group_b_, group_c_;
  alignas(64) Wide c1_, c2_, weighted_;
  alignas(64) double sum_u_[kMostChannels], sum_ux_[kMostChannels];
};

inline void group_norm_backward_small_spatial(const void* call, void* workspace, int64_t begin,
                                              int64_t end) {
  SmallSpatialGradient gradient(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) gradient.batch(item, workspace);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
