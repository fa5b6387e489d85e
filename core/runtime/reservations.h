// SPDX-License-Identifier: Apache-2.0
// Addresses that the program reserved, and what is mapped there.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace openaclnn {

// The protection of a range that may not be touched.
inline constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Mapping {
  size_t size;
  bool leaving = false;  // a thread is about to close it
};

struct Reservation {
  size_t size;
  int32_t device = 0;  // of what is mapped
  std::map<uintptr_t, Mapping> mappings;
};

using Reservations = std::map<uintptr_t, Reservation>;

// Its mutex is held across fork: nothing that takes another such lock runs under it.
struct Space {
  Space();

  static Space& get();

  // The reservation that the address lies in, or end().
  Reservations::iterator around(uintptr_t address);

  std::mutex mutex;
  Reservations reservations;
};

inline uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace openaclnn
