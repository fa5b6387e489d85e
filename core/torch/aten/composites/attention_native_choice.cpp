// SPDX-License-Identifier: Apache-2.0
// Native sparse attention: the choice of blocks by the attention to sums of windows, and attention
// for inference, whose keys are in pages.
#include "core/torch/aten/composites/attention_native.h"

namespace openaclnn::aten {
namespace {

// Windows of `size` keys every `stride` keys, blocks of `block` keys of which `count` are chosen.
struct Choice {
  int64_t size, stride, block, count;

  void check() const {
    require(stride >= 1 && size >= stride && size % stride == 0 && block >= stride &&
                block % stride == 0 && block <= INT32_MAX && size <= INT32_MAX && count >= 1,
            "compressBlockSize and selectBlockSize must be multiples of compressStride, and ",
            "selectBlockCount at least 1, but are ", size, ", ", block, ", ", stride, " and ",
            count);
  }
  // Importance of each of so many blocks: the shares of the windows that overlap it,
  // sum over a < block / stride, c < size / stride of p[(block / stride)(j + 1) - a - c].
  Tensor importance(const Tensor& p, int64_t blocks) const {
    const int64_t m = block / stride, n = size / stride, windows = p.size(-1);
    Ints sizes = p.sizes().vec();
    sizes.back() = blocks;
    const Tensor made = at::zeros(sizes, at::kFloat);
    if (windows == 0 || blocks == 0) return made;
    const Tensor last = (at::arange(blocks) + 1) * m;
    for (int64_t e = 0; e <= m + n - 2; ++e) {
      const Tensor at = last - e;
      const Tensor inside = (at >= 0).bitwise_and(at < windows);
      // The pairs a + c = e.
      const int64_t pairs = std::min(e, m - 1) - std::max<int64_t>(0, e - n + 1) + 1;
      made.add_(p.index_select(-1, at.clamp(0, windows - 1)) * inside, pairs);
    }
    return made;
  }
};

// The shares of attention, summed over the heads of q that read a head of k: [K, S, L].
Tensor shares(const Sequence& s, const Attended& found, int64_t first, int64_t rows) {
  const int64_t kv = s.k.size(0), group = s.q.size(0) / kv;
  const auto grouped = [&](const Tensor& x) {
    return x.narrow(1, first, rows).to(at::kFloat).unflatten(0, {kv, group});
  };
  Tensor x = at::matmul(grouped(s.q), s.k.to(at::kFloat).transpose(1, 2).unsqueeze(1)) * s.scale;
  if (s.mask.defined()) x.masked_fill_(s.mask.narrow(1, first, rows).unsqueeze(0), -INFINITY);
  const Tensor sum = grouped(found.total.unsqueeze(-1));
  x.sub_(grouped(found.largest.unsqueeze(-1))).exp_().div_(sum).masked_fill_(sum <= 0, 0);
  return x.sum(1);
}

// ---- training ----

void nsa_compress_attention(Tensor q, Tensor k, Tensor v, Tensor mask, Tensor forced, Ints q_ends,
                            Ints k_ends, Ints block_ends, double scale, int64_t heads, Text layout,
                            int64_t mode, int64_t size, int64_t stride, int64_t block,
                            int64_t count, Out largest, Out total, Out out, Out indices) {
  require(layout == "TND", "inputLayout must be TND, but got ", layout);
  require(mode == 0 || mode == 1, "sparseMode must be 0 or 1, but got ", mode);
  check_heads(q, k, v, heads);
  check_mask(mask);
  check_mask(forced);
  const Choice choice{size, stride, block, count};
  choice.check();
  const Ints rows = lengths_of(q_ends, "actualSeqQLen", q.size(0));
  const Ints keys = lengths_of(k_ends, "actualCmpSeqKvLen", k.size(0));
  const Ints blocks = lengths_of(block_ends, "actualSelSeqKvLen", INT32_MAX);
  require(rows.size() == keys.size() && rows.size() == blocks.size(), "actualSeqQLen, ",
          "actualCmpSeqKvLen and actualSelSeqKvLen must have as many numbers, but have ",
          rows.size(), ", ", keys.size(), " and ", blocks.size());
  const auto covers = [&](const Tensor& x, const char* name, const Ints& columns) {
    if (!is_given(x)) return;
    check_rank(x, name, 2, 2);
    for (size_t b = 0; b < rows.size(); ++b)
      require_shape(rows[b] <= x.size(0) && columns[b] <= x.size(1), name,
                    " must cover the longest sequence, ", rows[b], " x ", columns[b],
                    ", but has shape ", x.sizes());
  };
  covers(mask, "attenMask", keys);
  covers(forced, "topkMask", blocks);
  need_data(q);
  const int64_t kv = k.size(1);
  const Tensor y = at::zeros({q.size(0), heads, v.size(2)}, at::kFloat);
  // The statistics of each sequence are [N, S], one after the other.
  const Tensor most = at::full({q.size(0) * heads}, kLowest, at::kFloat);
  const Tensor sum = at::zeros({q.size(0) * heads}, at::kFloat);
  const Tensor made = at::full({q.size(0), kv, count}, -1, at::kInt);
  int64_t t = 0, first = 0;
  for (size_t b = 0; b < rows.size(); t += rows[b], first += keys[b], ++b) {
    if (rows[b] == 0) continue;
    Sequence s;
    s.q = q.narrow(0, t, rows[b]).transpose(0, 1);
    s.k = k.narrow(0, first, keys[b]).transpose(0, 1);
    s.v = v.narrow(0, first, keys[b]).transpose(0, 1);
    s.scale = scale;
    if (is_given(mask))
      s.mask = mask.ne(0).narrow(0, 0, rows[b]).narrow(1, 0, keys[b]).unsqueeze(0);
    const Attended found = attend(s);
    y.narrow(0, t, rows[b]).copy_(found.out.transpose(0, 1));
    most.narrow(0, t * heads, rows[b] * heads).copy_(found.largest.flatten());
    sum.narrow(0, t * heads, rows[b] * heads).copy_(found.total.flatten());
    const int64_t few = std::min(count, blocks[b]);
    const int64_t step = std::clamp<int64_t>(
        kScores / std::max<int64_t>(1, heads * std::max(keys[b], blocks[b])), 1, rows[b]);
    for (int64_t i = 0; i < rows[b] && few > 0; i += step) {
      const int64_t some = std::min(step, rows[b] - i);
      Tensor p = choice.importance(shares(s, found, i, some), blocks[b]);
      if (is_given(forced))
        p.masked_fill_(forced.ne(0).narrow(0, i, some).narrow(1, 0, blocks[b]), 23333);
      made.narrow(0, t + i, some).narrow(2, 0, few).copy_(stable_first(p, few).transpose(0, 1));
    }
  }
  out = y;
  largest = most.reshape({q.size(0), heads, 1}).expand({q.size(0), heads, 8});
  total = sum.reshape({q.size(0), heads, 1}).expand({q.size(0), heads, 8});
  indices = made;
}

// ---- inference: keys in pages [blocks, page, K, D] or [.., K D] ----

struct Pages {
  Tensor table;
  int64_t page, heads;

