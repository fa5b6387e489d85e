// SPDX-License-Identifier: Apache-2.0
// Device memory is host memory that is recorded: address, size, kind and device of each allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/status.h"

namespace openaclnn {

// Managed memory is device memory that the host may use.
enum class MemoryKind { device, host, managed };

// Sizes are rounded up to this unit, mostly plus one unit, as on the device: programs may copy the
// rounded-up size.
inline constexpr size_t kMemoryUnit = 32;

// The largest size of one allocation; more is an argument that cannot be right.
inline constexpr size_t kMostBytes = UINT64_MAX - 64;

// allocate for a C function: checks its arguments first.
Status allocate_for(const char* call, const char* argument, void** address, size_t size,
                    size_t spare, MemoryKind kind);

Status check_config(const char* call, const aclrtMallocConfig& config);

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

// ---- memory that processes share (ipc_memory.cpp) ----

// The allocation that begins at an address and may be replaced by shared pages: its bytes in whole
// pages. Fails for memory that other allocations have parts of.
Status pages_of(const char* call, const void* address, size_t* size);
// From now on its pages are those of a file; freeing it gives the program's own pages back first.
void note_shared(const void* address);
bool has_shared_pages(const void* address);  // of a live allocation that begins there
// Records memory of another process, which only forget_imported ends.
void note_imported(void* address, size_t size);
void forget_imported(const void* address);

// Whether the address lies in host memory that the program registered (host_memory.cpp).
bool is_registered(const void* address);
// Whether host and device both use the address: registered or managed memory.
bool is_shared(const void* address);

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
