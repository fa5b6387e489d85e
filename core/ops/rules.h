// SPDX-License-Identifier: Apache-2.0
// Conditions on attributes that a row names in `rules`, one function each.
#pragma once

#include "core/ops/operator.h"

namespace openaclnn::rules {

// With selfIsResult the sign of the result has to tell the branch, which it does for negativeSlope
// >= 0 only.
Status slope_of_result(const Operator& op, const Argument* arguments);

// With isResult the sign of the result has to tell the branch, which it does for alpha >= 0 only.
Status alpha_of_result(const Operator& op, const Argument* arguments);

}  // namespace openaclnn::rules
