// SPDX-License-Identifier: Apache-2.0
// The memory of each device in bytes: what is in use, the limit of OPENACLNN_DEVICE_MEMORY, and
// what fresh memory holds (OPENACLNN_FILL).
#pragma once

#include <cstddef>
#include <cstdint>

#include "acl/acl_rt.h"
#include "core/support/status.h"

namespace openaclnn {

// Takes `bytes` of a device's memory, for an allocation of `asked`; fails beyond its limit.
Status book_memory(const char* call, int32_t device, size_t asked, size_t bytes);
void unbook_memory(int32_t device, size_t bytes);
void raise_peak(int32_t device);  // once a booked allocation exists
// What fresh device memory holds, where OPENACLNN_FILL says it.
void fill_fresh(void* address, size_t bytes);
size_t device_memory();  // OPENACLNN_DEVICE_MEMORY, or that of this machine
size_t free_device_memory(int32_t device);

// Bytes of device memory that are allocated, and were at most.
struct MemoryUse {
  uint64_t current = 0, peak = 0;
};
MemoryUse memory_use(int32_t device);

size_t total_memory();  // of this machine, in bytes
size_t free_memory();

}  // namespace openaclnn
