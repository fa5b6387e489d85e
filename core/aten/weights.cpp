// SPDX-License-Identifier: Apache-2.0
// The size of a weight in the device's layout for multiplication (aclnnTransMatmulWeight). Here the
// layout does not change.
#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/list.h"

#include "core/runtime/status.h"

using namespace openaclnn;

extern "C" __attribute__((visibility("default"))) aclnnStatus
openaclnn_aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                           uint64_t* weightTensorSize) {
  constexpr const char* call = "aclnnCalculateMatmulWeightSizeV2";
  if (tensorShape == nullptr || weightTensorSize == nullptr)
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, call, "%s must not be NULL",
                tensorShape == nullptr ? "tensorShape" : "weightTensorSize")
        .code();
  const aclIntArray* shape = int_arrays().find(tensorShape);
  if (shape == nullptr)
    return fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::int_array}, call,
                "tensorShape %p was destroyed or never created",
                static_cast<const void*>(tensorShape))
        .code();
  if (dataType != ACL_FLOAT16 && dataType != ACL_BF16 && dataType != ACL_INT8)
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "dataType must be FLOAT16, BF16 or INT8, but got aclDataType %d",
                static_cast<int>(dataType))
        .code();
  uint64_t count = 1;
  for (const int64_t size : *shape) {
    if (size < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count))
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                  "tensorShape must have sizes whose product fits 64 bits, but has %lld",
                  static_cast<long long>(size))
          .code();
  }
  *weightTensorSize = count;
  return ACLNN_SUCCESS;
}
