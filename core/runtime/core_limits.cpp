// SPDX-License-Identifier: Apache-2.0
// How many cores later work may use, for a device and for a stream: kept, and the answer to
// queries. Kernels use the threads of OPENACLNN_NUM_THREADS.
#include <atomic>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/parallel.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

std::atomic<uint32_t> of_device[kMaxDevices][2];  // by aclrtDevResLimitType; 0: not limited
thread_local const Stream* stream_in_use = nullptr;

Status check_type(const char* call, int type) {
  if (type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
              "type must be 0 (cube cores) or 1 (vector cores), but got %d", type);
}

Status check_cores(const char* call, uint32_t value) {
  const auto cores = static_cast<uint32_t>(num_threads());
  if (value >= 1 && value <= cores) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
              "value must be in [1, %u], the cores of the device, but got %u", cores, value);
}

uint32_t cores_of_device(int32_t device, int type) {
  const uint32_t own = of_device[device][type];
  return own != 0 ? own : static_cast<uint32_t>(num_threads());
}

uint32_t cores_of_stream(const Stream& stream, int type) {
  if (const uint32_t own = stream.cores[type]; own != 0) return own;
  const PinnedContext owner(contexts(), stream.owner());
  return cores_of_device(owner ? owner->device : 0, type);
}

}  // namespace

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* call = "aclrtSetDeviceResLimit";
  Status status = check_device(call, "deviceId", deviceId);
  if (status.ok()) status = check_type(call, static_cast<int>(type));
  if (status.ok()) status = check_cores(call, value);
  if (status.ok()) of_device[deviceId][type] = value;
  return status.code();
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* call = "aclrtGetDeviceResLimit";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) status = check_type(call, static_cast<int>(type));
  if (status.ok()) *value = cores_of_device(deviceId, type);
  return status.code();
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  const Status status = check_device("aclrtResetDeviceResLimit", "deviceId", deviceId);
  if (status.ok()) of_device[deviceId][0] = of_device[deviceId][1] = 0;
  return status.code();
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* call = "aclrtSetStreamResLimit";
  PinnedStream own;
  Status status = check_type(call, static_cast<int>(type));
  if (status.ok()) status = check_cores(call, value);
  if (status.ok()) status = find_stream_for(call, stream, &own);
  if (status.ok()) own->cores[type] = value;
  return status.code();
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* call = "aclrtGetStreamResLimit";
  PinnedStream own;
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_type(call, static_cast<int>(type));
  if (status.ok()) status = find_stream_for(call, stream, &own);
  if (status.ok()) *value = cores_of_stream(*own, type);
  return status.code();
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  PinnedStream own;
  const Status status = find_stream_for("aclrtResetStreamResLimit", stream, &own);
  if (status.ok()) own->cores[0] = own->cores[1] = 0;
  return status.code();
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  PinnedStream own;
  const Status status = find_stream_for("aclrtUseStreamResInCurrentThread", stream, &own);
  if (status.ok()) stream_in_use = own.get();
  return status.code();
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  constexpr const char* call = "aclrtUnuseStreamResInCurrentThread";
  PinnedStream own;
  Status status = find_stream_for(call, stream, &own);
  if (status.ok() && own.get() != stream_in_use) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
                  "this thread does not use the limits of the stream; call "
                  "aclrtUseStreamResInCurrentThread first");
  }
  if (status.ok()) stream_in_use = nullptr;
  return status.code();
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* call = "aclrtGetResInCurrentThread";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_type(call, static_cast<int>(type));
  if (!status.ok()) return status.code();
  const PinnedContext context = current_context();
  if (!context) return no_context(call).code();
  const PinnedStream own(streams(), stream_in_use);  // unless it was destroyed meanwhile
  *value = own ? cores_of_stream(*own, type) : cores_of_device(context->device, type);
  return ACL_SUCCESS;
}
