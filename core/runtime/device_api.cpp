// SPDX-License-Identifier: Apache-2.0
// The C functions of devices and contexts. Peers reach each other's memory, which is all memory of
// this machine: asking for it is checked, and needs nothing else.
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

constexpr const char* kDeviceId = "deviceId";

Status check_peer(const char* call, int32_t device, int32_t peer) {
  Status status = check_device(call, "peerDeviceId", peer);
  if (!status.ok() || device != peer) return status;
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
              "peerDeviceId must be another device than %d", device);
}

Status check_peer_of_current(const char* call, int32_t peer) {
  const PinnedContext context = current_context();
  if (!context) return no_context(call);
  return check_peer(call, context->device, peer);
}

}  // namespace

aclError aclrtSetDevice(int32_t deviceId) {
  if (Status status = check_device("aclrtSetDevice", kDeviceId, deviceId); !status.ok())
    return status.code();
  if (enter_device("aclrtSetDevice", deviceId, 1) == nullptr)
    return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  withdraw(ACL_ERROR_RT_CONTEXT_NULL);
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) {
  return reset_device("aclrtResetDevice", deviceId, false).code();
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return reset_device("aclrtResetDeviceForce", deviceId, true).code();
}

aclError aclrtGetDevice(int32_t* deviceId) {
  if (Status null = not_null("aclrtGetDevice", "deviceId", deviceId); !null.ok())
    return null.code();
  const PinnedContext context = current_context();
  if (!context) return no_context("aclrtGetDevice").code();
  *deviceId = context->device;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  if (Status null = not_null("aclrtGetDeviceCount", "count", count); !null.ok()) return null.code();
  *count = static_cast<uint32_t>(device_count());
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  constexpr const char* call = "aclrtGetPrimaryCtxState";
  Status status = not_null(call, "active", active);
  if (status.ok()) status = check_device(call, kDeviceId, deviceId);
  if (!status.ok()) return status.code();
  *active = has_default_context(deviceId);
  if (flags != nullptr) *flags = 0;
  return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  if (Status null = not_null("aclrtCreateContext", "context", context); !null.ok())
    return null.code();
  if (Status status = check_device("aclrtCreateContext", kDeviceId, deviceId); !status.ok()) {
    return status.code();
  }
  Context* made = create_context("aclrtCreateContext", deviceId, false);
  if (made == nullptr) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  notify_made("aclrtCreateContext", ObjectKind::context, made);
  set_current_context(made);
  *context = made;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  PinnedContext own;
  if (Status status = find_context("aclrtDestroyContext", context, &own); !status.ok()) {
    return status.code();
  }
  if (own->is_default) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::foreign_handle, "aclrtDestroyContext",
                "this is the default context of a device, which aclrtResetDevice destroys")
        .code();
  }
  Context* ending = own.get();
  if (ending == Stream::owner_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, "aclrtDestroyContext",
                "context must not be destroyed by a task that runs in it")
        .code();
  }
  own.release();
  notify_ending("aclrtDestroyContext", ObjectKind::context, ending);
  return destroy_context("aclrtDestroyContext", ending).code();
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  PinnedContext own;
  Status status = find_context("aclrtSetCurrentContext", context, &own);
  if (!status.ok()) return status.code();
  set_current_context(own.get());
  withdraw(ACL_ERROR_RT_CONTEXT_NULL);
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (Status null = not_null("aclrtGetCurrentContext", "context", context); !null.ok())
    return null.code();
  const PinnedContext own = current_context();
  if (!own) return no_context("aclrtGetCurrentContext").code();
  *context = own.get();
  return ACL_SUCCESS;
}

static Status wait_for_device(const char* call, Deadline deadline) {
  Status status = check_device_not_captured(call, current_device());
  return status.ok() ? synchronize_device(call, deadline) : status;
}

aclError aclrtSynchronizeDevice() {
  return wait_for_device("aclrtSynchronizeDevice", Deadline()).code();
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return guarded_status("aclrtSynchronizeDeviceWithTimeout", [&](const char* call) {
    if (Status status = check_timeout(call, timeout); !status.ok()) return status;
    return wait_for_device(call, Deadline::in_milliseconds(timeout));
  });
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  constexpr const char* call = "aclrtDeviceCanAccessPeer";
  Status status = not_null(call, "canAccessPeer", canAccessPeer);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) status = check_peer(call, deviceId, peerDeviceId);
  if (status.ok()) *canAccessPeer = 1;
  return status.code();
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  constexpr const char* call = "aclrtDeviceEnablePeerAccess";
  Status status = check_peer_of_current(call, peerDeviceId);
  if (status.ok()) status = check_zero(call, "flags", flags);
  return status.code();
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return check_peer_of_current("aclrtDeviceDisablePeerAccess", peerDeviceId).code();
}
