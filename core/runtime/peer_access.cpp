// SPDX-License-Identifier: Apache-2.0
// Peers reach each other's memory, which is all memory of this machine: asking for it is checked,
// and needs nothing else.
#include "acl/acl_rt.h"
#include "core/runtime/arguments.h"
#include "core/runtime/device.h"

using namespace openaclnn;

namespace {

Status check_peer(const char* call, int32_t device, int32_t peer) {
  Status status = check_device(call, "peerDeviceId", peer);
  if (!status.ok() || device != peer) return status;
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: peerDeviceId must be another device than %d", call,
              device);
}

Status check_peer_of_current(const char* call, int32_t peer) {
  const PinnedContext context = current_context();
  if (!context) return no_context(call);
  return check_peer(call, context->device, peer);
}

}  // namespace

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
