// SPDX-License-Identifier: Apache-2.0
// Device memory is host memory that is recorded: address, size, kind and device of each allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/runtime/status.h"

namespace openaclnn {

enum class MemoryKind { device, host };

// Sizes are rounded up to this unit, mostly plus one unit, as on the device: programs may copy the
// rounded-up size.
inline constexpr size_t kMemoryUnit = 32;

// Allocates memory with undefined contents, aligned to 512 bytes (from 2 MiB on to 2 MiB, with
// advice to use huge pages). The size is rounded up to units of 32 bytes, and `spare` bytes follow.
// `call` heads the sentence of a failure.
Status allocate(const char* call, size_t size, size_t spare, MemoryKind kind, void** address);
Status release(const char* call, void* address,
               MemoryKind kind);  // fails unless it was allocated as `kind`

// The allocation that an address lies in.
struct Allocation {
  size_t behind = 0;  // bytes from the address to its end; 0: in no allocation
  size_t asked = 0;   // bytes to the end of the requested size
  MemoryKind kind = MemoryKind::host;
  int32_t device = 0;
  bool unmapped = false;  // in reserved addresses without memory
};
Allocation find_allocation(const void* address);

size_t total_memory();  // of this machine, in bytes
size_t free_memory();

// The bytes from `address` to the end of its allocation; 0 if it lies in none.
size_t bytes_behind(const void* address);

// ---- reserved addresses, and the physical memory mapped there ----

struct ReservedAddress {
  bool found = false;  // the address lies in a reservation
  size_t mapped = 0;   // bytes from it to the end of mapped memory; 0: not mapped
  int32_t device = 0;  // of that memory
};
ReservedAddress find_reserved(const void* address);

// Mappings do not change while it is held.
std::unique_lock<std::mutex> lock_mappings();

}  // namespace openaclnn
