// SPDX-License-Identifier: Apache-2.0
// The grouped matrix product: one product for each group of rows, or of the inner dim.
#pragma once

#include "core/torch/aten/composites/groups.h"

namespace openaclnn::aten {

// The arguments of all versions.
struct Grouped {
  Tensors x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, per_token;
  Tensor groups;  // undefined where there is no list
  int64_t split, type, list_type, activation;
  Tensors out;
  bool tiles = false;  // weights of 4 or 5 dims are in FRACTAL_NZ order
};

// Of one product.
struct Operands {
  Packed x, weight;
  Scales scales;
  Tensor antiquant_scale, antiquant_offset;
  int64_t activation;
};

inline Tensor activated(const Tensor& y, int64_t kind) {
  switch (kind) {
    case 1: return at::clamp_min(y, 0);
    case 2: return at::gelu(y, "tanh");
    case 4: return y * at::sigmoid(1.702 * y);
    case 5: return at::silu(y);
    default: return y;
  }
}

inline Tensor product_of(const Operands& o, at::ScalarType result) {
  const bool floats = is_real(o.x.dtype());
  Tensor y;
  if (floats) {
    if (is_real(o.weight.dtype())) {
      y = product_of_floats(o.x.numbers(), o.weight.numbers());
    } else {
      check_given(o.antiquant_scale, "antiquantScale");
      y = product_with(o.x.numbers(), o.weight, o.antiquant_scale, o.antiquant_offset);
    }
    if (has(o.scales.bias)) y = y + o.scales.bias.to(y.scalar_type());
  } else {
    // Without a scale the sums are INT32, whatever takes them.
    const bool sums = !has(o.scales.scale);
    y = quantised_product(o.x, o.weight, o.scales, sums ? at::kInt : result);
  }
  if (o.activation != 0) y = activated(y, o.activation);
  return rounded_to(y, result);
}

inline void check_dtypes(const Tensor& x, const Tensor& weight) {
  for (const auto& [t, name] : {std::pair(&x, "x"), {&weight, "weight"}}) {
    if (t->is_floating_point())
      check_real(*t, name);
    else
      check_integers(*t, name);
  }
  const bool floats = x.is_floating_point(), float_weight = weight.is_floating_point();
  require(floats ? !float_weight || weight.scalar_type() == x.scalar_type() : !float_weight,
          "weight must have the dtype of x, or integers, but they are ", weight.scalar_type(),
          " and ", x.scalar_type());
  const bool four = !floats && x.scalar_type() != at::kChar;
  require(!four || weight.scalar_type() != at::kChar,
          "weight must have integers of 4 bits where x has them, but is INT8");
}

// Element i of an optional list: a tensor, or a row of the one tensor beside a stacked weight.
inline Tensor one_of(const Tensors& list, const char* name, size_t i, size_t count, bool stacked) {
  if (!has(list)) return {};
  if (stacked && list.size() == 1) {
    require_shape(list[0].dim() >= 1 && list[0].size(0) == static_cast<int64_t>(count), name,
                  " must have a tensor or row for each of the ", count, " weights, but has ",
                  list[0].dim() == 0 ? 1 : list[0].size(0));
    return list[0].select(0, static_cast<int64_t>(i));
  }
  require(list.size() == count, name, " must have a tensor or row for each of the ", count,
          " weights, but has ", list.size());
  return list[i];
}

// Columns of parameters: as many as the product has, or one.
inline void check_columns(const Tensor& given, const char* name, int64_t columns) {
  if (!has(given)) return;
  const int64_t last = given.dim() == 0 ? 1 : given.size(-1);
  require_shape(last == columns || last == 1, name, " must have ", columns,
                " columns, as the product, but has shape ", given.sizes());
}

class GroupedProduct {
 public:
  explicit GroupedProduct(Grouped& c) : c_(c) {
    require(c.split >= 0 && c.split <= 3, "splitItem must be from 0 to 3, but got ", c.split);
    require(c.type == -1 || c.type == 0 || c.type == 2,
            "groupType must be -1, none, 0, rows, or 2, the inner dim, but got ", c.type);
    require(
        c.activation >= 0 && c.activation <= 5 && c.activation != 3,
        "actType must be 0, none, 1, relu, 2, gelu with tanh, 4, fast gelu, or 5, silu, but got ",
        c.activation);
    require(!c.x.empty() && !c.weight.empty() && !c.out.empty(),
            "x, weight and out must have at least one tensor each");
    require(c.split < 2 || c.out.size() == 1, "out must have one tensor where splitItem is ",
            c.split, ", but has ", c.out.size());
    for (const Tensor& x : c.x)
      for (const Tensor& weight : c.weight) check_dtypes(x, weight);
  }

