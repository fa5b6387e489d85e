// SPDX-License-Identifier: Apache-2.0
// What precedes attention with latent keys (MLA): the query and its rotated part, and the latent
// rows that go to the caches. Steps between are float, where a device rounds to 16 bits.
#include "core/torch/aten/composites/cache.h"
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

struct Prolog {
  Tensor x, w_dq, w_uq, w_uk, w_dkv, gamma_q, gamma_kv, sin, cos, slots, kv, kr;
  Tensor scale_x, scale_dq, scale_uq, scale_dkv, quant_kv, quant_kr, smooth;
  double eps_q, eps_kv;
  Text mode;
  bool whole_query;  // the query is INT8 where kvCache is
  double factor_q, factor_k;

  bool integers() const { return w_dq.scalar_type() == at::kChar; }
  bool whole() const { return whole_query && kv.scalar_type() == at::kChar; }
  void check() const {
    for (const Tensor* w : {&x, &w_dq, &w_uq, &w_uk, &w_dkv}) {
      check_given(*w, "x and weights");
      require(is_real(w->scalar_type()) || w->scalar_type() == at::kChar, "x and weights must be ",
              "float or INT8, but one is ", w->scalar_type(),
              "; only Ascend 950 takes 8-bit floats");
    }
    require((x.scalar_type() == at::kChar) == integers() &&
                (w_dkv.scalar_type() == at::kChar) == integers(),
            "tokenX, weightDq and weightDkvKr must be INT8 together, but are ", x.scalar_type(),
            ", ", w_dq.scalar_type(), " and ", w_dkv.scalar_type());
    check_rank(x, "tokenX", 2, 3);
    check_rank(w_uk, "weightUk", 3, 3);
    check_rank(kv, "kvCache", 2, 4);
    check_rank(kr, "krCache", 2, 4);
    check_real(sin, "ropeSin");
    check_real(cos, "ropeCos");
    check_given(gamma_q, "rmsnormGammaCq");
    check_shape(gamma_kv, "rmsnormGammaCkv", {w_uk.size(2)});
    const int64_t tokens = x.numel() / std::max<int64_t>(1, x.size(-1)), d = rope();
    require_shape(sin.numel() == tokens * d && cos.numel() == tokens * d && d % 2 == 0,
                  "ropeSin and ropeCos must have a row of even size for each of the ", tokens,
                  " tokens, but have shapes ", sin.sizes(), " and ", cos.sizes());
    require(mode == "PA_BSND" || mode == "PA_NZ" || mode == "BSND" || mode == "TND",
            "cacheMode must be PA_BSND, PA_NZ, BSND or TND, but got ", mode);
  }
  int64_t rope() const { return sin.dim() == 0 ? 0 : sin.size(-1); }

  // Weights of 4 dims are in FRACTAL_NZ order.
  Tensor weight(const Tensor& w, const char* name, int64_t rows, int64_t columns) const {
    const Tensor plain = w.dim() == 4 ? Packed(w).untiled(0, rows, columns).numbers() : w;
    check_shape(plain, name, {rows, columns});
    return plain;
  }

  Tensor product(const Tensor& a, const Tensor& w, const Tensor& of_rows,
                 const Tensor& of_columns) const {
    if (w.scalar_type() != at::kChar) return at::matmul(a.to(at::kFloat), w.to(at::kFloat));
    check_given(of_rows, "dequantScaleX");
    check_given(of_columns, "the scale of an INT8 weight");
    return quantised_product(Packed(a), Packed(w), {{}, of_columns.flatten(), {}, of_rows},
                             at::kFloat);
  }

  void put_rows(const Tensor& cache, const Tensor& rows, const char* name) const {
    const Tensor made = cache.scalar_type() == at::kChar ? to_integers(rows) : rows;
    if (mode == "BSND" || mode == "TND") {
      require_shape(cache.numel() == rows.numel(), name, " must have ", rows.numel(),
                    " elements, but has shape ", cache.sizes());
      put(cache, made.reshape(cache.sizes()), name);
      return;
    }
    check_given(slots, "cacheIndex");
    check_rank(cache, name, 4, 4);
    const int64_t c = block_of(cache), h = rows.size(1);
    if (mode == "PA_BSND") return write_slots(cache, slots, made, name);
    require_shape(h % c == 0 && cache.is_contiguous(), name, " must be dense and have rows of a ",
                  "multiple of ", c, " elements, but has shape ", cache.sizes());
    write_slots(cache.view({cache.size(0), h / c, cache.size(1), c}).transpose(1, 2), slots, made,
                name);
  }

