// SPDX-License-Identifier: Apache-2.0
// The loop over positions: rows of one type whose positions are contiguous. Sums are taken in a
// fixed number of lanes and a fixed tree over them: the same bits on every instruction set.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Where rows begin; NULL if there are none.
template <class T>
struct StridedRows {
  T* first = nullptr;
  int64_t step = 0;
  bool non_temporal = false;  // to be written with non-temporal stores
  T* operator[](int64_t row) const { return first + row * step; }
  T* at(int64_t row, int64_t i) const { return first == nullptr ? nullptr : (*this)[row] + i; }
  const char* address(int64_t row) const { return address_of(first, row * step); }
  operator StridedRows<const T>() const { return {first, step}; }
  StridedRows from(int64_t row) const { return {(*this)[row], step}; }
};

template <class T>
inline StridedRows<T> rows_as(const auto& rows) {
  return {reinterpret_cast<T*>(rows.first), rows.step};
}

// Rows that are read and written where they lie.
template <class T>
class DirectRows {
 public:
  using Type = T;
  using Raw = typename Type::Raw;
  struct Buffer {};

  explicit DirectRows(const GroupNormCall& call) : call_(call) {}

  // The most rows and columns of a region: many rows if they are short.
  int64_t rows() const { return call_.positions <= kPiece ? kMaxRows : 1; }
  int64_t columns() const { return kSegment; }

  StridedRows<Raw> target(const GroupNormTensor& t, const Region& at, Buffer&) const {
    return {static_cast<Raw*>(address_of(t, at)), t.channel, call_.stream};
  }
  StridedRows<const Raw> load(const GroupNormTensor& t, const Region& at, Buffer& none) const {
    return target(t, at, none);
  }
  void store(const GroupNormTensor&, const Region&, const auto&) const {}

 private:
  const GroupNormCall& call_;
};

// A factor of K registers of elements: of one row, the same register for all of them, or of
// channels, K registers. Bodies are templates over V, the type of their factors.
template <int K>
[[gnu::always_inline]] inline Registers<K> factor(FloatRegister of_row) {
  return spread<K>(of_row);
}
template <int K>
[[gnu::always_inline]] inline const Registers<K>& factor(const Registers<K>& of_channels) {
  return of_channels;
}

// The most positions that are stored at a time, the last ones first: the end of the first sweep is
// still in the cache.
inline constexpr int64_t kStored = 1024;

// Calls work(first, count, stream) for parts of [0, n), the last one first. Parts to be streamed
// begin where a line of `out` does.
template <class Raw>
inline void for_parts(const Raw* out, int64_t n, bool stream, const auto& work) {
  const int64_t bytes = -reinterpret_cast<intptr_t>(out) & 63;
  const int64_t head = stream ? smaller(bytes / static_cast<int64_t>(sizeof(Raw)), n) : 0;
  for (int64_t end = n, first; end > head; end = first) {
    first = head + (end - head - 1) / kStored * kStored;
    work(first, end - first, stream);
  }
  if (head != 0) work(0, head, false);
}

// Elements that a body reads, and copies of the last ones that fill a block.
template <class From>
struct Input {
  using Raw = typename From::Raw;
  const Raw* at;
  const Raw* later;  // to be read by a sweep after this one, or NULL
  Raw last[kBlock];

  explicit Input(const Raw* first, const Raw* of_later = nullptr) : at(first), later(of_later) {}
  Input(const Input& other) : at(other.at), later(other.later) {}

  // From here on, the elements are copies of n elements from i on, and of the last of them.
  void take_last(int64_t i, int64_t n) {
    for (int64_t k = 0; k < kBlock; ++k) last[k] = at[i + (k < n ? k : n - 1)];
    at = last, later = nullptr;
  }
};

// Fetches the part before to L2, because addresses 4 KiB apart have few places in L1 (gradient of
// 32 Mi fp32 values, 2 threads: 16 ms to L1, 18 without, 10 to L2). Also fetches what is read
// later.
template <class Type>
inline void fetch(const Input<Type>& in, int64_t i) {
  fetch_block<Type, Cache::l2>(in.at + i, -kStored * static_cast<int64_t>(sizeof *in.at));
  if (in.later != nullptr) fetch_block<Type, Cache::l2>(in.later + i, 0);
}

// Writes n elements of `out`: make(registers of each input) returns them. The last block goes
// through the same loop, from and to copies.
template <class Type, class... From>
[[gnu::always_inline]] inline void store_positions(typename Type::Raw* out, int64_t n, bool stream,
                                                   const auto& make, Input<From>... in) {
  typename Type::Raw last[kBlock];
  const int64_t rest = n % kBlock, whole = n - rest;
  auto* to = out;
  for (int64_t count = whole;; count = kBlock) {
    for (int64_t i = 0; i < count; i += kBlock) {
      (fetch(in, i), ...);
      store_registers<Type>(to + i, make(load_registers<From>(in.at + i)...), stream);
    }
    if (rest == 0 || to == last) break;
    (in.take_last(whole, rest), ...);
    to = last, stream = false;
  }
  std::memcpy(out + whole, last, rest * sizeof *out);
}

// ---- sums in lanes ----

// How far ahead sweeps of the gradient, and sweeps that fill tiles, prefetch memory.
inline constexpr int64_t kAheadBytes = 2048;

inline constexpr int kLanes = 32, kLaneRegisters = kLanes / kRegisterFloats;

// Holds Σ u and Σ u d, where u is dy swish'(v) and d is x - mean or x̂ (numerics.md). Lane l
// adds the values l, l + 32, …
struct LaneSums {
  alignas(64) float u[kLanes], ud[kLanes];
};

// Holds the same sums in registers, while a loop adds to them.
class LaneRegisters {
 public:
  using Values = Registers<kLaneRegisters>;

  // Adds the next value of each lane.
  [[gnu::always_inline]] void add(const Values& u, const Values& d) {
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) u_[k] += u.r[k];
#pragma GCC unroll 8
    for (int k = 0; k < kLaneRegisters; ++k) ud_[k] = fused(u.r[k], d.r[k], ud_[k]);
  }

  void store(LaneSums& sums) const {
    std::memcpy(sums.u, u_, sizeof sums.u);
    std::memcpy(sums.ud, ud_, sizeof sums.ud);
  }

 private:
  FloatRegister u_[kLaneRegisters] = {}, ud_[kLaneRegisters] = {};
};

// The sum of n values; the upper half is added to the lower one until one value is left.
template <int n>
inline double tree_sum(double* lanes) {
#pragma GCC unroll 8
  for (int half = n / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum of the lanes of n registers.
template <int n>
inline double sum_of(DoubleRegister* r) {
  for (int half = n / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) r[k] += r[k + half];
  }
  double lanes[kRegisterBytes / sizeof(double)];
  std::memcpy(lanes, r, sizeof lanes);
  return tree_sum<kRegisterBytes / sizeof(double)>(lanes);
}

// The sum of 32 lanes in fp64.
inline double tree(const float* lanes) {
  constexpr int kWidth = kRegisterBytes / sizeof(double), kRegisters = kLanes / 2 / kWidth;
  DoubleRegister wide[kRegisters];
  for (int k = 0; k < kRegisters; ++k) {
    wide[k] =
        widened_register(lanes + k * kWidth) + widened_register(lanes + kLanes / 2 + k * kWidth);
  }
  return sum_of<kRegisters>(wide);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