  void check(const Tensor& x, const char* name, size_t batches) const {
    check_rank(x, name, 3, 4);
    check_real(x, name);
    require_shape(x.size(1) == page && (x.dim() == 4 ? x.size(2) == heads : x.size(2) % heads == 0),
                  name, " must have pages of ", page, " keys with ", heads,
                  " heads, but has shape ", x.sizes());
    check_rank(table, "blockTable", 2, 2);
    require_shape(table.size(0) == static_cast<int64_t>(batches), "blockTable must have ", batches,
                  " rows, but has shape ", table.sizes());
  }
  int64_t size_of(const Tensor& x) const { return x.dim() == 4 ? x.size(3) : x.size(2) / heads; }
  // [K, L, D] of a sequence.
  Tensor keys(const Tensor& x, size_t b, int64_t length) const {
    require(length >= 0 && length <= table.size(1) * page, "lengths of keys must be from 0 to ",
            table.size(1) * page, ", but one is ", length);
    const Tensor used =
        table[static_cast<int64_t>(b)].slice(0, 0, (length + page - 1) / page).to(at::kLong);
    check_positions(used, "blockTable", x.size(0));
    return x.index_select(0, used)
        .reshape({used.size(0) * page, heads, size_of(x)})
        .narrow(0, 0, length)
        .transpose(0, 1);
  }
};

// QueryRows of query in a layout: [B, N, D], [B, S, N, D] or [B, S, N D].
struct QueryRows {
  Text layout;
  int64_t batches, heads;

