// SPDX-License-Identifier: Apache-2.0
// Products of quantised matrices.
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

// The numbers of groupSize: k in bits 0 to 15, n from 16, m from 32.
struct GroupSize {
  int64_t k, n;
  explicit GroupSize(int64_t bits) : k(bits & 0xFFFF), n(bits >> 16 & 0xFFFF) {
    require(bits >= 0, "groupSize must be from 0, but got ", bits);
  }
};

struct QuantMatmul {
  Tensor x1, x2, x1_scale, x2_scale, x2_offset, y_offset, bias;
  bool transpose1, transpose2;
  int64_t group_size;
  at::ScalarType result;
  int64_t columns;  // of out, for weights in tiles
  bool tiles = false;

  Tensor run() const {
    check_integers(x1, "x1");
    check_integers(x2, "x2");
    check_rank(x1, "x1", 2, 6);
    check_rank(x2, "x2", 2, 6);
    Packed a(x1), b(x2);
    if (transpose1) a = a.transposed();
    if (transpose2) b = b.transposed();
    b = untiled(b, a.size(-1));
    require(!a.four_bits() || b.four_bits(),
            "x2 must have integers of 4 bits where x1 has them, but is INT8");
    const int64_t k = a.size(-1), n = b.size(-1);
    require_shape(b.size(-2) == k, "x2 must have as many rows as x1 has columns, ", k, ", but has ",
                  b.size(-2));
    check_shapes(a.size(-2), n);
    const bool mixed = !a.four_bits() && b.four_bits();
    const GroupSize group(group_size);
    if (result == at::kInt) return quantised_product(a, b, {bias, {}, {}, {}}, result);
    check_given(x2_scale, "the scale of x2");
    if (mixed) return quantised_product(a, b, {y_offset, x2_scale, {}, x1_scale}, result);
    if (group.n > 1 && has(x1_scale) && x1_scale.dim() >= 2)
      return with_bias(of_blocks(a, b, group));
    const bool grouped = x2_scale.dim() > 1 && x2_scale.size(-2) > 1;
    if (grouped) return with_bias(of_groups(a, b, group.k));
    const Tensor offset = result == at::kChar ? x2_offset : Tensor();
    return quantised_product(a, b, {bias, x2_scale, offset, x1_scale}, result);
  }

 private:
  // x2 (N / C, K / 16, 16, C), or with one dim of a batch before.
  Packed untiled(const Packed& b, int64_t k) const {
    const int64_t lead = x1.dim() == 2 ? 0 : 1;
    if (!tiles || b.dim() != lead + 4) return b;
    return b.untiled(lead, k, columns);
  }

  void check_shapes(int64_t m, int64_t n) const {
    if (has(bias))
      require_shape(bias.size(-1) == n && (bias.numel() == n || bias.dim() == 3),
                    "bias must have shape [", n, "] or [batch, 1, ", n, "], but got ",
                    bias.sizes());
    if (has(y_offset))
      require_shape(y_offset.numel() == n, "yOffset must have ", n, " elements, but has shape ",
                    y_offset.sizes());
    const bool blocks = GroupSize(group_size).n > 1;
    if (has(x2_scale) && !blocks)
      require_shape(x2_scale.numel() == 1 || x2_scale.size(-1) == n, "the scale of x2 must have 1 ",
                    "or ", n, " columns, but has shape ", x2_scale.sizes());
    if (has(x1_scale) && !blocks)
      require_shape(x1_scale.numel() == 1 || x1_scale.numel() == m, "the scale of x1 must have 1 ",
                    "or ", m, " elements, but has shape ", x1_scale.sizes());
  }

  Tensor with_bias(const Tensor& y) const { return has(bias) ? y + bias.to(at::kFloat) : y; }

