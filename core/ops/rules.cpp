// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rules.h"

#include "aclnn/aclnn_base.h"

namespace openaclnn::rules {

Status slope_of_result(const Operator& op, const Argument* arguments) {
  double slope = 0;
  (void)scalar_value(*arguments[op.find("negativeSlope")].scalar,
                     &slope);  // check_dtypes saw that it has a value
  if (arguments[op.find("selfIsResult")].flag && slope < 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, op.name,
                "negativeSlope must be at least 0 when selfIsResult is true, but got %g", slope);
  }
  return {};
}

Status alpha_of_result(const Operator& op, const Argument* arguments) {
  double alpha = 0;
  (void)scalar_value(*arguments[op.find("alpha")].scalar, &alpha);
  if (arguments[op.find("isResult")].flag && alpha < 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, op.name,
                "alpha must be at least 0 when isResult is true, but got %g", alpha);
  }
  return {};
}

}  // namespace openaclnn::rules
