// SPDX-License-Identifier: Apache-2.0
// What FlashAttentionScore and its gradient take in all their versions, dense and with sequences of
// several lengths in one tensor (TND), and the sequences of such a call.
#pragma once

#include "core/torch/aten/composites/attention.h"

namespace openaclnn::aten {

struct Training {
  Tensor q, k, v, q_rope, k_rope, pse, drop, mask, sink;
  Ints prefix, q_lengths, kv_lengths, q_start, kv_start;  // lengths: running sums
  double scale, keep;
  int64_t before, after, heads;
  Text layout;
  int64_t sparse, pse_type;
  bool packed = false;      // TND
  bool rows_first = false;  // its statistics are [T, N], not the sequences as [N, S] each

  bool has_dropout() const { return drop.defined() && drop.numel() > 0 && keep < 1; }
};

struct Shape {
  int64_t batches, heads, kv_heads;
  Ints rows, keys;  // of each batch
};

// Checks a call.
Shape shape_of(const Training& t);

// [N, S, D] of each sequence, views of x.
Tensors sequences(const Tensor& x, const char* name, const Training& t, int64_t heads,
                  const Ints& lengths);

// The parts of each sequence that has rows, and its number; none without data.
void for_each_sequence(const Training& t, const Shape& s,
                       const std::function<void(const Sequence&, size_t)>& f);

// ---- the functions ----

// softmax is left unwritten.
void attend_training(const Training& t, const Out& largest, const Out& total, const Out& softmax,
                     const Out& out);

struct Given {
  Tensor largest, total, out;  // of the forward; undefined: computed
};

struct Derived {
  Out q, k, v, q_rope, k_rope, sink, pse;  // pse is left unwritten
};

void differentiate_training(const Training& t, const Tensor& dy, const Given& given,
                            const Derived& to);

}  // namespace openaclnn::aten
