// SPDX-License-Identifier: Apache-2.0
// Host memory of the program that it registers for the device, and memory that both may use. Every
// address is usable everywhere here, so registration is a record.
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/device_memory.h"
#include "core/support/fork.h"
#include "core/memory/memory.h"
#include "core/support/no_destructor.h"

using namespace openaclnn;

namespace {

struct Registered {
  size_t size;
  bool mapped;  // has a device address
};

struct Registrations {
  Registrations() { hold_across_fork(mutex); }

  static Registrations& get() {
    static constinit NoDestructor<Registrations> registrations;
    return registrations.get();
  }

  // The range that the address lies in, or end().
  std::map<uintptr_t, Registered>::iterator around(uintptr_t address) {
    auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) return ranges.end();
    --next;
    return address - next->first < next->second.size ? next : ranges.end();
  }

  std::mutex mutex;
  std::map<uintptr_t, Registered> ranges;
};

std::atomic<bool> ever_registered = false;  // else copies need not look

Status check_host_range(const char* call, const void* ptr, uint64_t size) {
  if (Status null = not_null(call, "ptr", ptr); !null.ok()) return null;
  if (size == 0 || size > kMostBytes) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "size must be in [1, %zu], but got %llu", kMostBytes,
                static_cast<unsigned long long>(size));
  }
  return {};
}

Status register_range(const char* call, void* ptr, uint64_t size, bool mapped) {
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    const auto begin = reinterpret_cast<uintptr_t>(ptr);
    Registrations& all = Registrations::get();
    std::lock_guard lock(all.mutex);
    const auto next = all.ranges.lower_bound(begin);
    const bool overlaps = all.around(begin) != all.ranges.end() ||
                          (next != all.ranges.end() && next->first - begin < size);
    if (overlaps) {
      return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, Reason::already_done, call,
                  "some of the %llu bytes at %p are already registered; call aclrtHostUnregister "
                  "first",
                  static_cast<unsigned long long>(size), ptr);
    }
    all.ranges[begin] = {size, mapped};
    ever_registered = true;
    return {};
  });
}

Status not_registered(const char* call, const void* ptr, const char* what) {
  return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, Reason::call_missing, call, "%p is not %s", ptr,
              what);
}

}  // namespace

namespace openaclnn {

bool is_registered(const void* address) {
  if (!ever_registered.load(std::memory_order_relaxed)) return false;
  Registrations& all = Registrations::get();
  std::lock_guard lock(all.mutex);
  return all.around(reinterpret_cast<uintptr_t>(address)) != all.ranges.end();
}

}  // namespace openaclnn

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  constexpr const char* call = "aclrtHostRegister";
  Status status = check_host_range(call, ptr, size);
  if (status.ok()) status = not_null(call, "devPtr", devPtr);
  if (!status.ok()) return status.code();
  if (static_cast<int>(type) != ACL_HOST_REGISTER_MAPPED) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                "type must be 0 (mapped), but got %d", static_cast<int>(type))
        .code();
  }
  if (!current_context()) return no_context(call).code();
  status = register_range(call, ptr, size, true);
  if (status.ok()) *devPtr = ptr;
  return status.code();
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  constexpr const char* call = "aclrtHostRegisterV2";
  constexpr uint32_t kSupported = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED;
  if (Status status = check_host_range(call, ptr, size); !status.ok()) return status.code();
  if (flag == 0 || (flag & ~kSupported) != 0) {
    return fail(flag == 0 ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                Reason::not_supported, call,
                "flag must be made of ACL_HOST_REG_MAPPED (0x2) and ACL_HOST_REG_PINNED "
                "(0x10000000), but got %#x",
                flag)
        .code();
  }
  if (!current_context()) return no_context(call).code();
  return register_range(call, ptr, size, (flag & ACL_HOST_REG_MAPPED) != 0).code();
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  constexpr const char* call = "aclrtHostGetDevicePointer";
  Status status = not_null(call, "pHost", pHost);
  if (status.ok()) status = not_null(call, "pDevice", pDevice);
  if (status.ok() && flag != 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "flag must be 0, but got %u",
                  flag);
  }
  if (!status.ok()) return status.code();
  Registrations& all = Registrations::get();
  std::unique_lock lock(all.mutex);
  const auto found = all.around(reinterpret_cast<uintptr_t>(pHost));
  const bool mapped = found != all.ranges.end() && found->second.mapped;
  lock.unlock();
  if (!mapped) return not_registered(call, pHost, "registered with ACL_HOST_REG_MAPPED").code();
  *pDevice = pHost;
  return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* ptr) {
  constexpr const char* call = "aclrtHostUnregister";
  if (Status null = not_null(call, "ptr", ptr); !null.ok()) return null.code();
  Registrations& all = Registrations::get();
  std::unique_lock lock(all.mutex);
  const bool ended = all.ranges.erase(reinterpret_cast<uintptr_t>(ptr)) > 0;
  lock.unlock();
  if (ended) return ACL_SUCCESS;
  return not_registered(call, ptr, "the start of a registered range").code();
}

// ---- memory that acl allocates ----

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  constexpr const char* call = "aclrtMallocHostWithCfg";
  if (cfg != nullptr) {
    if (Status status = check_config(call, *cfg); !status.ok()) return status.code();
  }
  return allocate_for(call, "ptr", ptr, size, 0, MemoryKind::host).code();
}

// If work has failed, returns that failure and keeps the memory; the next call frees it.
aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  constexpr const char* call = "aclrtFreeHostWithDevSync";
  Status status = not_null(call, "hostPtr", hostPtr);
  if (status.ok()) status = synchronize_device(call, Deadline());
  if (status.ok()) status = release(call, hostPtr, MemoryKind::host);
  return status.code();
}

aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t flag) {
  constexpr const char* call = "aclrtMemAllocManaged";
  if (flag != ACL_RT_MEM_ATTACH_GLOBAL) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "flag must be ACL_RT_MEM_ATTACH_GLOBAL (1), but got %u", flag)
        .code();
  }
  return allocate_for(call, "ptr", ptr, size, kMemoryUnit, MemoryKind::managed).code();
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  constexpr const char* call = "aclrtGetMemUsageInfo";
  Status status = not_null(call, "memUsageInfo", memUsageInfo);
  if (status.ok()) status = not_null(call, "outputNum", outputNum);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok() && inputNum == 0) {
    status =
        fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "inputNum must be at least 1");
  }
  if (!status.ok()) return status.code();
  const MemoryUse use = memory_use(deviceId);
  *memUsageInfo = {"APP", use.current, use.peak, {}};
  *outputNum = 1;
  return ACL_SUCCESS;
}

// Mapped memory is accessible as soon as it is mapped.
aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) {
  constexpr const char* call = "aclrtMemSetAccess";
  Status status = not_null(call, "virPtr", virPtr);
  if (status.ok()) status = not_null(call, "desc", desc);
  if (!status.ok()) return status.code();
  if (count == 0) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "count must be at least 1")
        .code();
  }
  for (size_t i = 0; i < count; ++i) {
    if (static_cast<int>(desc[i].flags) == ACL_RT_MEM_ACCESS_FLAGS_READWRITE) continue;
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "flags of desc %zu must be 3 (read and write), but are %d", i,
                static_cast<int>(desc[i].flags))
        .code();
  }
  const ReservedAddress found = find_reserved(virPtr);
  if (found.mapped >= size && size > 0) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "size must be in [1, %zu], the bytes mapped at %p, but got %zu", found.mapped, virPtr,
              size)
      .code();
}
