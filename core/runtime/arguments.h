// SPDX-License-Identifier: Apache-2.0
// Checks that many calls of the runtime share.
#pragma once

#include "acl/acl_rt.h"
#include "core/runtime/deadline.h"
#include "core/runtime/status.h"

namespace openaclnn {

inline Status not_null(const char* call, const char* argument, const void* pointer) {
  if (pointer != nullptr) return {};
  return fail(ACL_ERROR_INVALID_PARAM, "%s: %s must not be NULL", call, argument);
}

// Checks arguments that are reserved for the future.
inline Status check_zero(const char* call, const char* argument, uint64_t value) {
  if (value == 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s must be 0, but got %llu", call, argument,
              static_cast<unsigned long long>(value));
}

// Milliseconds that the host waits.
inline Status check_timeout(const char* call, int32_t timeout) {
  if (timeout >= -1) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: timeout must be -1, for ever, or milliseconds, but got %d", call, timeout);
}

inline Status no_thread(const char* call) {
  return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
              "%s: a thread must be available for the stream, but the system gives none", call);
}

}  // namespace openaclnn
