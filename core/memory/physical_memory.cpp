// SPDX-License-Identifier: Apache-2.0
// Physical memory is shared anonymous memory, because only that can be mapped twice. mremap with an
// old size of 0 makes one more mapping of the same pages, so no handle takes a file descriptor; a
// process may have few. Where mremap cannot do that (emulators, some sandboxes), each handle has a
// file in memory; so has one that is exported (shareable_handles.cpp). After fork, parent and child
// share the pages, as two processes share a device's.
#include "core/memory/mapped_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/device_memory.h"
#include "core/memory/memory.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr size_t kMostHandles = 1 << 16;  // about as many mappings as a process may have
constexpr size_t kHugeGranularity = size_t{1} << 30;

Status check_prop(const char* call, const aclrtPhysicalMemProp& prop) {
  const int handle = value_of(prop.handleType), allocation = value_of(prop.allocationType);
  const int attribute = value_of(prop.memAttr), location = value_of(prop.location.type);
  if (handle == ACL_MEM_HANDLE_TYPE_POSIX) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                "prop->handleType must be ACL_MEM_HANDLE_TYPE_NONE, which can be exported too, but "
                "got ACL_MEM_HANDLE_TYPE_POSIX");
  }
  if (handle != ACL_MEM_HANDLE_TYPE_NONE) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "prop->handleType must be ACL_MEM_HANDLE_TYPE_NONE, 0, but got %d", handle);
  }
  if (allocation != ACL_MEM_ALLOCATION_TYPE_PINNED) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "prop->allocationType must be ACL_MEM_ALLOCATION_TYPE_PINNED, 0, but got %d",
                allocation);
  }
  if (attribute < ACL_DDR_MEM || attribute > ACL_MEM_P2P_HUGE1G) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "prop->memAttr must be in [0, %d], but got %d",
                static_cast<int>(ACL_MEM_P2P_HUGE1G), attribute);
  }
  if (location < ACL_MEM_LOCATION_TYPE_HOST || location > ACL_MEM_LOCATION_TYPE_HOST_NUMA) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "prop->location.type must be in [0, 4], but got %d", location);
  }
  if (location != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                "prop->location.type must be ACL_MEM_LOCATION_TYPE_DEVICE, 1, but got %d",
                location);
  }
  const auto count = static_cast<uint32_t>(device_count());
  if (prop.location.id < count) return {};
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, {Reason::wrong_value, ObjectKind::device}, call,
              "prop->location.id must be in [0, %u), but got %u", count, prop.location.id);
}

size_t granularity_of(const aclrtPhysicalMemProp& prop) {
  switch (value_of(prop.memAttr)) {
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G:
    case ACL_MEM_HUGE1G:
    case ACL_MEM_P2P_HUGE1G: return kHugeGranularity;
    default: return kGranularity;  // of normal pages too, as on the device
  }
}

bool system_copies_mappings() {
  static constinit NoDestructor<bool> does;
  return does.get([] {
    constexpr int kUse = PROT_READ | PROT_WRITE;
    void* page = mmap(nullptr, kGranularity, kUse, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    void* copy = mremap(page, 0, kGranularity, MREMAP_MAYMOVE);
    if (copy != MAP_FAILED) munmap(copy, kGranularity);
    munmap(page, kGranularity);
    return copy != MAP_FAILED;
  });
}

// The pages of a new handle, and their file where one is needed; MAP_FAILED when there are none.
void* obtain(const char* call, size_t size, std::shared_ptr<SharedFile>* file) {
  constexpr int kUse = PROT_READ | PROT_WRITE;
  if (system_copies_mappings()) {
    return mmap(nullptr, size, kUse, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  if (!SharedFile::create(call, SharedKind::physical_memory, size, false, file).ok())
    return MAP_FAILED;
  void* home = (*file)->map(nullptr);
  return home == nullptr ? MAP_FAILED : home;
}

Status create(const char* call, aclrtDrvMemHandle* handle, size_t size, int32_t device) {
  if (Status status = book_memory(call, device, size, size); !status.ok()) return status;
  auto booking = std::make_shared<Booking>(device, size);
  std::shared_ptr<SharedFile> file;
  void* home = size > total_memory() ? MAP_FAILED : obtain(call, size, &file);
  if (home == MAP_FAILED) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                "out of memory: %zu bytes", size);
  }
  PhysicalMemory* made =
      physical_memory().create(size, device, home, std::move(file), std::move(booking));
  if (made == nullptr) {
    munmap(home, size);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::no_resource, call, "too many live handles");
  }
  raise_peak(device);
  fill_fresh(home, size);
  notify_made(call, ObjectKind::physical_memory, made);
  *handle = made;
  return {};
}

}  // namespace

