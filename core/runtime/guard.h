// SPDX-License-Identifier: Apache-2.0
// Where exceptions end: no call of the C interface throws, and what ran out of memory is a status.
//
//   return guarded("aclrtMalloc", ACL_ERROR_RT_MEMORY_ALLOCATION, [&] { … });
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "core/runtime/status.h"

namespace openaclnn {

// The result of f(), a Status, a code or a pointer. When f throws: `code`, or nullptr, and a
// sentence headed by `call`.
template <class F>
auto guarded(const char* call, int32_t code, F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    (void)fail(code, "%s: out of memory", call);
  } catch (const std::exception& error) {
    (void)fail(code, "%s: internal error: %s", call, error.what());
  }
  if constexpr (std::is_pointer_v<decltype(f())>) {
    return nullptr;
  } else {
    return decltype(f())(code);
  }
}

}  // namespace openaclnn
