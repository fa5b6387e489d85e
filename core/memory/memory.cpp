// SPDX-License-Identifier: Apache-2.0
// Every allocation is recorded with its address, so that wrong frees and copies past an end are
// refused instead of crashing.
#include "core/memory/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/deferred.h"
#include "core/runtime/device.h"
#include "core/runtime/device_memory.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

// Defined if the process has the address sanitizer.
extern "C" [[gnu::weak]] void __asan_poison_memory_region(const volatile void*, size_t);

namespace openaclnn {
namespace {

// 64 bytes are promised, but programs rely on the device's 512: ggml checks for 128, allocators
// that divide blocks for 512.
constexpr size_t kAlignment = 512;
constexpr size_t kHugePage = size_t{2} << 20;
// From this size on an allocation has its pages alone, so that processes can share it.
constexpr size_t kOwnPages = size_t{64} << 10;
constexpr size_t kPage = 4096;

size_t whole_pages(size_t size) { return (size + kPage - 1) / kPage * kPage; }

struct Allocations {
  Allocations() { hold_across_fork(mutex); }

  static Allocations& get() {
    static constinit NoDestructor<Allocations> allocations;
    return allocations.get();
  }

  struct Block {
    size_t size;   // as reserved
    size_t asked;  // as requested
    MemoryKind kind;
    int32_t device;                         // current when it was made
    void* base;                             // what the allocator gave
    uint64_t made;                          // tasks_recorded then
    bool shared = false, imported = false;  // with other processes, from one
  };
  std::mutex mutex;
  std::map<uintptr_t, Block> blocks;
};

ObjectKind object_kind(MemoryKind kind) {
  return kind == MemoryKind::device ? ObjectKind::device_memory : ObjectKind::host_memory;
}

bool is_observed(MemoryKind kind) { return kind == MemoryKind::device && observer != nullptr; }

// Whether check mode or the sanitizer guards the end of a block, so that it must be the
// allocator's.
bool has_exact_ends() { return observer != nullptr || __asan_poison_memory_region != nullptr; }

// nullptr: out of memory. *base is what to free.
//
// Aligned by hand: malloc reuses the block freed last, and malloc + free take 50 to 70 ns instead
// of 75 to 130 with posix_memalign.
void* obtain(const char* call, size_t size, size_t reserved, MemoryKind kind, void** base) {
  if (is_observed(kind)) return *base = observer->obtain(call, size, reserved);
  if (size >= kHugePage) {
    if (posix_memalign(base, kHugePage, whole_pages(reserved)) != 0) return nullptr;
    madvise(*base, size, MADV_HUGEPAGE);  // a hint: systems without huge pages refuse
    return *base;
  }
  if (size >= kOwnPages && !has_exact_ends()) {
    return posix_memalign(base, kPage, whole_pages(reserved)) == 0 ? *base : nullptr;
  }
  if (has_exact_ends()) return posix_memalign(base, kAlignment, reserved) == 0 ? *base : nullptr;
  *base = std::malloc(reserved + kAlignment - alignof(std::max_align_t));
  const auto begin = reinterpret_cast<uintptr_t>(*base);
  return reinterpret_cast<void*>((begin + kAlignment - 1) / kAlignment * kAlignment);
}

// The allocator gets pages of the process alone.
void give_pages_back(void* address, size_t size) {
  (void)mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

// What device memory counts as; 0 for the host's.
size_t booked(size_t reserved, MemoryKind kind) { return kind == MemoryKind::host ? 0 : reserved; }

void give_back(void* base, MemoryKind kind) {
  is_observed(kind) ? observer->give_back(base) : std::free(base);
}

}  // namespace

Status allocate(const char* call, size_t size, size_t spare, MemoryKind kind, void** address) {
  const size_t reserved = (size + kMemoryUnit - 1) / kMemoryUnit * kMemoryUnit + spare;
  const int32_t device = current_device();
  if (Status status = book_memory(call, device, size, booked(reserved, kind)); !status.ok())
    return status;
  void* base = nullptr;
  void* block = size > total_memory() ? nullptr : obtain(call, size, reserved, kind, &base);
  if (block == nullptr) {
    unbook_memory(device, booked(reserved, kind));
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                "out of memory: %zu bytes", size);
  }
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    const auto drop = [&](void* own) {
      give_back(own, kind);
      unbook_memory(device, booked(reserved, kind));
    };
    std::unique_ptr<void, decltype(drop)> owned(base, drop);
    if (kind != MemoryKind::host) fill_fresh(reachable(block), reserved);
    {
      Allocations& allocations = Allocations::get();
      std::lock_guard lock(allocations.mutex);
      Allocations::Block& own = allocations.blocks[reinterpret_cast<uintptr_t>(block)];
      own = {reserved, size, kind, device, base, tasks_recorded};
    }
    if (kind != MemoryKind::device) notify_made(call, object_kind(kind), block);
    *address = block;
    raise_peak(device);
    (void)owned.release();
    return {};
  });
}

