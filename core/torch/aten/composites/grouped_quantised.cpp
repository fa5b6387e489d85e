// SPDX-License-Identifier: Apache-2.0
// Grouped quantised products joined with what follows them in a mixture of experts.
#include "core/torch/aten/composites/grouped_product.h"

namespace openaclnn::aten {
namespace {

// The parameters of a stack of weights, for one of them.
Tensor row_of(const Tensor& parameter, const char* name, int64_t group, int64_t groups) {
  if (!has(parameter)) return {};
  require_shape(parameter.dim() > 1 && parameter.size(0) == groups, name, " must have shape [",
                groups, ", ...], a row for each weight, but got ", parameter.sizes());
  return parameter[group];
}

// What all products here have: x (M, K) and a stack of weights (E, K, N), of integers.
struct Stack {
  Packed x, weight;
  int64_t rows, groups;

  Stack(const Tensor& given_x, const Tensor& given_weight, int64_t columns, bool tiles) {
    check_integers(given_x, "x");
    check_integers(given_weight, "weight");
    check_rank(given_x, "x", 2, 2);
    x = Packed(given_x);
    weight = Packed(given_weight);
    if (tiles) weight = weight.untiled(1, x.size(-1), columns);
    require_shape(weight.dim() == 3 && weight.size(1) == x.size(1) && weight.size(0) > 0,
                  "weight must have shape [groups, ", x.size(1), ", columns], but got ",
                  given_weight.sizes());
    require(!x.four_bits() || weight.four_bits(),
            "weight must have integers of 4 bits where x has them, but is INT8");
    rows = x.size(0);
    groups = weight.size(0);
  }

  Tensor product(const Slice& s, const Scales& all, const Tensor& per_token) const {
    Scales own;
    own.bias = row_of(all.bias, "bias", s.group, groups);
    own.scale = row_of(all.scale, "scale", s.group, groups);
    own.offset = row_of(all.offset, "offset", s.group, groups);
    if (has(per_token)) own.per_token = per_token.slice(0, s.begin, s.end);
    for (const Tensor& parameter : {own.bias, own.scale, own.offset})
      check_columns(parameter, "bias, scale and offset", weight.size(2));
    return quantised_product(x.rows(s.begin, s.end), weight[s.group], own, at::kFloat);
  }

  Tensor for_rows(const Tensor& given, const char* name) const {
    if (!has(given)) return {};
    require_shape(given.numel() == rows, name, " must have a number for each of the ", rows,
                  " rows of x, but has shape ", given.sizes());
    return given.reshape({-1});
  }
};

// ---- SwiGLU of the products, quantised ----

struct SwigluQuant {
  Tensor x, weight, scale, assist, x_scale, smooth, groups;
  int64_t list_type = kEnds;
  Out output, output_scale;
  bool tiles = false;

  void run() const {
    check_given(scale, "weightScale");
    const int64_t columns = scale.dim() == 0 ? 1 : scale.size(-1);
    require_shape(columns % 2 == 0, "weightScale must have an even number of columns, but has ",
                  "shape ", scale.sizes());
    const Stack stack(x, weight, columns, tiles);
    require_shape(stack.weight.size(2) == columns, "weight must have ", columns,
                  " columns, as weightScale, but has ", stack.weight.size(2));
    const Tensor per_token = stack.for_rows(x_scale, "xScale");
    const Tensor numbers = at::zeros({stack.rows, columns / 2}, x.options().dtype(at::kChar));
    const Tensor scales = at::zeros({stack.rows}, x.options().dtype(at::kFloat));
    for (const Slice& s : slices(groups, list_type, stack.groups, stack.rows)) {
      const auto [gate, value] =
          halves(stack.product(s, {assist, scale, {}, {}}, per_token), -1, "the product");
      Tensor y = at::silu(gate) * value;
      if (has(smooth)) {
        require_shape(smooth.size(0) == stack.groups, "smoothScale must have ", stack.groups,
                      " rows, but has shape ", smooth.sizes());
        y = y * smooth[s.group].to(at::kFloat);
      }
      const Quantised q = quantised_rows(y);
      numbers.slice(0, s.begin, s.end).copy_(q.numbers);
      scales.slice(0, s.begin, s.end).copy_(q.scale);
    }
    put_integers(output, numbers);
    output_scale = scales;
  }
};

void grouped_swiglu_quant(Tensor x, Tensor weight, Tensor bias, Tensor, Tensor weight_scale,
                          Tensor x_scale, Tensor groups, Out output, Out output_scale, Out) {
  SwigluQuant{x,
              weight,
              weight_scale,
              bias,
              x_scale,
              {},
              groups,
              kEnds,
              output,
              output_scale,
              /*tiles=*/true}
      .run();
}

const Tensor& only(const Tensors& list, const char* name) {
  require(list.size() == 1, name, " must have one tensor, but has ", list.size());
  return list[0];
}

void grouped_swiglu_quant_v2(Tensor x, Tensors weight, Tensors weight_scale, Tensors assist, Tensor,
                             Tensor x_scale, Tensor smooth, Tensor groups, int64_t, int64_t,
                             int64_t quant_mode, int64_t list_type, Ints, Out output,
                             Out output_scale) {
  require(quant_mode == 0, "quantMode must be 0: others belong to Ascend 950, but got ",
          quant_mode);
  SwigluQuant{x,
              only(weight, "weight"),
              only(weight_scale, "weightScale"),
              has(assist) ? only(assist, "weightAssistMatrix") : Tensor(),
              x_scale,
              smooth,
              groups,
              list_type,
              output,
              output_scale,
              /*tiles=*/true}
      .run();
}

// ---- products added to the rows of their tokens ----

struct FinalizeRouting {
  Tensor x, weight;
  Scales scales;
  Tensor groups, shared, logit, row_index;
  int64_t dtype;
  double shared_weight;
  int64_t shared_offset;
  bool transpose_x, transpose_weight;
  int64_t list_type;
  Out y;

