// SPDX-License-Identifier: Apache-2.0
// Products joined with collectives: sums over ranks are fp32, rounded once.
#include "core/torch/aten/composites/group.h"
#include "core/torch/aten/composites/residual_norm.h"

namespace openaclnn::aten {
namespace {

void check_sum(const Text& op) {
  require(op.empty() || op == "sum", "reduceOp must be sum, but got ", op);
}

struct Product {
  Tensor x1, x2, bias, scale1, scale2;

  // Before any rank waits for others.
  void check() const {
    check_given(x1, "x1");
    check_given(x2, "x2");
    require(!at::isFloat8Type(x1.scalar_type()) && !at::isFloat8Type(x2.scalar_type()), "x1 is ",
            x1.scalar_type(), " and x2 ", x2.scalar_type(), ", which only Ascend 950 multiplies");
    check_rank(x1, "x1", 2, 3);
    check_rank(x2, "x2", 2, 2);
    require_shape(x2.size(0) == x1.size(-1), "x2 must have as many rows as x1 has columns, ",
                  x1.size(-1), ", but has shape ", x2.sizes());
    if (has(bias))
      require_shape(bias.numel() == x2.size(1), "bias must have ", x2.size(1),
                    " elements, but has shape ", bias.sizes());
    if (!is_real(x1.scalar_type())) {
      check_integers(x1, "x1");
      check_integers(x2, "x2");
      check_given(scale2, "the scale of x2");
      require_shape(scale2.numel() == 1 || scale2.numel() == x2.size(1), "the scale of x2 must ",
                    "have 1 or ", x2.size(1), " elements, but has shape ", scale2.sizes());
      if (has(scale1))
        require_shape(scale1.numel() == 1 || scale1.numel() == x1.numel() / x1.size(-1),
                      "the scale of x1 must have a number for each row, but has shape ",
                      scale1.sizes());
      return;
    }
    check_real(x2, "x2");
    require(x1.scalar_type() == x2.scalar_type(), "x1 and x2 must have one dtype, but are ",
            x1.scalar_type(), " and ", x2.scalar_type());
    require(!has(scale1) && !has(scale2), "scales must be NULL where x1 and x2 are float");
  }