  // x1Scale sum over groups of x2Scale[g] x1[:, g] (x2[g] - x2Offset[g])
  Tensor of_groups(const Packed& a, const Packed& b, int64_t group) const {
    Tensor w = b.numbers().to(at::kFloat);
    if (has(x2_offset)) w = w - of_rows(x2_offset, b.size(-2), group);
    w = w * of_rows(scale_of(x2_scale), b.size(-2), group);
    const Tensor y = at::matmul(a.numbers().to(at::kFloat), w);
    return has(x1_scale) ? y * x1_scale.to(at::kFloat).reshape({-1, 1}) : y;
  }

  // x1Scale (M, K / k), x2Scale (N / n, K / k): one number for each block.
  Tensor of_blocks(const Packed& a, const Packed& b, const GroupSize& group) const {
    require(group.k > 0, "groupSize must have a k where it has an n");
    const auto spread = [](const Tensor& x, int64_t dim, int64_t by, int64_t size) {
      const Tensor all = x.to(at::kFloat);
      require_shape(all.size(dim) == (size + by - 1) / by, "a scale must have a number for each ",
                    by, " of ", size, ", but has shape ", x.sizes());
      return all.repeat_interleave(std::min(by, std::max<int64_t>(size, 1)), dim)
          .slice(dim, 0, size);
    };
    check_rank(x2_scale, "the scale of x2", 2, 2);
    const int64_t k = a.size(-1);
    const Tensor s1 = spread(x1_scale, -1, group.k, k);
    const Tensor s2 = spread(spread(x2_scale, 0, group.n, b.size(-1)), 1, group.k, k).t();
    return at::matmul(a.numbers().to(at::kFloat) * s1, b.numbers().to(at::kFloat) * s2);
  }
};

void put_product(const Tensor& y, const Out& out) {
  out = rounded_to(y, out.tensor().scalar_type());
}

int64_t columns_of(const Out& out) {
  check_rank(out.tensor(), "out", 2, 6);
  return out.tensor().size(-1);
}

void quant_matmul_v4(Tensor x1, Tensor x2, Tensor scale, Tensor offset, Tensor per_token,
                     Tensor bias, bool transpose1, bool transpose2, Out out) {
  const int64_t columns = columns_of(out);
  put_product(QuantMatmul{x1,
                          x2,
                          per_token,
                          scale,
                          offset,
                          {},
                          bias,
                          transpose1,
                          transpose2,
                          0,
                          out.tensor().scalar_type(),
                          columns}
                  .run(),
              out);
}

void quant_matmul_v3(Tensor x1, Tensor x2, Tensor scale, Tensor offset, Tensor bias,
                     bool transpose1, bool transpose2, Out out) {
  quant_matmul_v4(x1, x2, scale, offset, {}, bias, transpose1, transpose2, out);
}

void quant_matmul_v2(Tensor x1, Tensor x2, Tensor bias, Tensor scale, bool transpose1,
                     bool transpose2, Out out) {
  quant_matmul_v4(x1, x2, scale, {}, {}, bias, transpose1, transpose2, out);
}

QuantMatmul of_v5(const Tensor& x1, const Tensor& x2, const Tensor& x1_scale,
                  const Tensor& x2_scale, const Tensor& y_scale, const Tensor& x1_offset,
                  const Tensor& x2_offset, const Tensor& y_offset, const Tensor& bias,
                  bool transpose1, bool transpose2, int64_t group_size, const Out& out) {
  require(!has(y_scale) && !has(x1_offset), "yScale and x1Offset must be NULL");
  return {x1,
          x2,
          x1_scale,
          x2_scale,
          x2_offset,
          y_offset,
          bias,
          transpose1,
          transpose2,
          group_size,
          out.tensor().scalar_type(),
          columns_of(out)};
}

void quant_matmul_v5(Tensor x1, Tensor x2, Tensor x1_scale, Tensor x2_scale, Tensor y_scale,
                     Tensor x1_offset, Tensor x2_offset, Tensor y_offset, Tensor bias,
                     bool transpose1, bool transpose2, int64_t group_size, Out out) {
  put_product(of_v5(x1, x2, x1_scale, x2_scale, y_scale, x1_offset, x2_offset, y_offset, bias,
                    transpose1, transpose2, group_size, out)
                  .run(),
              out);
}

