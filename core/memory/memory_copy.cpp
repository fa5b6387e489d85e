// SPDX-License-Identifier: Apache-2.0
// The C functions that copy and fill one range.
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer copy{dst, src, count, 0, "aclrtMemcpy"};
  Status status = check_copy(copy.call, copy, destMax, kind);
  if (status.ok()) status = run_now(copy);
  return status.code();
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer copy{dst, src, count, 0, "aclrtMemcpyAsync"};
  Status status = check_copy(copy.call, copy, destMax, kind);
  if (status.ok() && kind == ACL_MEMCPY_HOST_TO_HOST) {
    status = fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, "aclrtMemcpyAsync",
                  "ACL_MEMCPY_HOST_TO_HOST cannot run in a stream; use aclrtMemcpy");
  }
  if (status.ok()) status = enqueue(copy.call, copy, stream);
  return status.code();
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer fill{devPtr, nullptr, count, value, "aclrtMemset"};
  Status status = check_fill(fill.call, fill, maxCount);
  if (status.ok()) status = run_now(fill);
  return status.code();
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer fill{devPtr, nullptr, count, value, "aclrtMemsetAsync"};
  Status status = check_fill(fill.call, fill, maxCount);
  if (status.ok()) status = enqueue(fill.call, fill, stream);
  return status.code();
}

// A condition of the oldest chips.
aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
}
