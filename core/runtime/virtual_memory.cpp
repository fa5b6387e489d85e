// SPDX-License-Identifier: Apache-2.0
// A reservation is a range that nobody may touch; mapping puts physical memory in a part of it, and
// unmapping closes that part again. Mappings that touch each other are one stretch of memory:
// programs divide it without regard to where one ends.
#include "core/runtime/virtual_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <memory>

#include "acl/acl_rt.h"
#include "core/runtime/check.h"
#include "core/runtime/device.h"
#include "core/runtime/fork.h"
#include "core/runtime/guard.h"
#include "core/runtime/immortal.h"
#include "core/runtime/observer.h"
#include "core/runtime/physical_memory.h"

namespace openaclnn {
namespace {

constexpr const char* kReserved = "reserved memory";
constexpr const char* kMapped = "mapped memory";
constexpr uintptr_t kExpectedUnit = uintptr_t{1} << 30;
constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Mapping {
  size_t size;
  bool leaving = false;  // a thread is about to close it
};

struct Reservation {
  size_t size;
  int32_t device = 0;  // of what is mapped
  std::map<uintptr_t, Mapping> mappings;
};

using Reservations = std::map<uintptr_t, Reservation>;

struct Space {
  Space() {
    hold_across_fork(mutex);
    after_fork_in_child([] { get().forget_leaving(); });
  }

  static Space& get() {
    static Immortal<Space> space;
    return *space;
  }

  // The reservation that the address lies in, or end().
  Reservations::iterator around(uintptr_t address) {
    const auto next = reservations.upper_bound(address);
    if (next == reservations.begin()) return reservations.end();
    const auto found = std::prev(next);
    return address - found->first < found->second.size ? found : reservations.end();
  }

  // In a child: the thread that was about to close a mapping is not here.
  void forget_leaving() {
    for (auto& [begin, reservation] : reservations) {
      for (auto& [at, mapping] : reservation.mappings) mapping.leaving = false;
    }
  }

  std::mutex mutex;
  Reservations reservations;
};

std::atomic<bool> ever_reserved = false;  // else copies need not look

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// nullptr when there is no such range. Where nobody expects one, it begins with a granule.
void* obtain_range(size_t size, void* expected) {
  if (expected != nullptr) {
    void* range = mmap(expected, size, PROT_NONE, kNothing | MAP_FIXED_NOREPLACE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    if (range == expected) return range;
    munmap(range, size);  // a kernel that does not know the flag took it for a hint
    return nullptr;
  }
  void* range = mmap(nullptr, size + kGranularity, PROT_NONE, kNothing, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* bytes = static_cast<char*>(range);
  const size_t before = (kGranularity - number_of(range) % kGranularity) % kGranularity;
  if (before > 0) munmap(bytes, before);
  munmap(bytes + before + size, kGranularity - before);
  return bytes + before;
}

void give_back_range(void* address, size_t size) {
  if (observer == nullptr) munmap(address, size);  // else the addresses are not given again
}

Status reserve(void** address, size_t asked, void* expected) {
  constexpr const char* call = "aclrtReserveMemAddress";
  void* range = nullptr;
  const size_t size = (asked + kGranularity - 1) / kGranularity * kGranularity;
  if (size >= asked && size + kGranularity > size) {
    range = observer == nullptr   ? obtain_range(size, expected)
            : expected == nullptr ? observer->reserve(call, size)
                                  : nullptr;
  }
  if (range == nullptr) {
    return expected == nullptr
               ? fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                      "%s: size must be available as addresses, but %zu bytes are not", call, asked)
               : fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                      "%s: the %zu bytes at expectPtr must be free, but those at %p are not", call,
                      asked, expected);
  }
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    const auto drop = [size](void* own) { give_back_range(own, size); };
    std::unique_ptr<void, decltype(drop)> owned(range, drop);
    {
      Space& space = Space::get();
      std::lock_guard lock(space.mutex);
      space.reservations[number_of(range)] = {size, 0, {}};
    }
    ever_reserved = true;
    *address = owned.release();
    return {};
  });
}

// Where memory may be mapped: inside a reservation, where nothing is, next to the same device only.
Status check_place(const char* call, Space& space, void* address, const PhysicalMemory& memory,
                   Reservations::iterator* around) {
  const uintptr_t begin = number_of(address);
  *around = space.around(begin);
  if (*around == space.reservations.end()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: virPtr must lie in addresses that are reserved, but %p does not: it was "
                "released or never reserved",
                call, address);
  }
  const auto& [first, own] = **around;
  if (const size_t left = first + own.size - begin; memory.size > left) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: size must be at most %zu, the bytes from virPtr to the end of what is "
                "reserved, but got %zu",
                call, left, memory.size);
  }
  const auto next = own.mappings.lower_bound(begin);
  const auto before = next == own.mappings.begin() ? own.mappings.end() : std::prev(next);
  const bool over_next = next != own.mappings.end() && next->first - begin < memory.size;
  const bool over_before =
      before != own.mappings.end() && begin - before->first < before->second.size;
  if (over_next || over_before) {
    const auto& [at, mapping] = over_before ? *before : *next;
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the %zu bytes at virPtr %p must be unmapped, but %zu bytes are mapped at %p",
                call, memory.size, address, mapping.size, reinterpret_cast<void*>(at));
  }
  if (!own.mappings.empty() && own.device != memory.device) {
    return fail(
        ACL_ERROR_RT_PARAM_INVALID,
        "%s: handle must be memory of device %d, as what is mapped in the same reservation, "
        "but is of device %d",
        call, own.device, memory.device);
  }
  return {};
}

