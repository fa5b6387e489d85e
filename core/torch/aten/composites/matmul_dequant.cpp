// SPDX-License-Identifier: Apache-2.0
// x quantised, multiplied by a quantised weight and scaled back, in groups of rows or at once.
#include "core/torch/aten/composites/groups.h"

namespace openaclnn::aten {
namespace {

struct QuantMatmulDequant {
  Tensor x, weight, weight_scale, groups, bias, x_scale, x_offset, smooth;
  Text mode;
  bool transpose;
  Out out;

  void run() const {
    check_real(x, "x");
    check_rank(x, "x", 2, 2);
    check_given(weight, "weight");
    require(weight.scalar_type() == at::kChar, "weight must be INT8, but is ",
            weight.scalar_type());
    require(!has(bias) && !has(x_offset), "bias and xOffset must be NULL");
    require(mode.empty() || mode == "pertoken" || mode == "pertensor",
            "xQuantMode must be pertoken or pertensor, but got ", mode);
    require(transpose, "transposeWeight must be true");
    require(mode != "pertensor" || has(x_scale), "xScale must not be NULL where xQuantMode is ",
            "pertensor");
    const bool grouped = groups.defined();
    const int64_t lead = grouped ? 1 : 0, rows = x.size(0);
    const int64_t columns = out.tensor().dim() == 2 ? out.tensor().size(1) : 0;
    Tensor w = Packed(weight).untiled(lead, columns, x.size(1)).numbers();
    require_shape(w.dim() == lead + 2 && w.size(-1) == x.size(1) && w.size(0) > 0,
                  "weight must have ", lead + 2, " dims, of which the last is ", x.size(1),
                  ", but has shape ", weight.sizes());
    w = w.transpose(-1, -2);
    if (!grouped) w = w.unsqueeze(0);
    const int64_t count = w.size(0), n = w.size(2);
    require_shape(weight_scale.numel() == count * n, "weightScale must have ", count * n,
                  " elements, but has shape ", weight_scale.sizes());
    const Tensor by_column = scale_of(weight_scale).reshape({count, n});
    // Scales of 64 bits have xScale in them.
    const bool folded = !is_real(weight_scale.scalar_type());
    Tensor v = x.to(at::kFloat);
    if (has(smooth)) v = v * smooth.to(at::kFloat);
    Tensor scale, numbers;
    if (has(x_scale)) {
      require_shape(x_scale.numel() == 1 || x_scale.numel() == rows, "xScale must have 1 or ", rows,
                    " elements, but has shape ", x_scale.sizes());
      scale = x_scale.to(at::kFloat).reshape({-1, 1}).expand({rows, 1});
      numbers = to_integers(v / scale);
    } else {
      const Quantised q = quantised_rows(v);
      scale = q.scale.unsqueeze(1);
      numbers = q.numbers;
    }
    const Tensor y = at::zeros({rows, n}, v.options());
    const auto found =
        grouped ? slices(groups, kEnds, count, rows) : std::vector<Slice>{{0, 0, rows}};
    for (const Slice& s : found) {
      const Packed part(numbers.slice(0, s.begin, s.end));
      Tensor product =
          integer_product(part, Packed(w[s.group])).to(at::kFloat) * by_column[s.group];
      if (!folded) product = product * scale.slice(0, s.begin, s.end);
      y.slice(0, s.begin, s.end).copy_(product);
    }
    out = y;
  }
};

void quant_matmul_dequant(Tensor x, Tensor weight, Tensor weight_scale, Tensor bias, Tensor x_scale,
                          Tensor x_offset, Tensor smooth, Text mode, bool transpose, Out out) {
  QuantMatmulDequant{x,        weight, weight_scale, {},        bias, x_scale,
                     x_offset, smooth, mode,         transpose, out}
      .run();
}

void quant_grouped_matmul_dequant(Tensor x, Tensor weight, Tensor weight_scale, Tensor groups,
                                  Tensor bias, Tensor x_scale, Tensor x_offset, Tensor smooth,
                                  Text mode, bool transpose, Out out) {
  QuantMatmulDequant{x,        weight, weight_scale, groups,    bias, x_scale,
                     x_offset, smooth, mode,         transpose, out}
      .run();
}

}  // namespace

const Composite matmul_dequant_composites[] = {
    ENTRY(quant_matmul_dequant),
    ENTRY(quant_grouped_matmul_dequant),
    {},
};

}  // namespace openaclnn::aten
