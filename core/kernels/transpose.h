// SPDX-License-Identifier: Apache-2.0
// Rows become columns in blocks of 4 × 4 floats, with 8 shuffles for 16 elements.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/bits.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

using Four [[gnu::vector_size(16)]] = float;

inline Four load_four(const float* from) {
  Four v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// 4 × 4 floats: out[r * out_pitch + c] = in[c * in_pitch + r]
inline void transpose_block(float* out, int64_t out_pitch, const float* in, int64_t in_pitch) {
  const Four v0 = load_four(in), v1 = load_four(in + in_pitch);
  const Four v2 = load_four(in + 2 * in_pitch), v3 = load_four(in + 3 * in_pitch);
  const Four a = __builtin_shufflevector(v0, v1, 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(v0, v1, 2, 6, 3, 7);
  const Four d = __builtin_shufflevector(v2, v3, 0, 4, 1, 5);
  const Four e = __builtin_shufflevector(v2, v3, 2, 6, 3, 7);
  const Four results[4] = {
      __builtin_shufflevector(a, d, 0, 1, 4, 5), __builtin_shufflevector(a, d, 2, 3, 6, 7),
      __builtin_shufflevector(b, e, 0, 1, 4, 5), __builtin_shufflevector(b, e, 2, 3, 6, 7)};
  for (int k = 0; k < 4; ++k) std::memcpy(out + k * out_pitch, &results[k], sizeof results[k]);
}

// The number of rows by which memory is fetched ahead, to L2: no hardware foresees accesses to rows
// far apart, and these share few sets of L1. The gradient of channels-last fp32 8x512x32x32 on one
// thread takes 2.2 ns a value with 4 or 16 rows to L1, 1.65 with 8 rows to L2, 1.48 with 16.
inline constexpr int64_t kAheadRows = 16;
template <int write>
inline void fetch_row(const void* row, int64_t bytes) {
  for (int64_t b = 0; b < bytes + 63; b += 64)
    __builtin_prefetch(static_cast<const char*>(row) + b, write, 2);
}

// out[r * out_pitch + c] = in[c * in_pitch + r] for r < rows, c < columns. The side whose rows are
// further apart is walked once.
inline void transpose(float* out, int64_t out_pitch, const float* in, int64_t in_pitch,
                      int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  if (out_pitch > in_pitch) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      for (int k = 0; k < 4; ++k)
        fetch_row<1>(out + (r + kAheadRows + k) * out_pitch, columns * sizeof(float));
      for (int64_t c = 0; c < whole_columns; c += 4)
        transpose_block(out + r * out_pitch + c, out_pitch, in + c * in_pitch + r, in_pitch);
    }
  } else {
    for (int64_t c = 0; c < whole_columns; c += 4) {
      for (int k = 0; k < 4; ++k)
        fetch_row<0>(in + (c + kAheadRows + k) * in_pitch, rows * sizeof(float));
      for (int64_t r = 0; r < whole_rows; r += 4)
        transpose_block(out + r * out_pitch + c, out_pitch, in + c * in_pitch + r, in_pitch);
    }
  }
  for (int64_t c = 0; c < whole_columns; ++c) {
    for (int64_t r = whole_rows; r < rows; ++r) out[r * out_pitch + c] = in[c * in_pitch + r];
  }
  for (int64_t c = whole_columns; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) out[r * out_pitch + c] = in[c * in_pitch + r];
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