  void run(const Out& query, const Out& query_rope, const Out& query_scale, const Out& norm,
           const Out& norm_scale) const {
    check();
    const int64_t n = w_uk.size(0), d = w_uk.size(1), hc = w_uk.size(2), dr = rope();
    const Tensor rows = x.reshape({-1, x.size(-1)});
    const int64_t hq = gamma_q.numel();
    Tensor cq = product(rows, weight(w_dq, "weightDq", rows.size(1), hq), scale_x, scale_dq);
    cq = rms_normalised(cq, gamma_q, eps_q) * factor_q;
    Tensor named = cq, of_rows, q;
    const Tensor uq = weight(w_uq, "weightUqQr", hq, n * (d + dr));
    if (uq.scalar_type() == at::kChar) {
      const Quantised made =
          quantised_rows(has(smooth) ? cq * smooth.to(at::kFloat).flatten() : cq);
      named = made.numbers, of_rows = made.scale;
      q = product(named, uq, of_rows, scale_uq);
    } else {
      q = at::matmul(named, uq.to(at::kFloat));
    }
    q = q.reshape({-1, n, d + dr});
    Tensor latent =
        at::matmul(q.narrow(2, 0, d).transpose(0, 1), w_uk.to(at::kFloat)).transpose(0, 1);
    const Tensor c = cos.to(at::kFloat).reshape({-1, dr}), s = sin.to(at::kFloat).reshape({-1, dr});
    Tensor turned_q = rotated(deinterleaved(q.narrow(2, d, dr)), c.unsqueeze(1), s.unsqueeze(1), 0);
    const Tensor both =
        product(rows, weight(w_dkv, "weightDkvKr", rows.size(1), hc + dr), scale_x, scale_dkv);
    Tensor ckv = rms_normalised(both.narrow(1, 0, hc), gamma_kv, eps_kv) * factor_k;
    Tensor key = rotated(deinterleaved(both.narrow(1, hc, dr)), c, s, 0);
    Tensor scale;
    if (whole()) {
      check_given(quant_kv, "quantScaleCkv");
      const Tensor first = quant_kv.to(at::kFloat).flatten().slice(0, 0, 1);
      const Quantised made = quantised_rows(latent);
      latent = made.numbers, scale = made.scale.unsqueeze(-1);
      turned_q = turned_q * first / scale;
      ckv = ckv * first;
    } else if (kv.scalar_type() == at::kChar) {
      check_given(quant_kv, "quantScaleCkv");
      ckv = ckv * quant_kv.to(at::kFloat).flatten();
      if (kr.scalar_type() == at::kChar) check_given(quant_kr, "quantScaleCkr");
      if (kr.scalar_type() == at::kChar) key = key * quant_kr.to(at::kFloat).flatten();
    }
    Ints sizes = x.sizes().vec();
    sizes.back() = n;
    sizes.push_back(hc);
    query = latent.reshape(sizes);
    sizes.back() = dr;
    query_rope = turned_q.reshape(sizes);
    if (whole() && has(query_scale.tensor()))
      query_scale = scale.reshape(query_scale.tensor().sizes());
    if (has(norm.tensor())) norm = named.reshape(norm.tensor().sizes());
    if (of_rows.defined() && has(norm_scale.tensor()))
      norm_scale = of_rows.reshape(norm_scale.tensor().sizes());
    put_rows(kv, ckv, "kvCache");
    put_rows(kr, key, "krCache");
  }
};