  // Of these rows of x1, in fp32.
  Tensor of(const Tensor& rows, const Tensor& scale_of_rows) const {
    if (is_real(x1.scalar_type())) {
      const Tensor y = product_of_floats(rows, x2);
      return has(bias) ? y + at_least_float(bias) : y;
    }
    Ints sizes = rows.sizes().vec();
    sizes.back() = x2.size(1);
    const Tensor flat = rows.flatten(0, -2);
    return quantised_product(Packed(flat), Packed(x2), {bias, scale2.flatten(), {}, scale_of_rows},
                             at::kFloat)
        .reshape(sizes);
  }
  Tensor run() const { return of(x1, scale1); }
};

// What must be the same on all ranks; the function is one of them.
void agree(const Group& group, int64_t function, const Tensor& x1, int64_t columns) {
  if (x1.is_meta()) return;
  const int64_t planes = x1.dim() == 3 ? x1.size(0) : 1;
  group.agree(
      {function, x1.dim(), planes, x1.size(-2), x1.size(-1), columns, number_of(x1.scalar_type())},
      "operator, sizes and dtype");
}

void check_unblocked(const Tensor& quant_scale, int64_t block) {
  require(!has(quant_scale) && block == 0,
          "quantScale must be NULL and blockSize 0; only Ascend 950 takes them");
}

// ---- rows of all ranks, then the product ----

void all_gather_matmul_v2(Tensor x1, Tensor x2, Tensor bias, Tensor scale1, Tensor scale2,
                          Tensor quant_scale, int64_t block, Text name, int64_t gather_index,
                          int64_t, int64_t, int64_t, Text, Out out, Out gathered, Out) {
  require(gather_index == 0, "gatherIndex must be 0, gather x1, but got ", gather_index);
  check_unblocked(quant_scale, block);
  check_rank(x1, "x1", 2, 2);
  const Product product{x1, x2, bias, scale1, scale2};
  product.check();
  const Group group(name);
  agree(group, kGatherMatmul, x1, has(scale1) ? scale1.numel() : 0);
  const Tensor rows = group.gathered(x1);
  const bool each = has(scale1) && scale1.numel() > 1;
  const Tensor scales = each ? group.gathered(scale1.flatten()) : scale1;
  out = product.of(rows, scales);
  if (has(gathered.tensor())) gathered = rows;
}

void all_gather_matmul(Tensor x1, Tensor x2, Tensor bias, Text name, int64_t gather_index,
                       int64_t turn, int64_t mode, Out out, Out gathered) {
  all_gather_matmul_v2(x1, x2, bias, {}, {}, {}, 0, name, gather_index, turn, mode, 0, {}, out,
                       gathered, gathered);
}

// ---- the product, then its sum over the ranks ----

void matmul_reduce_scatter_v2(Tensor x1, Tensor x2, Tensor bias, Tensor scale1, Tensor scale2,
                              Tensor quant_scale, int64_t block, Text name, Text op, int64_t,
                              int64_t, int64_t, Text, Out out, Out) {
  check_sum(op);
  check_unblocked(quant_scale, block);
  check_rank(x1, "x1", 2, 2);
  const Product product{x1, x2, bias, scale1, scale2};
  product.check();
  const Group group(name);
  const int64_t m = x1.size(0);
  require_shape(m % group.ranks == 0, "x1 must have a number of rows that is divisible by the ",
                group.ranks, " ranks, but has shape ", x1.sizes());
  agree(group, kReduceScatter, x1, x2.size(1));
  const int64_t part = m / group.ranks;
  out = group.sum(product.run()).narrow(0, group.rank * part, part);
}

void matmul_reduce_scatter(Tensor x1, Tensor x2, Tensor bias, Text name, Text op, int64_t turn,
                           int64_t mode, Out out) {
  matmul_reduce_scatter_v2(x1, x2, bias, {}, {}, {}, 0, name, op, turn, mode, 0, {}, out, out);
}

Tensor reduced(Tensor y, const Tensor& x1, const Tensor& x3, const Text& name, const Text& op) {
  check_sum(op);
  if (has(x3)) {
    check_shape(x3, "x3", y.sizes());
    y = y + at_least_float(x3);
  }
  const Group group(name);
  agree(group, kAllReduce, x1, y.size(-1));
  return group.sum(y);
}

// Every rank adds its bias and x3 before the sum.
void matmul_all_reduce_v2(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Text name, Text op, int64_t,
                          int64_t, Out out) {
  const Product product{x1, x2, bias, {}, {}};
  check_real(x1, "x1");
  product.check();
  out = reduced(product.run(), x1, x3, name, op);
}
void matmul_all_reduce(Tensor x1, Tensor x2, Tensor bias, Text name, Text op, int64_t turn,
                       int64_t mode, Out out) {
  matmul_all_reduce_v2(x1, x2, bias, {}, name, op, turn, mode, out);
}
void matmul_all_reduce_v3(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Text name, Text op, Text,
                          int64_t turn, int64_t mode, Out out) {
  matmul_all_reduce_v2(x1, x2, bias, x3, name, op, turn, mode, out);
}

// commQuantScales send INT8 on a device; here the sum is exact.
Tensor quantised(const Tensor& x1, const Tensor& x2, const Tensor& bias, const Tensor& x3,
                 const Tensor& scale1, const Tensor& scale2, const Text& name, const Text& op) {
  const Product product{x1, x2, bias, scale1, scale2};
  product.check();
  require(!is_real(x1.scalar_type()), "x1 must have integers, but is ", x1.scalar_type());
  return reduced(product.run(), x1, x3, name, op);
}

void quant_all_reduce_v4(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Tensor scale1, Tensor scale2,
                         Tensor, Tensor, Text name, Text op, int64_t, int64_t, int64_t group_size,
                         int64_t, Out out) {
  require(group_size == 0, "groupSize must be 0; only Ascend 950 takes blocks of scales");
  out = quantised(x1, x2, bias, x3, scale1, scale2, name, op);
}
void quant_all_reduce_v5(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Tensor scale1, Tensor scale2,
                         Tensor comm1, Tensor comm2, Text name, Text op, Text, int64_t turn,
                         int64_t mode, int64_t group_size, int64_t comm_mode, Out out) {
  quant_all_reduce_v4(x1, x2, bias, x3, scale1, scale2, comm1, comm2, name, op, turn, mode,
                      group_size, comm_mode, out);
}
void quant_all_reduce_v3(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Tensor scale2, Tensor scale1,
                         Tensor, Tensor, Text name, Text op, int64_t, int64_t, Out out) {
  out = quantised(x1, x2, bias, x3, scale1, scale2, name, op);
}
void quant_all_reduce_v2(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Tensor scale2, Tensor scale1,
                         Text name, Text op, int64_t, int64_t, Out out) {
  out = quantised(x1, x2, bias, x3, scale1, scale2, name, op);
}
void quant_all_reduce(Tensor x1, Tensor x2, Tensor bias, Tensor x3, Tensor scale2, Text name,
                      Text op, int64_t, int64_t, Out out) {
  out = quantised(x1, x2, bias, x3, {}, scale2, name, op);
}

Tensor weight_quantised(const Tensor& x1, const Tensor& x2, const Tensor& bias, const Tensor& scale,
                        const Tensor& offset, const Tensor& x3, const Text& name, const Text& op,
                        int64_t group_size) {
  check_real(x1, "x1");
  check_rank(x1, "x1", 2, 3);
  check_integers(x2, "x2");
  check_rank(x2, "x2", 2, 2);
  check_given(scale, "antiquantScale");
  require(group_size >= 0, "antiquantGroupSize must be at least 0, but got ", group_size);
  const Packed weight(x2);
  require_shape(weight.size(0) == x1.size(-1), "x2 must have as many rows as x1 has columns, ",
                x1.size(-1), ", but has ", weight.size(0));
  Tensor y = product_with(x1, weight, scale, offset, group_size);
  if (has(bias)) y = y + at_least_float(bias);
  return reduced(y, x1, x3, name, op);
}

void weight_quant_all_reduce(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Tensor offset,
                             Tensor x3, Text name, Text op, int64_t, int64_t, int64_t group_size,
                             Out out) {
  out = weight_quantised(x1, x2, bias, scale, offset, x3, name, op, group_size);
}
void weight_quant_all_reduce_v2(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Tensor offset,
                                Tensor x3, Text name, Text op, Text, int64_t, int64_t,
                                int64_t group_size, Out out) {
  out = weight_quantised(x1, x2, bias, scale, offset, x3, name, op, group_size);
}

// ---- with a norm after it ----

void normalise(const Tensor& x, const Tensor& residual, const Tensor& gamma, double eps,
               const Out& out, const Out& norm) {
  const ResidualNorm made(x, residual, gamma, eps, "residual");
  out = made.sum, norm = made.norm;
}

void matmul_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Tensor residual, Tensor gamma,
                            double eps, Text name, Text op, int64_t, int64_t, Out out, Out norm) {
  const Product product{x1, x2, bias, {}, {}};
  check_real(x1, "x1");
  product.check();
  normalise(reduced(product.run(), x1, {}, name, op), residual, gamma, eps, out, norm);
}
void inplace_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Out residual, Tensor gamma,
                             double eps, Text name, Text op, int64_t turn, int64_t mode, Out norm) {
  matmul_all_reduce_norm(x1, x2, bias, residual.tensor(), gamma, eps, name, op, turn, mode,
                         residual, norm);
}

