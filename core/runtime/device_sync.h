// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/deadline.h"
#include "core/runtime/status.h"

namespace openaclnn {

// Waits for the work of the current context's device, and returns what failed in it.
Status synchronize_device(const char* call, Deadline deadline);

}  // namespace openaclnn
