// SPDX-License-Identifier: Apache-2.0
// Floats to integers and back: dynamic scales (of the data), static ones, 4 bits packed.
#include "core/torch/aten/composites/groups.h"

namespace openaclnn::aten {
namespace {

// dstType is the aclDataType of y.
Bits bits_of(int64_t dst, const Out& y) {
  require(dst == 2 || dst == 3 || dst == 29, "dstType must be 2, INT8, 3, INT32 words of 4-bit ",
          "integers, or 29, INT4: others belong to Ascend 950, but got ", dst);
  const at::ScalarType wanted = dst == 2 ? at::kChar : dst == 3 ? at::kInt : at::ScalarType::Int4;
  const Tensor& to = y.tensor();
  require(!to.defined() || to.scalar_type() == wanted, "y must have the dtype of dstType, ", dst,
          ", but is ", to.defined() ? to.scalar_type() : wanted);
  return dst == 2 ? Bits::eight : Bits::four;
}
Bits bits_of(const Out& y) {
  check_given(y.tensor(), "y");
  return y.tensor().scalar_type() == at::kChar ? Bits::eight : Bits::four;
}

// ---- DynamicQuant ----

struct DynamicQuant {
  Tensor x, smooth, group_index;
  Bits bits;
  bool symmetric;
  Text mode;
  Out y, scale, offset;

  void run() const {
    check_real(x, "x");
    require(x.dim() >= 1, "x must have at least one dim");
    const Tensor v = smoothed();
    const auto finish = [&](const Tensor& reduced) {
      return mode == "pertensor"    ? reduced.reshape({1})
             : mode == "perchannel" ? reduced.squeeze(-2)
                                    : reduced.squeeze(-1);
    };
    const Ints dims = reduced_dims();
    const double top = top_of(bits);
    if (symmetric) {
      const Tensor s = largest(v, dims) / top;
      put_integers(y, to_integers(v / s, bits));
      scale = finish(s);
      return leave(offset.tensor());
    }
    const Tensor most = at::amax(v, dims, true),
                 s = (most - at::amin(v, dims, true)) / (2 * top + 1);
    const Tensor o = top - most / s;
    put_integers(y, to_integers(v / s + o, bits));
    scale = finish(s);
    offset = finish(o);
  }

 private:
  Ints reduced_dims() const {
    require(mode == "pertoken" || mode == "pertensor" || mode == "perchannel",
            "quantMode must be pertoken, pertensor or perchannel, but got ", mode);
    if (mode == "pertoken") return {-1};
    if (mode == "perchannel") {
      require_shape(x.dim() >= 2, "x must have at least 2 dims where quantMode is perchannel");
      return {-2};
    }
    Ints all;
    for (int64_t d = 0; d < x.dim(); ++d) all.push_back(d);
    return all;
  }

