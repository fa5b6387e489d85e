// SPDX-License-Identifier: Apache-2.0
// Device memory that the host cannot touch. Two ranges of addresses lie a constant distance apart:
// what the program gets points into the first, which nobody may read or write; the library works
// in the second, where the pages of live allocations are usable and all others guard them.
//
// Not two mappings of one file: private memory survives fork as any other does, and takes huge
// pages. Addresses are given once, so that one that was freed stays freed. A third range has a bit
// for every byte of the first, for core/check/written.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/check/stack.h"

namespace openaclnn::check {

struct Granules;  // of a reservation: what is mapped where

inline constexpr int32_t kAnyDevice = -1;

struct Block {
  uintptr_t begin;  // as the program knows it
  size_t size;      // as it was asked for
  size_t reserved;  // what the runtime made of that: whole units, and mostly one more
  size_t pages;     // bytes that are usable in the library's range
  int32_t device;   // current when it was made; kAnyDevice for reservations and mappings
  const char* call;
  Stack made;
  const char* freed_by;
  Stack freed;
  std::atomic<bool> live;
  Granules* granules = nullptr;  // of a reservation, and of what is mapped in one
  bool mapped = false;

  bool is_reservation() const { return granules != nullptr && !mapped; }
  uintptr_t end() const { return begin + size; }
  uintptr_t reserved_end() const { return begin + reserved; }
  // The bytes from the address to the end of what was asked for, and of what is reserved.
  // In a reservation both go over mappings that touch each other.
  size_t bytes_left(uintptr_t address) const;
  size_t reserved_left(uintptr_t address) const;
};

bool prepare_allocations();  // false when there are no addresses to reserve

bool is_device_address(const void* address);
// The newest allocation that begins at or before the address, which may lie behind its end; nullptr
// when there is none. Takes no lock: signal handlers may ask.
Block* block_at(const void* address);

// The reservation instead of what is mapped in it.
Block* block_or_reservation_at(const void* address);

// Returns nullptr when the addresses or the entries are used up.
void* reserve(const char* call, size_t size);
bool map(const char* call, const void* address, size_t size);
void* obtain(const char* call, size_t size, size_t reserved);
void retire(Block& allocation, const char* call);  // it is freed; the library may still use it
void give_back(void* address);                     // nor may the library
void* reachable(const void* address);

// Where the bits of the bytes from the address on begin; the first bit of the first word is that of
// an address of device memory that divides by 64.
uint64_t* bits_at(uintptr_t address);

// Calls see(Block&) for all that are live.
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
