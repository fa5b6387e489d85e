// SPDX-License-Identifier: Apache-2.0
// The headers compile as C11 without a warning. The second include finds every guard in place.
#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_rt.h"
#include "acl/error_codes/rt_error_codes.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/aclnn_util.h"
#include "aclnnop/aclnn_util.h"

#ifndef ACLNN_META
#error "the guard of the opaque types has a name that clients test"
#endif

#define STATIC_ASSERT(x) _Static_assert(x, #x)
#include "test_headers.h"

int main(void) {
  int wrong = 0;
  wrong += ACL_SUCCESS != 0 || ACL_ERROR_NONE != 0 || OK != 0 || ACLNN_SUCCESS != 0;
  wrong += ACL_ERROR_INVALID_PARAM != 100000 || ACL_ERROR_REPEAT_FINALIZE != 100037;
  wrong += ACL_ERROR_PROF_REPEAT_SUBSCRIBE != 148046 || ACL_ERROR_BAD_ALLOC != 200000;
  wrong += ACL_ERROR_PROFILING_FAILURE != 500005 || ACLNN_ERR_PARAM_NULLPTR != 161001;
  wrong += ACLNN_ERR_INNER_KEY_CONFILICT != 561105 || ACLNN_ERR_RUNTIME_ERROR != 361001;
  wrong += ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID != 561119;
  aclrtStream stream = NULL;
  aclTensor* tensor = NULL;
  return wrong == 0 && stream == NULL && tensor == NULL ? 0 : 1;
}
