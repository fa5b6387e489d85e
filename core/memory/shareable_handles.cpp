// SPDX-License-Identifier: Apache-2.0
// Physical memory that processes share. At the export its pages become those of a file in memory,
// wherever they are mapped; the number names that file (shared_file.h).
#include <sys/mman.h>

#include <cstring>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/memory/mapped_memory.h"
#include "core/memory/memory.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr uint64_t kAnyProcess = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;

Status move_to_file(const char* call, PhysicalMemory& memory) {
  std::shared_ptr<SharedFile> file;
  if (Status status =
          SharedFile::create(call, SharedKind::physical_memory, memory.size, false, &file);
      !status.ok())
    return status;
  void* const copy = file->map(nullptr);
  bool mapped = copy != nullptr;
  if (mapped) {
    std::memcpy(copy, memory.home, memory.size);
    munmap(copy, memory.size);
    mapped = file->map(memory.home) != nullptr;
  }
  for (auto& [begin, reservation] : Space::get().reservations) {
    for (auto& [at, mapping] : reservation.mappings) {
      if (mapping.memory != memory.serial || !mapped) continue;
      mapped = file->map(reachable(reinterpret_cast<void*>(at))) != nullptr;
    }
  }
  if (mapped) {
    memory.file = std::move(file);
    return {};
  }
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
              "the system does not map the memory to share");
}

// Nobody may write meanwhile; tasks are waited for.
Status export_handle(const char* call, const void* handle, uint64_t flags, uint64_t* number) {
  PinnedMemory memory;
  Status status = find_physical(call, handle, &memory);
  if (status.ok() && (flags & ~kAnyProcess) != 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "flags must be 0 or 1, but got %llu", static_cast<unsigned long long>(flags));
  }
  if (status.ok()) status = synchronize_device(call, memory->device, Deadline());
  if (!status.ok()) return status;
  const auto lock = lock_mappings();
  if (memory->home == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, {Reason::dead_handle, ObjectKind::physical_memory},
                call, "handle was freed by another thread");
  }
  if (memory->exported || memory->imported) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call, "handle was %s already",
                memory->exported ? "exported" : "imported, so it is shared");
  }
  if (memory->file == nullptr) status = move_to_file(call, *memory);
  if (!status.ok()) return status;
  const uint64_t made = memory->file->number();
  if (made == 0) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::no_resource, call,
                "the file descriptor of the memory must be below 2^20; close some");
  }
  memory->file->header().any_process = (flags & kAnyProcess) != 0;
  memory->exported = true;
  *number = made;
  return {};
}

Status allow_processes(const char* call, uint64_t number, const int32_t* processes, size_t count) {
  std::shared_ptr<SharedFile> file;
  if (Status status = SharedFile::open(call, number, &file); !status.ok()) return status;
  const auto lock = lock_mappings();
  if (file->is_own()) return list_processes(call, *file, processes, count);
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
              "this process did not export shareableHandle; call "
              "aclrtMemExportToShareableHandle first");
}

Status import_handle(const char* call, uint64_t number, int32_t device, aclrtDrvMemHandle* handle) {
  std::shared_ptr<SharedFile> file;
  Status status = not_null(call, "handle", handle);
  if (status.ok()) status = check_device(call, "deviceId", device);
  if (status.ok()) status = SharedFile::open(call, number, &file);
  if (!status.ok()) return status;
  const size_t size = file->size();
  if (file->is_own() || size == 0 || size % kGranularity != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call, "shareableHandle %s",
                file->is_own() ? "is of this process: map the handle that it was exported from"
                               : "is not physical memory");
  }
  void* const home = file->map(nullptr);
  if (home == nullptr) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                "the system does not map the shared memory");
  }
  PhysicalMemory* made = physical_memory().create(size, device, home, std::move(file), nullptr);
  if (made == nullptr) {
    munmap(home, size);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::no_resource, call, "too many live handles");
  }
  notify_made(call, ObjectKind::physical_memory, made);
  *handle = made;
  return {};
}

// ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT is a number; other servers are not reached.
Status check_share_type(const char* call, int type) {
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return {};
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                "memory is not shared between servers; use ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT");
  }
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "shareType must be 1 or 2, but got %d", type);
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle) {
  return guarded_status("aclrtMemExportToShareableHandle", [&](const char* call) {
    Status status = not_null(call, "shareableHandle", shareableHandle);
    const int type = value_of(handleType);
    if (status.ok() && type != ACL_MEM_HANDLE_TYPE_NONE) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "handleType must be ACL_MEM_HANDLE_TYPE_NONE, 0, but got %d", type);
    }
    return status.ok() ? export_handle(call, handle, flags, shareableHandle) : status;
  });
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                           aclrtMemSharedHandleType shareType,
                                           void* shareableHandle) {
  return guarded_status("aclrtMemExportToShareableHandleV2", [&](const char* call) {
    Status status = not_null(call, "shareableHandle", shareableHandle);
    if (status.ok()) status = check_share_type(call, value_of(shareType));
    uint64_t number = 0;
    if (status.ok()) status = export_handle(call, handle, flags, &number);
    if (status.ok()) std::memcpy(shareableHandle, &number, sizeof number);
    return status;
  });
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
  return guarded_status("aclrtMemSetPidToShareableHandle", [&](const char* call) {
    return allow_processes(call, shareableHandle, pid, pidNum);
  });
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                           aclrtMemSharedHandleType shareType, int32_t* pid,
                                           size_t pidNum) {
  return guarded_status("aclrtMemSetPidToShareableHandleV2", [&](const char* call) {
    Status status = not_null(call, "shareableHandle", shareableHandle);
    if (status.ok()) status = check_share_type(call, value_of(shareType));
    uint64_t number = 0;
    if (status.ok()) std::memcpy(&number, shareableHandle, sizeof number);
    return status.ok() ? allow_processes(call, number, pid, pidNum) : status;
  });
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle) {
  return guarded_status("aclrtMemImportFromShareableHandle", [&](const char* call) {
    return import_handle(call, shareableHandle, deviceId, handle);
  });
}

aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                             aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle* handle) {
  return guarded_status("aclrtMemImportFromShareableHandleV2", [&](const char* call) {
    Status status = not_null(call, "shareableHandle", shareableHandle);
    if (status.ok()) status = check_share_type(call, value_of(shareType));
    if (status.ok()) status = check_zero(call, "flags", flags);
    uint64_t number = 0;
    if (status.ok()) std::memcpy(&number, shareableHandle, sizeof number);
    return status.ok() ? import_handle(call, number, current_device(), handle) : status;
  });
}