uint64_t PhysicalMemory::next_serial() {
  static std::atomic<uint64_t> serial = 0;
  return ++serial;
}

HandlePool<PhysicalMemory>& physical_memory() {
  return pool_of<PhysicalMemory>(kMostHandles, [] { physical_memory().forget_pins(); });
}

Status find_physical(const char* call, const void* handle, PinnedMemory* memory) {
  if (Status status = not_null(call, "handle", handle, ObjectKind::physical_memory); !status.ok())
    return status;
  *memory = PinnedMemory(physical_memory(), handle);
  if (*memory) return {};
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::physical_memory, "handle",
                     handle);
}

Status show_at(const char* call, const PhysicalMemory& memory, void* address) {
  const void* shown = MAP_FAILED;
  if (memory.home != nullptr && memory.file != nullptr) {
    if (void* place = memory.file->map(address); place != nullptr) shown = place;
  } else if (memory.home != nullptr) {
    shown = mremap(memory.home, 0, memory.size, MREMAP_MAYMOVE | MREMAP_FIXED, address);
  }
  if (shown != MAP_FAILED) {
    madvise(address, memory.size, MADV_HUGEPAGE);  // a hint
    return {};
  }
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
              "cannot map the memory: %s",
              memory.home == nullptr ? "handle was freed" : std::strerror(errno));
}

Status leave_home(const char* call, PhysicalMemory& memory) {
  if (memory.home == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, {Reason::dead_handle, ObjectKind::physical_memory},
                call, "handle was freed by another thread");
  }
  munmap(memory.home, memory.size);
  memory.home = nullptr;
  memory.file = nullptr;
  memory.booking = nullptr;
  return {};
}

}  // namespace openaclnn

using namespace openaclnn;

// Allowed before a device is set.
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity) {
  constexpr const char* call = "aclrtMemGetAllocationGranularity";
  Status status = not_null(call, "prop", prop);
  if (status.ok()) status = not_null(call, "granularity", granularity);
  if (status.ok()) status = check_prop(call, *prop);
  const int wanted = value_of(option);
  if (status.ok() && wanted != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
      wanted != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "option must be in [0, 1], but got %d", wanted);
  }
  if (status.ok()) *granularity = granularity_of(*prop);
  return status.code();
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  return guarded_status("aclrtMallocPhysical", [&](const char* call) {
    Status status = not_null(call, "handle", handle);
    if (status.ok()) status = not_null(call, "prop", prop);
    if (status.ok()) status = check_prop(call, *prop);
    if (status.ok() && size == 0) {
      status =
          fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "size must be greater than 0");
    }
    if (status.ok() && size % granularity_of(*prop) != 0) {
      status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                    "size must be a multiple of %zu, the granularity, but got %zu",
                    granularity_of(*prop), size);
    }
    if (status.ok()) status = check_zero(call, "flags", flags);
    if (!status.ok()) return status;
    return create(call, handle, size, static_cast<int32_t>(prop->location.id));
  });
}

// Mappings stay until they are unmapped; they do not need the handle.
aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  constexpr const char* call = "aclrtFreePhysical";
  PinnedMemory memory;
  Status status = find_physical(call, handle, &memory);
  if (status.ok()) {
    const auto lock = lock_mappings();
    status = leave_home(call, *memory);
  }
  if (!status.ok()) return status.code();
  memory.release();
  notify_ending(call, ObjectKind::physical_memory, handle);
  physical_memory().destroy(handle);
  return ACL_SUCCESS;
}
