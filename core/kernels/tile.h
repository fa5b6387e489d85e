// SPDX-License-Identifier: Apache-2.0
// A tile is rows × columns of an operand, packed row-major into a buffer that fits L1. Copies to
// and from strided places, transpositions and copies past the cache are here.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/load_store.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ---- transposition ----
// Rows become columns in blocks of as many rows as a register of 16 bytes has elements: 4 × 4
// floats with 8 shuffles for 16 elements, 8 × 8 halves with 24 for 64.

template <class Raw>
struct Sixteen {
  using Bytes [[gnu::vector_size(16)]] = Raw;
};

// Copies an element; it may be of any type with the size of a Raw.
template <class Raw>
inline void copy_element(Raw* to, const Raw* from) {
  std::memcpy(to, from, sizeof *to);
}

// The elements of a and b in turn, from the first halves or from the second ones.
template <bool second, class V>
inline V interleaved(V a, V b) {
  constexpr int n = sizeof a / sizeof a[0], at = second ? n / 2 : 0;
  if constexpr (n == 2) {
    return __builtin_shufflevector(a, b, at, at + 2);
  } else if constexpr (n == 4) {
    return __builtin_shufflevector(a, b, at, at + 4, at + 1, at + 5);
  } else {
    return __builtin_shufflevector(a, b, at, at + 8, at + 1, at + 9, at + 2, at + 10, at + 3,
                                   at + 11);
  }
}

template <class Raw>
inline constexpr int kBlockSide = 16 / sizeof(Raw);

// out[r * out_pitch + c] = in[c * in_pitch + r] for r, c < kBlockSide. With n registers, log2 n
// rounds interleave register i with i + n / 2.
template <class Raw>
inline void transpose_block(Raw* out, int64_t out_pitch, const Raw* in, int64_t in_pitch) {
  constexpr int n = kBlockSide<Raw>;
  typename Sixteen<Raw>::Bytes v[n], next[n];
  for (int k = 0; k < n; ++k) std::memcpy(&v[k], in + k * in_pitch, 16);
  for (int round = 1; round < n; round *= 2) {
    for (int k = 0; k < n / 2; ++k) {
      next[2 * k] = interleaved<false>(v[k], v[k + n / 2]);
      next[2 * k + 1] = interleaved<true>(v[k], v[k + n / 2]);
    }
    for (int k = 0; k < n; ++k) v[k] = next[k];
  }
  for (int k = 0; k < n; ++k) std::memcpy(out + k * out_pitch, &v[k], 16);
}

// The number of rows by which memory is fetched ahead, to L2: no hardware foresees accesses to rows
// far apart, and these share few sets of L1. The gradient of channels-last fp32 8x512x32x32 on one
// thread takes 2.2 ns a value with 4 or 16 rows to L1, 1.65 with 8 rows to L2, 1.48 with 16.
inline constexpr int64_t kAheadRows = 16;

// Where element i would lie, which may be beyond the array; memory there is only fetched.
template <class T>
inline const char* address_of(const T* array, int64_t i) {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(array) +
                                       static_cast<uintptr_t>(i) * sizeof(T));
}
// Fetches lines to L2, to be written or read.
template <int write>
[[gnu::always_inline]] inline void fetch_row(const char* row, int64_t bytes) {
  for (int64_t b = 0; b < bytes + 63; b += 64) __builtin_prefetch(row + b, write, 2);
}

// out[r * out_pitch + c] = in[c * in_pitch + r] for r < rows, c < columns. The side whose rows are
// further apart is walked once.
template <class Raw>
inline void transpose(Raw* out, int64_t out_pitch, const Raw* in, int64_t in_pitch, int64_t rows,
                      int64_t columns) {
  constexpr int n = kBlockSide<Raw>;
  const int64_t whole_rows = rows / n * n, whole_columns = columns / n * n;
  if (out_pitch > in_pitch) {
    for (int64_t r = 0; r < whole_rows; r += n) {
      for (int k = 0; k < n; ++k)
        fetch_row<1>(address_of(out, (r + kAheadRows + k) * out_pitch), columns * sizeof(Raw));
      for (int64_t c = 0; c < whole_columns; c += n)
        transpose_block(out + r * out_pitch + c, out_pitch, in + c * in_pitch + r, in_pitch);
    }
  } else {
    for (int64_t c = 0; c < whole_columns; c += n) {
      for (int k = 0; k < n; ++k)
        fetch_row<0>(address_of(in, (c + kAheadRows + k) * in_pitch), rows * sizeof(Raw));
      for (int64_t r = 0; r < whole_rows; r += n)
        transpose_block(out + r * out_pitch + c, out_pitch, in + c * in_pitch + r, in_pitch);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r)
      copy_element(out + r * out_pitch + c, in + c * in_pitch + r);
  }
}

