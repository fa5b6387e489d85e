// SPDX-License-Identifier: Apache-2.0
// Rows of GroupNormSwish: one channel of one sample, its moments, and y from them.
#pragma once

#include "core/kernels/group_norm_dense.h"
#include "core/kernels/group_norm_factors.h"
#include "core/kernels/group_norm_moments.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Mean and rstd of a group. The mean has two parts, because one would be too coarse if |mean| >>
// std.
struct GroupMoments {
  double mean, rstd;

  GroupMoments(double m, double squares, double count, double eps)
      : mean(m), rstd(1 / __builtin_sqrt(squares / count + eps)) {}
  GroupMoments(const double* pair) : mean(pair[0]), rstd(pair[1]) {}
};

// Near elements have v = (x - high - low) γ + β and t = (x - high - low) slope + shift = s v, where
// γ includes rstd, and slope and shift include s. γ and slope are NaN where fp32 is not enough.
struct NormalRow {  // passed by reference: a copy would wait for all stores before it
  float high, low;  // NaN: the mean is too small
  NearFactors near;
  WideFactors wide;

  NormalRow(const GroupNormCall& call, const GroupMoments& m, int64_t channel) {
    high = high_part(m.mean);
    low = static_cast<float>(m.mean - static_cast<double>(high));
    const double g = m.rstd * static_cast<double>(value_of(call.gamma, channel));
    const float beta = value_of(call.beta, channel);
    near = NearFactors(call, static_cast<double>(high), g, beta);
    wide = {m.mean, g, static_cast<double>(beta), static_cast<double>(call.scale)};
  }
};

// The factors of v and t in registers, and what they make. No value is NaN, because where fp32 is
// enough the mean and so every x is finite.
template <int K>
struct Normal {
  Registers<K> high, low, gamma, beta, slope, shift;

  [[gnu::always_inline]] Registers<K> value(const Registers<K>& x) const {
    return fused((x - high) - low, gamma, beta);
  }

  // Checks whether all values are near.
  [[gnu::always_inline]] Registers<K> swish(const Registers<K>& x, AllNear& all) const {
    const Registers<K> d = (x - high) - low, t = fused(d, slope, shift);
    all.see(sixteenths_of_minus(t));
    return swish_near(fused(d, gamma, beta), t);
  }

  // The same where t is v.
  [[gnu::always_inline]] Registers<K> swish_of_value(const Registers<K>& x, AllNear& all) const {
    const Registers<K> v = value(x);
    all.see(sixteenths_of_minus(v));
    return swish_near(v, v);
  }
};

// The values of a row, in registers.
class ValuesOf {
 public:
  explicit ValuesOf(const NormalRow& row)
      : high_(all_of<FloatRegister>(row.high)),
        low_(all_of<FloatRegister>(row.low)),
        gamma_(all_of<FloatRegister>(row.near.gamma)),
        beta_(all_of<FloatRegister>(row.near.beta)),
        slope_(all_of<FloatRegister>(row.near.slope)),
        shift_(all_of<FloatRegister>(row.near.shift)) {}

  template <int K>
  [[gnu::always_inline]] Registers<K> value(const Registers<K>& x) const {
    return normal<K>().value(x);
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> swish(const Registers<K>& x) {
    return normal<K>().swish(x, all_);
  }
  template <int K>
  [[gnu::always_inline]] Registers<K> swish_of_value(const Registers<K>& x) {
    return normal<K>().swish_of_value(x, all_);
  }

  bool near() const { return all_.are(); }

 private:
  template <int K>
  [[gnu::always_inline]] Normal<K> normal() const {
    return {spread<K>(high_), spread<K>(low_),   spread<K>(gamma_),
            spread<K>(beta_), spread<K>(slope_), spread<K>(shift_)};
  }

  FloatRegister high_, low_, gamma_, beta_, slope_, shift_;
  AllNear all_;
};

template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void group_norm_values(const NormalRow& row, const Raw* x, Raw* y,
                                                       int64_t n, bool stream) {
  const ValuesOf of(row);
  const auto make = [&](const auto& in) __attribute__((always_inline)) { return of.value(in); };
  store_each<Type>(y, n, stream, make, Input<Type>{x});
}

// Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_swish_near(const NormalRow& row, const Raw* x,
                                                           Raw* y, int64_t n, bool stream) {
  ValuesOf of(row);
  const auto swish = [&](const auto& in) __attribute__((always_inline)) { return of.swish(in); };
  const auto of_value = [&](const auto& in)
                            __attribute__((always_inline)) { return of.swish_of_value(in); };
  if (row.near.t_is_v()) {
    store_each<Type>(y, n, stream, of_value, Input<Type>{x});
  } else {
    store_each<Type>(y, n, stream, swish, Input<Type>{x});
  }
  return of.near();
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
    return {call_, GroupMoments(pairs + 2 * (groups_[channel] - first_group)), channel};
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

// Rows of one type that lie densely in memory; a segment is computed at once.
template <class Type>
class DenseForward : public ForwardRows {
 public:
  explicit DenseForward(const GroupNormCall& call) : ForwardRows(call) {}

  // The number of rows at a time.
  int64_t rows() const { return dense_rows(call_); }

  // Computes the moments of each row over one segment.
  void moments(const Slice& at, Moments* found) {
    const Segment part(call_, at);
    const auto x = rows_of<Type>(call_.x, at, part);
    for (int64_t r = 0; r < at.rows; ++r) {
      found[r] = {0, 0, 0};
      for (int64_t i = 0; i < part.size; i += kMomentBlock)
        found[r].add(group_norm_moments<Type>(x[r] + i, least(kMomentBlock, part.size - i)));
    }
  }

  // Stores y of each row over one segment.
  void normalise(const Slice& at, const double* pairs) {
    const Segment part(call_, at);
    const auto x = rows_of<Type>(call_.x, at, part), y = rows_of<Type>(call_.out, at, part);
    for (int64_t r = at.rows - 1; r >= 0; --r) {
      const NormalRow row = this->row(at.channel + r, at.channel, pairs);
      for_chunks(y[r], part.size, call_.stream, [&](int64_t first, int64_t n, bool stream) {
        values<Type>(row, x[r] + first, y[r] + first, n, stream);
      });
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
