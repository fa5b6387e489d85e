// SPDX-License-Identifier: Apache-2.0
// Products of floats with quantised weights, products joined with other steps, and products with
// weights whose order in memory may be FRACTAL_NZ.
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

// ---- floats with quantised weights ----

// x ((weight + offset) scale) + bias; the weight is not rounded to the dtype of x.
void weight_quant(const Tensor& x, const Packed& weight, const Tensor& scale, const Tensor& offset,
                  const Tensor& quant_scale, const Tensor& quant_offset, const Tensor& bias,
                  int64_t group, const Out& out) {
  check_real(x, "x");
  require(group >= 0, "antiquantGroupSize must be from 0, but got ", group);
  Tensor y = product_with(x, weight, scale, offset, group);
  if (has(bias)) y = y + bias;
  check_given(out.tensor(), "y");
  const bool whole = out.tensor().scalar_type() == at::kChar;
  require(whole == has(quant_scale), "quantScale must be given where y is INT8, and only there");
  if (!whole) {
    out = y;
    return;
  }
  y = y * scale_of(quant_scale);
  out = to_integers(has(quant_offset) ? y + quant_offset.to(at::kFloat) : y);
}

void weight_quant_matmul(Tensor x, Tensor weight, Tensor scale, Tensor offset, Tensor quant_scale,
                         Tensor quant_offset, Tensor bias, int64_t group, Out out) {
  check_integers(weight, "weight");
  check_rank(weight, "weight", 2, 6);
  weight_quant(x, Packed(weight), scale, offset, quant_scale, quant_offset, bias, group, out);
}

void weight_quant_matmul_v3(Tensor x, Tensor weight, Tensor scale, Tensor offset,
                            Tensor quant_scale, Tensor quant_offset, Tensor bias, int64_t group,
                            int64_t, Out out) {
  weight_quant_matmul(x, weight, scale, offset, quant_scale, quant_offset, bias, group, out);
}

void weight_quant_matmul_tiles(Tensor x, Tensor weight, Tensor scale, Tensor offset,
                               Tensor quant_scale, Tensor quant_offset, Tensor bias, int64_t group,
                               Out out) {
  check_integers(weight, "weight");
  check_rank(weight, "weight", 2, 6);
  check_rank(x, "x", 2, 2);
  check_rank(out.tensor(), "y", 2, 2);
  weight_quant(x, Packed(weight).untiled(0, x.size(1), out.tensor().size(-1)), scale, offset,
               quant_scale, quant_offset, bias, group, out);
}

// ---- floats ----

Tensor float_product(const Tensor& x, const Tensor& y) {
  check_real(x, "the first matrix");
  check_real(y, "the second matrix");
  require(x.scalar_type() == y.scalar_type(), "both matrices must have one dtype, but are ",
          x.scalar_type(), " and ", y.scalar_type());
  return product_of_floats(x, y);
}

void fused_matmul(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Text op, int64_t, Out out) {
  Tensor y = float_product(x1, x2);
  if (has(bias)) y = y + at_least_float(bias);
  if (op == "add" || op == "mul") {
    check_given(x3, "x3");
    check_shape(x3, "x3", y.sizes());
    y = op == "add" ? y + at_least_float(x3) : y * at_least_float(x3);
  } else if (op == "relu") {
    y = at::clamp_min(y, 0);
  } else if (op == "gelu_erf" || op == "gelu_tanh") {
    y = at::gelu(y, op == "gelu_erf" ? "none" : "tanh");
  } else {
    require(op.empty() || op == "16cast32",
            "fusedOpType must be empty, 16cast32, add, mul, relu, gelu_erf or gelu_tanh, but got ",
            op);
  }
  out = y;
}

// (x1 permuted) (x2 permuted) as (M, B, N), or (f, M, B N / f) for a split factor f.
void transpose_batch_matmul(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Ints perm1, Ints perm2,
                            Ints perm_y, int64_t, int64_t factor, Out out) {
  require(!has(bias), "bias must be NULL");
  check_rank(x1, "x1", 3, 3);
  require(perm1 == Ints({0, 1, 2}) || perm1 == Ints({1, 0, 2}),
          "permX1 must be [0, 1, 2] or [1, 0, 2], but got ", at::IntArrayRef(perm1));
  require(perm2 == Ints({0, 1, 2}) || perm2 == Ints({0, 2, 1}),
          "permX2 must be [0, 1, 2] or [0, 2, 1], but got ", at::IntArrayRef(perm2));
  require(perm_y == Ints({1, 0, 2}), "permY must be [1, 0, 2], but got ", at::IntArrayRef(perm_y));
  check_rank(out.tensor(), "out", 3, 3);
  const Tensor a = x1.permute(perm1);
  Tensor b = x2;
  if (x2.dim() == 5) b = Packed(x2).untiled(1, a.size(2), x2.size(1) * x2.size(4)).numbers();
  check_rank(b, "x2", 3, 3);
  const Tensor y = float_product(a, b.permute(perm2)).permute(perm_y);
  const int64_t m = y.size(0), width = y.size(1) * y.size(2);
  if (has(scale)) {
    require_shape(scale.numel() == width, "scale must have ", width, " elements, but has shape ",
                  scale.sizes());
    const Tensor rounded = y.to(x1.scalar_type()).to(at::kFloat).reshape({m, 1, width});
    put_integers(out, to_integers(rounded * scale_of(scale).reshape({-1})));
    return;
  }
  if (factor <= 1) {
    out = y;
    return;
  }
  require_shape(width % factor == 0, "batchSplitFactor must divide the ", width,
                " columns of the result, but is ", factor);
  out = y.reshape({m, factor, width / factor}).transpose(0, 1);
}

