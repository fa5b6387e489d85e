// SPDX-License-Identifier: Apache-2.0
// The headers compile as C++11 without a warning: enumerators bare and qualified, codes as
// constants.
#include <type_traits>

#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_rt.h"
#include "acl/error_codes/rt_error_codes.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/aclnn_util.h"
#include "aclnnop/aclnn_util.h"

#define STATIC_ASSERT(x) static_assert(x, #x)
#include "test_headers.h"

STATIC_ASSERT(aclDataType::ACL_FLOAT == ACL_FLOAT);
STATIC_ASSERT(aclFormat::ACL_FORMAT_ND == ACL_FORMAT_ND);
STATIC_ASSERT(aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE == 1);
STATIC_ASSERT(ACL_SUCCESS == 0 && ACL_ERROR_REPEAT_INITIALIZE == 100002);
STATIC_ASSERT(ACLNN_ERR_PARAM_INVALID == 161002 && OK == 0);

template <class A, class B>
constexpr bool same() {
  return std::is_same<A, B>::value;
}
STATIC_ASSERT((same<decltype(&aclDestroyTensor), aclnnStatus (*)(const aclTensor*)>()));
STATIC_ASSERT((same<decltype(&aclCreateScalar), aclScalar* (*)(void*, aclDataType)>()));
STATIC_ASSERT((same<aclrtCallback, void (*)(void*)>()));

int main() { return 0; }
