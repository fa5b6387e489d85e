// SPDX-License-Identifier: Apache-2.0
// The library in which ATen computes and gloo communicates: compiled by the user, it lies where the
// environment of `openaclnn npu` finds it, or is loaded.
#pragma once

namespace openaclnn::npu {

// A C function of the library; nullptr in a process without torch_npu, where it is not found.
void* find_provided(const char* function);

}  // namespace openaclnn::npu
