// SPDX-License-Identifier: Apache-2.0
// Rows of GroupNormSwish: one channel of one sample, its moments, and y from them.
#pragma once

#include "core/kernels/group_norm/dense.h"
#include "core/kernels/group_norm/factors.h"
#include "core/kernels/group_norm/moments.h"
#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Near elements have v = (x - high - low) γ + β and t = (x - high - low) slope + shift = s v, where
// γ includes rstd, and slope and shift include s. γ and slope are NaN where fp32 is not enough. The
// mean has two parts, because one would be too coarse if |mean| >> std.
struct NormalRow {  // passed by reference: a copy would wait for all stores before it
  float high, low;  // NaN: the mean is too small
  NearFactors near;
  WideFactors wide;

  NormalRow(const GroupNormCall& call, double mean, double rstd, int64_t channel) {
    high = high_part(mean);
    low = static_cast<float>(mean - static_cast<double>(high));
    const double g = rstd * static_cast<double>(value_of(call.gamma, channel));
    const float beta = value_of(call.beta, channel);
    near = NearFactors(call, static_cast<double>(high), g, beta);
    wide = {mean, g, static_cast<double>(beta), static_cast<double>(call.scale)};
  }
};

// The factors of v and t in registers, and what they make. No value is NaN, because where fp32 is
// enough the mean and so every x is finite.
template <class V>
struct Normal {
  V high, low, gamma, beta, slope, shift;

  template <int K>
  [[gnu::always_inline]] Registers<K> value(const Registers<K>& x) const {
    return fused(d(x), factor<K>(gamma), factor<K>(beta));
  }

  // Checks whether all values are near.
  template <int K>
  [[gnu::always_inline]] Registers<K> swish(const Registers<K>& x, AllNear& all) const {
    const Registers<K> t = fused(d(x), factor<K>(slope), factor<K>(shift));
    all.see(sixteenths_of_minus(t));
    return swish_near(value(x), t);
  }

  // The same where t is v.
  template <int K>
  [[gnu::always_inline]] Registers<K> swish_of_value(const Registers<K>& x, AllNear& all) const {
    const Registers<K> v = value(x);
    all.see(sixteenths_of_minus(v));
    return swish_near(v, v);
  }

  template <int K>
  [[gnu::always_inline]] Registers<K> d(const Registers<K>& x) const {
    return (x - factor<K>(high)) - factor<K>(low);
  }
};

inline Normal<FloatRegister> normal_of(const NormalRow& row) {
  const auto all = [](float x) { return all_of<FloatRegister>(x); };
  return {all(row.high),      all(row.low),        all(row.near.gamma),
          all(row.near.beta), all(row.near.slope), all(row.near.shift)};
}

// Stores v of n elements.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void group_norm_values(const NormalRow& row, const Raw* x, Raw* y,
                                                       int64_t n, bool stream) {
  const auto of = normal_of(row);
  const auto make = [&](const auto& in) __attribute__((always_inline)) { return of.value(in); };
  store_each<Type>(y, n, stream, make, Input<Type>{x});
}

// Stores y of n elements. Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_swish_near(const NormalRow& row, const Raw* x,
                                                           Raw* y, int64_t n, bool stream) {
  const auto of = normal_of(row);
  AllNear all;
  const auto swish = [&](const auto& in)
                         __attribute__((always_inline)) { return of.swish(in, all); };
  const auto of_value = [&](const auto& in)
                            __attribute__((always_inline)) { return of.swish_of_value(in, all); };
  if (row.near.t_is_v()) {
    store_each<Type>(y, n, stream, of_value, Input<Type>{x});
  } else {
    store_each<Type>(y, n, stream, swish, Input<Type>{x});
  }
  return all.are();
}

// Near elements always have the bits of the near formula, because their neighbours depend on the
// layout.
[[gnu::noinline, gnu::flatten]] inline void group_norm_swish_far(const NormalRow& given,
                                                                 const float* x, float* y,
                                                                 int64_t n) {
  const NormalRow row = given;
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const float d = (x[i] - row.high) - row.low;
    y[i] = canonical(swish_of(x[i], d, row.near, row.wide));
  }
}

[[gnu::noinline, gnu::flatten]] inline void group_norm_values_far(const NormalRow& given,
                                                                  const float* x, float* y,
                                                                  int64_t n) {
  const NormalRow row = given;
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = canonical(static_cast<float>(row.wide.value(x[i])));
}

// What rows have in common in every layout.
class ForwardRows {
 protected:
  explicit ForwardRows(const GroupNormCall& call) : call_(call), groups_(call) {}

  // `pairs` holds mean and rstd of the groups, beginning with that of `first_channel`.
  NormalRow row(int64_t channel, int64_t first_channel, const double* pairs) {
    const int64_t first_group = groups_[first_channel];
    const double* const pair = pairs + 2 * (groups_[channel] - first_group);
    return {call_, pair[0], pair[1], channel};
  }

  // Stores y of at most kMaxColumns elements.
  template <class Type, class Raw = typename Type::Raw>
  void values(const NormalRow& row, const Raw* x, Raw* y, int64_t n, bool stream) {
    if (x == y) {  // the far formula needs x again
      std::memcpy(spare_, x, n * sizeof(Raw));
      x = reinterpret_cast<const Raw*>(spare_);
    }
    if (!call_.swish && row.near.enough()) return group_norm_values<Type>(row, x, y, n, stream);
    if (call_.swish && group_norm_swish_near<Type>(row, x, y, n, stream)) return;
    widen(x_far_, x, Type::kElement, n);
    if (call_.swish) {
      group_norm_swish_far(row, x_far_, y_far_, n);
    } else {
      group_norm_values_far(row, x_far_, y_far_, n);
    }
    narrow(y, y_far_, Type::kElement, n);
  }

  const GroupNormCall& call_;
  Groups groups_;

 private:
  alignas(64) float spare_[kMaxColumns], x_far_[kMaxColumns], y_far_[kMaxColumns];
};

// Sweeps over rows, tile by tile.
template <class Memory>
class ForwardSweeps : public ForwardRows {
 public:
  ForwardSweeps(const GroupNormCall& call, void*) : ForwardRows(call), memory_(call) {}

  // The number of rows at a time.
  int64_t rows() const { return memory_.rows(); }

  // Computes the moments of each row over one segment.
  void sum(const Slice& at, Moments* found) {
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for_places(call_, at, memory_.columns(), Order::first_to_last, [&](const Place& place) {
      const auto x = memory_.load(call_.x, place, x_);
      for (int64_t r = 0; r < at.rows; ++r) {
        for (int64_t i = 0; i < place.columns; i += kMomentBlock) {
          const int64_t n = least(kMomentBlock, place.columns - i);
          found[r].add(group_norm_moments<Held>(x[r] + i, n));
        }
      }
    });
  }

  // Stores y of each row over one segment, the last tile and row first.
  void store(const Slice& at, const double* pairs) {
    for_places(call_, at, memory_.columns(), Order::last_to_first, [&](const Place& place) {
      const auto x = memory_.load(call_.x, place, x_);
      const auto y = memory_.target(call_.out, place, y_);
      for (int64_t r = at.rows - 1; r >= 0; --r) {
        const NormalRow row = this->row(at.channel + r, at.channel, pairs);
        for_chunks(y[r], place.columns, y.past, [&](int64_t first, int64_t n, bool stream) {
          values<Held>(row, x[r] + first, y[r] + first, n, stream);
        });
      }
      memory_.store(call_.out, place, y);
    });
  }

 private:
  using Held = typename Memory::Type;

  Memory memory_;
  [[no_unique_address]] typename Memory::Buffer x_, y_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
