// SPDX-License-Identifier: Apache-2.0
// The host must not access device memory: two address ranges lie a constant distance apart. The
// program's pointers are in the first, which is inaccessible. The library works in the second,
// where only the pages of live allocations are accessible; all others are guard pages.
//
// Private memory, not two mappings of a file: it survives fork and takes huge pages. An address is
// never reused, so a freed one stays freed. A third range has a bit for each byte of the first
// (core/check/initialised_bytes.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/check/stack.h"

namespace openaclnn::check {

struct MappingIndex;  // of a reservation

inline constexpr int32_t kAnyDevice = -1;

struct Block {
  uintptr_t begin;  // in the program's range
  size_t size;      // as requested
  size_t reserved;  // the runtime rounds it up to whole units, and mostly adds one
  size_t pages;     // bytes that are usable in the library's range
  int32_t device;   // current when it was made; kAnyDevice for reservations and mappings
  const char* call;
  Stack made;
  const char* freed_by;
  Stack freed;
  std::atomic<bool> live;
  MappingIndex* mapping_index = nullptr;  // of a reservation and of the mappings in it
  bool mapped = false;

  bool is_reservation() const { return mapping_index != nullptr && !mapped; }
  uintptr_t end() const { return begin + size; }
  uintptr_t reserved_end() const { return begin + reserved; }
  // The bytes from the address to the end of the requested and the reserved size. In a reservation
  // both continue over adjacent mappings.
  size_t bytes_left(uintptr_t address) const;
  size_t reserved_left(uintptr_t address) const;
};

bool prepare_allocations();  // false when there are no addresses to reserve

bool is_device_address(const void* address);
// Returns the newest allocation that begins at or before the address, which may lie behind its end,
// or nullptr. Takes no lock, so signal handlers may call it.
Block* block_at(const void* address);

// Returns the reservation instead of what is mapped in it.
Block* block_or_reservation_at(const void* address);

// Returns nullptr when the addresses or the entries are used up.
void* reserve(const char* call, size_t size);
bool map(const char* call, const void* address, size_t size);
void* obtain(const char* call, size_t size, size_t reserved);
void retire(Block& allocation,
            const char* call);  // freed by the program; the library may still access it
void give_back(void* address);  // ends the library's access too
void* reachable(const void* address);
uintptr_t address_of_program(const void* reachable);  // the inverse of reachable()

// The bits of the bytes from the address on. The first bit of the first word is for an address that
// is a multiple of 64.
uint64_t* bits_at(uintptr_t address);

// Calls see(Block&) for all live blocks.
template <class F>
void for_each_live(F see);

Block* first_block();
size_t block_count();

template <class F>
void for_each_live(F see) {
  Block* all = first_block();
  for (size_t i = 0, count = block_count(); i < count; ++i) {
    if (all[i].live) see(all[i]);
  }
}

}  // namespace openaclnn::check
