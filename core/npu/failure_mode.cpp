// SPDX-License-Identifier: Apache-2.0
// torch_npu asks for streams that stop at a failure. Here the failed call raises, and later ones
// run, so that one test of a process does not fail all others.
#include "acl/acl_rt.h"

extern "C" {

decltype(aclrtSetStreamFailureMode) openaclnn_aclrtSetStreamFailureMode;

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  const uint64_t goes_on = mode == ACL_STOP_ON_FAILURE ? ACL_CONTINUE_ON_FAILURE : mode;
  return openaclnn_aclrtSetStreamFailureMode(stream, goes_on);
}
}
