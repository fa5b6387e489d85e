// SPDX-License-Identifier: Apache-2.0
// GroupedMatmul in all its versions.
#include "core/torch/aten/composites/grouped_product.h"

namespace openaclnn::aten {
namespace {

void grouped_matmul(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                    Tensors antiquant_scale, Tensors antiquant_offset, Ints groups, int64_t split,
                    Tensors out) {
  const bool rows = !groups.empty() || (x.size() == 1 && weight.size() > 1);
  Grouped c{x,
            weight,
            bias,
            scale,
            offset,
            antiquant_scale,
            antiquant_offset,
            {},
            list_of(groups),
            split,
            rows ? 0 : -1,
            kEnds,
            0,
            out};
  GroupedProduct(c).run();
}

void grouped_matmul_v2(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                       Tensors antiquant_scale, Tensors antiquant_offset, Ints groups,
                       int64_t split, int64_t type, Tensors out) {
  Grouped c{
      x,     weight, bias,  scale, offset, antiquant_scale, antiquant_offset, {}, list_of(groups),
      split, type,   kEnds, 0,     out};
  GroupedProduct(c).run();
}

void grouped_matmul_v3(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                       Tensors antiquant_scale, Tensors antiquant_offset, Tensor groups,
                       int64_t split, int64_t type, Tensors out) {
  Grouped c{x,     weight, bias,  scale, offset, antiquant_scale, antiquant_offset, {}, groups,
            split, type,   kEnds, 0,     out};
  GroupedProduct(c).run();
}

// actType belongs to the quantised activations of x, which no product has.
void check_no_activation_input(const Tensors& a, const Tensors& b, const Tensors& c) {
  require(!has(a) && !has(b) && !has(c),
          "activationInput, activationQuantScale and activationQuantOffset must be NULL");
}

void grouped_matmul_v4(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                       Tensors antiquant_scale, Tensors antiquant_offset, Tensors per_token,
                       Tensor groups, Tensors activation_input, Tensors activation_scale,
                       Tensors activation_offset, int64_t split, int64_t type, int64_t list_type,
                       int64_t activation, Tensors out, OptionalTensors, OptionalTensors) {
  check_no_activation_input(activation_input, activation_scale, activation_offset);
  Grouped c{x,         weight, bias,  scale, offset,    antiquant_scale, antiquant_offset,
            per_token, groups, split, type,  list_type, activation,      out};
  GroupedProduct(c).run();
}

void grouped_matmul_v5(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                       Tensors antiquant_scale, Tensors antiquant_offset, Tensors per_token,
                       Tensor groups, Tensors activation_input, Tensors activation_scale,
                       Tensors activation_offset, int64_t split, int64_t type, int64_t list_type,
                       int64_t activation, Ints, Tensors out, OptionalTensors, OptionalTensors) {
  grouped_matmul_v4(x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, per_token,
                    groups, activation_input, activation_scale, activation_offset, split, type,
                    list_type, activation, out, {}, {});
}

void grouped_matmul_tiles(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                          Tensors antiquant_scale, Tensors antiquant_offset, Tensors per_token,
                          Tensor groups, Tensors activation_input, Tensors activation_scale,
                          Tensors activation_offset, int64_t split, int64_t type, int64_t list_type,
                          int64_t activation, Ints, int64_t, Tensors out, OptionalTensors,
                          OptionalTensors) {
  check_no_activation_input(activation_input, activation_scale, activation_offset);
  Grouped c{x,
            weight,
            bias,
            scale,
            offset,
            antiquant_scale,
            antiquant_offset,
            per_token,
            groups,
            split,
            type,
            list_type,
            activation,
            out,
            /*tiles=*/true};
  GroupedProduct(c).run();
}

// y[e] += x[rows of e]^T weight[rows of e], in float.
void add_grouped(const Tensor& x, const Tensor& weight, const Tensor& groups, const Tensor& y,
                 bool transpose_x, bool transpose_weight, int64_t type, int64_t list_type) {
  require(transpose_x && !transpose_weight && type == 2,
          "transposeX must be true, transposeWeight false and groupType 2");
  check_real(x, "x");
  check_real(weight, "weight");
  require(weight.scalar_type() == x.scalar_type(), "weight must have the dtype of x, ",
          x.scalar_type(), ", but is ", weight.scalar_type());
  require(y.scalar_type() == at::kFloat, "y must be FLOAT, but is ", y.scalar_type());
  const int64_t m = x.size(1), n = weight.size(1), count = groups.numel();
  const bool flat = y.dim() == 2;
  if (flat)
    check_shape(y, "y", {count * m, n});
  else
    check_shape(y, "y", {count, m, n});
  const Tensor a = copy_if_overlapping(x, y), b = copy_if_overlapping(weight, y);
  for (const Slice& s : slices(groups, list_type, count, x.size(0))) {
    const Tensor sum = at::mm(a.slice(0, s.begin, s.end).t().to(at::kFloat),
                              b.slice(0, s.begin, s.end).to(at::kFloat));
    (flat ? y.slice(0, s.group * m, (s.group + 1) * m) : y[s.group]).add_(sum);
  }
}

void grouped_matmul_add(Tensor x, Tensor weight, Tensor groups, Tensor y, bool transpose_x,
                        bool transpose_weight, int64_t type) {
  add_grouped(x, weight, groups, y, transpose_x, transpose_weight, type, kEnds);
}

void grouped_matmul_add_v2(Tensor x, Tensor weight, Tensor groups, Tensor y, bool transpose_x,
                           bool transpose_weight, int64_t type, int64_t list_type) {
  add_grouped(x, weight, groups, y, transpose_x, transpose_weight, type, list_type);
}

}  // namespace

const Composite grouped_matmul_composites[] = {
    ENTRY(grouped_matmul),     ENTRY(grouped_matmul_v2),     ENTRY(grouped_matmul_v3),
    ENTRY(grouped_matmul_v4),  ENTRY(grouped_matmul_v5),     ENTRY(grouped_matmul_tiles),
    ENTRY(grouped_matmul_add), ENTRY(grouped_matmul_add_v2), {},
};

}  // namespace openaclnn::aten
