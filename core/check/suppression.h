// SPDX-License-Identifier: Apache-2.0
// Tracks which resources are missing because a call was refused. A later mistake with that cause is
// reported as its consequence: a missing aclrtSetDevice is one mistake, not one for each later
// call.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/support/reason.h"

namespace openaclnn::check {

enum class MissingResource : uint32_t {
  nothing = 0,
  device = 1 << 0,  // of the calling thread; all others are of the process
  memory = 1 << 1,
  stream = 1 << 2,
  event = 1 << 3,
  context = 1 << 4,
  object = 1 << 5,  // tensors, scalars, arrays and lists
  executor = 1 << 6,
  result = 1 << 7,  // what an operator, a copy or a fill would have written
};

// Whether the resource is missing because a call was refused.
bool is_consequence(MissingResource resource);

MissingResource resource_of(ObjectKind kind);

// Records that a call was refused: from now on the program lacks what the call would have made.
// Returns whether an earlier refusal is the cause.
bool note_refusal(std::string_view call, const Cause& cause);

// Records that a call that needs a device succeeded.
void note_device();

// Returns the advice for a refusal of the call.
const char* advice_for(std::string_view call, const Cause& cause);

}  // namespace openaclnn::check