Status map(void* address, size_t size, const void* handle) {
  constexpr const char* call = "aclrtMapMem";
  PhysicalMemory* memory = nullptr;
  if (Status status = find_physical(call, handle, &memory); !status.ok()) return status;
  if (size != memory->size) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: size must be that of the memory, %zu, but got %zu",
                call, memory->size, size);
  }
  if (number_of(address) % kGranularity != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: virPtr must be a multiple of %zu, the granularity, but is %p", call,
                kGranularity, address);
  }
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    Space& space = Space::get();
    std::lock_guard lock(space.mutex);
    Reservations::iterator around;
    if (Status status = check_place(call, space, address, *memory, &around); !status.ok()) {
      return status;
    }
    Reservation& own = around->second;
    const auto entry = own.mappings.emplace(number_of(address), Mapping{size}).first;
    Status status = show_at(call, *memory, reachable(address));
    if (status.ok() && observer != nullptr && !observer->map(call, address, size)) {
      mmap(reachable(address), size, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
      status = fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: check mode has taken down its last", call);
    }
    if (!status.ok()) {
      own.mappings.erase(entry);
      return status;
    }
    own.device = memory->device;
    return {};
  });
}

// The mapping that begins at the address, now marked as leaving; nullptr when there is none.
Mapping* begin_unmapping(Space& space, uintptr_t address) {
  std::lock_guard lock(space.mutex);
  const auto around = space.around(address);
  if (around == space.reservations.end()) return nullptr;
  const auto found = around->second.mappings.find(address);
  if (found == around->second.mappings.end() || found->second.leaving) return nullptr;
  found->second.leaving = true;
  return &found->second;
}

Status unmap(void* address) {
  constexpr const char* call = "aclrtUnmapMem";
  Space& space = Space::get();
  Mapping* own = begin_unmapping(space, number_of(address));
  if (own == nullptr) {
    tell_refused(call, kMapped, "virPtr", address);
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: virPtr must be where memory was mapped, but at %p no mapping begins", call,
                address);
  }
  tell_ending(call, kMapped, address);
  std::lock_guard lock(space.mutex);
  if (mmap(reachable(address), own->size, PROT_NONE, kNothing | MAP_FIXED, -1, 0) == MAP_FAILED) {
    own->leaving = false;
    return fail(ACL_ERROR_RT_MEMORY_FREE, "%s: the system must unmap %p, but refuses", call,
                address);
  }
  space.around(number_of(address))->second.mappings.erase(number_of(address));
  return {};
}

Status release(void* address) {
  constexpr const char* call = "aclrtReleaseMemAddress";
  size_t size = 0, mapped = 0;
  {
    Space& space = Space::get();
    std::lock_guard lock(space.mutex);
    const auto found = space.reservations.find(number_of(address));
    if (found != space.reservations.end()) {
      size = found->second.size;
      mapped = found->second.mappings.size();
      if (mapped == 0) space.reservations.erase(found);
    }
  }
  if (size == 0) {
    tell_refused(call, kReserved, "virPtr", address);
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: virPtr must be the start of a reservation, but %p was released or never "
                "reserved",
                call, address);
  }
  if (mapped > 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: everything at virPtr must be unmapped first, but memory is mapped in %zu "
                "places",
                call, mapped);
  }
  tell_ending(call, kReserved, address);
  give_back_range(address, size);
  return {};
}

}  // namespace

std::unique_lock<std::mutex> lock_mappings() { return std::unique_lock(Space::get().mutex); }

ReservedAddress find_reserved(const void* address) {
  if (!ever_reserved) return {};
  const uintptr_t at = number_of(address);
  Space& space = Space::get();
  std::lock_guard lock(space.mutex);
  const auto around = space.around(at);
  if (around == space.reservations.end()) return {};
  const auto& mappings = around->second.mappings;
  auto next = mappings.upper_bound(at);
  if (next != mappings.begin()) --next;
  uintptr_t end = at;
  for (; next != mappings.end() && next->first <= end && !next->second.leaving; ++next) {
    if (next->first + next->second.size > end) end = next->first + next->second.size;
  }
  return {true, end - at, around->second.device};
}

}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags) {
  constexpr const char* call = "aclrtReserveMemAddress";
  Status status = not_null(call, "virPtr", virPtr);
  if (status.ok() && size == 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, "%s: size must be greater than 0", call);
  }
  if (status.ok()) status = check_zero(call, "alignment", alignment);
  if (status.ok() && number_of(expectPtr) % kExpectedUnit != 0) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: expectPtr must be NULL or a multiple of 1 GiB, but is %p", call, expectPtr);
  }
  if (status.ok() && flags > 1) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: flags must be 0, for normal pages, or 1, for huge ones, but got %llu", call,
                  static_cast<unsigned long long>(flags));
  }
  if (status.ok() && current_context() == nullptr) status = no_context(call);
  if (status.ok()) status = reserve(virPtr, size, expectPtr);
  return status.code();
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  Status status = not_null("aclrtReleaseMemAddress", "virPtr", virPtr);
  if (status.ok()) status = release(virPtr);
  return status.code();
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  constexpr const char* call = "aclrtMapMem";
  Status status = not_null(call, "virPtr", virPtr);
  if (status.ok() && size == 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, "%s: size must be greater than 0", call);
  }
  if (status.ok()) status = check_zero(call, "offset", offset);
  if (status.ok()) status = check_zero(call, "flags", flags);
  if (status.ok() && current_context() == nullptr) status = no_context(call);
  if (status.ok()) status = map(virPtr, size, handle);
  return status.code();
}

// Without a device, and after aclFinalize, too.
aclError aclrtUnmapMem(void* virPtr) {
  Status status = not_null("aclrtUnmapMem", "virPtr", virPtr);
  if (status.ok()) status = unmap(virPtr);
  return status.code();
}
