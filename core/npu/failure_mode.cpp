// SPDX-License-Identifier: Apache-2.0
// torch_npu asks for streams that stop at a failure. Here the failed call raises, and later ones
// run, so that one test of a process does not fail all others.
#include "acl/acl_rt.h"
#include "core/runtime/status.h"

using namespace openaclnn;

extern "C" {

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  constexpr const char* call = "aclrtSetStreamFailureMode";
  aclrtStreamStatus status;
  if (const aclError code = aclrtStreamQuery(stream, &status); code != ACL_SUCCESS) return code;
  if (mode > ACL_STOP_ON_FAILURE) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "mode must be 0 (continue) or 1 (stop), but is %llu",
                static_cast<unsigned long long>(mode))
        .code();
  }
  return ACL_SUCCESS;
}
}
