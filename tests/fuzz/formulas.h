// SPDX-License-Identifier: Apache-2.0
// The operators once more, as plain loops in long double, written independently of the kernels.
// They hold for all attributes and inputs, including NaN and infinity.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstring>

#include "acl/acl.h"

namespace fuzz {

// x[i]: the inputs of one element, in the order of the row; a[i]: its scalars and numbers likewise.
using Formula = long double (*)(const long double* x, const double* a);

inline long double shrink(long double x, double lambd, long double kept) {
  const double bound = lambd < 0 ? 0 : lambd;
  return std::fabs(x) <= bound ? 0 : kept;
}

// function(x rate), with the product that double holds: exact for floats. The result of a number is
// neither 0 nor infinite.
template <class Function>
long double exponential(const Function& function, double x, double rate) {
  const long double product = x * rate;
  if (!std::isfinite(product)) return function(product);
  const long double end = 0.98L * std::log(LDBL_MAX);
  return function(std::fabs(product) > end ? std::copysign(end, product) : product);
}

inline long double elu(long double x, const double* a) {
  const long double factor = static_cast<long double>(a[1]) * a[0];
  if (x > 0) return a[1] * x;
  return factor *
         exponential([](long double t) { return std::expm1(t); }, static_cast<double>(x), a[2]);
}

inline long double elu_backward(long double g, long double v, const double* a) {
  const long double factor = static_cast<long double>(a[1]) * a[0];
  if (v > 0) return g * a[1];
  if (a[3] != 0) return g * a[2] * (v + factor);
  return g * (factor * a[2]) *
         exponential([](long double t) { return std::exp(t); }, static_cast<double>(v), a[2]);
}

// 1 - eps has more digits than a number holds; where x >= 1/2, 1 - x has not.
inline bool above(long double x, double eps) { return x >= 0.5L ? 1 - x < eps : x > 1 - eps; }

inline long double log_odds(long double z) {
  if (std::fabs(z - 0.5L) < 0.25L) return 2 * std::atanh(2 * z - 1);
  return std::log(z) - std::log1p(-z);
}

inline long double logit(long double x, double eps) {
  if (eps < 0 || std::isnan(x)) return log_odds(x);
  if (eps <= 0.5 && above(x, eps)) return 0 - log_odds(eps);  // +0 of 1/2
  return eps > 0.5 || std::isnan(eps) || x < eps ? log_odds(eps) : log_odds(x);
}

// The first rule that applies.
inline long double logit_grad(long double x, long double dy, double eps) {
  if (std::isnan(eps)) return eps;
  if (eps > 1) return std::isinf(eps) ? 0 : NAN;
  if (eps == 1) return std::copysign(INFINITY, dy);
  if (std::isnan(x)) return x;
  if (eps >= 0 && (x < eps || above(x, eps))) return 0;
  if (eps < 0 && (x < 0 || x > 1)) return NAN;
  return dy / (x * (1 - x));
}

// Each formula with the largest error that FLOAT results may have, in ULP, and with what is added
// to that error however small the result is.
inline const struct Entry {
  const char* kernel;
  double ulp;
  Formula formula;
  double lost = 0;
} formulas[] = {
    {"leaky_relu", 0.5,
     [](const long double* x, const double* a) { return x[0] > 0 ? x[0] : x[0] * a[0]; }},
    {"leaky_relu_backward", 0.5,
     [](const long double* x, const double* a) { return x[1] > 0 ? x[0] : x[0] * a[0]; }},
    {"elu", 1, [](const long double* x, const double* a) { return elu(x[0], a); }},
    {"elu_backward", 1,
     [](const long double* x, const double* a) { return elu_backward(x[0], x[1], a); }, 0x1p-150},
    {"hardshrink", 0,
     [](const long double* x, const double* a) { return shrink(x[0], a[0], x[0]); }},
    {"hardshrink_backward", 0,
     [](const long double* x, const double* a) { return shrink(x[1], a[0], x[0]); }},
    {"logit", 1, [](const long double* x, const double* a) { return logit(x[0], a[0]); }},
    {"logit_grad", 0.51,
     [](const long double* x, const double* a) { return logit_grad(x[0], x[1], a[0]); }, 0x1p-150},
};

inline const Entry* formula_of(const char* kernel) {
  for (const Entry& entry : formulas) {
    if (std::strcmp(entry.kernel, kernel) == 0) return &entry;
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

// Digits, and the exponents e of normal numbers 1.f * 2^e.
struct Format {
  int digits, least, greatest;
};
inline Format format_of(aclDataType dtype) {
  return dtype == ACL_DOUBLE    ? Format{53, -1022, 1023}
         : dtype == ACL_FLOAT16 ? Format{11, -14, 15}
         : dtype == ACL_BF16    ? Format{8, -126, 127}
                                : Format{24, -126, 127};
}

// The unit of the last place that a number has in a format; subnormals have that of the least
// normal number.
inline long double last_place(long double number, Format format) {
  int exponent = 0;
  (void)std::frexp(number, &exponent);
  if (number == 0 || exponent - 1 < format.least) exponent = format.least + 1;
  if (exponent - 1 > format.greatest) exponent = format.greatest + 1;
  return std::ldexp(1.0L, exponent - format.digits);
}

// The error in units of the last place of `want`; an infinite result stands for the power of 2
// beyond the greatest number. Infinite where only one is NaN or `want` alone is an infinity, or
// where a zero has the wrong sign.
inline long double ulp_error(double got, long double want, Format format) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(want)) return got == want ? 0 : INFINITY;
  if (got == 0 && std::signbit(got) != std::signbit(want)) return INFINITY;
  const long double unit = last_place(want, format);
  const long double top = std::ldexp(1.0L, format.greatest + 1);
  long double result = got;
  if (std::isinf(got)) {
    result = std::copysign(top, got);
    want = std::fmin(std::fmax(want, -top), top);
  }
  return std::fabs(result - want) / unit;
}

// The most that a result may be off whose error is judged by the sum of its absolute terms: a share
// of that sum, the rounding to 16 bits, and the least subnormal number.
inline long double allowed_of_terms(long double bound, long double terms, long double want,
                                    aclDataType dtype) {
  const Format format = format_of(dtype);
  const long double step = format.digits < 24 ? std::ldexp(1.0L, -format.digits) : 0;
  return bound * terms + step * std::fabs(want) +
         std::ldexp(1.0L, format.least - format.digits + 1);
}

// Whether a result, computed in double or else in float, is what the formula says.
inline bool is_right(double got, long double want, aclDataType dtype, bool wide,
                     const Entry& formula) {
  const aclDataType computed = wide ? ACL_DOUBLE : ACL_FLOAT;
  const bool narrowed = format_of(dtype).digits < format_of(computed).digits;
  constexpr double kRounded = 0.5 + 0x1p-10;  // but for ties of the wider type
  const Format format = format_of(narrowed ? dtype : computed);
  const long double error = ulp_error(got, want, format);
  if (narrowed || (wide && formula.ulp == 0.5)) return error <= kRounded;
  if (wide) return error <= (formula.ulp > 0.5 ? 4 : formula.ulp);
  return error <= formula.ulp + formula.lost / last_place(want, format);
}

// Whether digits are promised for a computation in double with this input or attribute.
inline bool has_promise(long double x) {
  return x == 0 || !std::isfinite(x) || (std::fabs(x) >= 0x1p-100L && std::fabs(x) <= 0x1p100L);
}

}  // namespace fuzz