  void run() {
    if (c_.type == 2) return inner();
    stacked_ = c_.type == 0 && c_.weight.size() == 1 && stack_of(c_.weight[0]);
    if (c_.type == 0 && c_.x.size() == 1 && (has(c_.groups) || weights() > 1)) return rows();
    pairs();
  }

 private:
  bool stack_of(const Tensor& weight) const {
    return weight.dim() == 3 || (c_.tiles && weight.dim() == 5);
  }
  size_t weights() const {
    return stacked_ ? static_cast<size_t>(c_.weight[0].size(0)) : c_.weight.size();
  }
  at::ScalarType result() const { return c_.out[0].scalar_type(); }

  Packed weight(size_t i) const {
    if (stacked_) return stack_[static_cast<int64_t>(i)];
    return untiled(c_.weight[i], 0);
  }

  Operands operands(size_t i, const Packed& x, const Tensor& per_token) const {
    const size_t count = weights();
    const auto of = [&](const Tensors& list, const char* name) {
      return one_of(list, name, i, count, stacked_);
    };
    Operands o{x, weight(i), {}, {}, {}, c_.activation};
    o.scales = {of(c_.bias, "bias"), of(c_.scale, "scale"), of(c_.offset, "offset"), per_token};
    o.antiquant_scale = of(c_.antiquant_scale, "antiquantScale");
    o.antiquant_offset = of(c_.antiquant_offset, "antiquantOffset");
    require_shape(o.weight.dim() == 2 && o.weight.size(0) == x.size(-1),
                  "weights must have as many rows as x has columns, ", x.size(-1), ", but one has ",
                  "shape ", at::IntArrayRef({o.weight.size(0), o.weight.size(-1)}));
    const int64_t n = o.weight.size(1);
    check_columns(o.scales.bias, "bias", n);
    check_columns(o.scales.scale, "scale", n);
    check_columns(o.scales.offset, "offset", n);
    check_columns(o.antiquant_scale, "antiquantScale", n);
    check_columns(o.antiquant_offset, "antiquantOffset", n);
    return o;
  }

  void hand_out(const Tensors& results) const {
    if (c_.out.size() == 1 && results.size() > 1) return put(c_.out[0], at::cat(results));
    require(results.size() == c_.out.size(), "out must have ", results.size(), " tensors, but has ",
            c_.out.size());
    for (size_t i = 0; i < results.size(); ++i) put(c_.out[i], results[i]);
  }

  // x[i] weight[i].
  void pairs() {
    require(c_.type == 0 || !has(c_.groups), "groupList must be NULL where groupType is -1");
    if (stacked_) stack_ = stack();
    require(c_.x.size() == weights(),
            "x and weight must have as many tensors as each other without ", "groupList, but have ",
            c_.x.size(), " and ", weights());
    Tensors made;
    for (size_t i = 0; i < c_.x.size(); ++i) {
      check_rank(c_.x[i], "x", 2, 6);
      const Tensor per_token = has(c_.per_token)
                                   ? one_of(c_.per_token, "perTokenScale", i, c_.x.size(), false)
                                   : Tensor();
      made.push_back(product_of(operands(i, Packed(c_.x[i]), per_token), result()));
    }
    hand_out(made);
  }

  Packed stack() const {
    require(weights() > 0, "weight must have at least one matrix, but has shape ",
            c_.weight[0].sizes());
    return untiled(c_.weight[0], 1);
  }