  Ints sizes(const Tensor& q, int64_t size) const {
    if (layout == "TND") return {batches, heads, size};
    if (layout == "BSND") return {batches, q.size(1), heads, size};
    return {batches, q.size(1), heads * size};
  }
  // Checks query beside pages of keys and values.
  Tensor of(const Tensor& q, const Tensor& k, const Tensor& v, const Pages& pages) const {
    check_real(q, "query");
    pages.check(k, "key", static_cast<size_t>(batches));
    pages.check(v, "value", static_cast<size_t>(batches));
    const int64_t size = pages.size_of(k);
    const int64_t rank = layout == "BSND" ? 4 : 3;
    check_rank(q, "query", rank, rank);
    check_shape(q, "query", sizes(q, size));
    return q.reshape({layout == "TND" ? batches : batches * q.size(1), heads, size});
  }
};

// The first block and the last two, then the best of the others; all where they are fewer.
Tensor chosen_blocks(const Tensor& importance, int64_t count) {
  const int64_t kv = importance.size(0), blocks = importance.size(1);
  if (blocks <= 3) return at::arange(blocks).expand({kv, blocks});
  const Tensor fixed = at::tensor(Ints{0, blocks - 2, blocks - 1}, at::kLong).expand({kv, 3});
  const int64_t few = std::min(count - 3, blocks - 3);
  return at::cat({fixed, stable_first(importance.narrow(1, 1, blocks - 3), few) + 1}, 1);
}

void nsa_compress_infer(Tensor q, Tensor k, Tensor v, Tensor mask, Tensor table, Ints, Ints lengths,
                        Ints, Tensor forced, int64_t heads, int64_t kv_heads, int64_t block,
                        int64_t count, int64_t size, int64_t stride, double scale, Text layout,
                        int64_t page, int64_t, Out out, Out indices) {
  require(!is_given(mask) && !is_given(forced), "attentionMask and topKMask must be NULL");
  require(layout == "TND" || layout == "BSND", "layout must be TND or BSND, but got ", layout);
  require(heads >= 1 && page >= 1 && count >= 3, "numHeads and pageBlockSize must be at least 1, ",
          "and selectBlockCount at least 3, but are ", heads, ", ", page, " and ", count);
  check_groups(heads, kv_heads);
  const Choice choice{size, stride, block, count};
  choice.check();
  const Pages pages{table, page, kv_heads};
  const QueryRows rows{layout, static_cast<int64_t>(lengths.size()), heads};
  const Tensor flat = rows.of(q, k, v, pages);
  require_shape(flat.size(0) == rows.batches, "query must have one row for each of the ",
                rows.batches, " sequences, but has shape ", q.sizes());
  need_data(q);
  const Tensor y = at::zeros({rows.batches, heads, pages.size_of(v)}, at::kFloat);
  const Tensor made = at::full({rows.batches, kv_heads, count}, -1, at::kInt);
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] == 0) continue;
    const auto row = static_cast<int64_t>(b);
    Sequence s;
    s.q = flat[row].unsqueeze(1);
    s.k = pages.keys(k, b, lengths[b]);
    s.v = pages.keys(v, b, lengths[b]);
    s.scale = scale;
    const Attended found = attend(s);
    y[row].copy_(found.out.squeeze(1));
    const int64_t blocks = ((lengths[b] - 1) * stride + size + block - 1) / block;
    const Tensor best =
        chosen_blocks(choice.importance(shares(s, found, 0, 1).squeeze(1), blocks), count);
    made[row].narrow(1, 0, std::min(count, best.size(1))).copy_(best.slice(1, 0, count));
  }
  out = y.reshape(rows.sizes(q, pages.size_of(v)));
  indices = made;
}

void nsa_selected_infer(Tensor q, Tensor k, Tensor v, Tensor index, Tensor mask, Tensor table, Ints,
                        Ints lengths, Text layout, int64_t heads, int64_t kv_heads, int64_t block,
                        int64_t count, int64_t page, double scale, int64_t, Out out) {
  require(!is_given(mask), "attenMask must be NULL");
  require(layout == "TND" || layout == "BSND" || layout == "BSH",
          "layout must be TND, BSND or BSH, but got ", layout);
  require(heads >= 1 && page >= 1 && block >= 1 && block <= INT32_MAX && count >= 1,
          "numHeads, pageBlockSize, selectBlockSize and selectBlockCount must be at least 1, but ",
          "are ", heads, ", ", page, ", ", block, " and ", count);
  check_groups(heads, kv_heads);
  const Pages pages{table, page, kv_heads};
  const QueryRows rows{layout, static_cast<int64_t>(lengths.size()), heads};
  const Tensor flat = rows.of(q, k, v, pages);
  const int64_t all = flat.size(0), group = heads / kv_heads;
  const int64_t each = rows.batches == 0 ? 0 : all / rows.batches;  // rows of a sequence
  check_given(index, "topkIndices");
  require_shape(index.numel() == all * kv_heads * count, "topkIndices must have ", count,
                " blocks for each row and head of keys, but has shape ", index.sizes());
  need_data(q);
  const Tensor list = index.to(at::kInt).contiguous();
  const auto* chosen = data_of<int32_t>(list);
  const Tensor y = at::zeros({all, heads, pages.size_of(v)}, at::kFloat);
  for (size_t b = 0; b < lengths.size(); ++b) {
    const Tensor its_k = pages.keys(k, b, lengths[b]), its_v = pages.keys(v, b, lengths[b]);
    for (int64_t i = 0; i < each * kv_heads; ++i) {
      const int64_t t = static_cast<int64_t>(b) * each + i / kv_heads, h = i % kv_heads;
      const Tensor used =
          positions_of(chosen + (t * kv_heads + h) * count, count, block, lengths[b]);
      if (used.numel() == 0) continue;
      Sequence s;
      s.q = flat[t].narrow(0, h * group, group).unsqueeze(1);
      s.k = its_k[h].index_select(0, used).unsqueeze(0);
      s.v = its_v[h].index_select(0, used).unsqueeze(0);
      s.scale = scale;
      y[t].narrow(0, h * group, group).copy_(attend(s).out.squeeze(1));
    }
  }
  out = y.reshape(rows.sizes(q, pages.size_of(v)));
}

}  // namespace

const Composite native_choice_composites[] = {
    ENTRY(nsa_compress_attention),
    ENTRY(nsa_compress_infer),
    ENTRY(nsa_selected_infer),
    {},
};

}  // namespace openaclnn::aten
