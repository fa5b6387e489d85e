// SPDX-License-Identifier: Apache-2.0
// Waiting for everything on a device.
#include "acl/acl_rt.h"
#include "core/runtime/arguments.h"
#include "core/runtime/device.h"
#include "core/runtime/guard.h"
#include "core/runtime/streams.h"
#include "core/runtime/device_sync.h"

namespace openaclnn {
namespace {

bool on_device(Stream& stream, void* wanted) {
  const PinnedContext owner(contexts(), stream.owner());
  return owner && stream.awaited() && owner->device == *static_cast<int32_t*>(wanted);
}

}  // namespace

Status synchronize_device(const char* call, Deadline deadline) {
  PinnedContext context = current_context();
  if (!context) return no_context(call);
  if (Stream::owner_here() != nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a task must not wait for the device it runs on",
                call);
  }
  int32_t device = context->device;
  context.release();  // the wait may be long
  if (!drain_streams(on_device, &device, deadline)) {
    return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                "%s: the work of device %d must be done within the timeout, but was not", call,
                device);
  }
  return take_failures(call, on_device, &device);
}

}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtSynchronizeDevice() {
  return synchronize_device("aclrtSynchronizeDevice", Deadline()).code();
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  constexpr const char* call = "aclrtSynchronizeDeviceWithTimeout";
  if (Status status = check_timeout(call, timeout); !status.ok()) return status.code();
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&] {
    return synchronize_device(call, Deadline::in_milliseconds(timeout)).code();
  });
}
