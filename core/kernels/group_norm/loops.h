// SPDX-License-Identifier: Apache-2.0
// The loops. Over positions: rows of one type whose positions are contiguous; sums are taken in a
// fixed number of lanes and a fixed tree over them. Over channels (moments.h has its own,
// add_channel_moments): of tensors whose channels are contiguous, kMaxRows of them at a time,
// position by position; sums use the lanes of rows, one set for each channel. So results have the
// same bits.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ---- positions ----

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
[[gnu::always_inline]] inline void fetch(const Input<Type>& in, int64_t i) {
  fetch_block<Type, Cache::l2>(in.at + i, -kStored * static_cast<int64_t>(sizeof *in.at));
  if (in.later != nullptr) fetch_block<Type, Cache::l2>(in.later + i, 0);
}

// Writes n elements of `out`: make(a register of each input) returns a register of them. The last
// block goes through the same loop, from and to copies.
template <class Type, class... From>
[[gnu::always_inline]] inline void store_positions(typename Type::Raw* out, int64_t n, bool stream,
                                                   const auto& make, Input<From>... in) {
  typename Type::Raw last[kBlock];
  const int64_t rest = n % kBlock, whole = n - rest;
  auto* to = out;
  for (int64_t count = whole;; count = kBlock) {
    for (int64_t i = 0; i < count; i += kBlock) {
      (fetch(in, i), ...);
      const auto y = map<kBlockRegisters>(
          [&](int k) { return make(From::load(in.at + i + k * kRegisterFloats)...); });
      store_registers<Type>(to + i, y, stream);
    }
    if (rest == 0 || to == last) break;
    (in.take_last(whole, rest), ...);
    to = last, stream = false;
  }
  std::memcpy(out + whole, last, rest * sizeof *out);
}

// ---- sums in lanes ----

inline constexpr int kLanes = 32, kLaneRegisters = kLanes / kRegisterFloats;

// How far ahead sweeps of the gradient, and sweeps that fill tiles, prefetch memory.
inline constexpr int64_t kAheadBytes = 2048;

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

// ---- channels ----

// What a sweep knows about each channel.
using OfChannels = float[kMaxRows];

// The positions of a region, with `channels` values at each.
template <class Type, class Raw = typename Type::Raw>
inline StridedRows<Raw> positions_of(const GroupNormTensor& t, const Region& at) {
  return {static_cast<Raw*>(address_of(t, at)), t.position[0]};
}

// Tiles lie in L1: fetching them too takes 8 % of the forward of 1x32x8x8.
enum class From : uint8_t { memory, tile };

// Calls work(p, c, n, the registers of each input) at each position p for n channels from c on.
// Lambdas that GCC inlines late, because of `flatten`, take 1.2 times as long.
template <class Type, From from = From::memory, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void for_channels_last(int64_t channels, int64_t positions,
                                                     const auto& work, const auto&... in) {
  for (int64_t p = 0; p < positions; ++p) {
    if constexpr (from == From::memory)
      (fetch_row<0>(in.address(p + kAheadRows), channels * sizeof(Raw)), ...);
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    work(p, c, n, load_some<Type, K>(in[p] + c, n)...);
                  });
  }
}

// Stores `channels` elements at each position: make(c, a register of each input) returns those from
// channel c on.
template <class Type, From from = From::memory, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void store_channels_last(const StridedRows<Raw>& out,
                                                       int64_t channels, int64_t positions,
                                                       bool stream, const auto& make,
                                                       const auto&... in) {
  const auto store = [&]<int K>(int64_t p, int64_t c, int64_t n, const Registers<K>& first,
                                const auto&... more) __attribute__((always_inline)) {
    const auto y =
        map<K>([&](int k) { return make(c + k * kRegisterFloats, first.r[k], more.r[k]...); });
    if (from == From::memory && !stream && c == 0)
      fetch_row<1>(out.address(p + kAheadRows), channels * sizeof(Raw));
    store_some<Type>(out[p] + c, y, n, stream);
  };
  for_channels_last<Type, from>(channels, positions, store, in...);
}

// Whether non-temporal stores of whole blocks begin where lines do.
template <class Raw>
inline bool at_lines(const StridedRows<Raw>& rows) {
  return ((reinterpret_cast<uintptr_t>(rows.first) | rows.step * sizeof(Raw)) & 63) == 0;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
