// SPDX-License-Identifier: Apache-2.0
// The operators once more, as plain loops in double: another hand than the kernels'.
#pragma once

#include <cmath>
#include <cstring>

#include "acl/acl.h"

namespace fuzz {

// x[i]: the inputs of one element, in the order of the row; a[i]: its scalars and numbers likewise.
using Formula = double (*)(const double* x, const double* a);

inline double shrink(double x, double lambd, double kept) {
  const double bound = lambd < 0 ? 0 : lambd;
  return std::fabs(x) <= bound ? 0 : kept;
}

inline const struct {
  const char* kernel;
  Formula formula;
} formulas[] = {
    {"leaky_relu", [](const double* x, const double* a) { return x[0] > 0 ? x[0] : x[0] * a[0]; }},
    {"leaky_relu_backward",
     [](const double* x, const double* a) { return x[1] > 0 ? x[0] : x[0] * a[0]; }},
    {"elu",
     [](const double* x, const double* a) {
       return x[0] > 0 ? a[1] * x[0] : a[1] * a[0] * std::expm1(a[2] * x[0]);
     }},
    {"elu_backward",
     [](const double* x, const double* a) {
       if (x[1] > 0) return x[0] * a[1];
       if (a[3] != 0) return x[0] * a[2] * (x[1] + a[0] * a[1]);
       return x[0] * a[2] * a[0] * a[1] * std::exp(x[1] * a[2]);
     }},
    {"hardshrink", [](const double* x, const double* a) { return shrink(x[0], a[0], x[0]); }},
    {"hardshrink_backward",
     [](const double* x, const double* a) { return shrink(x[1], a[0], x[0]); }},
    {"logit",
     [](const double* x, const double* a) {
       const double z = a[0] < 0 ? x[0] : std::fmax(std::fmin(x[0], 1 - a[0]), a[0]);
       return std::isnan(x[0]) ? x[0] : std::log(z) - std::log1p(-z);
     }},
    {"logit_grad",
     [](const double* x, const double* a) {
       const double low = a[0] < 0 ? 0 : a[0], high = a[0] < 0 ? 1 : 1 - a[0];
       if (x[0] < low || x[0] > high) return a[0] < 0 ? double{NAN} : 0.0;
       return x[1] / (x[0] * (1 - x[0]));
     }},
};

inline Formula formula_of(const char* kernel) {
  for (const auto& entry : formulas) {
    if (std::strcmp(entry.kernel, kernel) == 0) return entry.formula;
  }
  return nullptr;
}

// ---- the dtypes ----

inline double value_at(const void* address, aclDataType dtype) {
  uint16_t bits;
  std::memcpy(&bits, address, sizeof bits);
  switch (dtype) {
    case ACL_DOUBLE: {
      double value;
      std::memcpy(&value, address, sizeof value);
      return value;
    }
    case ACL_BF16: {
      const uint32_t wide = uint32_t{bits} << 16;
      float value;
      std::memcpy(&value, &wide, sizeof value);
      return value;
    }
    case ACL_FLOAT16: {
      const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
      const double size = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(mantissa, -24)
                                          : std::ldexp(1024 + mantissa, exponent - 25);
      return bits >> 15 != 0 ? -size : size;
    }
    default: {
      float value;
      std::memcpy(&value, address, sizeof value);
      return value;
    }
  }
}

// Whether a result, computed in double or else in float, is what the formula says: up to a few
// units (logarithms and exponentials cost some in the formulas above) and to the end of the range.
inline bool is_close(double got, double want, aclDataType dtype, bool computed_wide) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  const bool half = dtype == ACL_FLOAT16, brain = dtype == ACL_BF16;
  const bool wide = dtype == ACL_DOUBLE && computed_wide;
  const double largest = half ? 65504 : wide ? 1.7976931348623157e308 : 3.3e38;
  const double unit = half ? 0x1p-10 : brain ? 0x1p-7 : wide ? 0x1p-50 : 0x1p-21;
  const double smallest = half ? 0x1p-23 : wide ? 1e-300 : brain ? 0x1p-130 : 0x1p-140;
  if (std::fabs(want) >= largest * (1 - unit)) {
    return std::signbit(got) == std::signbit(want) && std::fabs(got) >= largest * (1 - 4 * unit);
  }
  return std::fabs(got - want) <= std::fabs(want) * unit + smallest;
}

}  // namespace fuzz
