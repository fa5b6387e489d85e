// SPDX-License-Identifier: Apache-2.0
#include "core/npu/calls.h"

// Capture is not supported, so no stream is ever captured.
aclError aclmdlRICaptureGetInfo(aclrtStream, int* status, void** modelRI) {
  if (status != nullptr) *status = 0;
  if (modelRI != nullptr) *modelRI = nullptr;
  return ACL_SUCCESS;
}
