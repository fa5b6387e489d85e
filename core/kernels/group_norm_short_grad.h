// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of few positions.
#pragma once

#include "core/kernels/group_norm_factors.h"
#include "core/kernels/group_norm_short.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class ShortGradient : ShortGroups {
 public:
  explicit ShortGradient(const GroupNormCall& call) : ShortGroups(call) {}

  void bundle(int64_t item, void* workspace) {
    const Bundle bundle(call_, item);
    loaded_ = false;
    for_samples(call_, bundle, workspace,
                [&](int64_t n, double* beta, double* gamma) { sample(n, bundle, beta, gamma); });
  }

 private:
  void sample(int64_t n, const Bundle& bundle, double* beta, double* gamma) {
    const bool once = bundle.channels <= together_;  // a tile holds the bundle
    const int64_t groups = bundle.groups, index = n * call_.groups + bundle.first_group;
    load(call_.mean, index, groups, group_mean_);
    load(call_.rstd, index, groups, group_rstd_);
    for (int64_t g = 0; g < groups; ++g) c1_[g] = c2_[g] = 0;
    for_channels(n, bundle, [&](const Channels& at) {
      prepare(at, once);
      terms(at);
      add(at.count);
      weigh(beta + at.first, gamma + at.first, at.count);
      reduce(at, sum_u_, c1_);
      reduce(at, sum_ux_, c2_);
    });
    finish(groups);
    for_channels(n, bundle, [&](const Channels& at) {
      if (!once) {
        prepare(at, once);
        terms(at);
      }
      spread(at, group_b_, b_);
      spread(at, group_c_, c_);
      if (!input_gradient(at.count)) {
        spread(at, c1_, sum_u_);
        spread(at, c2_, sum_ux_);
        input_gradient_far(at.count);
      }
      store(call_.out, at, dy_);
    });
  }

  void prepare(const Channels& at, bool once) {
    spread(at, group_mean_, mean_);
    spread(at, group_rstd_, rstd_);
    if (loaded_ && once) return;  // γ and β are those of all samples
    loaded_ = true;
    values_of(call_.gamma, at.first, at.count, gamma_);
    values_of(call_.beta, at.first, at.count, beta_);
    const double s = kMinusLog2e * call_.scale;  // p is of x̂
    for (int64_t c = 0; c < at.count; ++c) {
      slope_[c] = fp32_or_nan(s * static_cast<double>(gamma_[c]));
      shift_[c] = fp32_or_nan(s * static_cast<double>(beta_[c]));
    }
  }

  void terms(const Channels& at) {
    load(call_.dy, at, dy_);
    load(call_.x, at, x_);
    if (!terms_near(at.count)) terms_far(at.count);
  }

  [[gnu::noinline, gnu::flatten]] bool terms_near(int64_t n) {
    AllNear all;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      for_registers(n, [&]<int K>(Registers<K>, int64_t c,
                                  int64_t count) __attribute__((always_inline)) {
        const auto some = [=](const float* values) { return load_some<F32, K>(values + c, count); };
        const Registers<K> h = (some(x_ + i) - some(mean_)) * some(rstd_);
        const Registers<K> p = fused(h, some(slope_), some(shift_));
        all.see(sixteenths(p));
        store_some<F32>(xh_ + i + c, h, count, false);
        const Registers<K> u = swish_gradient_near(some(dy_ + i), p);
        store_some<F32>(u_ + i + c, u, count, false);
      });
    }
    return all.are();
  }

  [[gnu::noinline, gnu::flatten]] void terms_far(int64_t n) {
    const double s = call_.scale;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float d = x_[i + c] - mean_[c], usual = d * rstd_[c];
        const double wide = normalised_wide(x_[i + c], mean_[c], rstd_[c]);
        const double v = wide * static_cast<double>(gamma_[c]) + static_cast<double>(beta_[c]);
        xh_[i + c] = magnitude(d) <= kLargest ? usual : static_cast<float>(wide);
        u_[i + c] = swish_gradient_of(dy_[i + c], fused(usual, slope_[c], shift_[c]), s * v);
      }
    }
  }

  [[gnu::noinline, gnu::flatten]] void add(int64_t n) {
    for (int64_t c = 0; c < n; ++c) sum_u_[c] = sum_ux_[c] = 0;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        sum_u_[c] += static_cast<double>(u_[i + c]);
        sum_ux_[c] += static_cast<double>(u_[i + c] * xh_[i + c]);
      }
    }
  }

  // To the gradients of the parameters, and times γ for the means.
  [[gnu::noinline, gnu::flatten]] void weigh(double* __restrict beta, double* __restrict gamma,
                                             int64_t n) {
    for (int64_t c = 0; c < n; ++c) {
      const double weight = gamma_[c];
      beta[c] += sum_u_[c], gamma[c] += sum_ux_[c];
      sum_u_[c] *= weight, sum_ux_[c] *= weight;
    }
  }

  // From sums to b and c of each group, and whether fp32 is enough for them all.
  [[gnu::noinline, gnu::flatten]] void finish(int64_t groups) {
    const double share = 1 / group_size(call_);
    uint32_t mean = 0, largest = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const double rstd = group_rstd_[g];
      c1_[g] = -rstd * (c1_[g] * share), c2_[g] = -rstd * (c2_[g] * share);
      group_b_[g] = static_cast<float>(c1_[g]), group_c_[g] = static_cast<float>(c2_[g]);
      const uint32_t size = bits_of(magnitude(group_mean_[g]));
      const uint32_t b = bits_of(magnitude(group_b_[g])), c = bits_of(magnitude(group_c_[g]));
      const uint32_t larger = b > c ? b : c;
      mean = mean > size ? mean : size;
      largest = largest > larger ? largest : larger;
    }
    groups_enough_ = mean < bits_of(kHugeMean) && largest <= bits_of(kLargest);
  }

  static bool enough(float mean, float b, float c) {
    return all(magnitude(mean) < kHugeMean, magnitude(b) <= kLargest, magnitude(c) <= kLargest);
  }

  // dx = rstd γ u + (b + c x̂), over dy; false where fp32 is not enough for some channel.
  [[gnu::noinline, gnu::flatten]] bool input_gradient(int64_t n) {
    uint32_t largest = 0;
    for (int64_t c = 0; c < n; ++c) {
      const uint32_t size = bits_of(magnitude(rstd_[c] * gamma_[c]));
      largest = largest > size ? largest : size;
    }
    if (largest > bits_of(kLargest) || !groups_enough_) return false;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float rest = fused(c_[c], xh_[i + c], b_[c]);
        dy_[i + c] = fused(rstd_[c] * gamma_[c], u_[i + c], rest);
      }
    }
    return true;
  }

  // b and c of each channel are in sum_u_ and sum_ux_.
  [[gnu::noinline, gnu::flatten]] void input_gradient_far(int64_t n) {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float rest = fused(c_[c], xh_[i + c], b_[c]);
        const float usual = fused(rstd_[c] * gamma_[c], u_[i + c], rest);
        const double a = static_cast<double>(rstd_[c]) * static_cast<double>(gamma_[c]);
        const double h = normalised_wide(x_[i + c], mean_[c], rstd_[c]);
        const double wide = a * static_cast<double>(u_[i + c]) + (sum_u_[c] + sum_ux_[c] * h);
        const bool near =
            all(enough(mean_[c], b_[c], c_[c]), magnitude(rstd_[c] * gamma_[c]) <= kLargest);
        dy_[i + c] = canonical(near ? usual : static_cast<float>(wide));
      }
    }
  }

  using Tile = float[kShortTile];
  using Values = float[kShortChannels];
  using Wide = double[kShortChannels];
  alignas(64) Tile dy_, x_, u_, xh_;
  alignas(64) Values mean_, rstd_, gamma_, beta_, slope_, shift_, b_, c_;
  alignas(64) Values group_mean_, group_rstd_, group_b_, group_c_;
  alignas(64) Wide sum_u_, sum_ux_, c1_, c2_;
  bool loaded_ = false, groups_enough_ = true;
};

inline void group_norm_backward_short(const void* call, void* workspace, int64_t begin,
                                      int64_t end) {
  ShortGradient gradient(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) gradient.bundle(item, workspace);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