  Packed untiled(const Tensor& weight, int64_t lead) const {
    const Packed w(weight);
    return c_.tiles ? w.untiled(lead, c_.x[0].size(-1), columns()) : w;
  }
  int64_t columns() const { return c_.out[0].dim() == 0 ? 1 : c_.out[0].size(-1); }

  // Rows of the one x with the weight of their group; rows after the last group are zero.
  void rows() {
    if (stacked_) stack_ = stack();
    const auto count = static_cast<int64_t>(weights());
    require(has(c_.groups), "groupList must not be NULL or empty for the rows of one x");
    check_rank(c_.x[0], "x[0]", 2, 2);
    const Packed x(c_.x[0]);
    Tensor per_token;
    if (has(c_.per_token)) {
      require(c_.per_token.size() == 1 && c_.per_token[0].numel() == x.size(0),
              "perTokenScale must have one tensor with a number for each of the ", x.size(0),
              " rows of x");
      per_token = c_.per_token[0].reshape({-1});
    }
    const bool single = c_.out.size() == 1;
    require(single || c_.out.size() == weights(), "out must have 1 or ", count,
            " tensors, but has ", c_.out.size());
    const auto found = slices(c_.groups, c_.list_type, count, x.size(0));
    const bool known = !c_.groups.is_meta();
    Tensor y;
    Tensors parts(weights());
    for (const Slice& s : found) {
      const auto g = static_cast<size_t>(s.group);
      const Tensor scale = per_token.defined() ? per_token.slice(0, s.begin, s.end) : Tensor();
      const Tensor part = product_of(operands(g, x.rows(s.begin, s.end), scale), result());
      if (!single) {
        parts[g] = part;
        continue;
      }
      if (!y.defined()) y = at::zeros({x.size(0), part.size(1)}, part.options());
      y.slice(0, s.begin, s.end).copy_(part);
    }
    if (single) return put(c_.out[0], y.defined() ? y : no_groups(x.size(0)));
    for (size_t g = 0; g < parts.size() && known; ++g)
      put(c_.out[g], parts[g].defined() ? parts[g] : no_groups(0));
  }

  Tensor no_groups(int64_t rows) const {
    return at::zeros({rows, weight(0).size(-1)}, c_.x[0].options().dtype(result()));
  }

  // x[:, begin:end] weight[begin:end], the gradient of the weights.
  void inner() {
    require(has(c_.groups) && c_.list_type != kPairs,
            "groupList must be ends or counts where groupType is 2");
    require(c_.x.size() == 1 && c_.weight.size() == 1,
            "x and weight must have one tensor each where groupType is 2");
    require(c_.x[0].is_floating_point() && c_.weight[0].is_floating_point(),
            "x and weight must be float where groupType is 2");
    check_rank(c_.x[0], "x[0]", 2, 2);
    check_rank(c_.weight[0], "weight[0]", 2, 2);
    const Tensor &x = c_.x[0], &w = c_.weight[0];
    require_shape(x.size(1) == w.size(0), "weight[0] must have as many rows as x[0] has columns, ",
                  x.size(1), ", but has shape ", w.sizes());
    check_rank(c_.groups, "groupList", 1, 1);
    const int64_t groups = c_.groups.size(0), m = x.size(0), n = w.size(1);
    const bool single = c_.out.size() == 1;
    require(single || static_cast<int64_t>(c_.out.size()) == groups, "out must have 1 or ", groups,
            " tensors, but has ", c_.out.size());
    const at::ScalarType wide = at_least_float(x.slice(0, 0, 0)).scalar_type();
    const Tensor y = at::zeros({groups, m, n}, x.options().dtype(result()));
    for (const Slice& s : slices(c_.groups, c_.list_type, groups, x.size(1)))
      y[s.group].copy_(
          at::mm(x.slice(1, s.begin, s.end).to(wide), w.slice(0, s.begin, s.end).to(wide)));
    if (single) return put(c_.out[0], y);
    for (int64_t g = 0; g < groups; ++g) put(c_.out[static_cast<size_t>(g)], y[g]);
  }

  Grouped& c_;
  bool stacked_ = false;
  Packed stack_;
};

}  // namespace openaclnn::aten
