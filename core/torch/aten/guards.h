// SPDX-License-Identifier: Apache-2.0
// What holds while ATen computes or checks.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <optional>

#include "core/support/no_destructor.h"

namespace openaclnn::aten {

// PyTorch's warnings would confuse users of C programs.
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

// Dispatches to the CPU kernels only: autograd has recorded the call already.
struct KernelsOnly {
  c10::impl::ExcludeDispatchKeyGuard keys{
      c10::autograd_dispatch_keyset |
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::ADInplaceOrView, c10::DispatchKey::AutocastCPU,
                           c10::DispatchKey::Functionalize})};
  at::NoGradGuard no_grad;
  // Profilers see one kernel of the device; torch_npu's would draw its arrow from a part of it.
  // Without a profiler the guard has no effect, but takes 3,000 instructions: a fifth of a Relu.
  std::optional<at::DisableRecordFunctionGuard> no_parts;

  KernelsOnly() {
    if (at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value()) no_parts.emplace();
  }
};

}  // namespace openaclnn::aten