Status release(const char* call, void* address, MemoryKind kind) {
  Allocations& allocations = Allocations::get();
  Allocations::Block own;
  {
    std::unique_lock lock(allocations.mutex);
    const auto found = allocations.blocks.find(reinterpret_cast<uintptr_t>(address));
    if (found == allocations.blocks.end()) {
      lock.unlock();
      notify_refused(call, object_kind(kind), "the address", address);
      if (const ReservedAddress reserved = find_reserved(address); reserved.found) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call, "%p is %s", address,
                    reserved.mapped > 0
                        ? "mapped memory; unmap it with aclrtUnmapMem"
                        : "a reserved address; release it with aclrtReleaseMemAddress");
      }
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                  "%p is not the start of an allocation: it was freed or never allocated", address);
    }
    const MemoryKind made = found->second.kind;
    if (made != kind && (made == MemoryKind::host || kind == MemoryKind::host)) {
      lock.unlock();
      notify_refused(call, object_kind(kind), "the address", address);
      const bool device = kind == MemoryKind::device;
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                  "%p is %s memory; free it with %s", address, device ? "host" : "device",
                  device ? "aclrtFreeHost" : "aclrtFree");
    }
    if (found->second.imported) {
      lock.unlock();
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                  "%p is memory of another process; end it with aclrtIpcMemClose", address);
    }
    own = found->second;
    unbook_memory(own.device, booked(own.size, own.kind));
    allocations.blocks.erase(found);
  }
  notify_ending(call, object_kind(own.kind), address);
  const auto end = [own, address] {
    if (own.shared) give_pages_back(address, whole_pages(own.size));
    give_back(own.base, own.kind);
  };
  after_last_use(end, own.made);
  return {};
}

Allocation find_allocation(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  {
    Allocations& allocations = Allocations::get();
    std::lock_guard lock(allocations.mutex);
    auto next = allocations.blocks.upper_bound(at);
    if (next != allocations.blocks.begin()) {
      const auto& [begin, block] = *--next;
      const size_t before = at - begin;
      if (before < block.size) {
        return {block.size - before, block.asked - std::min(block.asked, before), block.kind,
                block.device};
      }
    }
  }
  const ReservedAddress reserved = find_reserved(address);
  if (!reserved.found) return {};
  return {reserved.mapped, reserved.mapped, MemoryKind::device, reserved.device,
          reserved.mapped == 0};
}

Status pages_of(const char* call, const void* address, size_t* size) {
  Allocations& allocations = Allocations::get();
  std::unique_lock lock(allocations.mutex);
  const auto found = allocations.blocks.find(reinterpret_cast<uintptr_t>(address));
  const bool known = found != allocations.blocks.end();
  const bool fits = known && found->second.kind == MemoryKind::device &&
                    found->second.asked >= kOwnPages && !found->second.imported;
  if (fits) *size = whole_pages(found->second.size);
  lock.unlock();
  if (fits && !has_exact_ends()) return {};
  if (!known) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "%p is not the start of device memory that aclrtMalloc allocated", address);
  }
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
              has_exact_ends()
                  ? "memory cannot be shared in check mode or with the address sanitizer"
                  : "memory of less than %zu bytes shares its pages with other memory; allocate at "
                    "least that much",
              kOwnPages);
}

void note_shared(const void* address) {
  Allocations& allocations = Allocations::get();
  std::lock_guard lock(allocations.mutex);
  const auto found = allocations.blocks.find(reinterpret_cast<uintptr_t>(address));
  if (found != allocations.blocks.end()) found->second.shared = true;
}

bool has_shared_pages(const void* address) {
  Allocations& allocations = Allocations::get();
  std::lock_guard lock(allocations.mutex);
  const auto found = allocations.blocks.find(reinterpret_cast<uintptr_t>(address));
  return found != allocations.blocks.end() && found->second.shared;
}

void note_imported(void* address, size_t size) {
  const int32_t device = current_device();
  Allocations& allocations = Allocations::get();
  std::lock_guard lock(allocations.mutex);
  allocations.blocks[reinterpret_cast<uintptr_t>(address)] = {
      size, size, MemoryKind::device, device, address, tasks_recorded, false, true};
}

void forget_imported(const void* address) {
  Allocations& allocations = Allocations::get();
  std::lock_guard lock(allocations.mutex);
  allocations.blocks.erase(reinterpret_cast<uintptr_t>(address));
}

bool is_shared(const void* address) {
  return find_allocation(address).kind == MemoryKind::managed || is_registered(address);
}

size_t bytes_behind(const void* address) { return find_allocation(address).behind; }

}  // namespace openaclnn