  Tensor smoothed() const {
    const Tensor v = x.to(at::kFloat);
    const int64_t h = x.size(-1);
    if (!has(smooth)) {
      require(!has(group_index), "groupIndex must be NULL where smoothScales is");
      return v;
    }
    if (!has(group_index)) {
      require_shape(smooth.numel() == h, "smoothScales must have ", h, " elements, but has shape ",
                    smooth.sizes());
      return v * smooth.to(at::kFloat).reshape({-1});
    }
    check_shape(smooth, "smoothScales", {smooth.size(0), h});
    const int64_t rows = h > 0 ? x.numel() / h : 0;
    const Tensor of_row =
        groups_of_rows(slices(group_index, kEnds, smooth.size(0), rows, "groupIndex"), rows, x);
    const Tensor own = by_row(smooth.to(at::kFloat), of_row);
    return v * choose(of_row.unsqueeze(1) >= 0, own, 1.0).reshape(x.sizes());
  }
};

void dynamic_quant(Tensor x, Tensor smooth, Out y, Out scale) {
  DynamicQuant{x, smooth, {}, bits_of(y), true, "pertoken", y, scale, Out({}, "")}.run();
}

void dynamic_quant_v2(Tensor x, Tensor smooth, Tensor groups, int64_t dst, Out y, Out scale,
                      Out offset) {
  DynamicQuant{x,          smooth, groups, bits_of(dst, y), !has(offset.tensor()),
               "pertoken", y,      scale,  offset}
      .run();
}

void dynamic_quant_v3(Tensor x, Tensor smooth, Tensor groups, int64_t dst, bool symmetric,
                      Text mode, Out y, Out scale, Out offset) {
  const Text kind = mode.empty() ? "pertoken" : mode;
  require(!has(groups) || kind == "pertoken",
          "groupIndex must be NULL where quantMode is not pertoken");
  DynamicQuant{x, smooth, groups, bits_of(dst, y), symmetric, kind, y, scale, offset}.run();
}

void dynamic_quant_v4(Tensor x, Tensor smooth, Tensor groups, int64_t dst, bool symmetric,
                      Text mode, double most, Out y, Out scale, Out offset) {
  require(most == 0, "dstTypeMax must be 0: it belongs to dtypes of Ascend 950, but got ", most);
  dynamic_quant_v3(x, smooth, groups, dst, symmetric, mode, y, scale, offset);
}

// ---- static ----

Tensor rounded(const Tensor& x, const Text& mode) {
  if (mode.empty() || mode == "round" || mode == "rint") return at::round(x);
  if (mode == "floor") return at::floor(x);
  if (mode == "ceil") return at::ceil(x);
  require(mode == "trunc", "roundMode must be round, floor, ceil or trunc, but got ", mode);
  return at::trunc(x);
}

void static_quant(const Tensor& x, const Tensor& scale, const Tensor& offset, bool sqrt,
                  const Text& mode, int64_t dst, int64_t axis, const Out& y) {
  check_real(x, "x");
  const Bits bits = bits_of(dst, y);
  require(axis >= -2 && axis < std::max<int64_t>(x.dim(), 1),
          "axis must be one of the last two dims of x, but got ", axis);
  const int64_t from_end = axis < 0 ? axis : axis - x.dim();
  require(from_end == -1 || from_end == -2 || x.dim() == 0,
          "axis must be one of the last two dims of x, but got ", axis);
  const auto along = [&](const Tensor& given) {
    const Tensor p = given.to(at::kFloat);
    return p.dim() == 1 && p.numel() > 1 && from_end == -2 ? p.unsqueeze(1) : p;
  };
  const Tensor s = along(scale);
  Tensor v = x.to(at::kFloat) * s;
  if (sqrt) v = v * s;
  if (has(offset)) v = v + along(offset);
  require_shape(v.sizes() == x.sizes(), "scale and offset must broadcast to x, whose shape is ",
                x.sizes(), ", but make ", v.sizes());
  put_integers(y, clamped(rounded(v, mode), bits));
}

void ascend_quant(Tensor x, Tensor scale, Tensor offset, bool sqrt, Text mode, int64_t dst, Out y) {
  static_quant(x, scale, offset, sqrt, mode, dst, -1, y);
}

void ascend_quant_v3(Tensor x, Tensor scale, Tensor offset, bool sqrt, Text mode, int64_t dst,
                     int64_t axis, Out y) {
  static_quant(x, scale, offset, sqrt, mode, dst, axis, y);
}

void check_float_type(int64_t dst, const char* name) {
  require(dst == 0 || dst == 1 || dst == 27, name,
          " must be 0, FLOAT, 1, FLOAT16, or 27, BFLOAT16, but got ", dst);
}

void ascend_anti_quant(Tensor x, Tensor scale, Tensor offset, int64_t dst, bool sqrt, Out y) {
  check_integers(x, "x");
  check_float_type(dst, "dstType");
  Tensor v = Packed(x).numbers().to(at::kFloat);
  const Ints shape = v.sizes().vec();
  if (has(offset)) v = v + offset.to(at::kFloat);
  const Tensor s = scale.to(at::kFloat);
  v = v * s;
  if (sqrt) v = v * s;
  require_shape(v.sizes() == at::IntArrayRef(shape),
                "scale and offset must broadcast to x, whose shape is ", at::IntArrayRef(shape),
                ", but make ", v.sizes());
  y = v;
}

// Rows after the last group are zero.
void group_quant(Tensor x, Tensor scale, Tensor group_index, Tensor offset, int64_t dst, Out y) {
  check_real(x, "x");
  const Bits bits = bits_of(dst, y);
  const Tensor of_row = groups_of_rows(
      slices(group_index, kEnds, scale.size(0), x.size(0), "groupIndex"), x.size(0), x);
  require_shape(scale.size(0) > 0, "scale must have at least one row");
  Tensor v = x.to(at::kFloat) * by_row(scale.to(at::kFloat), of_row);
  if (has(offset)) v = v + offset.to(at::kFloat).reshape({1});
  put_integers(y, to_integers(choose(of_row.unsqueeze(1) >= 0, v, 0.0), bits));
}

// (x + bias) weightScale activateScale for integer biases; others are added at the end.
void dequant_bias(Tensor x, Tensor weight_scale, Tensor activate_scale, Tensor bias, int64_t dst,
                  Out out) {
  check_float_type(dst, "outputDtype");
  require(x.scalar_type() == at::kInt, "x must be INT32, but is ", x.scalar_type());
  const bool whole = has(bias) && bias.scalar_type() == at::kInt;
  const Tensor sum = whole ? x + bias : x;
  Tensor v = sum.to(at::kFloat) * weight_scale.to(at::kFloat);
  if (has(activate_scale)) v = v * activate_scale.to(at::kFloat).reshape({-1, 1});
  if (has(bias) && !whole) v = v + bias.to(at::kFloat);
  out = v;
}

void fake_quant_per_tensor(Tensor self, Tensor scale, Tensor zero, double enabled, int64_t low,
                           int64_t high, Out out, Out mask) {
  check_real(self, "self");
  require(low <= high, "quantMin must be at most quantMax, ", high, ", but is ", low);
  if (enabled < 1) {
    out = self;
    mask = at::ones(self.sizes(), self.options().dtype(at::kBool));
    return;
  }
  const Tensor s = at_least_float(scale).reshape({}), z = zero.to(s.scalar_type()).reshape({});
  const Tensor q = at::round(at_least_float(self) / s) + z;
  mask = (q >= low).bitwise_and(q <= high);
  out = (at::clamp(q, low, high) - z) * s;
}

// ---- parameters and weights ----

// The float cut, or rounded half to even, to its upper 19 bits; bit 46; the offset in bits 37
// to 45.
void trans_quant_param(const Tensor& scale, const Tensor& offset, int64_t round_mode,
                       const Out& out) {
  require(scale.scalar_type() == at::kFloat, "scale must be FLOAT, but is ", scale.scalar_type());
  const at::ScalarType dtype = out.tensor().scalar_type();
  require(dtype == at::kLong || dtype == at::kUInt64, "out must be INT64 or UINT64, but is ",
          dtype);
  Tensor bits = scale.contiguous().view(at::kInt).to(at::kLong).bitwise_and(0xFFFFFFFF);
  if (round_mode == 1) bits = bits + bits.bitwise_right_shift(13).bitwise_and(1) + 0xFFF;
  Tensor p = bits.bitwise_and(0xFFFFE000).bitwise_or(int64_t{1} << 46);
  if (has(offset)) {
    const Tensor o = at::clamp(at::round(offset.to(at::kFloat)), -256, 255).to(at::kLong);
    p = p.bitwise_and(0x4000FFFFFFFF).bitwise_or(o.bitwise_and(0x1FF).bitwise_left_shift(37));
  }
  Out(dtype == at::kLong ? out.tensor() : out.tensor().view(at::kLong), "out") = p;
}

void trans_quant_param_v2(Tensor scale, Tensor offset, Out out) {
  trans_quant_param(scale, offset, 0, out);
}

void trans_quant_param_v3(Tensor scale, Tensor offset, int64_t round_mode, Out out) {
  trans_quant_param(scale, offset, round_mode, out);
}

// The low 4 bits of each number; packed along the rows where out has an eighth of them, or its rows
// have stride 1.
void pack_int4(Tensor weight, Out out) {
  require(weight.scalar_type() == at::kInt, "weight must be INT32, but is ", weight.scalar_type());
  const Tensor& to = out.tensor();
  require(to.scalar_type() == at::kInt || to.scalar_type() == at::ScalarType::Int4,
          "weightInt4Pack must be INT32 or INT4, but is ", to.scalar_type());
  require(weight.dim() >= 1, "weight must have at least one dim");
  const bool words = to.scalar_type() == at::kInt;
  bool along_rows = weight.dim() == 2 && to.dim() == 2;
  if (along_rows && words)
    along_rows = to.size(0) * 8 == weight.size(0) && to.size(1) == weight.size(1);
  else if (along_rows)
    along_rows = to.stride(0) == 1 && to.stride(1) != 1;
  if (along_rows)
    put_integers(Out(to.t(), "weightInt4Pack"), weight.t());
  else
    put_integers(out, weight);
}

}  // namespace

const Composite quantisation_composites[] = {
    ENTRY(ascend_anti_quant),
    ENTRY(ascend_quant),
    ENTRY(ascend_quant_v3),
    ENTRY(dequant_bias),
    ENTRY(dynamic_quant),
    ENTRY(dynamic_quant_v2),
    ENTRY(dynamic_quant_v3),
    ENTRY(dynamic_quant_v4),
    ENTRY(fake_quant_per_tensor),
    ENTRY(group_quant),
    ENTRY(pack_int4),
    ENTRY(trans_quant_param_v2),
    ENTRY(trans_quant_param_v3),
    {},
};

}  // namespace openaclnn::aten
