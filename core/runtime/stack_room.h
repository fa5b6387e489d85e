// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace openaclnn {

// Bytes of stack that the calling thread has left; 0 when that is unknown, as on a stack that the
// program made itself (coroutines).
size_t stack_room();

}  // namespace openaclnn
