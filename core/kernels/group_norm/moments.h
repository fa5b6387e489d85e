// SPDX-License-Identifier: Apache-2.0
// The first sweep of the forward call: mean, squared deviations and extremes of x.
#pragma once

#include "core/kernels/group_norm/loops.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline bool finite(double x) { return x - x == 0; }

// An infinity as the pivot would hide the sign of the sum.
inline double pivot_of(float first) {
  const double pivot = first;
  return finite(pivot) ? pivot : 0.0;
}

// The Part of the forward. Joins the counts n, means m and sums of squared deviations q of two
// parts: with d = m2 - m1 and n = n1 + n2, m = m1 + d n2 / n and q = q1 + q2 + d^2 n1 n2 / n.
struct Moments {
  double count, mean, squares;
  float least, most;  // of x; NaNs do not count

  static Moments none() { return {0, 0, 0, __builtin_inff(), -__builtin_inff()}; }

  void add(const Moments& more) {
    const double total = count + more.count, delta = more.mean - mean;
    const double share = more.count / total;
    mean = finite(delta) ? mean + delta * share : mean + more.mean;
    squares += more.squares + delta * delta * (count * share);
    count = total;
    see(more.least, more.most);
  }
  void see(float lower, float upper) {
    least = lower < least ? lower : least, most = upper > most ? upper : most;
  }

  // The largest |x - center|.
  double distance(double center) const {
    const double below = center - static_cast<double>(least);
    const double above = static_cast<double>(most) - center;
    return above > below ? above : below;
  }
};
static_assert(sizeof(Moments) == kMomentsBytes);

inline constexpr int kWideLanes = 16;

// How far ahead x is fetched, to L2. Compared with 2 KiB ahead to L1, the forward call takes 0.98
// of the time for 32 Mi fp32 values and 0.94 for 4 Mi (2 threads, Zen 5).
inline constexpr int64_t kMomentsAhead = 8192;

// Adds the moments of a piece, from Σ (x - pivot) and Σ (x - pivot)² about its first value. The
// distance of that value to the mean is at most √kPiece standard deviations, so fp64 loses at most
// 9 of its 53 bits. Two sweeps in fp32 (mean, then deviations) took twice the time.
inline void add_moments(Moments& to, int64_t count, double pivot, double sum, double squares) {
  const double n = static_cast<double>(count), mean = sum / n;
  const double rest = squares - sum * mean;
  to.add({n, pivot + mean, rest > 0 || rest != rest ? rest : 0.0, to.least, to.most});
}

inline FloatRegister smaller(FloatRegister a, FloatRegister b) { return a < b ? a : b; }
inline FloatRegister larger(FloatRegister a, FloatRegister b) { return a > b ? a : b; }

// ---- loop over positions ----

// Adds the moments of n positions of a row, piece by piece.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void moments_of_positions(const Raw* x, int64_t n, Moments& to) {
  constexpr int kRegisters = kWideLanes * sizeof(double) / kRegisterBytes;
  constexpr int kWidth = kRegisterBytes / sizeof(double);
  FloatRegister least = all_of<FloatRegister>(to.least), most = all_of<FloatRegister>(to.most);
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t many = smaller(kPiece, n - first), rest = many % kBlock;
    const double pivot = pivot_of(Type::from(x[first]));
    DoubleRegister d[kRegisters] = {}, dd[kRegisters] = {};  // Σ (x - pivot) and Σ (x - pivot)²
    Raw last[kBlock];  // filled up with the first value, which adds nothing
    const Raw* from = x + first;
    for (int64_t count = many - rest;; count = kBlock) {
      for (int64_t i = 0; i < count; i += kBlock) {
        fetch_block<Type, Cache::l2>(from + i, kMomentsAhead);
        const auto in = load_registers<Type>(from + i);
#pragma GCC unroll 16
        for (int k = 0; k < 2 * kBlockRegisters; ++k) {
          DoubleRegister wide;
          if constexpr (__is_same(Type, F32)) {
            wide = widened_register(from + i + k * kWidth);
          } else {
            wide = widened_half(in.r[k / 2], k % 2);
          }
          const DoubleRegister off = difference_by_product(wide, pivot - DoubleRegister{});
          d[k % kRegisters] += off;
          dd[k % kRegisters] += off * off;
        }
#pragma GCC unroll 8
        for (int k = 0; k < kBlockRegisters; ++k)
          least = smaller(least, in.r[k]), most = larger(most, in.r[k]);
      }
      if (rest == 0 || from == last) break;
      for (int64_t k = 0; k < kBlock; ++k) last[k] = x[k < rest ? first + many - rest + k : first];
      from = last;
    }
    DoubleRegister sum[kRegisters], squares[kRegisters];  // copies: d and dd stay in registers
    std::memcpy(sum, d, sizeof d), std::memcpy(squares, dd, sizeof dd);
    add_moments(to, many, pivot, sum_of<kRegisters>(sum), sum_of<kRegisters>(squares));
  }
  float lower[kRegisterFloats], upper[kRegisterFloats];
  store_register(lower, least), store_register(upper, most);
  for (int half = kRegisterFloats / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) {
      lower[k] = lower[k + half] < lower[k] ? lower[k + half] : lower[k];
      upper[k] = upper[k + half] > upper[k] ? upper[k + half] : upper[k];
    }
  }
  to.see(*lower, *upper);
}

