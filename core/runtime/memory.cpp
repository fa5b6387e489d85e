// SPDX-License-Identifier: Apache-2.0
// Every allocation is known by its address, so that wrong frees and copies past an end are answers.
#include "core/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/runtime/device.h"
#include "core/runtime/fork.h"
#include "core/runtime/guard.h"
#include "core/runtime/immortal.h"

namespace openaclnn {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Whole units of this size are reserved, and mostly one more, as on the device: a program may copy
// the rounded-up size.
constexpr size_t kUnit = 32;

struct Registry {
  Registry() { hold_across_fork(mutex); }

  static Registry& get() {
    static Immortal<Registry> registry;
    return *registry;
  }

  struct Block {
    size_t size;  // as reserved
    MemoryKind kind;
  };
  std::mutex mutex;
  std::map<uintptr_t, Block> blocks;
};

size_t pages(int name) {
  return static_cast<size_t>(sysconf(name)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Status allocate(const char* call, size_t size, size_t spare, MemoryKind kind, void** address) {
  static const size_t total = pages(_SC_PHYS_PAGES);
  const bool huge = size >= kHugePage;
  const size_t reserved = (size + kUnit - 1) / kUnit * kUnit + spare;
  void* block = nullptr;
  if (size > total || posix_memalign(&block, huge ? kHugePage : kAlignment, reserved) != 0) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "%s: size must be available as memory, but %zu bytes are not", call, size);
  }
  if (huge) madvise(block, size, MADV_HUGEPAGE);  // a hint: systems without huge pages refuse
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    std::unique_ptr<void, void (*)(void*)> owned(block, std::free);
    Registry& registry = Registry::get();
    std::lock_guard lock(registry.mutex);
    registry.blocks[reinterpret_cast<uintptr_t>(block)] = {reserved, kind};
    *address = owned.release();
    return {};
  });
}

Status release(const char* call, void* address, MemoryKind kind) {
  Registry& registry = Registry::get();
  {
    std::lock_guard lock(registry.mutex);
    const auto found = registry.blocks.find(reinterpret_cast<uintptr_t>(address));
    if (found == registry.blocks.end()) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: the address must be the start of an allocation, but %p was freed or never "
                  "allocated",
                  call, address);
    }
    if (found->second.kind != kind) {
      const bool device = kind == MemoryKind::device;
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: the address must be %s memory, but %p is %s memory: free it with %s", call,
                  device ? "device" : "host", address, device ? "host" : "device",
                  device ? "aclrtFreeHost" : "aclrtFree");
    }
    registry.blocks.erase(found);
  }
  std::free(address);
  return {};
}

size_t bytes_behind(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  auto next = registry.blocks.upper_bound(at);
  if (next == registry.blocks.begin()) return 0;
  const auto& [begin, block] = *--next;
  return at - begin < block.size ? block.size - (at - begin) : 0;
}

}  // namespace openaclnn

using namespace openaclnn;

namespace {

aclError allocate_for(const char* call, const char* argument, void** address, size_t size,
                      size_t spare, MemoryKind kind) {
  if (address == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: %s must not be NULL", call, argument).code();
  }
  if (size == 0) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: size must be greater than 0", call).code();
  }
  if (size > UINT64_MAX - kAlignment) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: size must be at most %zu, but got %zu", call,
                size_t{UINT64_MAX - kAlignment}, size)
        .code();
  }
  if (current_context() == nullptr) return no_context(call).code();
  return allocate(call, size, spare, kind, address).code();
}

aclError release_for(const char* call, const char* argument, void* address, MemoryKind kind) {
  if (address == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: %s must not be NULL", call, argument).code();
  }
  return release(call, address, kind).code();
}

}  // namespace

// Where memory lies is no question on a host: the policy is only a wish.
aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMalloc", "devPtr", devPtr, size, kUnit, MemoryKind::device);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMallocAlign32", "devPtr", devPtr, size, 0, MemoryKind::device);
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMallocCached", "devPtr", devPtr, size, kUnit, MemoryKind::device);
}

aclError aclrtFree(void* devPtr) {
  return release_for("aclrtFree", "devPtr", devPtr, MemoryKind::device);
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return allocate_for("aclrtMallocHost", "hostPtr", hostPtr, size, 0, MemoryKind::host);
}

aclError aclrtFreeHost(void* hostPtr) {
  return release_for("aclrtFreeHost", "hostPtr", hostPtr, MemoryKind::host);
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: %s must not be NULL",
                free == nullptr ? "free" : "total")
        .code();
  }
  if (current_context() == nullptr) return no_context("aclrtGetMemInfo").code();
  *free = pages(_SC_AVPHYS_PAGES);
  *total = pages(_SC_PHYS_PAGES);
  return ACL_SUCCESS;
}
