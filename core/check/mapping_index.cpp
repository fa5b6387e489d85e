// SPDX-License-Identifier: Apache-2.0
#include "core/check/mapping_index.h"

#include <sys/mman.h>

#include <new>

namespace openaclnn::check {
namespace {

constexpr size_t kGranule = size_t{2} << 20;
constexpr size_t kMostMappings = size_t{1} << 20;

struct Mappings {
  Block* table = nullptr;
  std::atomic<uint32_t> count = 0;
};
Mappings mappings;

// Reserves zeroed pages, backed when touched; nullptr: out of addresses.
void* untouched(size_t size) {
  void* range = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : range;
}

}  // namespace

MappingIndex* MappingIndex::create(uintptr_t begin, size_t size) {
  void* place = untouched(sizeof(MappingIndex) + size / kGranule * sizeof(std::atomic<uint32_t>));
  if (place == nullptr) return nullptr;
  auto* made = static_cast<MappingIndex*>(place);
  made->begin_ = begin;
  made->size_ = size;
  return made;
}

bool MappingIndex::map(const char* call, uintptr_t address, size_t size) {
  if (mappings.table == nullptr) {
    mappings.table = static_cast<Block*>(untouched(kMostMappings * sizeof(Block)));
  }
  const uint32_t index = mappings.count.load(std::memory_order_relaxed);
  if (mappings.table == nullptr || index == kMostMappings) return false;
  new (mappings.table + index) Block{address,      size,    size, size, kAnyDevice, call,
                                     stack_here(), nullptr, {},   true, this,       true};
  mappings.count.store(index + 1, std::memory_order_relaxed);
  for (size_t done = 0; done < size; done += kGranule) {
    of_[(address + done - begin_) / kGranule].store(index + 1, std::memory_order_release);
  }
  return true;
}

Block* MappingIndex::newest(uintptr_t address) const {
  const uint32_t found = of_[(address - begin_) / kGranule].load(std::memory_order_acquire);
  return found == 0 ? nullptr : mappings.table + found - 1;
}

Block* MappingIndex::at(const Block& reservation, uintptr_t address) const {
  if (address - reservation.begin >= reservation.size) return nullptr;  // behind it
  return newest(address);
}

size_t MappingIndex::mapped_behind(uintptr_t address) const {
  uintptr_t end = address;
  while (end - begin_ < size_) {
    const Block* next = newest(end);
    if (next == nullptr || !next->live) break;
    end = next->end();
  }
  return end - address;
}

}  // namespace openaclnn::check
