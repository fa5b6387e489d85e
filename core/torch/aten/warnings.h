// SPDX-License-Identifier: Apache-2.0
// A C program did not ask for PyTorch: what PyTorch warns its own users of stays off its stderr.
#pragma once

#include <c10/util/Exception.h>

#include "core/runtime/no_destructor.h"

namespace openaclnn::aten {

struct NoWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// On this thread, as long as it lives.
class WithoutWarnings {
 public:
  WithoutWarnings() = default;

 private:
  static NoWarnings* handler() {
    static constinit NoDestructor<NoWarnings> one;
    return &one.get();
  }
  c10::WarningUtils::WarningHandlerGuard guard_{handler()};
};

}  // namespace openaclnn::aten
