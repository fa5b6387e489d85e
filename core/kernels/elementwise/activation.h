// SPDX-License-Identifier: Apache-2.0
// These formulas only choose and multiply: their results are exact, or rounded once.
#pragma once

#include "core/kernels/registers.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// x > 0 ? x : x * slope
template <class M>
struct leaky_relu {
  using T = typename M::T;
  T slope;
  explicit leaky_relu(const double* attributes) : slope(static_cast<T>(attributes[0])) {}
  template <class V>
  V operator()(V x) const {
    return x > 0 ? x : x * all_of<V>(slope);
  }
};

// x > 0 ? g : g * slope, where x is the input or the result of leaky_relu: for slope >= 0 both have
// the same sign
template <class M>
struct leaky_relu_backward {
  using T = typename M::T;
  T slope;
  explicit leaky_relu_backward(const double* attributes) : slope(static_cast<T>(attributes[0])) {}
  template <class V>
  V operator()(V g, V x) const {
    return x > 0 ? g : g * all_of<V>(slope);
  }
};

// A lambd < 0 counts as 0; a lambd of NaN lets everything pass.
template <class T>
inline T shrink_bound(double lambd) {
  return static_cast<T>(lambd < 0 ? 0 : lambd);
}

// |x| <= lambd ? 0 : x
template <class M>
struct hardshrink {
  using T = typename M::T;
  T bound;
  explicit hardshrink(const double* attributes) : bound(shrink_bound<T>(attributes[0])) {}
  template <class V>
  V operator()(V x) const {
    return zero_if(magnitude(x) <= all_of<V>(bound), x);
  }
};

// |x| <= lambd ? 0 : g
template <class M>
struct hardshrink_backward {
  using T = typename M::T;
  T bound;
  explicit hardshrink_backward(const double* attributes) : bound(shrink_bound<T>(attributes[0])) {}
  template <class V>
  V operator()(V g, V x) const {
    return zero_if(magnitude(x) <= all_of<V>(bound), g);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
