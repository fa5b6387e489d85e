// SPDX-License-Identifier: Apache-2.0
// Overflow detection. Arithmetic is that of IEEE 754: results do not saturate, an overflow is an
// infinity in the result, and no status word is set.
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/stream.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

constexpr size_t kStatusBytes = 64;

}  // namespace

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  constexpr const char* call = "aclrtSetDeviceSatMode";
  switch (static_cast<int>(mode)) {
    case ACL_RT_OVERFLOW_MODE_INFNAN: return ACL_SUCCESS;
    case ACL_RT_OVERFLOW_MODE_SATURATION:
      // Mildly: torch_npu ignores it, and later failures must not bring its sentence along.
      return fail_mildly(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                         "mode 0 is not supported: results do not saturate here (mode 1, "
                         "infinities and NaN)")
          .code();
    default: break;
  }
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "mode must be 0 (saturation) or 1 (infinities and NaN), but got %d",
              static_cast<int>(mode))
      .code();
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  Status status = not_null("aclrtGetDeviceSatMode", "mode", mode);
  if (status.ok()) *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
  return status.code();
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  constexpr const char* call = "aclrtSetStreamOverflowSwitch";
  if (flag > 1) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "flag must be 0 or 1, but got %u", flag)
        .code();
  }
  PinnedStream own;
  if (Status status = find_stream(stream, &own, call); !status.ok()) {
    return with_call(status, call).code();
  }
  own->overflow_switch = flag;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  constexpr const char* call = "aclrtGetStreamOverflowSwitch";
  if (Status null = not_null(call, "flag", flag); !null.ok()) return null.code();
  PinnedStream own;
  if (Status status = find_stream(stream, &own, call); !status.ok()) {
    return with_call(status, call).code();
  }
  *flag = own->overflow_switch;
  return ACL_SUCCESS;
}

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  constexpr const char* call = "aclrtGetOverflowStatus";
  if (Status null = not_null(call, "outputAddr", outputAddr, ObjectKind::device_memory); !null.ok())
    return null.code();
  if (outputSize != kStatusBytes) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "outputSize must be %zu, but got %zu", kStatusBytes, outputSize)
        .code();
  }
  const Transfer fill{outputAddr, nullptr, kStatusBytes, 0, call};
  Status status = check_fill(call, fill, outputSize);
  if (status.ok()) status = enqueue(call, fill, stream);
  return status.code();
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
  PinnedStream own;
  return find_working_stream("aclrtResetOverflowStatus", stream, &own).code();
}
