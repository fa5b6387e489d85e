// SPDX-License-Identifier: Apache-2.0
// The operator of ATen that a row names, and its arguments.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "core/torch/aten/composite.h"
#include "core/torch/aten/direct.h"
#include "core/torch/aten/floats.h"

namespace openaclnn::aten {

// An argument of the operator's schema.
struct ArgumentForm {
  c10::TypeKind kind;  // without Optional
  bool optional;
  bool of_tensors;   // a list
  bool is_position;  // indices, which a device accepts in 32 bits
  bool is_device;
  IValue otherwise;  // the default
};

// The operator behind a row, resolved at the first call.
struct Resolved {
  const Composite* composite = nullptr;
  std::optional<c10::OperatorHandle> op;
  std::vector<ArgumentForm> forms;  // of op
  // The operator whose kernel writes into a given tensor, with `out` after the arguments.
  std::optional<c10::OperatorHandle> into;
  bool is_pointwise = false;
  int into_rank = -1;       // only for tensors of this rank
  bool in_place = false;    // the operator writes its argument
  bool dense = false;       // its kernels need contiguous tensors
  bool is_sum = false;      // self + alpha other
  bool is_product = false;  // of the first two parameters
  bool is_convolution = false;
  Direct direct;
};

Resolved resolve(const Row& row);          // throws Refusal
const Resolved& resolved(const Row& row);  // cached

// Whether ATen itself rounds the call's 16-bit results once, and faster than in float.
bool rounds_once(const Call& call, const Resolved& found);

// written takes the copies in float of the arguments that the operator changes.
torch::jit::Stack stack_of(const Call& call, const Resolved& found, FloatCopies* written = nullptr);

}  // namespace openaclnn::aten
