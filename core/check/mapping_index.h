// SPDX-License-Identifier: Apache-2.0
// The mappings in a reservation: an array from granule to the newest Block (one for each
// aclrtMapMem) that covers it, so unmapped memory stays recognisable. One thread at a time may
// record; lookups take no lock, because signal handlers make them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/check/allocations.h"

namespace openaclnn::check {

struct MappingIndex {
  // nullptr: out of memory.
  static MappingIndex* create(uintptr_t begin, size_t size);

  bool map(const char* call, uintptr_t address, size_t size);
  // The newest mapping at the address, even if unmapped; nullptr: never mapped.
  Block* at(const Block& reservation, uintptr_t address) const;
  // The bytes from the address to the end of the mapped memory; 0 if none is mapped there.
  size_t mapped_behind(uintptr_t address) const;

 private:
  Block* newest(uintptr_t address) const;

  uintptr_t begin_;
  size_t size_;
  std::atomic<uint32_t> of_[1];  // one per unit: 1 + index of the Block, or 0
};

}  // namespace openaclnn::check
