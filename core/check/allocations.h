// SPDX-License-Identifier: Apache-2.0
// Device memory that the host cannot touch. Two ranges of addresses lie a constant distance apart:
// what the program gets points into the first, which nobody may read or write; the library works
// in the second, where the pages of live allocations are usable and all others guard them.
//
// Not two mappings of one file: private memory survives fork as any other does, and takes huge
// pages. Addresses are given once, so that one that was freed stays freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/check/stack.h"

namespace openaclnn::check {

struct Granules;  // of a reservation: what is mapped where

struct Block {
  uintptr_t begin;  // as the program knows it
  size_t size;      // as it was asked for
  size_t pages;     // bytes that are usable in the library's range
  const char* call;
  Stack made;
  const char* freed_by;
  Stack freed;
  std::atomic<bool> live;
  Granules* granules = nullptr;  // of a reservation, and of what is mapped in one
  bool mapped = false;

  bool is_reservation() const { return granules != nullptr && !mapped; }
  uintptr_t end() const { return begin + size; }
  // What a program may rely on, since the device reserves whole units of 32 bytes.
  uintptr_t reserved_end() const { return begin + (size + 31) / 32 * 32; }
};

bool prepare_allocations();  // false when there are no addresses to reserve

bool is_device_address(const void* address);
// The newest allocation that begins at or before the address, which may lie behind its end; nullptr
// when there is none. Takes no lock: signal handlers may ask.
Block* block_at(const void* address);

// The reservation instead of what is mapped in it.
Block* block_or_reservation_at(const void* address);
// From an address to the end of what a program may use there, over mappings that touch each other.
size_t usable_behind(const Block& block, uintptr_t address);

// nullptr when no more can be had.
void* reserve(const char* call, size_t size);
bool map(const char* call, const void* address, size_t size);
void* obtain(const char* call, size_t size, size_t reserved);
void retire(Block& allocation, const char* call);  // it is freed; the library may still use it
void give_back(void* address);                     // nor may the library
void* reachable(const void* address);

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
