// SPDX-License-Identifier: Apache-2.0
// A row that no single operator of ATen computes names a function of core/torch/aten/composites.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

struct Composite {
  const char* name;
  int parameters;
  void (*run)(const Call& call);
};

const Composite* find_composite(const char* name);  // nullptr if there is none

}  // namespace openaclnn::aten