// ---- strided copies ----

// Where the elements of a tile lie. Strides are in elements.
struct Placement {
  int64_t rows, columns, row_stride, column_stride;
  bool packed() const { return column_stride == 1 && (rows == 1 || row_stride == columns); }
  bool constant() const { return column_stride == 0 && (rows == 1 || row_stride == 0); }
};

// Where the rows and columns of one side of a copy lie.
struct Steps {
  int64_t row, column;
  bool transposed() const { return row == 1 && (column > 1 || column < -1); }
};

// Copies rows × columns elements from one strided place to another. If one side is dense along its
// rows and the other along its columns, this is a transposition. Otherwise the loop over columns is
// the inner one, unless one side is dense along its rows, or there are so few columns that the loop
// costs more than the copies. Without the unrolled loop, group norm of every second position of
// fp32 4x320x49 takes 1.2 times as long.
template <class Raw>
inline void move(Raw* to, Steps out, const Raw* from, Steps in, int64_t rows, int64_t columns) {
  if (in.transposed() && out.column == 1)
    return transpose(to, out.row, from, in.column, rows, columns);
  if (out.transposed() && in.column == 1)
    return transpose(to, out.column, from, in.row, columns, rows);
  constexpr int64_t kFew = 32 / sizeof(Raw);
  if (out.transposed() || in.transposed() || (columns < kFew && columns < rows)) {
    for (int64_t c = 0; c < columns; ++c) {
      Raw* t = to + c * out.column;
      const Raw* f = from + c * in.column;
      for (int64_t r = 0; r < rows; ++r) copy_element(t + r * out.row, f + r * in.row);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += out.row, from += in.row) {
    if (out.column == 1 && in.column == 1) {
      std::memcpy(to, from, columns * sizeof(Raw));
    } else if (out.column == 1 && in.column == 0) {
      for (int64_t c = 0; c < columns; ++c) copy_element(to + c, from);
    } else {
#pragma GCC unroll 4
      for (int64_t c = 0; c < columns; ++c) copy_element(to + c * out.column, from + c * in.column);
    }
  }
}

// Not inlined: tiles of all kinds move with it.
[[gnu::noinline, gnu::flatten]] inline void move(void* to, Steps out, const void* from, Steps in,
                                                 int64_t rows, int64_t columns, Element element) {
  const auto as = [&]<class Raw>(Raw) {
    move(static_cast<Raw*>(to), out, static_cast<const Raw*>(from), in, rows, columns);
  };
  switch (bytes_of(element)) {
    case 2: as(uint16_t{}); break;
    case 4: as(uint32_t{}); break;
    default: as(uint64_t{}); break;
  }
}

// Copies strided elements to and from a packed buffer.
inline void gather(void* out, const void* in, Element element, const Placement& at) {
  move(out, {at.columns, 1}, in, {at.row_stride, at.column_stride}, at.rows, at.columns, element);
}

inline void scatter(void* out, const void* in, Element element, const Placement& at) {
  move(out, {at.row_stride, at.column_stride}, in, {at.columns, 1}, at.rows, at.columns, element);
}

// Non-temporal stores of whole lines of 64 bytes; `out` begins a line. The pool orders streaming
// stores before it reports that the work is done.
inline void stream_lines(void* out, const void* in, int64_t bytes) {
  auto* const to = static_cast<char*>(out);
  auto* const from = static_cast<const char*>(in);
  for (int64_t i = 0; i < bytes; i += kRegisterBytes)
    stream_register(to + i, load_register<WordRegister>(from + i));
}

// Copies with non-temporal stores, except for the ragged ends.
inline void stream_copy(void* out, const void* in, int64_t bytes) {
  auto* to = static_cast<char*>(out);
  auto* from = static_cast<const char*>(in);
  int64_t head = -reinterpret_cast<intptr_t>(to) & 63;
  if (head > bytes) head = bytes;
  if (head != 0) std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  const int64_t whole = bytes & ~int64_t{63};
  stream_lines(to, from, whole);
  if (bytes != whole) std::memcpy(to + whole, from + whole, bytes - whole);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
