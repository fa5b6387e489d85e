// SPDX-License-Identifier: Apache-2.0
// Device memory that processes share. At the export its pages become those of a file in memory, at
// the same address.
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/deferred.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"
#include "core/memory/memory.h"
#include "core/support/no_destructor.h"
#include "core/support/shared_file.h"

using namespace openaclnn;

namespace {

struct SharedBlock {
  std::shared_ptr<SharedFile> file;
  void* address;
};

struct SharedMemory {
  static SharedMemory& get() {
    static constinit NoDestructor<SharedMemory> memory;
    return memory.get();
  }

  ForkSafeLock mutex;  // others are taken under it, so it is not one of hold_across_fork
  std::map<std::string, SharedBlock> exported, imported;  // by key
};

Status export_memory(const char* call, void* address, size_t size, bool any_process,
                     std::string* key) {
  size_t whole = 0;
  if (Status status = pages_of(call, address, &whole); !status.ok()) return status;
  if (size == 0 || size > bytes_behind(address)) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                "size must be in [1, %zu], the bytes of the allocation, but got %zu",
                bytes_behind(address), size);
  }
  SharedMemory& all = SharedMemory::get();
  std::lock_guard lock(all.mutex);
  std::erase_if(all.exported, [](const auto& entry) {  // freed without aclrtIpcMemClose
    return !has_shared_pages(entry.second.address);
  });
  for (const auto& [known, shared] : all.exported) {
    if (shared.address == address) return *key = known, Status();
  }
  std::shared_ptr<SharedFile> file;
  if (Status status = SharedFile::create(call, SharedKind::memory, whole, any_process, &file);
      !status.ok())
    return status;
  void* const copy = file->map(nullptr);
  if (copy != nullptr) {
    std::memcpy(copy, address, whole);
    munmap(copy, whole);
  }
  if (copy == nullptr || file->map(address) == nullptr) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                "the system does not map the memory to share");
  }
  note_shared(address);
  *key = file->key();
  all.exported[*key] = {file, address};
  return {};
}

}  // namespace

aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
  return guarded_status("aclrtIpcMemGetExportKey", [&](const char* call) {
    constexpr uint64_t kAny = ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
    std::string text;
    Status status = not_null(call, "devPtr", devPtr, ObjectKind::device_memory);
    if (status.ok()) status = check_export(call, key, len, flags, kAny);
    if (status.ok()) status = synchronize_device(call, Deadline());  // nobody writes meanwhile
    if (status.ok()) status = export_memory(call, devPtr, size, flags == kAny, &text);
    if (status.ok()) std::strcpy(key, text.c_str());
    return status;
  });
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  return guarded_status("aclrtIpcMemSetImportPid", [&](const char* call) {
    if (Status null = not_null(call, "key", key); !null.ok()) return null;
    SharedMemory& all = SharedMemory::get();
    std::lock_guard lock(all.mutex);
    const auto found = all.exported.find(key);
    if (found != all.exported.end()) return list_processes(call, *found->second.file, pid, num);
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
                "this process did not export key; call aclrtIpcMemGetExportKey first");
  });
}

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  return guarded_status("aclrtIpcMemImportByKey", [&](const char* call) {
    Status status = not_null(call, "devPtr", devPtr);
    if (status.ok() && flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "flags must be 0 or 1, but got %llu", static_cast<unsigned long long>(flags));
    }
    std::shared_ptr<SharedFile> file;
    if (status.ok() && !current_context()) status = no_context(call);
    if (status.ok()) status = SharedFile::open(call, SharedKind::memory, key, &file);
    if (!status.ok()) return status;
    SharedMemory& all = SharedMemory::get();
    std::lock_guard lock(all.mutex);
    if (all.imported.count(key) != 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
                  "this process has imported key already; call aclrtIpcMemClose first");
    }
    void* const address = file->map(nullptr);
    if (address == nullptr) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                  "the system does not map the shared memory");
    }
    note_imported(address, file->size());
    all.imported[key] = {file, address};
    *devPtr = address;
    return status;
  });
}

aclError aclrtIpcMemClose(const char* key) {
  return guarded_status("aclrtIpcMemClose", [&](const char* call) {
    if (Status null = not_null(call, "key", key); !null.ok()) return null;
    SharedMemory& all = SharedMemory::get();
    std::unique_lock lock(all.mutex);
    if (const auto found = all.imported.find(key); found != all.imported.end()) {
      const SharedBlock block = std::move(found->second);
      all.imported.erase(found);
      lock.unlock();
      forget_imported(block.address);
      after_last_use([block] { munmap(block.address, block.file->size()); });
      return Status();
    }
    if (all.exported.erase(key) > 0) return Status();  // the memory stays until it is freed
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
                "this process neither exported nor imported key");
  });
}