// mat2 as it is, or in tiles after `lead` dims of a batch.
Tensor from_tiles(const Tensor& mat2, int64_t lead, const Tensor& self, const Out& out) {
  if (mat2.dim() != lead + 4) return mat2;
  check_rank(out.tensor(), "out", lead + 2, lead + 2);
  return Packed(mat2).untiled(lead, self.size(-1), out.tensor().size(-1)).numbers();
}

void matmul_tiles(Tensor self, Tensor mat2, Out out, int64_t) {
  check_rank(self, "self", 2, 2);
  out = float_product(self, from_tiles(mat2, 0, self, out));
}

void batch_matmul_tiles(Tensor self, Tensor mat2, Out out, int64_t) {
  check_rank(self, "self", 3, 3);
  out = float_product(self, from_tiles(mat2, 1, self, out));
}

void addmm_tiles(Tensor self, Tensor mat1, Tensor mat2, at::Scalar beta, at::Scalar alpha, Out out,
                 int64_t) {
  check_rank(mat1, "mat1", 2, 2);
  out = at_least_float(self) * beta + float_product(mat1, from_tiles(mat2, 0, mat1, out)) * alpha;
}

// ---- adapters ----

// out = y; out[b, offset : offset + size] += scale B[i, layer] A[i, layer] x[b], i = indices[b].
void add_lora(Tensor y, Tensor x, Tensor b, Tensor indices, Tensor a, int64_t layer, double scale,
              int64_t offset, int64_t size, Out out) {
  check_rank(y, "y", 2, 2);
  check_rank(x, "x", 2, 2);
  check_rank(b, "weightB", 4, 4);
  const int64_t rows = y.size(0), adapters = b.size(0), rank = b.size(3);
  check_shape(x, "x", {rows, has(a) ? x.size(1) : rank});
  check_shape(indices, "indices", {rows});
  require(layer >= 0 && layer < b.size(1), "layerIdx must be in [0, ", b.size(1), "), but got ",
          layer);
  require_shape(b.size(2) == size, "weightB must have ", size, " (ySliceSize) in dim 2, but has ",
                "shape ", b.sizes());
  require(offset >= 0 && size >= 0 && offset <= y.size(1) - size, "yOffset must be in [0, ",
          y.size(1) - size, "], but got ", offset);
  if (has(a)) check_shape(a, "weightA", {adapters, b.size(1), rank, x.size(1)});
  const Tensor wide = at_least_float(y).clone();
  if (y.is_meta()) {
    out = wide;
    return;
  }
  const Tensor of = indices.to(at::kLong);
  for (int64_t i = 0; i < adapters; ++i) {
    const Tensor chosen = at::nonzero(of == i).flatten();
    if (chosen.numel() == 0) continue;
    Tensor part = at_least_float(x.index_select(0, chosen));
    if (has(a)) part = at::matmul(part, at_least_float(a[i][layer]).t());
    part = at::matmul(part, at_least_float(b[i][layer]).t()) * scale;
    wide.narrow(1, offset, size).index_add_(0, chosen, part);
  }
  out = wide;
}

// ---- FRACTAL_NZ: tiles of 16 rows, (..., N / C, K / 16, 16, C), padded with zeros ----

// Memory is in the order of its view: a view with the dims of tiles has them, one with the dims of
// the matrix is plain whatever its format.
void npu_format_cast(Tensor src, Out dst) {
  const Tensor to = dst.tensor();
  check_given(src, "src");
  check_given(to, "dst");
  require(src.scalar_type() == to.scalar_type(), "dst must have the dtype of src, ",
          src.scalar_type(), ", but is ", to.scalar_type());
  const bool tile = to.dim() == src.dim() + 2, plain = to.dim() == src.dim();
  const Tensor &tiles = tile ? to : src, &matrix = tile ? src : to;
  if (plain || tiles.dim() != matrix.dim() + 2 || matrix.dim() < 2) {
    check_shape(to, "dst", src.sizes());
    dst = src;
    return;
  }
  const int64_t k = matrix.size(-2), n = matrix.size(-1), c = tiles.size(-1);
  const Ints lead(matrix.sizes().begin(), matrix.sizes().end() - 2);
  const auto with = [&](const Ints& last) {
    Ints shape = lead;
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  };
  require_shape(c >= 1, tile ? "dst" : "src", " must have columns in its tiles, but has shape ",
                tiles.sizes());
  const int64_t across = n / c + (n % c != 0), down = k / 16 + (k % 16 != 0);
  check_shape(tiles, tile ? "dst" : "src", with({across, down, 16, c}));
  if (tile)
    dst = at::constant_pad_nd(src, {0, across * c - n, 0, down * 16 - k})
              .reshape(with({down, 16, across, c}))
              .movedim(-2, -4);
  else
    dst =
        src.movedim(-4, -2).reshape(with({down * 16, across * c})).slice(-2, 0, k).slice(-1, 0, n);
}

}  // namespace

const Composite weight_matmul_composites[] = {
    ENTRY(add_lora),
    ENTRY(addmm_tiles),
    ENTRY(batch_matmul_tiles),
    ENTRY(fused_matmul),
    ENTRY(matmul_tiles),
    ENTRY(npu_format_cast),
    ENTRY(transpose_batch_matmul),
    ENTRY(weight_quant_matmul),
    ENTRY(weight_quant_matmul_tiles),
    ENTRY(weight_quant_matmul_v3),
    {},
};

}  // namespace openaclnn::aten
