// SPDX-License-Identifier: Apache-2.0
// The border between C and C++: C functions never throw, an exception becomes a status, and
// arguments are checked.
//
//   return guarded("aclrtMalloc", ACL_ERROR_RT_MEMORY_ALLOCATION, [&] { … });
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

#include "acl/acl_rt.h"
#include "core/support/status.h"

namespace openaclnn {

// Returns f(): a Status, a code or a pointer. If f throws, fails with `code`, or returns nullptr;
// `call` heads the sentence.
template <class F>
auto guarded(const char* call, int32_t code, F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    (void)fail(code, Reason::out_of_memory, call, "out of memory");
  } catch (const std::exception& error) {
    (void)fail(code, Reason::internal, call, "internal error: %s", error.what());
  }
  if constexpr (std::is_pointer_v<decltype(f())>) {
    return nullptr;
  } else {
    return decltype(f())(code);
  }
}

// The same for f(call) that returns a Status, of a function of the runtime.
template <class F>
aclError guarded_status(const char* call, F&& f) noexcept {
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&] { return f(call).code(); });
}

// ---- checks that many C functions share ----

// `kind` is what a call before should have made.
inline Status not_null(const char* call, const char* argument, const void* pointer,
                       ObjectKind kind = ObjectKind::none) {
  if (pointer != nullptr) return {};
  return fail(ACL_ERROR_INVALID_PARAM, {Reason::null_argument, kind}, call, "%s must not be NULL",
              argument);
}

// Reads an enum as a number: programs may store any value.
template <class Enumeration>
int value_of(const Enumeration& given) {
  int value;
  static_assert(sizeof value == sizeof given);
  std::memcpy(&value, &given, sizeof value);
  return value;
}

// For reserved arguments.
inline Status check_zero(const char* call, const char* argument, uint64_t value) {
  if (value == 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call, "%s must be 0, but got %llu",
              argument, static_cast<unsigned long long>(value));
}

// In milliseconds; -1: no limit.
inline Status check_timeout(const char* call, int32_t timeout) {
  if (timeout >= -1) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
              "timeout must be -1 (no limit) or at least 0 ms, but got %d", timeout);
}

inline Status no_thread(const char* call) {
  return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
              "the system could not start a thread for the stream");
}

}  // namespace openaclnn
