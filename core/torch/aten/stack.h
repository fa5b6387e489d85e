// SPDX-License-Identifier: Apache-2.0
// The operator of ATen that a row names, and its arguments.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "core/torch/aten/composite.h"
#include "core/torch/aten/floats.h"

namespace openaclnn::aten {

// What a row needs of torch, found out when it is first called.
struct Resolved {
  const Composite* composite = nullptr;
  std::optional<c10::OperatorHandle> op;
  bool in_place = false;  // the operator writes where the program wants the result
  bool dense = false;     // its kernels read tensors as if they were contiguous
  bool is_sum = false;    // self + alpha other
  bool is_convolution = false;
};

Resolved resolve(const Row& row);          // throws Refusal
const Resolved& resolved(const Row& row);  // the same, kept

// Whether ATen itself rounds the call's 16-bit results once, and faster than in float.
bool rounds_once(const Call& call, const Resolved& found);

// written takes the copies in float of the arguments that the operator changes.
torch::jit::Stack stack_of(const Call& call, const c10::OperatorHandle& op,
                           FloatCopies* written = nullptr);

}  // namespace openaclnn::aten
