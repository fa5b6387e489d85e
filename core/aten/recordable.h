// SPDX-License-Identifier: Apache-2.0
// Which rows a graph can record.
#pragma once

#include <cstring>

#include "acl/error_codes/rt_error_codes.h"
#include "core/aten/row.h"
#include "core/support/status.h"

namespace openaclnn::aten {

// A seed and an offset that are passed by value would give the same values at each replay.
inline Status check_recordable(const Row& row) {
  int found = 0;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& parameter = row.parameters[i];
    const bool drawn =
        std::strcmp(parameter.name, "seed") == 0 || std::strcmp(parameter.name, "offset") == 0;
    found += parameter.kind == Kind::integer && drawn;
  }
  if (found < 2) return {};
  return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, Reason::wrong_value, row.name,
              "every replay would draw the same numbers; call the function whose seed and offset "
              "are tensors, such as aclnnInplaceNormalTensor");
}

}  // namespace openaclnn::aten
