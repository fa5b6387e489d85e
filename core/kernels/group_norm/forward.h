// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of many positions.
#pragma once

#include "core/kernels/group_norm/exact.h"
#include "core/kernels/group_norm/moments.h"
#include "core/kernels/group_norm/sweeps.h"
#include "core/kernels/group_norm/swish.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ---- the second sweep: y = swish(v) or v, with v = (x - mean) rstd γ + β ----

// The mean in two parts, because one would be too coarse if |mean| >> std.
inline float low_part(double mean, float high) {
  return static_cast<float>(mean - static_cast<double>(high));
}

// The factors of v = (x - high - low) gamma + beta and of t = (x - high - low) slope + shift = s v
// in registers: gamma includes rstd, and slope and shift include s.
struct Normal {
  FloatRegister high, low, gamma, beta, slope, shift;

  FloatRegister value(FloatRegister x) const { return fused((x - high) - low, gamma, beta); }
  FloatRegister swish_of(FloatRegister x) const {
    return swish(value(x), fused((x - high) - low, slope, shift));
  }
};

// These factors of N channels or rows.
template <int64_t N>
struct NormalFactors {
  alignas(64) float high[N], low[N], gamma[N], beta[N], slope[N], shift[N];
  alignas(64) double wide_gamma[N];

  // Sets the factors of n channels from `first` on, whose mean is set, and
  // rstd in wide_gamma.
  void set(const GroupNormCall& call, int64_t first, int64_t n) {
    values_of(call.gamma, first, n, gamma);
    values_of(call.beta, first, n, beta);
    for (int64_t c = 0; c < n; ++c) {
      wide_gamma[c] *= static_cast<double>(gamma[c]);
      const double s = call.scale;
      gamma[c] = static_cast<float>(wide_gamma[c]);
      slope[c] = static_cast<float>(s * wide_gamma[c]);
      shift[c] = static_cast<float>(s * static_cast<double>(beta[c]));
    }
  }
  // Gives the channels that fill the last block factors of 0.
  void fill(int64_t n) {
    for (int64_t c = n; c < round_up(n, kBlock); ++c)
      high[c] = low[c] = gamma[c] = beta[c] = slope[c] = shift[c] = 0;
  }

  // Those of a row, the same in all lanes, or of the channels from c on.
  Normal row(int64_t r) const {
    const auto all = [=](const float* of) { return all_of<FloatRegister>(of[r]); };
    return {all(high), all(low), all(gamma), all(beta), all(slope), all(shift)};
  }
  Normal at(int64_t c) const {
    const auto some = [=](const float* of) { return load_register<FloatRegister>(of + c); };
    return {some(high), some(low), some(gamma), some(beta), some(slope), some(shift)};
  }
};

// Loop over positions.

// Stores y of n elements of row r.
template <class Type, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void normalise_positions(const NormalFactors<N>& of, int64_t r,
                                                         bool activate, const Raw* x, Raw* y,
                                                         int64_t n, bool stream) {
  const Normal row = of.row(r);
  const Input<Type> in(x);
  if (activate) {
    store_positions<Type>(y, n, stream, [&](FloatRegister v) { return row.swish_of(v); }, in);
  } else {
    store_positions<Type>(y, n, stream, [&](FloatRegister v) { return row.value(v); }, in);
  }
}

// Loop over channels.

template <class Type, From from = From::memory, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void normalise_channels(const NormalFactors<N>& of,
                                                        int64_t channels, bool activate,
                                                        const StridedRows<const Raw>& x,
                                                        const StridedRows<Raw>& y,
                                                        int64_t positions, bool stream) {
  const auto make = [&](int64_t c, FloatRegister in) __attribute__((always_inline)) {
    return activate ? of.at(c).swish_of(in) : of.at(c).value(in);
  };
  store_channels_last<Type, from>(y, channels, positions, stream, make, x);
}

// ---- sweeps ----

// What both loops share.
class ForwardSweeps {
 protected:
  explicit ForwardSweeps(const GroupNormCall& call) : call_(call) {}

  // Sets the factors of rows from the pairs of their groups.
  [[gnu::noinline]] void set(const Region& at, const double* pairs) {
    for_groups(call_, at, [&](int64_t g, int64_t r, int64_t end) {
      const double mean = pairs[2 * g], rstd = pairs[2 * g + 1];
      const auto high = static_cast<float>(mean);
      for (; r < end; ++r)
        of_.high[r] = high, of_.low[r] = low_part(mean, high), of_.wide_gamma[r] = rstd;
    });
    of_.set(call_, at.channel, at.rows);
  }

  const GroupNormCall& call_;
  NormalFactors<kMaxRows> of_;
};

