// SPDX-License-Identifier: Apache-2.0
// Whether freed memory is gone, for the tests of what keeps it.
#pragma once

#include <unistd.h>

#include <cstddef>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#ifdef SANITIZED
constexpr bool kAllocatorKeeps = true;
constexpr size_t kLarge = size_t{1} << 20;
#else
constexpr bool kAllocatorKeeps = false;
constexpr size_t kLarge = size_t{64} << 20;  // the allocator always gives it back to the system
#endif

// Whether the system can read the byte.
inline bool is_there(const void* address) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const bool read = write(ends[1], address, 1) == 1;
  CHECK_EQ(close(ends[0]), 0);
  CHECK_EQ(close(ends[1]), 0);
  return read;
}
