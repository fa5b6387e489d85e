// SPDX-License-Identifier: Apache-2.0
#include "core/check/allocations.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "core/check/mapping_index.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"

namespace openaclnn::check {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostAddresses = size_t{16} << 40;
constexpr size_t kMostAllocations = size_t{1} << 22;
constexpr size_t kGuard = 64 << 10;  // between two allocations

struct Arena {
  std::mutex mutex;
  uintptr_t begin = 0;     // where the program's range begins
  uintptr_t distance = 0;  // from there to the library's range
  uintptr_t bits = 0;      // where the range of bits begins
  size_t size = 0;
  size_t used = 0;
  size_t page = 4096;
  Block* table = nullptr;  // by address
  std::atomic<size_t> count = 0;
};
Arena arena;

uintptr_t unused_addresses(size_t size) {
  void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? 0 : reinterpret_cast<uintptr_t>(range);
}

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

void* library_address(uintptr_t address) {
  return reinterpret_cast<void*>(address + arena.distance);
}

// Its bits, in whole pages: those at the ends may be shared with its neighbours.
bool make_bits(uintptr_t begin, size_t pages) {
  const auto low = reinterpret_cast<uintptr_t>(bits_at(begin)) / arena.page * arena.page;
  const size_t high = round_up(reinterpret_cast<uintptr_t>(bits_at(begin + pages)), arena.page);
  return mprotect(reinterpret_cast<void*>(low), high - low, PROT_READ | PROT_WRITE) == 0;
}

void drop_bits(uintptr_t begin, size_t pages) {
  const size_t low = round_up(reinterpret_cast<uintptr_t>(bits_at(begin)), arena.page);
  const auto high = reinterpret_cast<uintptr_t>(bits_at(begin + pages)) / arena.page * arena.page;
  if (low < high) madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED);
}

}  // namespace

bool prepare_allocations() {
  arena.page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* table = mmap(nullptr, kMostAllocations * sizeof(Block), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return false;
  arena.table = static_cast<Block*>(table);
  for (size_t size = kMostAddresses; size >= (size_t{1} << 30); size /= 2) {
    const uintptr_t all = unused_addresses(2 * size + size / 8);
    if (all == 0) continue;
    arena.begin = round_up(all, kHugePage);
    arena.size = size - kHugePage;
    arena.distance = size;
    arena.bits = all + 2 * size;
    hold_across_fork(arena.mutex);
    return true;
  }
  return false;
}

uint64_t* bits_at(uintptr_t address) {
  return reinterpret_cast<uint64_t*>(arena.bits + (address - arena.begin) / 64 * sizeof(uint64_t));
}

bool is_device_address(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - arena.begin < arena.size;
}

Block* first_block() { return arena.table; }
size_t block_count() { return arena.count.load(std::memory_order_acquire); }

Block* block_at(const void* address) {
  Block* own = block_or_reservation_at(address);
  if (own == nullptr || own->mapping_index == nullptr) return own;
  Block* mapping = own->mapping_index->at(*own, reinterpret_cast<uintptr_t>(address));
  return mapping != nullptr ? mapping : own;
}

Block* block_or_reservation_at(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  size_t low = 0, high = block_count();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (arena.table[middle].begin <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? nullptr : arena.table + low - 1;
}

size_t Block::bytes_left(uintptr_t address) const {
  if (mapping_index != nullptr) return mapping_index->mapped_behind(address);
  return address < end() ? end() - address : 0;
}

size_t Block::reserved_left(uintptr_t address) const {
  if (mapping_index != nullptr) return mapping_index->mapped_behind(address);
  return address < reserved_end() ? reserved_end() - address : 0;
}

void* reserve(const char* call, size_t size) {
  const Stack made = stack_here();
  std::lock_guard lock(arena.mutex);
  const size_t count = arena.count.load(std::memory_order_relaxed);
  const size_t begin = round_up(arena.used, kHugePage);
  if (count == kMostAllocations || begin > arena.size || size > arena.size - begin ||
      arena.size - begin - size < kGuard) {
    return nullptr;
  }
  MappingIndex* mapping_index = MappingIndex::create(arena.begin + begin, size);
  if (mapping_index == nullptr) return nullptr;
  auto& own = *new (arena.table + count) Block{
      arena.begin + begin, size, size, 0, kAnyDevice, call, made, nullptr, {}, true, mapping_index};
  arena.used = begin + size + kGuard;
  arena.count.store(count + 1, std::memory_order_release);
  return reinterpret_cast<void*>(own.begin);
}

bool map(const char* call, const void* address, size_t size) {
  return block_or_reservation_at(address)->mapping_index->map(
      call, reinterpret_cast<uintptr_t>(address), size);
}

void* obtain(const char* call, size_t size, size_t reserved) {
  const bool huge = size >= kHugePage;
  const Stack made = stack_here();
  const int32_t device = current_device();
  std::lock_guard lock(arena.mutex);
  const size_t count = arena.count.load(std::memory_order_relaxed);
  const size_t begin = round_up(arena.used, huge ? kHugePage : arena.page);
  const size_t pages = round_up(reserved, arena.page);
  if (count == kMostAllocations || begin > arena.size || pages + kGuard > arena.size - begin) {
    return nullptr;
  }
  void* usable = library_address(arena.begin + begin);
  if (!make_bits(arena.begin + begin, pages)) return nullptr;
  if (mprotect(usable, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  if (huge) madvise(usable, pages, MADV_HUGEPAGE);  // a hint
  auto& own = *new (arena.table + count) Block{
      arena.begin + begin, size, reserved, pages, device, call, made, nullptr, {}, true};
  arena.used = begin + pages + kGuard;
  arena.count.store(count + 1, std::memory_order_release);
  return reinterpret_cast<void*>(own.begin);
}

void retire(Block& allocation, const char* call) {
  allocation.freed_by = call;
  allocation.freed = stack_here();
  allocation.live = false;
}

void give_back(void* address) {
  Block* own = block_at(address);
  void* usable = library_address(own->begin);
  madvise(usable, own->pages, MADV_DONTNEED);
  mprotect(usable, own->pages, PROT_NONE);
  drop_bits(own->begin, own->pages);
}

void* reachable(const void* address) {
  if (!is_device_address(address)) return const_cast<void*>(address);
  return library_address(reinterpret_cast<uintptr_t>(address));
}

uintptr_t address_of_program(const void* reachable) {
  const auto own = reinterpret_cast<uintptr_t>(reachable);
  const bool of_library = is_device_address(reinterpret_cast<void*>(own - arena.distance));
  return of_library ? own - arena.distance : own;
}

}  // namespace openaclnn::check
