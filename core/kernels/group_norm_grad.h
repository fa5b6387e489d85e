// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of many positions. With x̂ = (x - mean) rstd, t = s (x̂ γ + β) and
// u = dy σ(t) (1 + t (1 - σ(t))), one sweep sums u and u x̂ of each channel, the next stores
// dx = rstd (γ u - c1 - x̂ c2), c1 and c2 being the means of γ u and γ u x̂ over the group.
#pragma once

#include "core/kernels/group_norm_factors.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What one channel of one sample needs for u.
struct GradientRow {
  GradientRow() = default;
  float mean, rstd, gamma, beta;  // γ and β times s
  double wide_gamma, wide_beta;

  GradientRow(const GroupNormCall& call, int64_t sample, int64_t channel) {
    const int64_t index = sample * call.groups + channel / (call.channels / call.groups);
    mean = value_of(call.mean, index);
    rstd = value_of(call.rstd, index);
    const double s = call.scale;
    wide_gamma = s * static_cast<double>(value_of(call.gamma, channel));
    wide_beta = s * static_cast<double>(value_of(call.beta, channel));
    gamma = fp32_or_nan(wide_gamma), beta = fp32_or_nan(wide_beta);
  }
};

// u and x̂ of n elements; false where some |t| is beyond the formula. Memory is fetched `ahead` of
// where it is read.
[[gnu::noinline, gnu::flatten]] inline bool group_norm_terms_near(const GradientRow row,
                                                                  const float* dy, const float* x,
                                                                  float* u, float* xh, int64_t n,
                                                                  int64_t ahead) {
  LargestBits largest;
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int k = 0; k < kLanes; k += 16) fetch(x + i + k + ahead), fetch(dy + i + k + ahead);
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kLanes; ++k) {
      const float h = (x[i + k] - row.mean) * row.rstd;
      const float t = fused(h, row.gamma, row.beta);
      largest.see(k, bits_of(magnitude(t)));
      xh[i + k] = h;
      u[i + k] = swish_gradient_near(dy[i + k], t);
    }
  }
  return largest.at_most(bits_of(kNear));
}

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

// dx = a u + (b + c x̂)
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

[[gnu::noinline, gnu::flatten]] inline void group_norm_input_gradient(const InputRow row,
                                                                      const float* u,
                                                                      const float* xh, float* dx,
                                                                      int64_t n, bool past) {
  store_values(dx, n, past, u, [&](int64_t i, int) {
    return canonical(fused(row.a, u[i], fused(row.c, xh[i], row.b)));
  });
}

[[gnu::noinline, gnu::flatten]] inline void group_norm_kept_gradient(const InputRow row,
                                                                     const GradientRow from,
                                                                     const float* u, const float* x,
                                                                     float* dx, int64_t n,
                                                                     bool past, const float* next) {
  store_values(dx, n, past, next, [&](int64_t i, int) {
    const float h = (x[i] - from.mean) * from.rstd;
    return canonical(fused(row.a, u[i], fused(row.c, h, row.b)));
  });
}

// … for a mean or coefficients that fp32 is not enough for.
[[gnu::noinline, gnu::flatten]] inline void group_norm_input_gradient_far(const InputRow row,
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

// A slot of the workspace for as long as it lives, if one is free.
class Slot {
 public:
  Slot(const GroupNormCall& call, void* workspace)
      : taken_(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken)) {
    for (int i = 0; i < call.slots; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if ((__atomic_fetch_or(taken_, bit, __ATOMIC_ACQUIRE) & bit) != 0) continue;
      bit_ = bit;
      const int64_t size = call.bundle * (call.channels / call.groups) * pitch(call);
      data_ = reinterpret_cast<float*>(static_cast<char*>(workspace) + call.cache) + i * size;
      return;
    }
  }
  ~Slot() {
    if (bit_ != 0) __atomic_fetch_and(taken_, ~bit_, __ATOMIC_RELEASE);
  }
  Slot(const Slot&) = delete;

  float* data() const { return data_; }  // rows of pitch(call)
  static int64_t pitch(const GroupNormCall& call) { return round_up(call.positions, kLanes); }

 private:
  uint64_t* taken_;
  uint64_t bit_ = 0;
  float* data_ = nullptr;
};