// ---- loop over channels ----

struct ChannelMoments {
  alignas(64) double pivot[kMaxRows], d[kWideLanes][kMaxRows], dd[kWideLanes][kMaxRows];
  alignas(64) OfChannels least, most;
};

template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void add_channel_moments(const StridedRows<const Raw>& x,
                                                         int64_t channels, int64_t positions,
                                                         ChannelMoments& to) {
  constexpr int kWidth = kRegisterBytes / sizeof(double);
  for (int64_t p = 0; p < positions; p += kWideLanes) {
    const int64_t count = smaller(kWideLanes, positions - p);
    for (int64_t l = 0; l < count; ++l)
      fetch_row<0>(x.address(p + l + kAheadRows), channels * sizeof(Raw));
    for_registers(channels, [&]<int K>(Registers<K>, int64_t c,
                                       int64_t n) __attribute__((always_inline)) {
      auto least = load_registers<F32, K>(to.least + c), most = load_registers<F32, K>(to.most + c);
      for (int64_t l = 0; l < count; ++l) {
        const Registers<K> in = load_some<Type, K>(x[p + l] + c, n);
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
          least.r[k] = smaller(least.r[k], in.r[k]), most.r[k] = larger(most.r[k], in.r[k]);
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            const int64_t i = c + (2 * k + half) * kWidth;
            const auto at = [](const double* lane) { return load_register<DoubleRegister>(lane); };
            const DoubleRegister d = widened_half(in.r[k], half) - at(to.pivot + i);
            store_register(to.d[l] + i, at(to.d[l] + i) + d);
            store_register(to.dd[l] + i, at(to.dd[l] + i) + d * d);
          }
        }
      }
      store_registers<F32>(to.least + c, least), store_registers<F32>(to.most + c, most);
    });
  }
}

// Adds the moments of a piece of each channel.
template <class Type, class Raw = typename Type::Raw>
void moments_of_channels(const StridedRows<const Raw>& x, int64_t channels, int64_t positions,
                         ChannelMoments& of, Moments* to) {
  std::memset(&of, 0, sizeof of);
  for (int64_t c = 0; c < channels; ++c)
    of.pivot[c] = pivot_of(Type::from(x[0][c])), of.least[c] = to[c].least, of.most[c] = to[c].most;
  add_channel_moments<Type>(x, channels, positions, of);
  for (int64_t c = 0; c < channels; ++c) {
    double d[kWideLanes], dd[kWideLanes];
    for (int l = 0; l < kWideLanes; ++l) d[l] = of.d[l][c], dd[l] = of.dd[l][c];
    to[c].see(of.least[c], of.most[c]);
    add_moments(to[c], positions, of.pivot[c], tree_sum<kWideLanes>(d), tree_sum<kWideLanes>(dd));
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
