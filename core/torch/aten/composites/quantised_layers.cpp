// SPDX-License-Identifier: Apache-2.0
// Gates and norms whose results are quantised, in float before it.
#include "core/torch/aten/composites/groups.h"

namespace openaclnn::aten {
namespace {

bool is_dynamic(const Text& mode, const char* absent) {
  const Text kind = mode.empty() ? absent : mode;
  require(kind == "static" || kind == "dynamic", "quantMode must be static or dynamic, but got ",
          kind);
  return kind == "dynamic";
}

Tensor flat(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

Ints with_last(const Tensor& x, int64_t last) {
  Ints shape = x.sizes().vec();
  shape.back() = last;
  return shape;
}
Ints without_last(const Tensor& x) { return {x.sizes().begin(), x.sizes().end() - 1}; }

// The parameters of the groups of rows: (E, H) or (E), or the same for all rows: (H), (1, H), (1).
struct ByGroup {
  Tensor of_row;  // undefined without groups
  int64_t groups = 0, end = 0;

  ByGroup(const Tensor& list, int64_t kind, int64_t rows, const Tensor& like) {
    end = rows;
    if (!has(list)) return;
    groups = list.numel();
    const auto found = slices(list, kind, groups, rows, "groupIndex");
    of_row = groups_of_rows(found, rows, like);
    if (!list.is_meta()) end = end_of(found);
  }

  Tensor operator()(const Tensor& parameter, const char* name, int64_t columns) const {
    if (!has(parameter)) return {};
    const int64_t dims = parameter.dim();
    const bool one_each = dims == 1 && parameter.numel() == groups && groups != columns;
    const bool row_each = dims == 2 && parameter.size(0) == groups && parameter.size(1) == columns;
    if (of_row.defined() && (one_each || row_each))
      return by_row(parameter.reshape({groups, -1}), of_row);
    require_shape(parameter.numel() == columns || parameter.numel() == 1, name, " must have ",
                  columns, " columns, and a row or number for each of the ", groups,
                  " groups or for all of them, but has shape ", parameter.sizes());
    return parameter.reshape({-1});
  }

  void clear_rest(const Tensor& x) const {
    if (!x.is_meta() && end < x.size(0)) x.slice(0, end).zero_();
  }
};

// ---- SwiGLU ----

constexpr int64_t kSplit = 0, kInterleaved = 1, kLimited = 2, kLimitedSilu = 3;

struct Glu {
  bool left;
  int64_t mode = kSplit;
  double limit = 0, alpha = 0, bias = 0;

  Tensor operator()(const Tensor& v) const {
    auto [first, second] = halves(v, -1);
    if (mode == kInterleaved) {
      const auto all = std::numeric_limits<int64_t>::max();
      first = v.slice(-1, 0, all, 2);
      second = v.slice(-1, 1, all, 2);
    }
    const Tensor &gate = left ? first : second, &value = left ? second : first;
    if (mode == kSplit) return at::silu(gate) * value;
    const Tensor limited = at::clamp(value, -limit, limit);
    if (mode == kLimitedSilu) return at::clamp_max(at::silu(gate), limit) * limited;
    const Tensor g = at::clamp_max(gate, limit);
    return g * at::sigmoid(alpha * g) * (limited + bias);
  }
};

struct DequantSwigluQuant {
  Tensor x, weight_scale, activation_scale, bias, quant_scale, quant_offset, group_index;
  Glu glu;
  Text quant_mode;
  Out y, scale;

  void run() const {
    check_given(y.tensor(), "yOut");
    require(y.tensor().scalar_type() == at::kChar, "yOut must be INT8, but is ",
            y.tensor().scalar_type());
    const bool dynamic = is_dynamic(quant_mode, "static");
    require(x.dim() >= 1 && x.size(-1) % 2 == 0, "x must have an even last dim, but has shape ",
            x.sizes());
    const int64_t columns = x.size(-1);
    const Tensor rows = flat(x);
    const ByGroup of(group_index, kCounts, rows.size(0), x);
    Tensor v = glu(dequantised_rows(rows, of));
    const Tensor q = of(quant_scale, "quantScale", columns / 2);
    Quantised made;
    if (dynamic) {
      made = quantised_rows(q.defined() ? v * q.to(at::kFloat) : v);
    } else {
      check_given(q, "quantScale");
      v = v / q.to(at::kFloat);
      const Tensor o = of(quant_offset, "quantOffset", columns / 2);
      if (o.defined()) v = v + o.to(at::kFloat);
      made.numbers = to_integers(v);
    }
    of.clear_rest(made.numbers);
    y = made.numbers.reshape(with_last(x, columns / 2));
    if (!dynamic) return leave(scale.tensor());
    of.clear_rest(made.scale);
    scale = made.scale.reshape(without_last(x));
  }

 private:
  Tensor dequantised_rows(const Tensor& rows, const ByGroup& of) const {
    if (rows.is_floating_point()) {
      check_real(rows, "x");
      return rows.to(at::kFloat);
    }
    require(rows.scalar_type() == at::kInt, "x must be INT32 or float, but is ",
            rows.scalar_type());
    check_given(weight_scale, "weightScale");
    const int64_t columns = rows.size(1);
    const Tensor b = of(bias, "bias", columns);
    const bool whole = b.defined() && b.scalar_type() == at::kInt;
    Tensor v = (whole ? rows + b : rows).to(at::kFloat) *
               of(weight_scale, "weightScale", columns).to(at::kFloat);
    if (has(activation_scale)) {
      require_shape(activation_scale.numel() == rows.size(0), "activationScale must have ",
                    rows.size(0), " elements, but has shape ", activation_scale.sizes());
      v = v * activation_scale.to(at::kFloat).reshape({-1, 1});
    }
    return b.defined() && !whole ? v + b.to(at::kFloat) : v;
  }
};

void dequant_swiglu_quant(Tensor x, Tensor weight_scale, Tensor activation_scale, Tensor bias,
                          Tensor quant_scale, Tensor quant_offset, Tensor group_index, bool left,
                          Text quant_mode, Out y, Out scale) {
  DequantSwigluQuant{x,           weight_scale, activation_scale, bias, quant_scale, quant_offset,
                     group_index, {left},       quant_mode,       y,    scale}
      .run();
}

void dequant_swiglu_quant_v2(Tensor x, Tensor weight_scale, Tensor activation_scale, Tensor bias,
                             Tensor quant_scale, Tensor quant_offset, Tensor group_index, bool left,
                             Text quant_mode, int64_t dst, Text round_mode, int64_t dim,
                             int64_t mode, double limit, double alpha, double glu_bias, Out y,
                             Out scale) {
  require(dst == 2, "dstType must be 2, INT8: others belong to Ascend 950, but got ", dst);
  require(round_mode.empty() || round_mode == "rint", "roundMode must be rint, but got ",
          round_mode);
  require(dim == -1 || dim == x.dim() - 1, "activateDim must be -1, but got ", dim);
  require(mode != kInterleaved || left, "activateLeft must be true where swigluMode is 1");
  DequantSwigluQuant{x,
                     weight_scale,
                     activation_scale,
                     bias,
                     quant_scale,
                     quant_offset,
                     group_index,
                     {left, mode, limit, alpha, glu_bias},
                     quant_mode,
                     y,
                     scale}
      .run();
}

// The scale is the multiplier, top / max, not its inverse.
void quantised_swiglu(const Tensor& x, const Tensor& smooth, const Tensor& offsets,
                      const Tensor& group_index, bool left, const Text& quant_mode,
                      int64_t list_type, Bits bits, const Out& y, const Out& scale) {
  check_real(x, "x");
  const bool dynamic = is_dynamic(quant_mode, "static");
  require(x.dim() >= 1 && x.size(-1) % 2 == 0, "x must have an even last dim, but has shape ",
          x.sizes());
  const int64_t columns = x.size(-1) / 2;
  const Tensor rows = flat(x);
  const ByGroup of(group_index, list_type, rows.size(0), x);
  Tensor v = Glu{left}(rows.to(at::kFloat));
  const Tensor s = of(smooth, "smoothScales", columns);
  if (s.defined()) v = v * s.to(at::kFloat);
  if (!dynamic) {
    const Tensor o = of(offsets, "offsets", columns);
    if (o.defined()) v = v + o.to(at::kFloat);
    const Tensor numbers = to_integers(v, bits);
    of.clear_rest(numbers);
    put_integers(y, numbers.reshape(with_last(x, columns)));
    return leave(scale.tensor());
  }
  const Tensor up = top_of(bits) / largest(v, {-1});
  const Tensor numbers = to_integers(v * up, bits), ups = up.squeeze(-1);  // 0 inf is NaN, and 0
  of.clear_rest(numbers);
  of.clear_rest(ups);
  put_integers(y, numbers.reshape(with_last(x, columns)));
  scale = ups.reshape(without_last(x));
}

void swiglu_quant(Tensor x, Tensor smooth, Tensor offsets, Tensor group_index, bool left,
                  Text quant_mode, Out y, Out scale) {
  require(y.tensor().defined() && y.tensor().scalar_type() == at::kChar, "yOut must be INT8");
  quantised_swiglu(x, smooth, offsets, group_index, left, quant_mode, kEnds, Bits::eight, y, scale);
}

void swiglu_quant_v2(Tensor x, Tensor smooth, Tensor offsets, Tensor group_index, bool left,
                     Text quant_mode, int64_t list_type, int64_t dst, Out y, Out scale) {
  require(dst == 2 || dst == 29, "dstType must be 2, INT8, or 29, INT4: others belong to Ascend ",
          "950, but got ", dst);
  check_given(y.tensor(), "yOut");
  const at::ScalarType wanted = dst == 2 ? at::kChar : at::ScalarType::Int4;
  require(y.tensor().scalar_type() == wanted, "yOut must have the dtype of dstType, ", wanted,
          ", but is ", y.tensor().scalar_type());
  quantised_swiglu(x, smooth, offsets, group_index, left, quant_mode, list_type,
                   dst == 2 ? Bits::eight : Bits::four, y, scale);
}

void gelu_quant(Tensor x, Tensor input_scale, Tensor input_offset, Text approximate,
                Text quant_mode, Text round_mode, int64_t dst, Out y, Out scale) {
  check_real(x, "self");
  require(dst == 2, "dstType must be 2, INT8: others belong to Ascend 950, but got ", dst);
  require(round_mode.empty() || round_mode == "rint", "roundMode must be rint, but got ",
          round_mode);
  check_given(y.tensor(), "y");
  require(y.tensor().scalar_type() == at::kChar, "y must be INT8, but is ",
          y.tensor().scalar_type());
  require(x.dim() >= 1, "self must have at least one dim");
  Tensor v = at::gelu(x.to(at::kFloat), approximate.empty() ? "none" : approximate);
  if (has(input_scale)) v = v * input_scale.to(at::kFloat);
  if (is_dynamic(quant_mode, "dynamic")) {
    const Quantised made = quantised_rows(v);
    y = made.numbers;
    scale = made.scale;
    return;
  }
  if (has(input_offset)) v = v + input_offset.to(at::kFloat);
  y = to_integers(v);
  leave(scale.tensor());
}

// ---- FlatQuant: x between two small matrices, to 4 bits ----

// The clip ratio multiplies the divisor; both products are rounded to the dtype of x.
void flat_quant(Tensor x, Tensor p1, Tensor p2, double clip, Out out, Out scale) {
  check_real(x, "x");
  require(clip > 0 && clip <= 1, "clipRatio must be above 0, at most 1, but got ", clip);
  require(out.tensor().defined() && out.tensor().scalar_type() != at::kChar,
          "out must be INT4, or INT32 with eight 4-bit integers in each");
  const at::ScalarType own = x.scalar_type();
  const auto product = [&](const Tensor& a, const Tensor& b) {
    return at::matmul(at_least_float(a), at_least_float(b)).to(own);
  };
  const Tensor z = product(p1, product(x, p2)).to(at::kFloat);
  const Tensor s = largest(z, {-2, -1}) / (7 * clip);
  put_integers(out, to_integers(z / s, Bits::four));
  scale = s.flatten();
}

void flat_quant_v2(Tensor x, Tensor p1, Tensor p2, double clip, double most, Out out, Out scale) {
  require(most == 0, "dstTypeMax must be 0: it belongs to dtypes of Ascend 950, but got ", most);
  flat_quant(x, p1, p2, clip, out, scale);
}

}  // namespace

const Composite quantised_layer_composites[] = {
    ENTRY(dequant_swiglu_quant), ENTRY(dequant_swiglu_quant_v2),
    ENTRY(flat_quant),           ENTRY(flat_quant_v2),
    ENTRY(gelu_quant),           ENTRY(swiglu_quant),
    ENTRY(swiglu_quant_v2),      {},
};

}  // namespace openaclnn::aten
