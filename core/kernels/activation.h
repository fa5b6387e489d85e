// SPDX-License-Identifier: Apache-2.0
// Element-wise formulas. A formula is a struct whose fields are the attributes of its row, in the order of the row and
// all of type T, and whose call operator is the formula itself. T is float or double. No branches, no libm.
#pragma once

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline float magnitude(float x) { return __builtin_fabsf(x); }
inline double magnitude(double x) { return __builtin_fabs(x); }

// x > 0 ? x : x * slope
template <class T>
struct leaky_relu {
  T slope;
  T operator()(T x) const { return x > 0 ? x : x * slope; }
};

// x > 0 ? g : g * slope, where x is the input or the result of leaky_relu: for slope >= 0 both have the same sign
template <class T>
struct leaky_relu_backward {
  T slope, self_is_result;
  T operator()(T g, T x) const { return x > 0 ? g : g * slope; }
};

// |x| <= lambd ? 0 : x, where lambd < 0 counts as 0 and NaN lets everything pass
template <class T>
struct hardshrink {
  T lambd;
  T operator()(T x) const { return magnitude(x) <= (lambd < 0 ? 0 : lambd) ? 0 : x; }
};

// |x| <= lambd ? 0 : g
template <class T>
struct hardshrink_backward {
  T lambd;
  T operator()(T g, T x) const { return magnitude(x) <= (lambd < 0 ? 0 : lambd) ? 0 : g; }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
