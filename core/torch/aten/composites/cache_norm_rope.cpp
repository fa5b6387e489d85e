// SPDX-License-Identifier: Apache-2.0
// Norms and rotary embedding of keys and queries fused with writing them to a cache.
#include "core/torch/aten/composites/cache.h"

namespace openaclnn::aten {
namespace {

// The pages of a cache [blocks, size, N, D] whose page is [N, D / c, size, c] in memory, as
// [blocks, size, N, D / c, c].
Tensor blocked_pages(const Tensor& cache, const char* name) {
  const int64_t c = block_of(cache);
  require_shape(cache.size(3) % c == 0, name, " must have a last dim that is divisible by ", c,
                ", but has shape ", cache.sizes());
  require(cache.is_contiguous(), name, " must be contiguous in this cacheMode");
  return cache.view({cache.size(0), cache.size(2), cache.size(3) / c, cache.size(1), c})
      .permute({0, 3, 1, 2, 4});
}

// index of each page of the sequences gives the slot of its first row: that of each row.
Tensor slots_of_rows(const Tensor& index, int64_t batches, int64_t rows, int64_t size) {
  const int64_t pages = (rows + size - 1) / size;
  require_shape(index.numel() == batches * pages, "index must have an element for each of the ",
                batches * pages, " pages of the sequences, but has shape ", index.sizes());
  const Tensor row = at::arange(rows, index.options().dtype(at::kLong));
  const Tensor first =
      index.to(at::kLong).reshape({batches, pages}).index_select(1, at::div(row, size, "floor"));
  const Tensor slot = at::div(first, size, "floor") * size + row.remainder(size);
  return at::where(first < 0, first, slot).flatten();
}

// rows: [B, N, S, D].
void write_cache(const Tensor& cache, const char* name, const Tensor& rows, const Tensor& index,
                 const Text& mode) {
  check_given(cache, name);
  check_rank(cache, name, 4, 4);
  const int64_t batches = rows.size(0), heads = rows.size(1), count = rows.size(2);
  const Tensor flat = rows.transpose(1, 2).flatten(0, 1);  // [B S, N, D]
  if (mode == "Norm") {
    require_shape(
        cache.size(0) == batches && cache.size(1) == heads && cache.size(3) == rows.size(3), name,
        " must have shape [", batches, ", ", heads, ", L, ", rows.size(3), "], but got ",
        cache.sizes());
    check_shape(index, "index", {batches, count});
    const int64_t size = cache.size(2);
    const Tensor batch = at::arange(batches, index.options().dtype(at::kLong)).unsqueeze(1) * size;
    const Tensor place = index.to(at::kLong);
    if (!index.is_meta() && index.numel() > 0)
      require(number_in(place.max()) < size, "index must be below ", size, ", the rows of ", name,
              ", but has ", number_in(place.max()));
    write_slots(cache.transpose(1, 2), at::where(place < 0, place, place + batch).flatten(), flat,
                name);
    return;
  }
  const bool by_page = mode == "PA_BLK_BNSD" || mode == "PA_BLK_NZ";
  const bool blocked = mode == "PA_NZ" || mode == "PA_BLK_NZ";
  require(by_page || blocked || mode == "PA" || mode == "PA_BNSD",
          "cacheMode must be Norm, PA, PA_BNSD, PA_NZ, PA_BLK_BNSD or PA_BLK_NZ, but got ", mode);
  require_shape(cache.size(1) > 0 && cache.size(2) == heads && cache.size(3) == rows.size(3), name,
                " must have shape [blocks, size, ", heads, ", ", rows.size(3), "], but got ",
                cache.sizes());
  write_slots(blocked ? blocked_pages(cache, name) : cache,
              by_page ? slots_of_rows(index, batches, count, cache.size(1)) : index, flat, name);
}

// x scale + offset as INT8, one for each channel or one for all.
Tensor to_cache(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& cache,
                const char* name) {
  check_given(cache, name);
  require((cache.scalar_type() == at::kChar) == scale.defined(), name,
          " must be INT8 where its scale is given and only there, but is ", cache.scalar_type());
  if (!scale.defined()) return x;
  const auto along = [&](const Tensor& given) {
    require_shape(given.numel() == 1 || given.numel() == x.size(-1), "scales and offsets of ", name,
                  " must have 1 or ", x.size(-1), " elements, but have shape ", given.sizes());
    return given.to(at::kFloat).flatten();
  };
  const Tensor y = x * along(scale);
  return saturated(offset.defined() ? y + along(offset) : y);
}

// kv [B, N, S, C + R]: the first C are normalised, the others rotated; where v is given, all are
// normalised and the first of them rotated.
void kv_rms_norm_rope_cache_v2(Tensor kv, Tensor gamma, Tensor cos, Tensor sin, Tensor index,
                               Tensor k_cache, Tensor ckv_cache, Tensor k_scale, Tensor c_scale,
                               Tensor k_offset, Tensor c_offset, Tensor v, double eps, Text mode,
                               bool is_output, Out k_out, Out c_out) {
  check_rank(kv, "kv", 4, 4);
  require(kv.is_floating_point(), "kv must have floating-point numbers, but is ", kv.scalar_type());
  check_rank(gamma, "gamma", 1, 1);
  check_rank(cos, "cos", 4, 4);
  check_shape(sin, "sin", cos.sizes());
  const int64_t width = kv.size(3), rotary = cos.size(3), normal = gamma.size(0);
  require_shape(
      normal == (v.defined() ? width : width - rotary) && rotary <= width && rotary % 2 == 0,
      "the last dim of kv, ", width, ", must be that of gamma, ", normal,
      v.defined() ? ", where v is given; that of cos is " : ", and that of cos, ", rotary);
  require_shape(cos.size(0) == kv.size(0) && (cos.size(1) == 1 || cos.size(1) == kv.size(1)) &&
                    cos.size(2) == kv.size(2),
                "cos and sin must have the batches and rows of kv, whose shape is ", kv.sizes(),
                ", but have shape ", cos.sizes());
  const Tensor x = kv.to(at::kFloat);
  Tensor key, other;
  if (v.defined()) {
    const Tensor y = rms_normalised(x, gamma, eps);
    key = at::cat({rotated(deinterleaved(y.narrow(3, 0, rotary)), cos, sin, 0),
                   y.narrow(3, rotary, width - rotary)},
                  3);
    check_rank(v, "v", 4, 4);
    require_shape(v.sizes().slice(0, 3) == kv.sizes().slice(0, 3), "v must have the first dims of ",
                  "kv, whose shape is ", kv.sizes(), ", but has shape ", v.sizes());
    other = v.to(at::kFloat);
  } else {
    other = rms_normalised(x.narrow(3, 0, normal), gamma, eps);
    key = rotated(deinterleaved(x.narrow(3, normal, rotary)), cos, sin, 0);
  }
  if (is_output) {
    check_result(k_out.tensor(), key, "kRope");
    check_result(c_out.tensor(), other, "cKv");
  }
  write_cache(k_cache, "kCache", to_cache(key, k_scale, k_offset, k_cache, "kCache"), index, mode);
  write_cache(ckv_cache, "ckvCache", to_cache(other, c_scale, c_offset, ckv_cache, "ckvCache"),
              index, mode);
  if (!is_output) {
    leave(k_out.tensor());
    leave(c_out.tensor());
    return;
  }
  k_out = key;
  c_out = other;
}

void kv_rms_norm_rope_cache(Tensor kv, Tensor gamma, Tensor cos, Tensor sin, Tensor index,
                            Tensor k_cache, Tensor ckv_cache, Tensor k_scale, Tensor c_scale,
                            Tensor k_offset, Tensor c_offset, double eps, Text mode, bool is_output,
                            Out k_out, Out c_out) {
  kv_rms_norm_rope_cache_v2(kv, gamma, cos, sin, index, k_cache, ckv_cache, k_scale, c_scale,
                            k_offset, c_offset, {}, eps, mode, is_output, k_out, c_out);
}

// x / scale + offset as INT8; scale [heads, D].
Tensor divided(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& cache,
               const char* name) {
  check_given(cache, name);
  require((cache.scalar_type() == at::kChar) == scale.defined(), name,
          " must be INT8 where its scale is given and only there, but is ", cache.scalar_type());
  if (!scale.defined()) return x;
  const Ints shape = {x.size(1), x.size(2)};
  require_shape(scale.numel() == x.size(1) * x.size(2), "the scale of ", name, " must have shape ",
                at::IntArrayRef(shape), ", but got ", scale.sizes());
  const Tensor y = x / scale.to(at::kFloat).reshape(shape);
  if (!offset.defined()) return saturated(y);
  require_shape(offset.numel() == scale.numel(), "the offset of ", name, " must have shape ",
                at::IntArrayRef(shape), ", but got ", offset.sizes());
  return saturated(y + offset.to(at::kFloat).reshape(shape));
}

// qkv [T, (Nq + Nk + Nv) D]: queries and keys are normalised and rotated by halves.
void qkv_rms_norm_rope_cache(Tensor qkv, Tensor q_gamma, Tensor k_gamma, Tensor cos, Tensor sin,
                             Tensor index, Out q_out, Tensor k_cache, Tensor v_cache,
                             Tensor k_scale, Tensor v_scale, Tensor k_offset, Tensor v_offset,
                             Ints size, Ints heads, double eps, Text mode, Out q_before,
                             Out k_before, Out v_before) {
  require(mode == "PA_NZ", "cacheMode must be PA_NZ, but got ", mode);
  check_rank(qkv, "qkv", 2, 2);
  require(qkv.is_floating_point(), "qkv must have floating-point numbers, but is ",
          qkv.scalar_type());
  for (const int64_t count : heads)
    require(count >= 1 && count <= qkv.size(1), "headNums must be from 1 to ", qkv.size(1),
            ", but has ", count);
  const int64_t all = heads[0] + heads[1] + heads[2], rows = qkv.size(0);
  require_shape(qkv.size(1) % all == 0 && size[3] == qkv.size(1) / all, "qkv must have ", all,
                " heads of ", size[3], " columns, but has shape ", qkv.sizes());
  const int64_t d = size[3];
  const std::pair<const char*, const Tensor*> gammas[] = {{"qGamma", &q_gamma},
                                                          {"kGamma", &k_gamma}};
  for (const auto& [name, gamma] : gammas) check_shape(*gamma, name, {d});
  check_shape(cos, "cos", {rows, d});
  check_shape(sin, "sin", {rows, d});
  const Tensor x = qkv.to(at::kFloat).view({rows, all, d});
  const auto roped = [&](int64_t first, int64_t count, const Tensor& gamma) {
    return rotated(rms_normalised(x.narrow(1, first, count), gamma, eps), cos.unsqueeze(1),
                   sin.unsqueeze(1), 0);
  };
  const Tensor q = roped(0, heads[0], q_gamma), k = roped(heads[0], heads[1], k_gamma);
  const Tensor v = x.narrow(1, heads[0] + heads[1], heads[2]);
  check_result(q_out.tensor(), q.flatten(1), "qOut");
  const auto write = [&](const Tensor& cache, const char* name, const Tensor& x,
                         const Tensor& scale, const Tensor& offset) {
    const Tensor made = divided(x, scale, offset, cache, name);
    const Tensor pages = pages_of(cache, name, true);
    require_shape(pages.size(3) == block_of(cache), name, " must have a last dim of ",
                  block_of(cache), ", but has shape ", cache.sizes());
    write_slots(pages, index, made.flatten(1), name);
  };
  write(k_cache, "kCache", k, k_scale, k_offset);
  write(v_cache, "vCache", v, v_scale, v_offset);
  q_out = q.flatten(1);
  q_before = q.flatten(1);
  k_before = k.flatten(1);
  v_before = v.flatten(1);
}

// ---- rope from a table of [cos | sin] ----

// cos and sin of each row; positions of several kinds give each a section, one after the other
// or, interleaved, columns 1, 4, ... of kind 1 and 2, 5, ... of kind 2.
std::pair<Tensor, Tensor> cos_sin_of(const Tensor& positions, const Tensor& table,
                                     const Ints& sections, int64_t interleaved) {
  check_rank(table, "cosSinCache", 2, 2);
  check_rank(positions, "positions", 1, 2);
  check_positions(positions, "positions", table.size(0));
  const int64_t half = halves(table, 1, "cosSinCache").first.size(1);
  const auto found = [&] {  // ATen's index_select has no form without data
    const Tensor wide = table.to(at::kFloat);
    return table.is_meta() ? at::empty({positions.numel(), 2 * half}, wide.options())
                           : wide.index_select(0, positions.flatten().to(at::kLong));
  };
  if (positions.dim() == 1) {
    const Tensor rows = found();
    return {rows.narrow(1, 0, half), rows.narrow(1, half, half)};
  }
  const int64_t kinds = positions.size(0), count = positions.size(1);
  int64_t sum = 0;
  for (const int64_t section : sections) {
    require(section >= 0 && section <= half, "mropeSection must have numbers in [0, ", half,
            "], but has ", section);
    sum += section;
  }
  require(static_cast<int64_t>(sections.size()) <= kinds && sum == half,
          "mropeSection must have a number for each of the ", kinds, " kinds of positions, with ",
          "the sum ", half, ", but is ", at::IntArrayRef(sections));
  if (table.is_meta()) {
    const Tensor one = at::empty({count, half}, table.options().dtype(at::kFloat));
    return {one, one};
  }
  const Tensor all = found().view({kinds, count, 2, half});
  Ints kind_of(static_cast<size_t>(half), 0);
  int64_t column = 0;
  for (size_t k = 0; k < sections.size(); ++k) {
    for (int64_t i = 0; i < sections[k]; ++i) {
      const int64_t to = interleaved == 0 ? column++ : 3 * i + static_cast<int64_t>(k);
      if (interleaved != 0 && (k == 0 || to >= half)) continue;
      kind_of[static_cast<size_t>(to)] = static_cast<int64_t>(k);
    }
  }
  const Tensor kind = at::tensor(kind_of, at::kLong);
  const Tensor columns = at::arange(half, kind.options());
  const Tensor picked = at::index(all.permute({0, 3, 1, 2}), {kind, columns});  // [half, T, 2]
  return {picked.select(2, 0).t(), picked.select(2, 1).t()};
}

void rope_with_cache_v2(Tensor positions, Tensor query, Tensor key, Tensor table, Ints sections,
                        int64_t size, bool half_layout, int64_t mode, Out q_out, Out k_out) {
  require(mode == 0 || mode == 1, "cacheMode must be 0 or 1, but got ", mode);
  require(size > 0, "headSize must be at least 1, but got ", size);
  const auto [cos, sin] = cos_sin_of(positions, table, sections, mode);
  const int64_t rotary = 2 * cos.size(1), rows = cos.size(0);
  require(rotary <= size, "headSize must be at least that of cosSinCache, ", rotary, ", but is ",
          size);
  const Tensor c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const auto turn = [&](const Tensor& x, const char* name) {
    check_rank(x, name, 2, 2);
    require_shape(x.size(0) == rows && x.size(1) % size == 0, name, " must have ", rows,
                  " rows of heads of ", size, ", but has shape ", x.sizes());
    const Tensor heads = x.to(at::kFloat).reshape({rows, x.size(1) / size, size});
    const Tensor part = heads.narrow(2, 0, rotary);
    const Tensor pairs = half_layout ? part : deinterleaved(part);
    const auto [a, b] = halves(pairs, 2);
    const Tensor made = at::cat({a * c - b * s, b * c + a * s}, 2);
    return at::cat({half_layout ? made : paired(made), heads.narrow(2, rotary, size - rotary)}, 2)
        .flatten(1);
  };
  const Tensor q = turn(query, "query"), k = turn(key, "key");
  check_result(k_out.tensor(), k, "keyOut");
  q_out = q;
  k_out = k;
}

void rope_with_cache(Tensor positions, Tensor query, Tensor key, Tensor table, Ints sections,
                     int64_t size, bool half_layout, Out q_out, Out k_out) {
  rope_with_cache_v2(positions, query, key, table, sections, size, half_layout, 0, q_out, k_out);
}

}  // namespace

const Composite cache_norm_rope_composites[] = {
    ENTRY(kv_rms_norm_rope_cache), ENTRY(kv_rms_norm_rope_cache_v2), ENTRY(qkv_rms_norm_rope_cache),
    ENTRY(rope_with_cache),        ENTRY(rope_with_cache_v2),        {},
};

}  // namespace openaclnn::aten
