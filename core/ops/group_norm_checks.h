// SPDX-License-Identifier: Apache-2.0
// The arguments of GroupNormSwish and GroupNormSwishGrad, and the checks of phase 1 in the order of
// the contract. Each leaves one sentence.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/group_norm/call.h"
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"
#include "core/ops/shapes.h"

namespace openaclnn {

// The arguments of both operators by name; those that an operator lacks are NULL.
struct GroupNorm {
  const Operator& op;
  const Argument* arguments;
  const Tensor *x, *dy, *gamma, *beta, *mean, *rstd, *out, *dgamma, *dbeta;
  int64_t samples = 0, channels = 0, groups = 0;

  GroupNorm(const Operator& row, const Argument* given)
      : op(row),
        arguments(given),
        x(tensor("x")),
        dy(tensor("dy")),
        gamma(tensor("gamma")),
        beta(tensor("beta")),
        mean(tensor(backward() ? "mean" : "meanOut")),
        rstd(tensor(backward() ? "rstd" : "rstdOut")),
        out(tensor(backward() ? "dxOut" : "yOut")),
        dgamma(tensor("dgammaOut")),
        dbeta(tensor("dbetaOut")) {}

  bool backward() const { return position("dy") >= 0; }
  int position(const char* name) const {
    for (int i = 0; i < op.parameter_count; ++i) {
      if (std::strcmp(op.parameters[i].name, name) == 0) return i;
    }
    return -1;
  }
  const Argument& argument(const char* name) const { return arguments[op.find(name)]; }
  const Tensor* tensor(const char* name) const {
    const int i = position(name);
    return i < 0 || !is_wanted(op, arguments, i) ? nullptr : arguments[i].tensor;
  }
};

Status check_inputs(GroupNorm& g, Sizes& sizes);  // sets samples and channels
Status check_attributes(GroupNorm& g);            // sets groups
Status check_views(const GroupNorm& g);

}  // namespace openaclnn