// Loop over positions.
template <class Memory>
class ForwardRows : ForwardSweeps {
 public:
  ForwardRows(const GroupNormCall& call, void*) : ForwardSweeps(call), memory_(call) {}

  int64_t rows() const { return memory_.rows(); }

  [[gnu::noinline]] void sum(const Region& at, Moments* found) {
    for (int64_t r = 0; r < at.rows; ++r) found[r] = Moments::none();
    for_regions(at, rows(), memory_.columns(), Direction::first_to_last,
                [&](const Region& part, int64_t row) {
                  const auto x = memory_.load(call_.x, part, x_);
                  for (int64_t r = 0; r < part.rows; ++r)
                    moments_of_positions<Type>(x[r], part.columns, found[row + r]);
                });
  }

  // The last elements first, which are still in the cache.
  [[gnu::noinline]] void store(const Region& at, const double* pairs) {
    set(at, pairs);
    for_regions(
        at, rows(), memory_.columns(), Direction::last_to_first,
        [&](const Region& part, int64_t row) {
          const auto x = memory_.load(call_.x, part, x_);
          const auto y = memory_.target(call_.out, part, y_);
          for (int64_t r = part.rows - 1; r >= 0; --r) {
            for_parts(y[r], part.columns, y.non_temporal, [&](int64_t i, int64_t n, bool stream) {
              normalise_positions<Type>(of_, row + r, call_.swish, x[r] + i, y[r] + i, n, stream);
            });
          }
          memory_.store(call_.out, part, y);
        });
  }

 private:
  using Type = typename Memory::Type;

  Memory memory_;
  [[no_unique_address]] typename Memory::Buffer x_, y_;
};

// Loop over channels.
template <class Type>
class ForwardChannelsLast : ForwardSweeps {
 public:
  ForwardChannelsLast(const GroupNormCall& call, void*) : ForwardSweeps(call) {}

  [[gnu::noinline]] void sum(const Region& at, Moments* found) {
    const auto x = positions_of<Type, const Raw>(call_.x, at);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = Moments::none();
    for (int64_t p = 0; p < at.columns; p += kPiece) {
      const int64_t n = smaller(kPiece, at.columns - p);
      moments_of_channels<Type>(x.from(p), at.rows, n, moments_, found);
    }
  }

  [[gnu::noinline]] void store(const Region& at, const double* pairs) {
    set(at, pairs);
    of_.fill(at.rows);
    const StridedRows<Raw> y = positions_of<Type>(call_.out, at);
    normalise_channels<Type>(of_, at.rows, call_.swish, positions_of<Type, const Raw>(call_.x, at),
                             y, at.columns, call_.stream && at_lines(y));
  }

 private:
  using Raw = typename Type::Raw;

  ChannelMoments moments_;
};

struct Forward {
  using Part = Moments;
  template <class Memory>
  using Rows = ForwardRows<Memory>;
  template <class Type>
  using ChannelsLast = ForwardChannelsLast<Type>;

  // The pair of a group is mean and rstd. Stores them.
  [[gnu::noinline]] static void finish(const GroupNormCall& call, int64_t index,
                                       const StridedRows<Moments>& channels, double* pair) {
    const int64_t width = channels_of_group(call), first = index % call.groups * width;
    Moments all = Moments::none();
    for (int64_t c = 0; c < width; ++c) all.add(*channels[c]);
    pair[0] = all.mean, pair[1] = 1 / __builtin_sqrt(all.squares / all.count + call.eps);
    const NormalLimits limits(call);
    bool exact = needs_exact(pair[0]);
    for (int64_t c = 0; c < width && !exact; c += kMaxRows) {
      const int64_t n = smaller(kMaxRows, width - c);
      float gamma[kMaxRows], beta[kMaxRows];
      values_of(call.gamma, first + c, n, gamma), values_of(call.beta, first + c, n, beta);
      for (int64_t i = 0; i < n; ++i) {
        exact |=
            limits.needs_exact(pair[1] * static_cast<double>(gamma[i]),
                               static_cast<double>(beta[i]), channels[c + i]->distance(pair[0]));
      }
    }
    if (exact) {
      ExactGroup(call, index).forward();
      pair[1] = kStoredAlready;
      return;
    }
    store_values(call.mean, index, 1, &pair[0]);
    store_values(call.rstd, index, 1, &pair[1]);
  }
};

// Items: (sample, batch).
inline void group_norm_forward(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  with_sweeps<Forward, Items::batches>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const GroupBatch batch(call, item);
      sweep_batch<Forward>(call, batch, batch.outer, sweeps, [](int64_t, const Moments&) {});
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
