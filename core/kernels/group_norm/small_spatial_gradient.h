// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of few positions.
#pragma once

#include "core/kernels/group_norm/factors.h"
#include "core/kernels/group_norm/rescale.h"
#include "core/kernels/group_norm/small_spatial.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class SmallSpatialGradient : SmallSpatialGroups {
 public:
  explicit SmallSpatialGradient(const GroupNormCall& call) : SmallSpatialGroups(call) {}

  void group_batch(int64_t item, void* workspace) {
    const GroupBatch group_batch(call_, item);
    loaded_ = false;
    for_samples(call_, group_batch, workspace, [&](int64_t n, double* beta, double* gamma) {
      sample(n, group_batch, beta, gamma);
    });
  }

 private:
  void sample(int64_t n, const GroupBatch& group_batch, double* beta, double* gamma) {
    const bool once = group_batch.channels <= tile_channels_;  // a tile holds the group batch
    const int64_t groups = group_batch.groups, index = n * call_.groups + group_batch.first_group;
    values_of(call_.mean, index, groups, group_mean_);
    values_of(call_.rstd, index, groups, group_rstd_);
    for (int64_t g = 0; g < groups; ++g) c1_[g] = c2_[g] = 0;
    some_rescaled_ = false;
    for_channels(n, group_batch, [&](const Region& at) {
      prepare(at, once);
      terms(at);
      add(at.rows);
      rescaled_ = find_rescales(at.rows, exponent_ + (at.channel - group_batch.first_channel));
      if (rescaled_) add_rescaled(at.rows);
      weigh(beta + at.channel, gamma + at.channel, at.rows);
      reduce(at, sum_u_, c1_);
      reduce(at, sum_ux_, c2_);
    });
    finish(groups);
    for_channels(n, group_batch, [&](const Region& at) {
      if (!once) {
        prepare(at, once);
        terms(at);
        rescaled_ = some_rescaled_ &&
                    read_rescales(at.rows, exponent_ + (at.channel - group_batch.first_channel));
        if (rescaled_) terms_general<true>(at.rows);
      }
      spread(at, group_b_, b_);
      spread(at, group_c_, c_);
      if (!input_gradient(at.rows)) {
        spread(at, c1_, sum_u_);
        spread(at, c2_, sum_ux_);
        input_gradient_general(at.rows);
      }
      store(call_.out, at, dy_);
    });
  }

  void prepare(const Region& at, bool once) {
    spread(at, group_mean_, mean_);
    spread(at, group_rstd_, rstd_);
    if (loaded_ && once) return;  // γ and β are those of all samples
    loaded_ = true;
    values_of(call_.gamma, at.channel, at.rows, gamma_);
    values_of(call_.beta, at.channel, at.rows, beta_);
    const double s = -kLog2e * call_.scale;  // p is of x̂
    for (int64_t c = 0; c < at.rows; ++c) {
      slope_[c] = fp32_or_nan(s * static_cast<double>(gamma_[c]));
      shift_[c] = fp32_or_nan(s * static_cast<double>(beta_[c]));
    }
  }

  void terms(const Region& at) {
    load(call_.dy, at, dy_);
    load(call_.x, at, x_);
    if (!terms_quick(at.rows)) terms_general<false>(at.rows);
  }

  // Returns whether sums of these sizes are neither small, large nor NaN; then their channel is not
  // rescaled.
  bool are_usual(int64_t c) const {
    const double u = magnitude(sum_u_[c]), ux = magnitude(sum_ux_[c]);
    return all(u >= 0x1p-70, ux >= u * 0x1p-80 + 0x1p-90, u + ux < 0x1p120);
  }

  // Returns whether some channel may have to be rescaled.
  [[gnu::noinline, gnu::flatten]] bool is_doubtful(int64_t n) const {
    uint64_t doubtful = 0;  // as wide as the sums: GCC vectorises it
    for (int64_t c = 0; c < n; ++c) doubtful |= are_usual(c) ? 0 : 1;
    return doubtful != 0;
  }

  // Finds the channels to be rescaled, each by its own values. Returns false if there are none.
  bool find_rescales(int64_t n, int8_t* exponent) {
    std::memset(exponent, kNoRescale, n);
    if (!is_doubtful(n) || are_ordinary(n)) return false;
    find_largest(n);
    for (int64_t c = 0; c < n; ++c) {
      const double h = static_cast<double>(c_[c]) * static_cast<double>(magnitude(rstd_[c]));
      const Extent largest{static_cast<double>(b_[c]), h};
      rescale_h_[c] = 1;
      if (are_usual(c) || !is_lost(largest, true)) continue;
      exponent[c] = static_cast<int8_t>(exponent_to_one(largest.dy));
      rescale_h_[c] = power_of_two(exponent_to_one(h));
    }
    return read_rescales(n, exponent);
  }

  // Returns whether every dy and x - mean that is not 0, and every rstd, is so ordinary that no
  // digits are lost.
  [[gnu::noinline, gnu::flatten]] bool are_ordinary(int64_t n) const {
    WordRegister least = all_words(UINT32_MAX), most = all_words(0);
    const auto twice = [](float x) { return bits_of(x) << 1; };
    // `by` moves the ordinary range to 2^30 to 2^120; what is too small does not become 0
    const auto see = [&]<int K>(const Registers<K>& values, float by)
                         __attribute__((always_inline)) {
#pragma GCC unroll 8
                           for (int k = 0; k < K; ++k) {
                             const WordRegister size = bits_of(values.r[k] * by) << 1;
                             least = smaller(least, size - 1), most = larger(most, size);
                           }
                         };
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      for_registers(n, [&]<int K>(Registers<K>, int64_t c,
                                  int64_t count) __attribute__((always_inline)) {
        const auto some = [=](const float* values) { return load_some<F32, K>(values + c, count); };
        see(some(dy_ + i), 0x1p90f);               // 2^-60 to 2^30
        see(some(x_ + i) - some(mean_), 0x1p60f);  // 2^-30 to 2^60
        if (i != 0) return;
        const Registers<K> rstd = load_some<F32, K>(rstd_ + c, count, 1);
        see(rstd, 0x1p40f), see(rstd, 0x1p90f);  // 2^-10 to 2^30
      });
    }
    return at_most(most, twice(0x1p120f)) && at_most(~least, ~(twice(0x1p30f) - 1));
  }

  // The largest |dy| and |x - mean| of each channel, in b and c; a difference that overflows counts
  // as the largest number.
  [[gnu::noinline, gnu::flatten]] void find_largest(int64_t n) {
    for (int64_t c = 0; c < n; ++c) b_[c] = c_[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      const float size = magnitude(dy_[i]), distance = magnitude(x_[i] - mean_[c]);
      const float d = distance > kLargest ? kLargest : distance;
      b_[c] = size > b_[c] ? size : b_[c];
      c_[c] = d > c_[c] ? d : c_[c];
    });
  }

  bool read_rescales(int64_t n, const int8_t* exponent) {
    bool found = false;
    for (int64_t c = 0; c < n; ++c) {
      const bool lost = exponent[c] != kNoRescale;
      rescale_u_[c] = lost ? power_of_two(exponent[c]) : 0;
      found |= lost;
    }
    return found;
  }

  void add_rescaled(int64_t n) {
    terms_general<true>(n);
    add(n);
    for (int64_t c = 0; c < n; ++c) {
      if (rescale_u_[c] == 0) continue;
      sum_u_[c] /= rescale_u_[c], sum_ux_[c] /= rescale_u_[c] * rescale_h_[c];
    }
    some_rescaled_ = true;
  }

  [[gnu::noinline, gnu::flatten]] bool terms_quick(int64_t n) {
    SwishDoubts doubts;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      for_registers(n, [&]<int K>(Registers<K>, int64_t c,
                                  int64_t count) __attribute__((always_inline)) {
        const auto some = [=](const float* values) { return load_some<F32, K>(values + c, count); };
        const Registers<K> h = (some(x_ + i) - some(mean_)) * some(rstd_);
        const Registers<K> p = fused(h, some(slope_), some(shift_));
        doubts.see(sixteenths(p));
        store_some<F32>(xh_ + i + c, h, count, false);
        const Registers<K> u = swish_gradient_quick(some(dy_ + i), p);
        store_some<F32>(u_ + i + c, u, count, false);
      });
    }
    return !doubts.any();
  }

  // The exact form, for every t. Multiplies the values of rescaled channels by their rescale
  // factors. Rescales are rare, and their masks of 32 and 64 bits keep the compiler from
  // vectorising this. (The second sweep of a large group has u's rescales alone; nothing reads the
  // x̂ of rescaled channels there.)
  template <bool rescaled>
  [[gnu::noinline, gnu::flatten]] void terms_general(int64_t n) {
    const double s = call_.scale;
    for_each(n, [&](int64_t i, int64_t c) {
      const float d = x_[i] - mean_[c], usual = d * rstd_[c];
      const double wide = normalised_wide(x_[i], mean_[c], rstd_[c]);
      const double v = wide * static_cast<double>(gamma_[c]) + static_cast<double>(beta_[c]);
      const float p = fused(usual, slope_[c], shift_[c]);
      const bool lost = rescaled && rescale_u_[c] != 0;
      const double by_u = lost ? rescale_u_[c] : 1, by_h = lost ? rescale_h_[c] : 1;
      const bool fits = all(magnitude(d) <= kLargest, !lost);
      xh_[i] = fits ? usual : static_cast<float>(wide * by_h);
      u_[i] = swish_gradient_general(dy_[i], lost ? __builtin_nanf("") : p, s * v, by_u);
    });
  }

  [[gnu::noinline, gnu::flatten]] void add(int64_t n) {
    for (int64_t c = 0; c < n; ++c) sum_u_[c] = sum_ux_[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      sum_u_[c] += static_cast<double>(u_[i]);
      sum_ux_[c] += static_cast<double>(u_[i] * xh_[i]);
    });
  }

  // Adds the sums to the gradients of the parameters, and multiplies them by γ for the means.
  [[gnu::noinline, gnu::flatten]] void weigh(double* __restrict beta, double* __restrict gamma,
                                             int64_t n) {
    for (int64_t c = 0; c < n; ++c) {
      const double weight = gamma_[c];
      beta[c] += sum_u_[c], gamma[c] += sum_ux_[c];
      sum_u_[c] *= weight, sum_ux_[c] *= weight;
    }
  }

  // Computes b and c of each group from the sums, and whether fp32 is enough for all of them.
  [[gnu::noinline, gnu::flatten]] void finish(int64_t groups) {
    const double share = 1 / group_size(call_);
    uint64_t lost = 0;  // as wide as the sums: GCC vectorises it
    for (int64_t g = 0; g < groups; ++g) {
      const double rstd = group_rstd_[g];
      c1_[g] = -rstd * (c1_[g] * share), c2_[g] = -rstd * (c2_[g] * share);
      group_b_[g] = static_cast<float>(c1_[g]), group_c_[g] = static_cast<float>(c2_[g]);
    }
    for (int64_t g = 0; g < groups; ++g)
      lost |= all(is_within(c1_[g], kLeastAlone), is_within(c2_[g], kLeastFactor)) ? 0 : 1;
    const uint32_t mean = largest_bits(groups, [&](int64_t g) { return group_mean_[g]; });
    groups_fit_fp32_ = mean < bits_of(kHugeMean) && lost == 0;
  }

  // Returns whether fp32 is enough for rstd γ, the factor of u.
  bool a_fits(int64_t c) const {
    const float size = magnitude(rstd_[c] * gamma_[c]);
    return all(size <= kLargest, (size >= kLeastFactor) | (gamma_[c] == 0));
  }

  // Writes dx = rstd γ u + (b + c x̂) over dy. Returns false if fp32 is not enough for some
  // channel.
  [[gnu::noinline, gnu::flatten]] bool input_gradient(int64_t n) {
    if (rescaled_ || !groups_fit_fp32_) return false;
    uint32_t lost = 0;
    for (int64_t c = 0; c < n; ++c) lost |= a_fits(c) ? 0 : 1;
    if (lost != 0) return false;
    for_each(n, [&](int64_t i, int64_t c) {
      const float rest = fused(c_[c], xh_[i], b_[c]);
      dy_[i] = fused(rstd_[c] * gamma_[c], u_[i], rest);
    });
    return true;
  }

  // b and c of each channel are in sum_u_ and sum_ux_.
  [[gnu::noinline, gnu::flatten]] void input_gradient_general(int64_t n) {
    for_each(n, [&](int64_t i, int64_t c) {
      const float rest = fused(c_[c], xh_[i], b_[c]);
      const float usual = fused(rstd_[c] * gamma_[c], u_[i], rest);
      const bool lost = rescaled_ && rescale_u_[c] != 0;
      const double a = static_cast<double>(rstd_[c]) * static_cast<double>(gamma_[c]) *
                       (lost ? 1 / rescale_u_[c] : 1);
      const double h = normalised_wide(x_[i], mean_[c], rstd_[c]);
      const double wide = a * static_cast<double>(u_[i]) + (sum_u_[c] + sum_ux_[c] * h);
      const bool rest_fits =
          all(is_within(sum_u_[c], kLeastAlone), is_within(sum_ux_[c], kLeastFactor));
      const bool fits = all(a_fits(c), rest_fits, all(magnitude(mean_[c]) < kHugeMean, !lost));
      dy_[i] = canonical(fits ? usual : static_cast<float>(wide));
    });
  }

  using Tile = float[kSmallSpatialTile];
  using Values = float[kSmallSpatialChannels];
  using Wide = double[kSmallSpatialChannels];
  alignas(64) Tile dy_, x_, u_, xh_;
  alignas(64) Values mean_, rstd_, gamma_, beta_, slope_, shift_, b_, c_;
  alignas(64) Values group_mean_, group_rstd_, group_b_, group_c_;
  alignas(64) Wide sum_u_, sum_ux_, c1_, c2_;
  alignas(64) Wide rescale_u_, rescale_h_;  // 0: none
  int8_t exponent_[kMostChannels];          // kNoRescale: none
  bool loaded_ = false, groups_fit_fp32_ = true, rescaled_ = false, some_rescaled_ = false;
};

inline void group_norm_backward_small_spatial(const void* call, void* workspace, int64_t begin,
                                              int64_t end) {
  SmallSpatialGradient gradient(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) gradient.group_batch(item, workspace);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
