// SPDX-License-Identifier: Apache-2.0
// Queries about a device, answered for this machine: a core is a thread that operators may use, L2
// is the last-level cache.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/environment.h"
#include "core/runtime/device_memory.h"
#include "core/support/parallel.h"
#include "core/support/product.h"

using namespace openaclnn;

namespace {

constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};

int64_t cache_bytes() {
  const int64_t third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return third > 0 ? third : second > 0 ? second : 0;
}

// The architecture of the product that the library imitates.
int64_t architecture() {
  constexpr int64_t kA5 = 3510, kA2 = 2201;
  return std::strncmp(products[current_product()].soc_name, "Ascend95", 8) == 0 ? kA5 : kA2;
}

// False for an attribute that does not exist.
bool attribute(int name, int64_t* value) {
  *value = 0;
  switch (name) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = num_threads(); return true;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(device_memory());
      return true;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = cache_bytes(); return true;
    case ACL_DEV_ATTR_DEVICE_FORM_FACTOR: *value = ACL_DEVICE_FORM_FACTOR_PCIE_CARD; return true;
    case ACL_DEV_ATTR_NPU_ARCH: *value = architecture(); return true;
    default: break;
  }
  // Threads of vector cores, which no product here has; numbers of the hardware; not virtual.
  return (name >= ACL_DEV_ATTR_WARP_SIZE && name <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z) ||
         (name >= ACL_DEV_ATTR_SMP_ID && name < ACL_DEV_ATTR_DEVICE_FORM_FACTOR) ||
         name == ACL_DEV_ATTR_IS_VIRTUAL;
}

}  // namespace

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  constexpr const char* call = "aclGetDeviceCapability";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_device(call, "deviceId", static_cast<int32_t>(deviceId));
  if (!status.ok()) return status.code();
  switch (static_cast<int>(deviceInfo)) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = num_threads(); return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE: *value = cache_bytes(); return ACL_SUCCESS;
    default: break;
  }
  *value = 0;
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "deviceInfo must be in [0, 2], but got %d", static_cast<int>(deviceInfo))
      .code();
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  constexpr const char* call = "aclrtGetDeviceInfo";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_device(call, "deviceId", static_cast<int32_t>(deviceId));
  if (status.ok() && !attribute(static_cast<int>(attr), value)) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                  "attr must be one of aclrtDevAttr, but got %d", static_cast<int>(attr));
  }
  return status.code();
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value) {
  constexpr const char* call = "aclrtGetDeviceCapability";
  const int feature = static_cast<int>(devFeatureType);
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) *value = ACL_DEV_FEATURE_NOT_SUPPORT;
  if (status.ok() && feature != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
      feature != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "devFeatureType must be 1 or 21, but got %d", feature);
  }
  return status.code();
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  constexpr const char* call = "aclGetCannAttribute";
  Status status = not_null(call, "value", value);
  if (!status.ok()) return status.code();
  switch (static_cast<int>(cannAttr)) {
    case ACL_CANN_ATTR_INF_NAN:
    case ACL_CANN_ATTR_BF16: *value = 1; return ACL_SUCCESS;
    case ACL_CANN_ATTR_JIT_COMPILE: *value = 0; return ACL_SUCCESS;
    default: break;
  }
  *value = 0;
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "cannAttr must be in [0, 2], but got %d", static_cast<int>(cannAttr))
      .code();
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  constexpr const char* call = "aclGetCannAttributeList";
  Status status = not_null(call, "cannAttrList", cannAttrList);
  if (status.ok()) status = not_null(call, "num", num);
  if (!status.ok()) return status.code();
  *cannAttrList = kAttributes;
  *num = sizeof kAttributes / sizeof *kAttributes;
  return ACL_SUCCESS;
}

aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible) {
  constexpr const char* call = "aclrtCheckArchCompatibility";
  Status status = not_null(call, "socVersion", socVersion);
  if (status.ok()) status = not_null(call, "canCompatible", canCompatible);
  if (!status.ok()) return status.code();
  const char* own = aclrtGetSocName();
  *canCompatible = own != nullptr && std::strcmp(own, socVersion) == 0;
  return ACL_SUCCESS;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  constexpr const char* call = "aclrtQueryDeviceStatus";
  Status status = not_null(call, "deviceStatus", deviceStatus);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return status.code();
}

// The share of its threads that work, at this moment, for the device's streams.
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  constexpr const char* call = "aclrtGetDeviceUtilizationRate";
  Status status = not_null(call, "utilizationInfo", utilizationInfo);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok() && utilizationInfo->utilizationExtend != nullptr) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "utilizationExtend must be NULL: it is reserved");
  }
  if (!status.ok()) return status.code();
  int busy = 0;
  streams().for_each([&](Stream& stream) {
    const PinnedContext owner(contexts(), stream.owner());
    if (owner && owner->device == deviceId && !stream.query()) ++busy;
  });
  const int percent = busy >= num_threads() ? 100 : 100 * busy / num_threads();
  *utilizationInfo = {percent, percent, 0, -1, nullptr};
  return ACL_SUCCESS;
}

// "openaclnn" and the device number: not a real device, the same on every machine.
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  constexpr const char* call = "aclrtDeviceGetUuid";
  Status status = not_null(call, "uuid", uuid);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (!status.ok()) return status.code();
  char text[sizeof uuid->bytes + 1] = {};
  snprintf(text, sizeof text, "openaclnn CPU %02d", deviceId);
  std::memcpy(uuid->bytes, text, sizeof uuid->bytes);
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  Status status = not_null("aclrtDeviceGetBareTgid", "pid", pid);
  if (status.ok()) *pid = getpid();
  return status.code();
}

// The number before ASCEND_RT_VISIBLE_DEVICES, whose list is ascending.
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  constexpr const char* call = "aclrtGetLogicDevIdByUserDevId";
  Status status = not_null(call, "logicDevId", logicDevId);
  if (status.ok()) status = check_device(call, "userDevid", userDevid);
  if (status.ok()) *logicDevId = visible_device(userDevid);
  return status.code();
}

// Smaller is more urgent.
aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  constexpr const char* call = "aclrtDeviceGetStreamPriorityRange";
  Status status = not_null(call, "leastPriority", leastPriority);
  if (status.ok()) status = not_null(call, "greatestPriority", greatestPriority);
  if (status.ok() && !current_context()) status = no_context(call);
  if (!status.ok()) return status.code();
  *leastPriority = 7;
  *greatestPriority = 0;
  return ACL_SUCCESS;
}
