// SPDX-License-Identifier: Apache-2.0
// Addresses that the program reserved, and the physical memory that it mapped there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace openaclnn {

struct ReservedAddress {
  bool found = false;  // the address lies in a reservation
  size_t mapped = 0;   // bytes from it to where mapped memory ends; 0 when none is mapped there
  int32_t device = 0;  // of that memory
};
ReservedAddress find_reserved(const void* address);

// While it is held, mappings stay as they are.
std::unique_lock<std::mutex> lock_mappings();

}  // namespace openaclnn
