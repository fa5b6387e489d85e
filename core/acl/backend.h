// SPDX-License-Identifier: Apache-2.0
// The backend: the library in which ATen computes and gloo communicates, compiled on the user's
// machine. It is found through the environment of `openaclnn npu`, or in the directory of
// `openaclnn home --aten`.
#pragma once

namespace openaclnn {

// Returns a C function of the library, or nullptr where it is not found.
void* find_in_backend(const char* function);

}  // namespace openaclnn