inline void group_norm_free_slots(const void* given, void* workspace, int64_t, int64_t) {
  const GroupNormCall& call = group_norm_call(given);
  __atomic_store_n(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken),
                   uint64_t{0}, __ATOMIC_RELEASE);
}

class GroupNormGradient {
 public:
  // What u is kept in between the sweeps: `cache`, or dx itself, or nothing.
  explicit GroupNormGradient(const GroupNormCall& call, float* cache = nullptr)
      : call_(call),
        tiles_(call),
        keep_(call.keep && call.out.data != call.x.data),
        cache_(cache),
        pitch_(Slot::pitch(call)) {}

  // Σ u and Σ u x̂ of each row over one segment.
  void sums(const Slice& at, double* u, double* ux) {
    LaneSums lanes[kMaxRows];
    for (int64_t r = 0; r < at.rows; ++r) {
      lanes[r].clear(), u[r] = ux[r] = 0;
      row_[r] = GradientRow(call_, at.sample, at.channel + r);
    }
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t first = begin; first < end; first += call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows dy = tiles_.load(call_.dy, place, dy_, Tiles::Fill::zero);
      const Rows x = tiles_.load(call_.x, place, x_, Tiles::Fill::zero);
      const Rows kept = tiles_.target(call_.out, place, dy_);
      for (int64_t r = 0; r < at.rows; ++r) {
        float* const to = cache_ != nullptr ? cached(at.channel + r, first) : keep_ ? kept[r] : u_;
        terms(row_[r], dy[r], x[r], to, place.columns, kAhead);
        for (int64_t i = 0; i < place.columns; i += kPiece) {
          const int64_t n = round_up(least(kPiece, place.columns - i), kLanes);
          lanes[r].add(to + i, xh_ + i, n);
          if ((first + i + n) % kPiece != 0 && first + i + n < end) continue;
          u[r] += tree(lanes[r].u), ux[r] += tree(lanes[r].ux);
          lanes[r].clear();
        }
      }
      if (keep_) tiles_.store(call_.out, place, kept);
    }
  }

  // dx of each row over one segment; `mean` holds c1, c2 of the groups from that of `at.channel`
  // on.
  void input_gradient(const Slice& at, const double* mean) {
    const int64_t width = call_.channels / call_.groups, first_group = at.channel / width;
    InputRow input[kMaxRows];
    for (int64_t r = 0; r < at.rows; ++r) {
      const int64_t channel = at.channel + r;
      row_[r] = GradientRow(call_, at.sample, channel);
      const int64_t group = at.rows == 1 ? 0 : channel / width - first_group;
      input[r] = InputRow(row_[r], value_of(call_.gamma, channel), mean + 2 * group);
    }
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    // backwards: what the sweep before read last is still in the cache
    for (int64_t first = begin + (end - 1 - begin) / call_.columns * call_.columns; first >= begin;
         first -= call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows dy = cache_ != nullptr ? Rows{cached(at.channel, first), pitch_}
                                        : tiles_.load(keep_ ? call_.out : call_.dy, place, dy_,
                                                      Tiles::Fill::zero);
      const Rows x = tiles_.load(call_.x, place, x_, Tiles::Fill::zero);
      const Rows dx = tiles_.target(call_.out, place, dy_);
      const int64_t n = round_up(place.columns, kLanes);
      for (int64_t r = 0; r < at.rows; ++r) {
        const bool kept = keep_ || cache_ != nullptr;
        if (!kept) terms(row_[r], dy[r], x[r], u_, place.columns, -call_.columns);
        if (!input[r].enough(row_[r])) {
          group_norm_input_gradient_far(input[r], row_[r], kept ? dy[r] : u_, x[r], dx[r], n);
        } else if (kept) {
          group_norm_kept_gradient(input[r], row_[r], dy[r], x[r], dx[r], n, dx.past,
                                   x[r] - call_.columns);
        } else {
          group_norm_input_gradient(input[r], u_, xh_, dx[r], n, dx.past);
        }
      }
      tiles_.store(call_.out, place, dx);
    }
  }

  // All of a bundle for a block of samples.
  void bundle(int64_t item, void* workspace) {
    const Bundle bundle(call_, item);
    first_cached_ = bundle.first_channel;
    for_samples(call_, bundle, workspace,
                [&](int64_t n, double* beta, double* gamma) { sample(n, bundle, beta, gamma); });
  }

 private:
  float* cached(int64_t channel, int64_t position) const {
    return cache_ + (channel - first_cached_) * pitch_ + position;
  }

  void terms(const GradientRow& row, const float* dy, const float* x, float* u, int64_t columns,
             int64_t ahead) {
    const int64_t n = round_up(columns, kLanes);
    if (u == dy) {  // the far formula needs dy again
      std::memcpy(spare_, dy, n * sizeof(float));
      dy = spare_;
    }
    if (!group_norm_terms_near(row, dy, x, u, xh_, n, ahead))
      group_norm_terms_far(row, dy, x, u, xh_, n);
    for (int64_t i = columns; i < n; ++i) u[i] = xh_[i] = 0;  // 0 * inf is no 0
  }

  void sample(int64_t n, const Bundle& bundle, double* beta, double* gamma) {
    const int64_t width = call_.channels / call_.groups, segments = segments_of(call_);
    double mean[2 * kMaxBundle] = {};
    const auto for_rows = [&](const auto& work) {
      for (int64_t c = 0; c < bundle.channels; c += call_.rows)
        work(bundle.first_channel + c, least(call_.rows, bundle.channels - c));
    };
    for_rows([&](int64_t channel, int64_t rows) {
      double total_u[kMaxRows] = {}, total_ux[kMaxRows] = {};
      for (int64_t segment = 0; segment < segments; ++segment) {
        double u[kMaxRows], ux[kMaxRows];
        sums({n, channel, rows, segment}, u, ux);
        for (int64_t r = 0; r < rows; ++r) total_u[r] += u[r], total_ux[r] += ux[r];
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t c = channel + r;
        beta[c] += total_u[r], gamma[c] += total_ux[r];
        add_to_mean(c, total_u[r], total_ux[r], mean + 2 * (c / width - bundle.first_group));
      }
    });
    for (int64_t g = 0; g < 2 * bundle.groups; ++g) mean[g] /= group_size(call_);
    for (int64_t c = (bundle.channels - 1) / call_.rows * call_.rows; c >= 0; c -= call_.rows) {
      const int64_t channel = bundle.first_channel + c,
                    rows = least(call_.rows, bundle.channels - c);
      for (int64_t segment = segments - 1; segment >= 0; --segment)
        input_gradient({n, channel, rows, segment},
                       mean + 2 * (channel / width - bundle.first_group));
    }
  }

  void add_to_mean(int64_t channel, double u, double ux, double* mean) const {
    const double weight = value_of(call_.gamma, channel);
    mean[0] += weight * u, mean[1] += weight * ux;
  }

  const GroupNormCall& call_;
  Tiles tiles_;
  const bool keep_;
  float* const cache_;
  const int64_t pitch_;
  int64_t first_cached_ = 0;
  GradientRow row_[kMaxRows];
  alignas(64) float x_[kTileRoom], dy_[kTileRoom];
  alignas(64) float u_[kMaxColumns], xh_[kMaxColumns], spare_[kMaxColumns];
};

inline void group_norm_backward(const void* call, void* workspace, int64_t begin, int64_t end) {
  const Slot slot(group_norm_call(call), workspace);
  GroupNormGradient gradient(group_norm_call(call), slot.data());
  for (int64_t item = begin; item < end; ++item) gradient.bundle(item, workspace);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
