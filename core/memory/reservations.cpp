// SPDX-License-Identifier: Apache-2.0
// A reservation is an inaccessible address range, in which memory can be mapped.
#include "core/memory/mapped_memory.h"

#include <atomic>
#include <memory>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/deferred.h"
#include "core/support/fork.h"
#include "core/memory/memory.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr uintptr_t kExpectedUnit = uintptr_t{1} << 30;

std::atomic<bool> ever_reserved = false;  // else copies need not look

// nullptr: out of addresses. Without a wish for an address, it begins at a multiple of a granule.
void* obtain_range(size_t size, void* expected) {
  if (expected != nullptr) {
    void* range = mmap(expected, size, PROT_NONE, kNothing | MAP_FIXED_NOREPLACE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    if (range == expected) return range;
    munmap(range, size);  // kernels without this flag take the address as a hint
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
  if (observer == nullptr) munmap(address, size);  // check mode keeps the addresses
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
               ? fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                      "out of address space: %zu bytes", asked)
               : fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                      "the %zu bytes at expectPtr %p are not free", asked, expected);
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
    notify_refused(call, ObjectKind::reserved_memory, "virPtr", address);
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "no reservation begins at virPtr %p: it was released or never reserved", address);
  }
  if (mapped > 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "%zu mappings are left at virPtr; unmap them first", mapped);
  }
  notify_ending(call, ObjectKind::reserved_memory, address);
  after_last_use([=] { give_back_range(address, size); });
  return {};
}

// In a child of fork: no thread is unmapping.
void forget_leaving() {
  for (auto& [begin, reservation] : Space::get().reservations) {
    for (auto& [at, mapping] : reservation.mappings) mapping.leaving = false;
  }
}

}  // namespace

Space::Space() {
  hold_across_fork(mutex);
  after_fork_in_child(forget_leaving);
}

Space& Space::get() {
  static constinit NoDestructor<Space> space;
  return space.get();
}

Reservations::iterator Space::around(uintptr_t address) {
  const auto next = reservations.upper_bound(address);
  if (next == reservations.begin()) return reservations.end();
  const auto found = std::prev(next);
  return address - found->first < found->second.size ? found : reservations.end();
}

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
    status =
        fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "size must be greater than 0");
  }
  if (status.ok()) status = check_zero(call, "alignment", alignment);
  if (status.ok() && number_of(expectPtr) % kExpectedUnit != 0) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                  "expectPtr must be NULL or a multiple of 1 GiB, but is %p", expectPtr);
  }
  if (status.ok() && flags > 1) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                  "flags must be 0, for normal pages, or 1, for huge ones, but got %llu",
                  static_cast<unsigned long long>(flags));
  }
  if (status.ok()) status = reserve(virPtr, size, expectPtr);
  return status.code();
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  Status status = not_null("aclrtReleaseMemAddress", "virPtr", virPtr, ObjectKind::reserved_memory);
  if (status.ok()) status = release(virPtr);
  return status.code();
}
