// SPDX-License-Identifier: Apache-2.0
// aclrtMapMem puts physical memory in a part of a reservation, aclrtUnmapMem closes that part.
// Adjacent mappings count as one allocation: programs divide it regardless of their borders.
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/deferred.h"
#include "core/memory/mapped_memory.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

// Memory may be mapped in an unmapped part of a reservation, next to memory of the same device
// only.
Status check_place(const char* call, Space& space, void* address, const PhysicalMemory& memory,
                   Reservations::iterator* around) {
  const uintptr_t begin = number_of(address);
  *around = space.around(begin);
  if (*around == space.reservations.end()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::wrong_memory, ObjectKind::reserved_memory},
                call, "virPtr %p lies in no reservation: it was released or never reserved",
                address);
  }
  const auto& [first, own] = **around;
  if (const size_t left = first + own.size - begin; memory.size > left) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "size must be at most %zu, the bytes from virPtr to the end of what is "
                "reserved, but got %zu",
                left, memory.size);
  }
  const auto next = own.mappings.lower_bound(begin);
  const auto before = next == own.mappings.begin() ? own.mappings.end() : std::prev(next);
  const bool over_next = next != own.mappings.end() && next->first - begin < memory.size;
  const bool over_before =
      before != own.mappings.end() && begin - before->first < before->second.size;
  if (over_next || over_before) {
    const auto& [at, mapping] = over_before ? *before : *next;
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "the %zu bytes at virPtr %p overlap %zu bytes mapped at %p; unmap those first",
                memory.size, address, mapping.size, reinterpret_cast<void*>(at));
  }
  if (!own.mappings.empty() && own.device != memory.device) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::physical_memory},
                call,
                "handle must be memory of device %d, as what is mapped in the same reservation, "
                "but is of device %d",
                own.device, memory.device);
  }
  return {};
}

Status map(void* address, size_t size, const void* handle) {
  constexpr const char* call = "aclrtMapMem";
  PinnedMemory memory;
  if (Status status = find_physical(call, handle, &memory); !status.ok()) return status;
  if (size != memory->size) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "size must be that of the memory, %zu, but got %zu", memory->size, size);
  }
  if (number_of(address) % kGranularity != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "virPtr must be a multiple of %zu, the granularity, but is %p", kGranularity,
                address);
  }
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    Space& space = Space::get();
    std::lock_guard lock(space.mutex);
    Reservations::iterator around;
    if (Status status = check_place(call, space, address, *memory, &around); !status.ok()) {
      return status;
    }
    Reservation& own = around->second;
    const auto entry =
        own.mappings.emplace(number_of(address), Mapping{size, memory->serial, memory->booking})
            .first;
    Status status = show_at(call, *memory, reachable(address));
    if (status.ok() && observer != nullptr && !observer->map(call, address, size)) {
      mmap(reachable(address), size, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
      status = fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::no_resource, call,
                    "check mode cannot track more mappings");
    }
    if (!status.ok()) {
      own.mappings.erase(entry);
      return status;
    }
    own.device = memory->device;
    return {};
  });
}

// Marks the mapping that begins at the address as leaving and returns it; nullptr: no such mapping.
Mapping* begin_unmapping(Space& space, uintptr_t address) {
  std::lock_guard lock(space.mutex);
  const auto around = space.around(address);
  if (around == space.reservations.end()) return nullptr;
  const auto found = around->second.mappings.find(address);
  if (found == around->second.mappings.end() || found->second.leaving) return nullptr;
  found->second.leaving = true;
  return &found->second;
}

bool close(uintptr_t begin, size_t size) {
  void* pages = reachable(reinterpret_cast<void*>(begin));
  return mmap(pages, size, PROT_NONE, kNothing | MAP_FIXED, -1, 0) != MAP_FAILED;
}

// Closes the parts of a range where nothing was mapped meanwhile. The reservation may be released,
// but its addresses are closed later than this.
void close_unmapped(uintptr_t begin, size_t size) {
  Space& space = Space::get();
  std::lock_guard lock(space.mutex);
  const uintptr_t end = begin + size;
  const auto around = space.around(begin);
  if (around != space.reservations.end()) {
    for (const auto& [first, mapping] : around->second.mappings) {
      if (first + mapping.size <= begin || first >= end) continue;
      if (first > begin) (void)close(begin, first - begin);
      begin = first + mapping.size;
    }
  }
  if (begin < end) (void)close(begin, end - begin);
}

Status unmap(void* address) {
  constexpr const char* call = "aclrtUnmapMem";
  Space& space = Space::get();
  Mapping* own = begin_unmapping(space, number_of(address));
  if (own == nullptr) {
    notify_refused(call, ObjectKind::mapped_memory, "virPtr", address);
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "no mapping begins at virPtr %p", address);
  }
  notify_ending(call, ObjectKind::mapped_memory, address);
  const uintptr_t begin = number_of(address);
  const bool used = may_be_used();
  std::unique_lock lock(space.mutex);
  const size_t size = own->size;
  if (!used && !close(begin, size)) {
    own->leaving = false;
    return fail(ACL_ERROR_RT_MEMORY_FREE, Reason::internal, call, "the system could not unmap %p",
                address);
  }
  space.around(begin)->second.mappings.erase(begin);
  lock.unlock();
  if (used) after_last_use([=] { close_unmapped(begin, size); });
  return {};
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  constexpr const char* call = "aclrtMapMem";
  Status status = not_null(call, "virPtr", virPtr, ObjectKind::reserved_memory);
  if (status.ok() && size == 0) {
    status =
        fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "size must be greater than 0");
  }
  if (status.ok()) status = check_zero(call, "offset", offset);
  if (status.ok()) status = check_zero(call, "flags", flags);
  if (status.ok()) status = map(virPtr, size, handle);
  return status.code();
}

aclError aclrtUnmapMem(void* virPtr) {
  Status status = not_null("aclrtUnmapMem", "virPtr", virPtr, ObjectKind::mapped_memory);
  if (status.ok()) status = unmap(virPtr);
  return status.code();
}
