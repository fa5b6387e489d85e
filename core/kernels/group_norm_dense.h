// SPDX-License-Identifier: Apache-2.0
// Rows of one type that lie densely in memory, and the loops over them that store.
#pragma once

#include "core/kernels/block.h"
#include "core/kernels/group_norm.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Where rows begin; NULL if there are none.
template <class T>
struct RowsOf {
  T* first;
  int64_t step;
  T* operator[](int64_t row) const { return first == nullptr ? nullptr : first + row * step; }
  operator RowsOf<const T>() const { return {first, step}; }
  RowsOf from(int64_t row) const { return {(*this)[row], step}; }
};

// Calls work(rows) with rows that read and write the large tensors in their layout, `dense` or not.
template <class Tiled, template <class> class Dense, template <class> class Inside>
inline void with_rows(const GroupNormCall& call, bool dense, const auto& work) {
  if (call.inside || (dense && call.rows == 1)) {
    with_type(call.x.element, [&]<class Type>(Type) {
      if (call.inside) {
        Inside<Type> rows(call);
        work(rows);
      } else {
        Dense<Type> rows(call);
        work(rows);
      }
    });
  } else {
    Tiled rows(call);
    work(rows);
  }
}

struct Segment {
  int64_t begin, size;
  Segment(const GroupNormCall& call, const Slice& at)
      : begin(at.segment * kSegment), size(least(kSegment, call.positions - begin)) {}
};

template <class Type, class Raw = typename Type::Raw>
inline RowsOf<Raw> rows_of(const GroupNormTensor& t, const Slice& at, const Segment& part) {
  Raw* const first = static_cast<Raw*>(t.data) + at.sample * t.sample;
  return {first + at.channel * t.channel + part.begin, t.channel};
}

// The number of rows that are worked on at a time: many if they are short.
inline int64_t dense_rows(const GroupNormCall& call) {
  return call.positions <= kPiece ? kMaxRows : 1;
}

// Calls work(first, count, stream) for chunks of at most kMaxColumns of [0, n), the last chunk
// first, because the end of the previous sweep is still in the cache. Streaming chunks begin where
// a line of `out` does.
template <class Raw>
inline void for_chunks(const Raw* out, int64_t n, bool stream, const auto& work) {
  const int64_t bytes = -reinterpret_cast<intptr_t>(out) & 63;
  const int64_t head = stream ? least(bytes / static_cast<int64_t>(sizeof(Raw)), n) : 0;
  for (int64_t end = n, first; end > head; end = first) {
    first = head + (end - head - 1) / kMaxColumns * kMaxColumns;
    work(first, end - first, stream);
  }
  if (head != 0) work(0, head, false);
}

template <class From>
struct Input {
  const typename From::Raw* at;
  const typename From::Raw* later = nullptr;  // to be read by a sweep after this one
};

// Fetches the chunk before to L2, because addresses 4 KiB apart have few places in L1 (gradient of
// 32 Mi fp32 values, 2 threads: 16 ms to L1, 18 without, 10 to L2). Also fetches what is read
// later.
template <class Type>
inline void fetch(const Input<Type>& in, int64_t i) {
  const int64_t chunk = kMaxColumns * static_cast<int64_t>(sizeof *in.at);
  fetch_block<Type, Cache::l2>(in.at + i, -chunk);
  if (in.later != nullptr) fetch_block<Type, Cache::l2>(in.later + i, 0);
}

// Writes n elements of `out`: make(registers of each input) returns them.
template <class Type, class... From>
[[gnu::always_inline]] inline void store_each(typename Type::Raw* out, int64_t n, bool stream,
                                              const auto& make, Input<From>... in) {
  int64_t i = 0;
  const auto store = [&]<int K>(Registers<K>) __attribute__((always_inline)) {
    constexpr int64_t kStep = K * kRegisterFloats;
    for (; i + kStep <= n; i += kStep) {
      for (int64_t k = 0; k < kStep; k += kBlock) (fetch(in, i + k), ...);
      store_registers<Type>(out + i, make(load_registers<From, K>(in.at + i)...), stream);
    }
  };
  store(Registers<kBlockRegisters>{});
  if (i == n) return;
  Block last;
  store_registers(
      last.value,
      make(load_registers<F32, kBlockRegisters>(load_part<From>(in.at + i, n - i).value)...));
  store_part<Type>(out + i, last, n - i);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
