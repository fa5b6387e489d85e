// SPDX-License-Identifier: Apache-2.0
// Attention of one sequence, the core of all functions of attention: softmax(scale q kᵀ + bias,
// masked) v in float (double for doubles). Scores are made in blocks of at most kScores, or of one
// row of one head where a row is longer.
#pragma once

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

constexpr int64_t kScores = int64_t{1} << 20;  // 4 MiB of float

// A row where nothing is allowed has the sum 0 and this maximum.
constexpr double kLowest = -3.4028234663852886e38;

struct Sequence {
  Tensor q, k, v;  // [N, S, D], [K, L, D], [K, L, E]: head n of q reads head n / (N / K) of k, v
  double scale = 1;

  // ---- excluded: j - i outside [low, high] from the prefix on, and where the mask is true ----
  int64_t low = -kFar, high = kFar, prefix = 0;
  Tensor mask;                                       // [N or 1, S or 1, L]
  static constexpr int64_t kFar = int64_t{1} << 42;  // no distance is as large

  Tensor chosen;  // [N, S / chosen_rows, L / chosen_keys]: blocks that are not excluded
  int64_t chosen_rows = 1, chosen_keys = 1;

  // ---- bias ----
  Tensor bias;                  // [N or 1, S or 1, L]
  bool before_scaling = false;  // the bias is scaled too
  Tensor by_distance;           // [N, W]: the bias of j - i is at j - i + W - 1
  Tensor slopes;                // [N]: the bias -slope |j - i + start|, or of its root
  int64_t start = 0;
  bool root = false;

  // ---- after the softmax ----
  Tensor sink;  // [N]: a score beside those of the keys, without a value
  Tensor kept;  // dropout: bits of [N, S, L], the first at first_bit
  int64_t first_bit = 0;
  double keep = 1;
  double quantum = 0;  // above 0: exponentials are rounded to INT8 times this, for INT8 values
};

struct Attended {
  Tensor out, largest, total;  // [N, S, E], [N, S], [N, S]
};

Attended attend(const Sequence& s);

struct Gradients {
  Tensor q, k, v, sink;
};

// largest and total may be those of more keys than these, and products[n, i], the sum of dy out,
// too; undefined: those of these keys alone.
Gradients differentiate(const Sequence& s, const Tensor& dy, const Tensor& largest,
                        const Tensor& total, const Tensor& products);

inline at::ScalarType wide_of(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Callers pass tensors of no elements for what they do not have.
inline bool is_given(const Tensor& x) { return x.defined() && x.numel() > 0; }

inline void check_mask(const Tensor& mask) {
  const bool fits = !is_given(mask) || mask.scalar_type() == at::kBool ||
                    mask.scalar_type() == at::kByte || mask.scalar_type() == at::kChar;
  require(fits, "attenMask must be BOOL, UINT8 or INT8, but is ", mask.scalar_type());
}

// The sequences' lengths from running sums; a sum below the one before stands for none.
inline Ints lengths_of(const Ints& ends, const char* name, int64_t room) {
  Ints lengths;
  int64_t last = 0;
  for (const int64_t end : ends) {
    lengths.push_back(end > last ? end - last : 0);
    last = std::max(last, end);
  }
  require(last <= room, name, " must end with the rows of its tensor at most, ", room, ", but has ",
          last);
  return lengths;
}

// Whether heads of q are a multiple of those of k.
inline void check_groups(int64_t heads, int64_t kv_heads) {
  require(kv_heads > 0 && heads % kv_heads == 0,
          "the heads of query must be a multiple of those of key and value, but are ", heads,
          " and ", kv_heads);
}

// Distances of a band that the program gives, without overflow.
inline int64_t tokens(int64_t given) {
  return std::clamp(given, -Sequence::kFar / 2, Sequence::kFar / 2);
}

}  // namespace openaclnn::aten