void quant_matmul_tiles(Tensor x1, Tensor x2, Tensor x1_scale, Tensor x2_scale, Tensor y_scale,
                        Tensor x1_offset, Tensor x2_offset, Tensor y_offset, Tensor bias,
                        bool transpose1, bool transpose2, int64_t group_size, Out out) {
  QuantMatmul q = of_v5(x1, x2, x1_scale, x2_scale, y_scale, x1_offset, x2_offset, y_offset, bias,
                        transpose1, transpose2, group_size, out);
  q.tiles = true;
  put_product(q.run(), out);
}

void fused_quant_matmul(Tensor x1, Tensor x2, Tensor x1_scale, Tensor x2_scale, Tensor y_scale,
                        Tensor x1_offset, Tensor x2_offset, Tensor y_offset, Tensor bias, Tensor x3,
                        Text op, int64_t group_size, Out out) {
  require(!has(x3), "x3 must be NULL");
  require(op == "gelu_tanh" || op == "gelu_erf",
          "fusedOpType must be gelu_tanh or gelu_erf, but got ", op);
  QuantMatmul q = of_v5(x1, x2, x1_scale, x2_scale, y_scale, x1_offset, x2_offset, y_offset, bias,
                        false, false, group_size, out);
  require(is_real(q.result), "out must be float, but is ", q.result);
  q.tiles = true;
  out = at::gelu(q.run(), op == "gelu_tanh" ? "tanh" : "none");
}

// sum over b of (x1[b] x2[b]) x2Scale x1Scale[b]
void quant_matmul_reduce_sum(Tensor x1, Tensor x2, Tensor x1_scale, Tensor x2_scale, Tensor y_scale,
                             Tensor x1_offset, Tensor x2_offset, Tensor y_offset, Tensor bias,
                             bool transpose1, bool transpose2, int64_t, Ints dims, bool keep,
                             Out out) {
  require(!has(y_scale) && !has(x1_offset) && !has(x2_offset) && !has(y_offset) && !has(bias),
          "yScale, x1Offset, x2Offset, yOffset and bias must be NULL");
  require(dims == Ints{0}, "dims must be [0], but got ", at::IntArrayRef(dims));
  check_rank(x1, "x1", 3, 3);
  const int64_t columns = columns_of(out);
  for (const auto& [x, name] : {std::pair(&x1, "x1"), {&x2, "x2"}})
    require(x->scalar_type() == at::kChar, name, " must be INT8, but is ", x->scalar_type());
  Tensor a = transpose1 ? x1.transpose(1, 2) : x1;
  Tensor b = Packed(x2).untiled(1, a.size(2), columns).numbers();
  check_rank(b, "x2", 3, 3);
  if (transpose2) b = b.transpose(1, 2);
  const int64_t batch = a.size(0), m = a.size(1), n = b.size(2);
  require_shape(b.size(0) == batch && b.size(1) == a.size(2), "x2 must have shape [", batch, ", ",
                a.size(2), ", columns], but got ", x2.sizes());
  check_shape(x1_scale, "x1Scale", {batch, m});
  require_shape(x2_scale.numel() == n, "x2Scale must have ", n, " elements, but has shape ",
                x2_scale.sizes());
  const Tensor s1 = x1_scale.to(at::kFloat), s2 = scale_of(x2_scale).reshape({-1});
  const Tensor sum = at::zeros({m, n}, s1.options());
  for (int64_t i = 0; i < batch; ++i)
    sum.add_(integer_product(Packed(a[i]), Packed(b[i])).to(at::kFloat) * s2 * s1[i].unsqueeze(1));
  out = keep ? sum.unsqueeze(0) : sum;
}

}  // namespace

const Composite quantised_matmul_composites[] = {
    ENTRY(fused_quant_matmul), ENTRY(quant_matmul_reduce_sum),
    ENTRY(quant_matmul_tiles), ENTRY(quant_matmul_v2),
    ENTRY(quant_matmul_v3),    ENTRY(quant_matmul_v4),
    ENTRY(quant_matmul_v5),    {},
};

}  // namespace openaclnn::aten