  void run() const {
    require(!transpose_x && !transpose_weight, "transposeX and transposeW must be false");
    require(dtype == 0, "dtype must be 0, FLOAT: others belong to Ascend 950, but got ", dtype);
    require(list_type == kEnds || list_type == kCounts,
            "groupListType must be 0, ends, or 1, counts, but got ", list_type);
    const Tensor& out = y.tensor();
    check_rank(out, "y", 2, 2);
    const Stack stack(x, weight, out.size(1), true);
    const int64_t columns = stack.weight.size(2), rows = out.size(0);
    const Tensor per_token = stack.for_rows(scales.per_token, "pertokenScale");
    const Tensor gate = stack.for_rows(logit, "logit");
    check_given(row_index, "rowIndex");
    require(at::isIntegralType(row_index.scalar_type(), false), "rowIndex must have integers");
    const Tensor places = stack.for_rows(row_index, "rowIndex").to(at::kLong);
    // A row more takes what belongs to no token.
    const Tensor sum = at::zeros({rows + 1, columns}, out.options().dtype(at::kFloat));
    for (const Slice& s : slices(groups, list_type, stack.groups, stack.rows)) {
      Tensor part = stack.product(s, scales, per_token);
      if (gate.defined()) part = part * gate.slice(0, s.begin, s.end).to(at::kFloat).unsqueeze(1);
      const Tensor place = places.slice(0, s.begin, s.end);
      const Tensor inside = (place >= 0).bitwise_and(place < rows);
      sum.index_add_(0, choose(inside, place, rows), part);
    }
    const Tensor result = sum.slice(0, 0, rows);
    if (has(shared)) add_shared(result);
    y = result;
  }

  void add_shared(const Tensor& result) const {
    check_rank(shared, "sharedInput", 2, 2);
    const int64_t more = shared.size(0);
    require(shared_offset >= 0 && shared_offset <= result.size(0) - more, "sharedInputOffset must ",
            "be from 0 to ", result.size(0) - more, " for the ", more, " rows of sharedInput, but ",
            "got ", shared_offset);
    result.slice(0, shared_offset, shared_offset + more)
        .add_(shared.to(at::kFloat) * shared_weight);
  }
};

void grouped_finalize_routing_v2(Tensor x, Tensor weight, Tensor scale, Tensor bias, Tensor offset,
                                 Tensor antiquant_scale, Tensor antiquant_offset, Tensor per_token,
                                 Tensor groups, Tensor shared, Tensor logit, Tensor row_index,
                                 int64_t dtype, double shared_weight, int64_t shared_offset,
                                 bool transpose_x, bool transpose_weight, int64_t list_type,
                                 Out y) {
  require(!has(antiquant_scale) && !has(antiquant_offset),
          "antiquantScale and antiquantOffset must be NULL");
  FinalizeRouting{x,
                  weight,
                  {bias, scale, offset, per_token},
                  groups,
                  shared,
                  logit,
                  row_index,
                  dtype,
                  shared_weight,
                  shared_offset,
                  transpose_x,
                  transpose_weight,
                  list_type,
                  y}
      .run();
}

void grouped_finalize_routing(Tensor x, Tensor weight, Tensor scale, Tensor bias, Tensor per_token,
                              Tensor groups, Tensor shared, Tensor logit, Tensor row_index,
                              int64_t dtype, double shared_weight, int64_t shared_offset,
                              bool transpose_x, bool transpose_weight, int64_t list_type, Out y) {
  grouped_finalize_routing_v2(x, weight, scale, bias, {}, {}, {}, per_token, groups, shared, logit,
                              row_index, dtype, shared_weight, shared_offset, transpose_x,
                              transpose_weight, list_type, y);
}

void grouped_finalize_routing_v3(Tensor x, Tensor weight, Tensor scale, Tensor bias, Tensor offset,
                                 Tensor antiquant_scale, Tensor antiquant_offset, Tensor per_token,
                                 Tensor groups, Tensor shared, Tensor logit, Tensor row_index,
                                 int64_t dtype, double shared_weight, int64_t shared_offset,
                                 bool transpose_x, bool transpose_weight, int64_t list_type, Ints,
                                 Out y) {
  grouped_finalize_routing_v2(x, weight, scale, bias, offset, antiquant_scale, antiquant_offset,
                              per_token, groups, shared, logit, row_index, dtype, shared_weight,
                              shared_offset, transpose_x, transpose_weight, list_type, y);
}

}  // namespace

const Composite grouped_quantised_composites[] = {
    ENTRY(grouped_swiglu_quant),        ENTRY(grouped_swiglu_quant_v2),
    ENTRY(grouped_finalize_routing),    ENTRY(grouped_finalize_routing_v2),
    ENTRY(grouped_finalize_routing_v3), {},
};

}  // namespace openaclnn::aten