void quant_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Tensor residual,
                           Tensor gamma, double eps, Text name, Text op, int64_t, int64_t, Out out,
                           Out norm) {
  normalise(quantised(x1, x2, bias, {}, {}, scale, name, op), residual, gamma, eps, out, norm);
}
void inplace_quant_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Out residual,
                                   Tensor gamma, double eps, Text name, Text op, int64_t turn,
                                   int64_t mode, Out norm) {
  quant_all_reduce_norm(x1, x2, bias, scale, residual.tensor(), gamma, eps, name, op, turn, mode,
                        residual, norm);
}

void weight_quant_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Tensor scale, Tensor offset,
                                  Tensor residual, Tensor gamma, double eps, Text name, Text op,
                                  int64_t, int64_t, int64_t group_size, Out out, Out norm) {
  normalise(weight_quantised(x1, x2, bias, scale, offset, {}, name, op, group_size), residual,
            gamma, eps, out, norm);
}
void inplace_weight_quant_all_reduce_norm(Tensor x1, Tensor x2, Tensor bias, Tensor scale,
                                          Tensor offset, Out residual, Tensor gamma, double eps,
                                          Text name, Text op, int64_t turn, int64_t mode,
                                          int64_t group_size, Out norm) {
  weight_quant_all_reduce_norm(x1, x2, bias, scale, offset, residual.tensor(), gamma, eps, name, op,
                               turn, mode, group_size, residual, norm);
}

}  // namespace

const Composite collective_matmul_composites[] = {
    ENTRY(all_gather_matmul),
    ENTRY(all_gather_matmul_v2),
    ENTRY(inplace_all_reduce_norm),
    ENTRY(inplace_quant_all_reduce_norm),
    ENTRY(inplace_weight_quant_all_reduce_norm),
    ENTRY(matmul_all_reduce),
    ENTRY(matmul_all_reduce_norm),
    ENTRY(matmul_all_reduce_v2),
    ENTRY(matmul_all_reduce_v3),
    ENTRY(matmul_reduce_scatter),
    ENTRY(matmul_reduce_scatter_v2),
    ENTRY(quant_all_reduce),
    ENTRY(quant_all_reduce_norm),
    ENTRY(quant_all_reduce_v2),
    ENTRY(quant_all_reduce_v3),
    ENTRY(quant_all_reduce_v4),
    ENTRY(quant_all_reduce_v5),
    ENTRY(weight_quant_all_reduce),
    ENTRY(weight_quant_all_reduce_norm),
    ENTRY(weight_quant_all_reduce_v2),
    {},
};

}  // namespace openaclnn::aten
