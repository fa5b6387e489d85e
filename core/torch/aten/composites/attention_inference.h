// SPDX-License-Identifier: Apache-2.0
// What attention for inference takes: FusedInferAttentionScore, IncreFlashAttention and
// PromptFlashAttention in all their versions.
#pragma once

#include "core/torch/aten/composites/attention.h"

namespace openaclnn::aten {

struct Inference {
  Tensor q;
  Tensors k, v;  // one tensor of all batches, one for each batch, or one of pages
  Tensor pse, mask;
  Ints lengths, kv_lengths;
  int64_t heads = 0;
  double scale = 1;
  int64_t before = INT64_MAX, after = INT64_MAX;
  Text layout;
  int64_t kv_heads = 0, sparse = 0, block = 0;

  Tensor table;                  // [batches, pages]: key j is row j % block of page j / block
  Tensor q_padding, kv_padding;  // rows behind the last one; the lengths are before them
  Tensor k_prefix, v_prefix;     // keys before those of every batch
  Ints prefix_length;
  Tensor q_rope, k_rope;  // more of each head for the scores
  Tensor sink;

  // ---- quantised ----
  Tensor deq1, quant1, deq2;   // of INT8 query, key and value: scores, exponentials, results
  Tensor quant2, offset2;      // of INT8 results
  Tensor kv_scale, kv_offset;  // of INT8 or INT4 keys [0] and values [1]
  int64_t kv_mode = 0;
  Tensor k_scale, k_offset, v_scale, v_offset;
  int64_t k_mode = 0, v_mode = 0;
  Tensor k_rope_scale, q_scale;
};

// The layout of the inputs and that of the result.
struct Layouts {
  Text in, out;
  bool packed;  // TND, NTD: sequences of several lengths in one tensor
};
Layouts layouts_of(const Inference& a);

// [B, N, S, D], a view of a tensor in that layout, and [N, T, D] of a packed one.
Tensor batches_of(const Tensor& x, const char* name, const Text& layout, int64_t heads);
Tensor packed_heads(const Tensor& x, const char* name, const Text& layout);

// Tensors of INT4, or of INT32 with eight numbers in each, become bytes of two.
void take_bytes(Tensors* list, const char* name);

// Where the rows of one batch lie.
struct Rows {
  int64_t first, count;
};

// The keys or values of a batch as [K, L, D], with numbers that were quantised multiplied out.
struct Cache {
  const Inference& a;
  Layouts layout;
  int64_t kv_heads, batches;
  std::vector<Rows> rows;  // of each batch

  Tensor keys(size_t batch) const;
  Tensor values(size_t batch) const;
  Tensor ropes(size_t batch) const;

 private:
  Tensor gathered(const Tensors& list, const char* name, size_t batch) const;
  Tensor paged(const Tensor& pages, const char* name, size_t batch) const;
  Tensor pages(size_t batch, int64_t size, int64_t count) const;
  Tensor factors(const Tensor& given, const char* name, int64_t mode, const Tensor& x,
                 size_t batch) const;
  Tensor multiplied(const Tensor& stored, const char* name, int64_t which, size_t batch) const;
};

// The query's sequences and the rows of each that count.
struct Queries {
  Tensors all;  // [N, S, D]
  std::vector<Rows> rows;
  int64_t places;  // S, or T of a packed tensor
};
Queries queries_of(const Inference& a, const Layouts& layout);
std::vector<Rows> rows_of_keys(const Inference& a, const Layouts& layout, size_t batches);
bool is_single(const Inference& a, const Layouts& layout, int64_t places);
void check(const Inference& a, const Layouts& layout, size_t batches);

// ---- masks and biases of one batch ----

struct BatchEntry {
  size_t batch;
  int64_t batches, all_rows;  // of the query in each batch, with those that do not count
  Rows rows, keys;            // positions in masks
};
void add_mask(const Inference& a, const BatchEntry& at, bool single, int64_t tree, Sequence* to);
void add_bias(const Inference& a, const BatchEntry& at, Sequence* to);

void infer(const Inference& given, bool has_lse, const Out& out, const Out& lse);

}  // namespace openaclnn::aten
