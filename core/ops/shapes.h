// SPDX-License-Identifier: Apache-2.0
// Shapes with named sizes, as rows give them: `x[N,C,*], gamma[C], meanOut[N,numGroups]`. Each
// check leaves one sentence.
#pragma once

#include <cstdint>

#include "core/ops/operator.h"

namespace openaclnn {

// The sizes of one call. The inputs give them, in the order of the row. Dimensions that attributes
// give are checked after the family has checked the attributes.
class Sizes {
 public:
  Sizes(const Operator& op, const Argument* arguments) : op_(op), arguments_(arguments) {}

  Status check_ranks() const;  // of inputs
  Status read_inputs();        // after check_ranks: gives the sizes their values
  Status check_outputs() const;
  // Checks inputs and outputs with dimensions that attributes give.
  Status check_given() const;

  // Returns the shape that a tensor must have, or an output gets.
  Dims shape(int parameter) const;

 private:
  const Tensor* tensor(int parameter) const;         // nullptr: missing or unused
  const Tensor* binding_input(int parameter) const;  // nullptr: its shape gives no sizes
  Status check(int parameter) const;
  Status check_count(int parameter) const;
  int64_t value(const Extent& extent) const;

  const Operator& op_;
  const Argument* arguments_;
  int64_t size_[kMaxSizes];
  int giver_[kMaxSizes];        // the input that gave size_[i]
  uint32_t known_ = 0;          // bit i: size_[i] is set
  const Dims* rest_ = nullptr;  // a shape whose dimensions from rest_from_ on are those of `*`
  int rest_from_ = 0;
};

}  // namespace openaclnn
