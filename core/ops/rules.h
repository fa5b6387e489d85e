// SPDX-License-Identifier: Apache-2.0
// Conditions on attributes that a row names in `rules`, one function each.
#pragma once

#include "core/ops/operator.h"

namespace openaclnn::rules {

// With selfIsResult the branch must follow from the sign of the result, which requires
// negativeSlope >= 0.
Status slope_of_result(const Operator& op, const Argument* arguments);

// With isResult the branch must follow from the sign of the result, which requires alpha >= 0.
Status alpha_of_result(const Operator& op, const Argument* arguments);

}  // namespace openaclnn::rules