// kvCacheQuantMode: 0 none, 1 the query is quantised with the cache, 2 each channel of the caches.
void mla_prolog_v3(Tensor x, Tensor w_dq, Tensor w_uq, Tensor w_uk, Tensor w_dkv, Tensor gamma_q,
                   Tensor gamma_kv, Tensor sin, Tensor cos, Tensor kv, Tensor kr, Tensor slots,
                   Tensor scale_x, Tensor scale_dq, Tensor scale_uq, Tensor scale_dkv,
                   Tensor quant_kv, Tensor quant_kr, Tensor smooth, Tensor, Tensor clip,
                   double eps_q, double eps_kv, Text mode, int64_t, int64_t cache_quant,
                   int64_t query_quant, int64_t repo, int64_t scale_repo, int64_t, double factor_q,
                   double factor_k, Out query, Out query_rope, Out query_scale, Out norm,
                   Out norm_scale) {
  require(!has(clip), "kNopeClipAlpha must be NULL");
  require(cache_quant >= 0 && cache_quant <= 2,
          "kvCacheQuantMode must be from 0 to 2: rows of tiles with their scales are not "
          "supported, but got ",
          cache_quant);
  require(repo == 0 && scale_repo == 0, "ckvkrRepoMode and quantScaleRepoMode must be 0, but are ",
          repo, " and ", scale_repo);
  Prolog{.x = x,
         .w_dq = w_dq,
         .w_uq = w_uq,
         .w_uk = w_uk,
         .w_dkv = w_dkv,
         .gamma_q = gamma_q,
         .gamma_kv = gamma_kv,
         .sin = sin,
         .cos = cos,
         .slots = slots,
         .kv = kv,
         .kr = kr,
         .scale_x = scale_x,
         .scale_dq = scale_dq,
         .scale_uq = scale_uq,
         .scale_dkv = scale_dkv,
         .quant_kv = quant_kv,
         .quant_kr = quant_kr,
         .smooth = smooth,
         .eps_q = eps_q,
         .eps_kv = eps_kv,
         .mode = mode,
         .whole_query = cache_quant == 1 && query_quant == 1,
         .factor_q = factor_q,
         .factor_k = factor_k}
      .run(query, query_rope, query_scale, norm, norm_scale);
}

void mla_prolog_v2(Tensor x, Tensor w_dq, Tensor w_uq, Tensor w_uk, Tensor w_dkv, Tensor gamma_q,
                   Tensor gamma_kv, Tensor sin, Tensor cos, Tensor slots, Tensor kv, Tensor kr,
                   Tensor scale_x, Tensor scale_dq, Tensor scale_uq, Tensor scale_dkv,
                   Tensor quant_kv, Tensor quant_kr, Tensor smooth, double eps_q, double eps_kv,
                   Text mode, Out query, Out query_rope, Out query_scale) {
  const int64_t whole = x.defined() && x.scalar_type() == at::kChar ? 1 : 0;
  mla_prolog_v3(x, w_dq, w_uq, w_uk, w_dkv, gamma_q, gamma_kv, sin, cos, kv, kr, slots, scale_x,
                scale_dq, scale_uq, scale_dkv, quant_kv, quant_kr, smooth, {}, {}, eps_q, eps_kv,
                mode, 0, whole, whole, 0, 0, 0, 1, 1, query, query_rope, query_scale,
                Out(Tensor(), "queryNorm"), Out(Tensor(), "dequantScaleQNorm"));
}

void mla_prolog(Tensor x, Tensor w_dq, Tensor w_uq, Tensor w_uk, Tensor w_dkv, Tensor gamma_q,
                Tensor gamma_kv, Tensor sin, Tensor cos, Tensor slots, Tensor kv, Tensor kr,
                Tensor scale_x, Tensor scale_dq, Tensor scale_uq, Tensor scale_dkv, Tensor quant_kv,
                Tensor quant_kr, Tensor smooth, double eps_q, double eps_kv, Text mode, Out query,
                Out query_rope) {
  require(!x.defined() || !kv.defined() || x.scalar_type() != at::kChar ||
              kv.scalar_type() != at::kChar,
          "an INT8 query needs its scale: call aclnnMlaPrologV2WeightNz");
  mla_prolog_v2(x, w_dq, w_uq, w_uk, w_dkv, gamma_q, gamma_kv, sin, cos, slots, kv, kr, scale_x,
                scale_dq, scale_uq, scale_dkv, quant_kv, quant_kr, smooth, eps_q, eps_kv, mode,
                query, query_rope, Out(Tensor(), "dequantScaleQNope"));
}

}  // namespace

const Composite mla_composites[] = {
    ENTRY(mla_prolog),
    ENTRY(mla_prolog_v2),
    ENTRY(mla_prolog_v3),
    {},
};

}  // namespace openaclnn::aten
