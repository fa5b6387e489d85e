// SPDX-License-Identifier: Apache-2.0
// RMS norms, of sums too, whose results are quantised or cast. The norm sees the sum before it is
// rounded.
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

struct Norm {
  Tensor y, rstd, sum;  // float
};

// beta is added after gamma.
Norm norm_of_sum(const Tensor& x1, const Tensor& x2, const Tensor& gamma, const Tensor& beta,
                 double eps) {
  check_real(x1, "x1");
  Norm made;
  made.sum = x2.defined() ? at_least_float(x1) + at_least_float(x2) : at_least_float(x1);
  const Ints dims = trailing_dims(made.sum, gamma, "x1");
  made.rstd = at::rsqrt(at::mean(at::square(made.sum), dims, true) + eps);
  made.y = made.sum * made.rstd * at_least_float(gamma);
  if (has(beta)) {
    check_shape(beta, "beta", gamma.sizes());
    made.y = made.y + at_least_float(beta);
  }
  return made;
}

// y / scale + zero, or y scale + zero.
void put_static(const Tensor& y, const Tensor& scale, const char* name, const Tensor& zero,
                bool divide, const Out& out) {
  const int64_t columns = y.size(-1);
  for (const Tensor& p : {scale, zero})
    require_shape(!has(p) || p.numel() == 1 || p.numel() == columns, name,
                  " and its zero points must have 1 or ", columns, " elements, but have ",
                  p.defined() ? p.numel() : 0);
  const Tensor s = scale.to(at::kFloat).reshape({-1});
  Tensor v = divide ? y / s : y * s;
  if (has(zero)) v = v + zero.to(at::kFloat).reshape({-1});
  put_integers(out, to_integers(v));
}

void add_rms_norm_quant_v2(Tensor x1, Tensor x2, Tensor gamma, Tensor scale1, Tensor scale2,
                           Tensor zero1, Tensor zero2, Tensor beta, int64_t axis, double eps,
                           bool divide, Out y1, Out y2, Out sum, Out norm) {
  require(axis == -1 || axis == x1.dim() - 1, "axis must be -1, but got ", axis);
  const Norm n = norm_of_sum(x1, x2, gamma, beta, eps);
  put_static(n.y, scale1, "scales1", zero1, divide, y1);
  if (has(scale2))
    put_static(n.y, scale2, "scales2", zero2, divide, y2);
  else
    leave(y2.tensor());
  sum = n.sum;
  if (has(norm.tensor())) norm = n.y;
}

void add_rms_norm_quant(Tensor x1, Tensor x2, Tensor gamma, Tensor scale1, Tensor scale2,
                        Tensor zero1, Tensor zero2, int64_t axis, double eps, bool divide, Out y1,
                        Out y2, Out sum) {
  add_rms_norm_quant_v2(x1, x2, gamma, scale1, scale2, zero1, zero2, {}, axis, eps, divide, y1, y2,
                        sum, Out({}, ""));
}

void put_dynamic(const Tensor& y, const Tensor& smooth, const Out& out, const Out& scale) {
  if (has(smooth)) check_shape(smooth, "smoothScale", {y.size(-1)});
  const Quantised made = quantised_rows(has(smooth) ? y * smooth.to(at::kFloat) : y);
  put_integers(out, made.numbers);
  scale = made.scale;
}

// Without a mask the second result is asked for where both smooth scales are given.
void add_rms_norm_dynamic_quant_v2(Tensor x1, Tensor x2, Tensor gamma, Tensor smooth1,
                                   Tensor smooth2, Tensor beta, double eps, Bools mask, Out y1,
                                   Out y2, Out sum, Out scale1, Out scale2) {
  require(mask.empty() || mask.size() == 2, "outputMask must have 2 elements, but has ",
          mask.size());
  if (mask.empty()) mask = {true, has(smooth1) && has(smooth2)};
  const Norm n = norm_of_sum(x1, x2, gamma, beta, eps);
  if (mask[0]) {
    put_dynamic(n.y, smooth1, y1, scale1);
  } else {
    leave(y1.tensor());
    leave(scale1.tensor());
  }
  if (mask[1]) {
    put_dynamic(n.y, smooth2, y2, scale2);
  } else {
    leave(y2.tensor());
    leave(scale2.tensor());
  }
  sum = n.sum;
}

void add_rms_norm_dynamic_quant(Tensor x1, Tensor x2, Tensor gamma, Tensor smooth1, Tensor smooth2,
                                double eps, Out y1, Out y2, Out sum, Out scale1, Out scale2) {
  add_rms_norm_dynamic_quant_v2(x1, x2, gamma, smooth1, smooth2, {}, eps, {}, y1, y2, sum, scale1,
                                scale2);
}

Tensor row(const Tensor& x) { return has(x) ? x.reshape({-1}) : Tensor(); }

void rms_norm_quant_v3(Tensor x, Tensor gamma, Tensor scale, Tensor offset, Tensor beta, double eps,
                       bool divide, bool with_rstd, Out y, Out rstd) {
  const Norm n = norm_of_sum(x, {}, gamma.reshape({-1}), row(beta), eps);
  put_static(n.y, scale, "scale", offset, divide, y);
  if (with_rstd)
    rstd = n.rstd;
  else
    leave(rstd.tensor());
}

void rms_norm_quant(Tensor x, Tensor gamma, Tensor beta, Tensor scale, Tensor offset, double eps,
                    Out y) {
  rms_norm_quant_v3(x, gamma, scale, offset, beta, eps, true, false, y, Out({}, ""));
}

void add_rms_norm_cast(Tensor x1, Tensor x2, Tensor gamma, double eps, Out y1, Out y2, Out rstd,
                       Out sum) {
  const Norm n = norm_of_sum(x1, x2, gamma, {}, eps);
  y1 = n.y;
  y2 = n.y;
  rstd = n.rstd;
  sum = n.sum;
}

void inplace_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, double eps, Out rstd) {
  const Norm n = norm_of_sum(x1, x2, gamma, {}, eps);
  put(x1, n.y, "x1");
  put(x2, n.sum, "x2");
  rstd = n.rstd;
}

}  // namespace

const Composite quantised_norm_composites[] = {
    ENTRY(add_rms_norm_cast),
    ENTRY(add_rms_norm_dynamic_quant),
    ENTRY(add_rms_norm_dynamic_quant_v2),
    ENTRY(add_rms_norm_quant),
    ENTRY(add_rms_norm_quant_v2),
    ENTRY(inplace_add_rms_norm),
    ENTRY(rms_norm_quant),
    ENTRY(rms_norm_quant_v3),
    {},
};

}  // namespace openaclnn::aten
