// SPDX-License-Identifier: Apache-2.0
// Small operators: the CPU kernel is called with a row's tensors and numbers as they are, without a
// stack of values and the dispatcher's way to the kernel.
#pragma once

#include <functional>
#include <vector>

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

struct Resolved;

struct Direct {
  // An argument of the kernel: a value of the call, or a constant of the row.
  struct Source {
    int place;  // -1: the constant
    IValue constant;
    bool is_tensor;  // else a number

    const IValue& of(const Call& call) const {
      return place < 0 ? constant : call.values[static_cast<size_t>(place)];
    }
  };
  std::vector<Source> sources;
  std::function<void(const Direct& own, const Call& call)> run;  // empty: not possible
};

// For an operator that writes its first argument, or that `into` computes, of at most three
// arguments.
Direct direct_of(const Row& row, const Resolved& found);

// Whether the values of the call are what the kernel takes. The same for calls of the same kinds of
// values and dtypes.
bool takes_directly(const Call& call, const Resolved& found);

}  // namespace openaclnn::aten
