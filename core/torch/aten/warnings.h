// SPDX-License-Identifier: Apache-2.0
// Suppresses PyTorch's warnings, which would confuse users of C programs.
#pragma once

#include <c10/util/Exception.h>

#include "core/runtime/no_destructor.h"

namespace openaclnn::aten {

struct NoWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// RAII, for this thread.
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
