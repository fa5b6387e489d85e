// SPDX-License-Identifier: Apache-2.0
// These formulas only choose and multiply: their results are exact, or rounded once.
#pragma once

#include "core/kernels/registers.h"

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

// A lambd < 0 counts as 0; a lambd of NaN lets everything pass.
struct shrink_bound {
  double bound;
  explicit shrink_bound(double lambd) : bound(lambd < 0 ? 0 : lambd) {}
  // |x| <= bound ? 0 : y
  template <class V>
  V shrunk(V x, V y) const {
    return zero_if(magnitude(x) <= all_of<V>(bound), y);
  }
};

struct hardshrink : shrink_bound {
  explicit hardshrink(const double* attributes) : shrink_bound(attributes[0]) {}
  template <class V>
  V fast(V x) const {
    return shrunk(x, x);
  }
};

struct hardshrink_backward : shrink_bound {
  explicit hardshrink_backward(const double* attributes) : shrink_bound(attributes[0]) {}
  template <class V>
  V fast(V g, V x) const {
    return shrunk(x, g);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
