// SPDX-License-Identifier: Apache-2.0
// These formulas only choose and multiply: their results are exact, or rounded once.
#pragma once

#include "core/kernels/conditions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// x > 0 ? x : x * slope
struct leaky_relu {
  double slope;
  explicit leaky_relu(const double* attributes) : slope(attributes[0]) {}
  template <class V>
  V fast(V x) const {
    return x > 0 ? x : x * all_of<V>(slope);
  }
};

// x > 0 ? g : g * slope, where x is the input or the result of leaky_relu: for slope >= 0 both have
// the same sign
struct leaky_relu_backward {
  double slope;
  explicit leaky_relu_backward(const double* attributes) : slope(attributes[0]) {}
  template <class V>
  V fast(V g, V x) const {
    return x > 0 ? g : g * all_of<V>(slope);
  }
};

// |x| <= lambd ? 0 : x. A lambd < 0 counts as 0; a lambd of NaN lets everything pass.
struct hardshrink {
  double bound;
  explicit hardshrink(const double* attributes) : bound(attributes[0] < 0 ? 0 : attributes[0]) {}
  template <class V>
  V fast(V x) const {
    return zero_if(magnitude(x) <= all_of<V>(bound), x);
  }
};

// |x| <= lambd ? 0 : g
struct hardshrink_backward {
  double bound;
  explicit hardshrink_backward(const double* attributes)
      : bound(attributes[0] < 0 ? 0 : attributes[0]) {}
  template <class V>
  V fast(V g, V x) const {
    const V y = loaded(g);
    return zero_if(magnitude(x) <= all_of<V>(bound), y);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
