// SPDX-License-Identifier: Apache-2.0
// Device queries, answered for this machine.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "core/npu/calls.h"
#include "core/runtime/api_guard.h"
#include "core/runtime/parallel.h"

using namespace openaclnn;

namespace {

Status check_device(const char* call, int64_t device) {
  uint32_t count = 0;
  if (const int32_t code = aclrtGetDeviceCount(&count); code != 0) return Status(code);
  if (device >= 0 && device < int64_t{count}) return {};
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, {Reason::wrong_value, ObjectKind::device}, call,
              "deviceId must be in [0, %u), but got %lld", count, static_cast<long long>(device));
}

int64_t cache_bytes() {
  const int64_t third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return third > 0 ? third : second > 0 ? second : 0;
}

}  // namespace

// A core is a thread that operators may use; L2 is the last-level cache.
aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  constexpr const char* call = "aclGetDeviceCapability";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_device(call, deviceId);
  if (!status.ok()) return status.code();
  switch (deviceInfo) {
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

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  constexpr const char* call = "aclGetCannAttribute";
  Status status = not_null(call, "value", value);
  if (!status.ok()) return status.code();
  switch (cannAttr) {
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

// The version of CANN that this interface has, for each package; no driver.
aclError aclsysGetCANNVersion(int32_t name, aclCANNPackageVersion* version) {
  constexpr const char* call = "aclsysGetCANNVersion";
  constexpr int32_t kDriver = 7;  // behind CANN, runtime, compiler, HCCL, toolkit, OPP and kernels
  Status status = not_null(call, "version", version);
  if (!status.ok()) return status.code();
  *version = {};
  if (name < 0 || name >= kDriver)
    return fail_mildly(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                       "name must be in [0, %d), a package other than the driver, but got %d",
                       kDriver, name)
        .code();
  std::strcpy(version->version, "8.5.0");
  std::strcpy(version->majorVersion, "8");
  std::strcpy(version->minorVersion, "5");
  std::strcpy(version->releaseVersion, "0");
  return ACL_SUCCESS;
}

// "openaclnn" and the device number: not a real device, the same on every machine.
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  constexpr const char* call = "aclrtDeviceGetUuid";
  Status status = not_null(call, "uuid", uuid);
  if (status.ok()) status = check_device(call, deviceId);
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

// Capture is not supported, so no stream is ever captured.
aclError aclmdlRICaptureGetInfo(aclrtStream, int* status, void** modelRI) {
  if (status != nullptr) *status = 0;
  if (modelRI != nullptr) *modelRI = nullptr;
  return ACL_SUCCESS;
}
