// SPDX-License-Identifier: Apache-2.0
// The library in which ATen computes and gloo communicates. It is compiled on the user's machine;
// it lies where the environment of `openaclnn npu` finds it, or is already loaded.
#pragma once

namespace openaclnn::npu {

// Returns a C function of the library, or nullptr in a process without torch_npu, where it is not
// found.
void* find_in_backend(const char* function);

}  // namespace openaclnn::npu
