// SPDX-License-Identifier: Apache-2.0
// The backend: the library in which ATen computes and gloo communicates, compiled on the user's
// machine and found through the environment of `openaclnn npu`.
#pragma once

namespace openaclnn::npu {

// Returns a C function of the library, or nullptr in a process without torch_npu, where it is not
// found.
void* find_in_backend(const char* function);

}  // namespace openaclnn::npu
