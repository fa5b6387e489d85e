// SPDX-License-Identifier: Apache-2.0
// The C functions that allocate, free and describe memory.
#include <unistd.h>

#include <cstring>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/device_memory.h"
#include "core/memory/memory.h"

using namespace openaclnn;

namespace openaclnn {

Status allocate_for(const char* call, const char* argument, void** address, size_t size,
                    size_t spare, MemoryKind kind) {
  if (Status status = not_null(call, argument, address); !status.ok()) return status;
  if (size == 0) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "size must be greater than 0");
  }
  if (size > kMostBytes) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "size must be at most %zu, but got %zu", kMostBytes, size);
  }
  if (!current_context()) return no_context(call);
  return allocate(call, size, spare, kind, address);
}

}  // namespace openaclnn

namespace {

aclError release_for(const char* call, const char* argument, void* address, MemoryKind kind) {
  if (Status status = not_null(
          call, argument, address,
          kind == MemoryKind::device ? ObjectKind::device_memory : ObjectKind::host_memory);
      !status.ok())
    return status.code();
  return release(call, address, kind).code();
}

}  // namespace

namespace openaclnn {

constexpr size_t kMostAttributes = 64;  // there are four kinds

Status check_config(const char* call, const aclrtMallocConfig& config) {
  if (config.numAttrs == 0) return {};
  if (Status status = not_null(call, "cfg->attrs", config.attrs); !status.ok()) return status;
  if (config.numAttrs > kMostAttributes) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "cfg->numAttrs must be at most %zu, but got %zu", kMostAttributes, config.numAttrs);
  }
  const PinnedContext context = current_context();
  if (!context) return no_context(call);
  for (size_t i = 0; i < config.numAttrs; ++i) {
    const aclrtMallocAttribute& given = config.attrs[i];
    int type;  // whatever the program wrote there
    std::memcpy(&type, &given.attr, sizeof type);
    if (type < ACL_RT_MEM_ATTR_RSV || type > ACL_RT_MEM_ATTR_VA_FLAG) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "cfg->attrs[%zu].attr must be in [0, 3], but got %d", i, type);
    }
    if (type == ACL_RT_MEM_ATTR_DEVICE_ID &&
        given.value.deviceId != static_cast<uint32_t>(context->device)) {
      return fail(ACL_ERROR_RT_INVALID_DEVICEID, {Reason::foreign_handle, ObjectKind::device}, call,
                  "cfg->attrs[%zu] must name the current device %d, but names %u", i,
                  context->device, given.value.deviceId);
    }
  }
  return {};
}

}  // namespace openaclnn

// The policy has no effect: on a host there is only one kind of memory to choose.
aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMalloc", "devPtr", devPtr, size, kMemoryUnit, MemoryKind::device)
      .code();
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMallocAlign32", "devPtr", devPtr, size, 0, MemoryKind::device).code();
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate_for("aclrtMallocCached", "devPtr", devPtr, size, kMemoryUnit, MemoryKind::device)
      .code();
}

// Attributes label memory for the driver of a device: checked, and without effect.
aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy,
                            aclrtMallocConfig* cfg) {
  constexpr const char* call = "aclrtMallocWithCfg";
  if (cfg != nullptr) {
    if (Status status = check_config(call, *cfg); !status.ok()) return status.code();
  }
  return allocate_for(call, "devPtr", devPtr, size, kMemoryUnit, MemoryKind::device).code();
}

aclError aclrtFree(void* devPtr) {
  return release_for("aclrtFree", "devPtr", devPtr, MemoryKind::device);
}

// If work has failed, returns that failure and keeps the memory; the next call frees it.
aclError aclrtFreeWithDevSync(void* devPtr) {
  constexpr const char* call = "aclrtFreeWithDevSync";
  if (Status status = not_null(call, "devPtr", devPtr); !status.ok()) return status.code();
  if (Status status = synchronize_device(call, Deadline()); !status.ok()) return status.code();
  return release(call, devPtr, MemoryKind::device).code();
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return allocate_for("aclrtMallocHost", "hostPtr", hostPtr, size, 0, MemoryKind::host).code();
}

aclError aclrtFreeHost(void* hostPtr) {
  return release_for("aclrtFreeHost", "hostPtr", hostPtr, MemoryKind::host);
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  Status status = not_null("aclrtGetMemInfo", "free", free);
  if (status.ok()) status = not_null("aclrtGetMemInfo", "total", total);
  if (!status.ok()) return status.code();

  const PinnedContext context = current_context();
  if (!context) return no_context("aclrtGetMemInfo").code();
  *free = free_device_memory(context->device);
  *total = device_memory();
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  constexpr const char* call = "aclrtPointerGetAttributes";
  Status status = not_null(call, "ptr", ptr);
  if (status.ok()) status = not_null(call, "attributes", attributes);
  if (!status.ok()) return status.code();
  *attributes = {{0, ACL_MEM_LOCATION_TYPE_UNREGISTERED}, 0, {0, 0, 0, 0}};
  const Allocation found = find_allocation(ptr);
  if (found.behind == 0) {
    if (is_registered(ptr)) attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
    return ACL_SUCCESS;
  }
  attributes->pageSize = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  if (found.kind == MemoryKind::device) {
    attributes->location = {static_cast<uint32_t>(found.device), ACL_MEM_LOCATION_TYPE_DEVICE};
  } else if (found.kind == MemoryKind::managed) {
    attributes->location = {static_cast<uint32_t>(found.device), ACL_MEM_LOCATION_TYPE_MANAGED};
  } else {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
  }
  return ACL_SUCCESS;
}
