// SPDX-License-Identifier: Apache-2.0
// Writing to caches of keys and values, and reading from them.
#include "core/torch/aten/composites/cache.h"

namespace openaclnn::aten {
namespace {

bool is_blocked(const Text& mode) {
  require(mode.empty() || mode == "Norm" || mode == "PA_NZ",
          "cacheMode must be Norm or PA_NZ, but got ", mode);
  return mode == "PA_NZ";
}

void refuse_compressed(const Tensor& lens, const Tensor& offsets, const Tensor& seq_lens) {
  require(!lens.defined() && !offsets.defined() && !seq_lens.defined(),
          "compressLens, compressSeqOffsets and seqLens must be NULL: compressed caches are not "
          "supported here");
}

void scatter_rows(const Tensor& x, const Tensor& cache, const Tensor& slots, const Text& mode,
                  const char* name) {
  check_given(cache, name);
  check_rank(x, name, 3, 3);
  require(x.scalar_type() == cache.scalar_type(), name, " and its rows must have the same dtype, ",
          "but have ", cache.scalar_type(), " and ", x.scalar_type());
  const bool blocked = is_blocked(mode);
  const Tensor pages = pages_of(cache, name, blocked);
  if (blocked) {
    require_shape(
        pages.size(3) == block_of(cache) && x.size(1) * x.size(2) == pages.size(2) * pages.size(3),
        name, " must have shape [blocks, ", x.size(1) * x.size(2) / block_of(cache), ", size, ",
        block_of(cache), "], but got ", cache.sizes());
  } else {
    require_shape(pages.size(2) == x.size(1) && pages.size(3) == x.size(2), name,
                  " must have shape [blocks, size, ", x.size(1), ", ", x.size(2), "], but got ",
                  cache.sizes());
  }
  write_slots(pages, slots, copy_if_overlapping(x, cache), name);
}

void scatter_pa_cache(Tensor key, Tensor cache, Tensor slots, Tensor lens, Tensor offsets,
                      Tensor seq_lens, Text mode) {
  refuse_compressed(lens, offsets, seq_lens);
  scatter_rows(key, cache, slots, mode, "keyCache");
}

void scatter_pa_kv_cache(Tensor key, Tensor cache, Tensor slots, Tensor value, Tensor value_cache,
                         Tensor lens, Tensor offsets, Tensor seq_lens, Text mode, Text scatter,
                         Ints, Ints) {
  require(scatter.empty() || scatter == "None", "scatterMode must be None, but got ", scatter);
  require(value.defined() == value_cache.defined(),
          "value and valueCache must be given together or both be NULL");
  refuse_compressed(lens, offsets, seq_lens);
  scatter_rows(key, cache, slots, mode, "keyCache");
  if (value.defined()) scatter_rows(value, value_cache, slots, mode, "valueCache");
}

// The rows of all sequences one after the other; zeros where the table ends or has no page.
void gather_pa_kv_cache(Tensor key_cache, Tensor value_cache, Tensor tables, Tensor lengths,
                        Tensor key, Tensor value, Tensor offsets, Text mode, bool cumulative) {
  check_given(key, "key");
  check_given(value, "value");
  check_rank(tables, "blockTables", 2, 2);
  const bool blocked = is_blocked(mode);
  const int64_t batches = tables.size(0);
  require_shape(lengths.numel() == batches + (cumulative ? 1 : 0), "seqLens must have ",
                batches + (cumulative ? 1 : 0), " elements, but has shape ", lengths.sizes());
  if (offsets.defined()) check_shape(offsets, "seqOffset", {batches});
  const std::pair<Tensor, Tensor> moves[] = {{key_cache, key}, {value_cache, value}};
  for (const auto& [cache, to] : moves) {
    const Tensor pages = pages_of(cache, "the cache", blocked);
    check_rank(to, "key and value", 2, 3);
    require_shape(to.size(0) == key.size(0) && to.scalar_type() == cache.scalar_type() &&
                      to.numel() == to.size(0) * pages.size(2) * pages.size(3),
                  "key and value must have rows of their caches, shapes ", key_cache.sizes(),
                  " and ", value_cache.sizes(), ", but have shapes ", key.sizes(), " and ",
                  value.sizes());
    require_shape(pages.size(0) == key_cache.size(0) &&
                      pages.size(1) == pages_of(key_cache, "keyCache", blocked).size(1),
                  "keyCache and valueCache must have as many pages of as many rows as each other, ",
                  "but have shapes ", key_cache.sizes(), " and ", value_cache.sizes());
  }
  need_data(tables);
  const int64_t blocks = key_cache.size(0), room = key.size(0);
  const int64_t size = pages_of(key_cache, "keyCache", blocked).size(1);
  require_shape(size > 0 || room == 0, "keyCache must have rows, but has shape ",
                key_cache.sizes());
  const Tensor table = tables.to(at::kLong).contiguous();
  const Tensor counts = lengths.to(at::kLong).flatten().contiguous();
  Ints pages, rows;  // -1: zeros
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t first = cumulative ? counts[b].item<int64_t>() : 0;
    const int64_t length = counts[b + (cumulative ? 1 : 0)].item<int64_t>() - first;
    const int64_t skipped = offsets.defined() ? offsets[b].to(at::kLong).item<int64_t>() / size : 0;
    for (int64_t j = 0; j < length && static_cast<int64_t>(pages.size()) < room; ++j) {
      const int64_t place = skipped + j / size;
      const bool inside = place >= 0 && place < table.size(1);
      const int64_t page = inside ? table.const_data_ptr<int64_t>()[b * table.size(1) + place] : -1;
      pages.push_back(page >= 0 && page < blocks ? page : -1);
      rows.push_back(j % size);
    }
  }
  const auto count = static_cast<int64_t>(pages.size());
  const Tensor page = at::tensor(pages, at::kLong), row = at::tensor(rows, at::kLong);
  for (const auto& [cache, to] : moves) {
    const Tensor found = at::index(pages_of(cache, "the cache", blocked), {page.clamp_min(0), row});
    const Tensor wide = found.reshape({count, -1}).masked_fill(page.unsqueeze(1) < 0, 0);
    to.narrow(0, 0, count).copy_(wide.reshape(to.narrow(0, 0, count).sizes()));
    leave(to, count * (room == 0 ? 0 : to.numel() / room));
  }
}

// ---- updates of tensors by positions along an axis ----

// The rows of data from a place of each batch on; index: [K] places, or [K, 2] batches and places.
void inplace_scatter_update(Tensor data, Tensor index, Tensor updates, int64_t axis) {
  check_rank(data, "data", 2, 8);
  check_rank(updates, "updates", data.dim(), data.dim());
  const int64_t a = at::maybe_wrap_dim(axis, data.dim());
  require(a > 0, "axis must not be that of the batches, but is ", axis);
  const bool pairs = index.dim() == 2;
  require_shape(index.dim() <= 1 || (pairs && index.size(1) == 2),
                "indices must have shape [K] or [K, 2], but got ", index.sizes());
  const int64_t count = index.dim() == 0 ? 1 : index.size(0), extent = updates.size(a);
  require_shape(updates.size(0) == count && (pairs || count <= data.size(0)),
                "updates must have one row for each of the ", count, " indices, but has shape ",
                updates.sizes());
  for (int64_t d = 1; d < data.dim(); ++d)
    require_shape(d == a ? extent <= data.size(d) : updates.size(d) == data.size(d),
                  "updates must have the sizes of data, ", data.sizes(), ", but for axis ", axis,
                  ", but has shape ", updates.sizes());
  need_data(data);
  const Tensor from = copy_if_overlapping(updates, data).to(data.scalar_type());
  const Tensor flat = index.to(at::kLong).reshape({count, pairs ? 2 : 1}).contiguous();
  const auto* at = flat.const_data_ptr<int64_t>();
  for (int pass = 0; pass < 2; ++pass) {  // all are checked before any is written
    for (int64_t i = 0; i < count; ++i) {
      const int64_t batch = pairs ? at[2 * i] : i, place = pairs ? at[2 * i + 1] : at[i];
      require(batch >= 0 && batch < data.size(0) && place >= 0 && place <= data.size(a) - extent,
              "indices must be in [0, ", data.size(a) - extent, "], of batches in [0, ",
              data.size(0) - 1, "], but index ", i, " is batch ", batch, ", place ", place);
      if (pass == 1) data.select(0, batch).narrow(a - 1, place, extent).copy_(from[i]);
    }
  }
}

// Integers are updates / scale + zero, rounded.
void inplace_quant_scatter(Tensor data, Tensor index, Tensor updates, Tensor scales, Tensor zeros,
                           int64_t axis, int64_t quant_axis, int64_t reduction) {
  check_given(data, "self");
  require(data.scalar_type() == at::kChar,
          "self must be INT8: only product 950 has other dtypes here, but it is ",
          data.scalar_type());
  require(reduction == 1, "reduction must be 1, update, but got ", reduction);
  const Tensor wide = updates.to(at::kFloat);
  const int64_t dim = at::maybe_wrap_dim(quant_axis, updates.dim());
  const auto along = [&](const Tensor& given, const char* name) {
    if (given.numel() == 1) return given.to(at::kFloat).reshape({});
    Ints shape(static_cast<size_t>(updates.dim()), 1);
    shape[static_cast<size_t>(dim)] = updates.size(dim);
    require_shape(given.numel() == updates.size(dim), name, " must have 1 or ", updates.size(dim),
                  " elements, but has shape ", given.sizes());
    return given.to(at::kFloat).reshape(shape);
  };
  Tensor y = wide / along(scales, "quantScales");
  if (zeros.defined()) y = y + along(zeros, "quantZeroPoints");
  inplace_scatter_update(data, index, at::nan_to_num(saturated(y), 0).to(at::kChar), axis);
}

void inplace_quant_scatter_v2(Tensor data, Tensor index, Tensor updates, Tensor scales,
                              Tensor zeros, int64_t axis, int64_t quant_axis, int64_t reduction,
                              Text round) {
  require(round.empty() || round == "rint",
          "roundMode must be rint: only product 950 has others, but got ", round);
  inplace_quant_scatter(data, index, updates, scales, zeros, axis, quant_axis, reduction);
}

// Each tensor of the list takes its row of updates from a place on, as far as [L, 2] says.
void scatter_list(Tensors vars, Tensor index, Tensor updates, Tensor mask, Text reduce,
                  int64_t axis) {
  require(reduce == "update", "reduce must be update, but got ", reduce);
  const auto count = static_cast<int64_t>(vars.size());
  check_rank(updates, "updates", 2, 8);
  const int64_t a = at::maybe_wrap_dim(axis, updates.dim());
  require(a > 0, "axis must not be that of the list, but is ", axis);
  const bool pairs = index.dim() == 2;
  require_shape(updates.size(0) == count && (pairs ? index.size(1) == 2 : index.dim() == 1) &&
                    index.size(0) == count,
                "indice must have shape [", count, "] or [", count, ", 2] and updates ", count,
                " rows, but their shapes are ", index.sizes(), " and ", updates.sizes());
  if (mask.defined()) check_shape(mask, "mask", {count});
  for (const Tensor& var : vars) {
    check_rank(var, "var", updates.dim() - 1, updates.dim() - 1);
    for (int64_t d = 1; d < updates.dim(); ++d)
      require_shape(d == a || var.size(d - 1) == updates.size(d),
                    "var must have the sizes of updates, ", updates.sizes(), ", but for axis ",
                    axis, ", but has shape ", var.sizes());
  }
  need_data(updates);
  const Tensor flat = index.to(at::kLong).contiguous();
  const auto* at = flat.const_data_ptr<int64_t>();
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = 0; i < count; ++i) {
      const Tensor& var = vars[static_cast<size_t>(i)];
      if (mask.defined() && mask[i].item<int64_t>() == 0) continue;
      const int64_t place = pairs ? at[2 * i] : at[i];
      const int64_t length = pairs ? at[2 * i + 1] : updates.size(a);
      require(length >= 0 && length <= updates.size(a) && place >= 0 &&
                  place <= var.size(a - 1) - length,
              "indice must stay within updates and var, but entry ", i, " is ", length, " from ",
              place, " on of ", var.size(a - 1));
      if (pass == 1)
        var.narrow(a - 1, place, length)
            .copy_(copy_if_overlapping(updates[i], var).narrow(a - 1, 0, length));
    }
  }
}

}  // namespace

const Composite cache_composites[] = {
    ENTRY(scatter_pa_cache),      ENTRY(scatter_pa_kv_cache),
    ENTRY(gather_pa_kv_cache),    ENTRY(inplace_scatter_update),
    ENTRY(inplace_quant_scatter), ENTRY(inplace_quant_scatter_v2),
    ENTRY(scatter_list),          {},
};

}  // namespace openaclnn::aten
