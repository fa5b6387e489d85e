// SPDX-License-Identifier: Apache-2.0
// Keys and values for inference: contiguous, in lists, in pages, behind a prefix, quantised.
#include "core/torch/aten/composites/attention_inference.h"
#include "core/torch/aten/composites/packed.h"

namespace openaclnn::aten {

Layouts layouts_of(const Inference& a) {
  constexpr const char* known[] = {"BSH",     "BSND",      "BNSD",      "TND",       "NTD",
                                   "NSD",     "BNSD_BSND", "BSH_BNSD",  "BSND_BNSD", "NTD_TND",
                                   "TND_NTD", "BSH_NBSD",  "BSND_NBSD", "BNSD_NBSD"};
  const bool is_known = std::any_of(std::begin(known), std::end(known),
                                    [&](const char* name) { return a.layout == name; });
  require(is_known,
          "inputLayout must be BSH, BSND, BNSD, TND, NTD or NSD, or one of them and that of the "
          "result, such as BNSD_BSND, but got ",
          a.layout);
  const size_t end = a.layout.find('_');
  const Text in = a.layout.substr(0, end);
  return {in, end == Text::npos ? in : a.layout.substr(end + 1), in == "TND" || in == "NTD"};
}

Tensor batches_of(const Tensor& x, const char* name, const Text& layout, int64_t heads) {
  const int64_t rank = layout == "BSH" || layout == "NSD" ? 3 : 4;
  check_rank(x, name, rank, rank);
  if (layout == "NSD") return x.unsqueeze(0);
  if (layout == "BNSD") return x;
  if (layout == "BSND") return x.transpose(1, 2);
  if (layout == "NBSD") return x.transpose(0, 1);
  require(x.size(2) % heads == 0, name, " must have a last dim that is divisible by the ",
          "number of heads, ", heads, ", but has shape ", x.sizes());
  return x.unflatten(2, {heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor packed_heads(const Tensor& x, const char* name, const Text& layout) {
  check_rank(x, name, 3, 3);
  return layout == "TND" ? x.transpose(0, 1) : x;
}

void take_bytes(Tensors* list, const char* name) {
  for (Tensor& x : *list) {
    check_given(x, name);
    require(x.scalar_type() != at::kByte, name,
            " must be FLOAT16, BF16, INT8 or INT4, but is UINT8");
    const Packed packed(x);
    if (packed.four_bits()) x = packed.along() == -1 ? packed.stored() : packed.numbers();
  }
}

// The page numbers of the rows of a batch.
Tensor Cache::pages(size_t batch, int64_t size, int64_t count) const {
  const int64_t needed = (rows[batch].count + size - 1) / size;
  require_shape(needed <= a.table.size(1), "blockTable must have ", needed, " pages of ", size,
                " rows for batch ", batch, ", but has shape ", a.table.sizes());
  const Tensor made =
      a.table.select(0, static_cast<int64_t>(batch)).narrow(0, 0, needed).to(at::kLong);
  check_positions(made, "blockTable", count);
  return made;
}

// [blocks, size, K D], [blocks, K, size, D] or [blocks, K, D / c, size, c].
Tensor Cache::paged(const Tensor& x, const char* name, size_t batch) const {
  check_rank(x, name, 3, 5);
  const int64_t size = x.size(x.dim() == 3 ? 1 : x.dim() == 4 ? 2 : 3);
  require(size > 0 && (a.block == 0 || a.block == size), "blockSize must be that of the pages of ",
          name, ", ", size, ", but is ", a.block);
  const Tensor used = pages(batch, size, x.size(0));
  Ints shape = x.sizes().vec();
  shape[0] = used.numel();
  Tensor found = x.is_meta() ? at::empty(shape, x.options()) : x.index_select(0, used);
  if (x.dim() == 3) {
    require_shape(x.size(2) % kv_heads == 0, name,
                  " must have a last dim that is divisible by the ", "number of heads, ", kv_heads,
                  ", but has shape ", x.sizes());
    found = found.flatten(0, 1).unflatten(1, {kv_heads, x.size(2) / kv_heads}).transpose(0, 1);
  } else {
    require_shape(x.size(1) == kv_heads, name, " must have ", kv_heads, " heads, but has shape ",
                  x.sizes());
    found = x.dim() == 4 ? found.transpose(0, 1).flatten(1, 2)
                         : found.permute({1, 0, 3, 2, 4}).flatten(1, 2).flatten(2, 3);
  }
  return found.narrow(1, 0, rows[batch].count);
}

Tensor Cache::gathered(const Tensors& list, const char* name, size_t batch) const {
  if (a.table.defined()) return paged(list[0], name, batch);
  const auto [first, count] = rows[batch];
  Tensor all;
  if (layout.packed) {
    all = packed_heads(list[0], name, layout.in);
  } else if (list.size() > 1) {
    all = batches_of(list[batch], name, layout.in, kv_heads);
    require_shape(all.size(0) == 1, name, " must have tensors of one batch each, but one has ",
                  all.size(0));
    all = all.select(0, 0);
  } else {
    all = batches_of(list[0], name, layout.in, kv_heads);
    require_shape(all.size(0) == batches, name, " must have the ", batches,
                  " batches of query, but has shape ", list[0].sizes());
    all = all.select(0, static_cast<int64_t>(batch));
  }
  require_shape(all.size(0) == kv_heads, name, " must have ", kv_heads, " heads, but has ",
                all.size(0));
  require(first >= 0 && first + count <= all.size(1), name, " has ", all.size(1),
          " rows, but those of batch ", batch, " are from ", first, " to ", first + count);
  return all.narrow(1, first, count);
}

// Scales or offsets of x [K, L, D]. mode 0: one, or one for each channel; 1: for each token; 2:
// each head; 3: each token and head; 4, 5: like 1 and 3, in pages.
Tensor Cache::factors(const Tensor& given, const char* name, int64_t mode, const Tensor& x,
                      size_t batch) const {
  const Tensor wide = given.to(at::kFloat);
  const int64_t heads = x.size(0), length = x.size(1), first = rows[batch].first;
  if (wide.numel() == 1) return wide.reshape({});
  if (mode == 0 || mode == 2) {
    const int64_t channels = mode == 0 ? x.size(2) : 1;
    require_shape(wide.numel() == heads * channels, name, " must have ", heads * channels,
                  " elements in mode ", mode, ", but has shape ", given.sizes());
    return wide.reshape({heads, 1, channels});
  }
  const bool by_head = mode == 3 || mode == 5;
  if (mode == 1 || mode == 3) {
    Tensor all = wide;
    while (all.dim() > (by_head ? 3 : 2) && all.size(0) == 1) all = all.squeeze(0);
    require_shape(all.dim() == (by_head ? 3 : 2) && all.size(0) == batches &&
                      (!by_head || all.size(1) == heads) && first + length <= all.size(-1),
                  name, " must have a number for each token of each batch in mode ", mode,
                  ", but has shape ", given.sizes());
    const Tensor own = all.select(0, static_cast<int64_t>(batch)).narrow(-1, first, length);
    return by_head ? own.unsqueeze(-1) : own.reshape({1, length, 1});
  }
  require(mode == 4 || mode == 5, name, " needs a mode in [0, 5], but it is ", mode);
  require_shape(a.table.defined() && wide.dim() == (by_head ? 3 : 2) &&
                    (!by_head || wide.size(1) == heads) && wide.size(-1) > 0,
                name, " must be in pages in mode ", mode, ", but has shape ", given.sizes());
  const Tensor found = wide.index_select(0, pages(batch, wide.size(-1), wide.size(0)));
  const Tensor own = by_head ? found.transpose(0, 1).flatten(1, 2) : found.reshape({1, -1});
  return own.narrow(1, 0, length).unsqueeze(-1);
}

// which: 0 keys, 1 values. (x + offset) scale, where x has integers.
Tensor Cache::multiplied(const Tensor& stored, const char* name, int64_t which,
                         size_t batch) const {
  if (stored.is_floating_point()) return stored;
  const Tensor x = stored.scalar_type() == at::kByte ? Packed::halves(stored) : stored;
  require(x.scalar_type() == at::kChar, name, " must be FLOAT16, BF16, INT8 or INT4, but is ",
          x.scalar_type());
  const Tensor own = which == 0 ? a.k_scale : a.v_scale;
  Tensor scale = own, offset = which == 0 ? a.k_offset : a.v_offset;
  int64_t mode = which == 0 ? a.k_mode : a.v_mode;
  if (!own.defined() && a.kv_scale.defined()) {
    require_shape(a.kv_scale.dim() > 0 && a.kv_scale.size(0) == 2,
                  "antiquantScale must have one part for keys and one for values, but has shape ",
                  a.kv_scale.sizes());
    if (a.kv_offset.defined()) check_shape(a.kv_offset, "antiquantOffset", a.kv_scale.sizes());
    scale = a.kv_scale[which];
    offset = a.kv_offset.defined() ? a.kv_offset[which] : Tensor();
    mode = a.kv_mode;
  }
  if (!scale.defined()) return x;  // of INT8 queries
  Tensor wide = x.to(at::kFloat);
  if (offset.defined()) wide = wide + factors(offset, "the offset", mode, x, batch);
  return wide * factors(scale, "the scale", mode, x, batch);
}

static Tensor behind_prefix(const Inference& a, const Tensor& prefix, const char* name,
                            const Layouts& layout, const Tensor& x) {
  if (!prefix.defined()) return x;
  const Tensor all = batches_of(prefix, name, layout.packed ? "BNSD" : layout.in, x.size(0));
  const int64_t length = a.prefix_length.empty() ? all.size(2) : a.prefix_length[0];
  require_shape(all.size(0) == 1 && all.size(1) == x.size(0) && all.size(3) == x.size(2), name,
                " must have one batch with the heads of key, but has shape ", prefix.sizes());
  require(length >= 0 && length <= all.size(2), "actualSharedPrefixLen must be in [0, ",
          all.size(2), "], but is ", length);
  const Tensor first = all.select(0, 0).narrow(1, 0, length);
  return at::cat({first.to(x.scalar_type()), x}, 1);
}

Tensor Cache::keys(size_t batch) const {
  const Tensor x = multiplied(gathered(a.k, "key", batch), "key", 0, batch);
  return behind_prefix(a, a.k_prefix, "keySharedPrefix", layout, x);
}

Tensor Cache::values(size_t batch) const {
  const Tensor x = multiplied(gathered(a.v, "value", batch), "value", 1, batch);
  return behind_prefix(a, a.v_prefix, "valueSharedPrefix", layout, x);
}

Tensor Cache::ropes(size_t batch) const {
  const Tensor x = gathered({a.k_rope}, "keyRope", batch);
  if (!a.k_rope_scale.defined()) return x;
  return x.to(at::kFloat) * factors(a.k_rope_scale, "keyRopeAntiquantScale", 0, x, batch);
}

}  // namespace openaclnn::aten
