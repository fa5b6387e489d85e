// SPDX-License-Identifier: Apache-2.0
// Which rows of query, key and value belong to each batch, and what a call may be.
#include "core/torch/aten/composites/attention_inference.h"

namespace openaclnn::aten {
namespace {

void check_count(const Ints& list, const char* name, int64_t batches) {
  require(list.empty() || list.size() == 1 || static_cast<int64_t>(list.size()) >= batches, name,
          " must have one number, or one for each of the ", batches, " batches, but has ",
          list.size());
}

int64_t at_batch(const Ints& list, size_t batch, int64_t all) {
  return list.empty() ? all : list.size() == 1 ? list[0] : list[batch];
}

// Rows behind the last one of a batch, left unwritten by callers that align sequences to the end.
int64_t padding_of(const Tensor& padding, const char* name, size_t batch, int64_t batches) {
  if (!padding.defined()) return 0;
  require_shape(padding.numel() == 1 || padding.numel() == batches, name,
                " must have one element, or one for each of the ", batches, " batches, but has ",
                padding.numel());
  if (padding.is_meta()) return 0;
  const Tensor flat = padding.flatten().to(at::kLong);
  return std::max<int64_t>(
      0, flat[padding.numel() == 1 ? 0 : static_cast<int64_t>(batch)].item<int64_t>());
}

std::vector<Rows> from_sums(const Ints& ends, const char* name, int64_t room) {
  if (ends.empty()) return {{0, room}};
  std::vector<Rows> rows;
  int64_t first = 0;
  for (const int64_t end : ends) {
    require(end >= first && end <= room, name, " must ascend up to the rows of its tensor, ", room,
            ", but has ", end);
    rows.push_back({first, end - first});
    first = end;
  }
  return rows;
}

// The last rows before the padding, as many as the length says.
Rows aligned(int64_t places, int64_t length, int64_t padding, const Tensor& given,
             const char* name) {
  require(length >= 0 && length + padding <= places, name, " must be in [0, ", places - padding,
          "], but has ", length);
  return {given.defined() ? places - padding - length : 0, length};
}

}  // namespace

// One query in each batch: its length, the bands and the masks of 2048 x 2048 have no effect.
bool is_single(const Inference& a, const Layouts& layout, int64_t places) {
  return !layout.packed && places == 1 && !a.q_rope.defined();
}

Queries queries_of(const Inference& a, const Layouts& layout) {
  Queries found;
  if (layout.packed) {
    const Tensor all = packed_heads(a.q, "query", layout.in);
    found.places = all.size(1);
    found.rows = from_sums(a.lengths, "actualSeqLengths", found.places);
    for (const auto& [first, count] : found.rows) found.all.push_back(all.narrow(1, first, count));
    for (Rows& rows : found.rows) rows.first = 0;
    return found;
  }
  const Tensor all = batches_of(a.q, "query", layout.in, a.heads);
  found.all = all.unbind(0);
  found.places = all.size(2);
  check_count(a.lengths, "actualSeqLengths", all.size(0));
  const bool single = is_single(a, layout, found.places);
  for (size_t b = 0; b < found.all.size(); ++b) {
    const int64_t length = single ? 1 : at_batch(a.lengths, b, found.places);
    const int64_t padding = padding_of(a.q_padding, "queryPaddingSize", b, all.size(0));
    found.rows.push_back(aligned(found.places, length, padding, a.q_padding, "actualSeqLengths"));
  }
  return found;
}

std::vector<Rows> rows_of_keys(const Inference& a, const Layouts& layout, size_t batches) {
  const auto count = static_cast<int64_t>(batches);
  if (layout.packed && !a.table.defined()) {
    auto rows = from_sums(a.kv_lengths, "actualSeqLengthsKv",
                          packed_heads(a.k[0], "key", layout.in).size(1));
    require(rows.size() == batches, "actualSeqLengthsKv must have a number for each of the ",
            batches, " sequences, but has ", rows.size());
    return rows;
  }
  check_count(a.kv_lengths, "actualSeqLengthsKv", count);
  std::vector<Rows> rows;
  for (size_t b = 0; b < batches; ++b) {
    if (a.table.defined()) {
      const int64_t length = at_batch(a.kv_lengths, b, 0);
      require(length >= 0, "actualSeqLengthsKv must be at least 0, but has ", length);
      rows.push_back({0, length});
      continue;
    }
    const int64_t kv = a.kv_heads == 0 ? a.heads : a.kv_heads;
    const int64_t places = batches_of(a.k[a.k.size() > 1 ? b : 0], "key", layout.in, kv).size(2);
    const int64_t padding = padding_of(a.kv_padding, "kvPaddingSize", b, count);
    rows.push_back(aligned(places, at_batch(a.kv_lengths, b, places), padding, a.kv_padding,
                           "actualSeqLengthsKv"));
  }
  return rows;
}

static void check_lists(const Inference& a, size_t batches) {
  require(!a.k.empty() && !a.v.empty(), "key and value must have a tensor, but have none");
  require(a.k.size() == a.v.size() && (a.k.size() == 1 || a.k.size() == batches),
          "key and value must have one tensor, or one for each of the ", batches,
          " batches, but have ", a.k.size(), " and ", a.v.size());
}

static void check_options(const Inference& a, const Layouts& layout, size_t batches) {
  const int64_t kv = a.kv_heads == 0 ? a.heads : a.kv_heads;
  require(a.heads % kv == 0, "numHeads must be a multiple of numKeyValueHeads, ", kv, ", but is ",
          a.heads);
  require((a.sparse >= 0 && a.sparse <= 4) || a.sparse == 9,
          "sparseMode must be in [0, 4] or 9, but got ", a.sparse);
  check_mask(a.mask);
  require(a.sparse < 2 || is_given(a.mask), "attenMask must be given in sparseMode 2, 3, 4 and 9");
  require(a.q_rope.defined() == a.k_rope.defined(),
          "queryRope and keyRope must be given together or both be NULL");
  require(a.k_prefix.defined() == a.v_prefix.defined(),
          "keySharedPrefix and valueSharedPrefix must be given together or both be NULL");
  require(a.q.is_floating_point() || a.q.scalar_type() == at::kChar,
          "query must be FLOAT16, BF16 or INT8, but is ", a.q.scalar_type());
  if (a.sink.defined()) check_shape(a.sink, "learnableSink", {a.heads});
  if (a.table.defined()) {
    require(!a.kv_lengths.empty(), "actualSeqLengthsKv must be given with blockTable");
    require(!a.kv_padding.defined() && !a.q_padding.defined(),
            "queryPaddingSize and kvPaddingSize must be NULL with blockTable");
    require_shape(a.table.dim() == 2 && a.table.size(0) >= static_cast<int64_t>(batches),
                  "blockTable must have a row of pages for each of the ", batches,
                  " batches, but has shape ", a.table.sizes());
    require(a.k.size() == 1, "key and value must have one tensor of pages, but have ", a.k.size());
  }
  require(!a.q_padding.defined() || !a.lengths.empty(),
          "actualSeqLengths must be given with queryPaddingSize");
  require(!a.kv_padding.defined() || !a.kv_lengths.empty(),
          "actualSeqLengthsKv must be given with kvPaddingSize");
  require(!layout.packed || (!a.kv_padding.defined() && !a.q_padding.defined()),
          "queryPaddingSize and kvPaddingSize must be NULL with layout ", layout.in);
}

void check(const Inference& a, const Layouts& layout, size_t batches) {
  check_lists(a, batches);
  check_options(a, layout, batches);
}

}  // namespace openaclnn::aten
