// SPDX-License-Identifier: Apache-2.0
// Functionalization for torch.compile and torch.export: an in-place or out= call becomes the
// functional form, and its results replace the tensors it would write.
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "gradient.h"

namespace openaclnn::torch {

class Functionalize final : public c10::OperatorKernel {
 public:
  // `plain` is the row of the plain form; for an overload with out= it is the row itself.
  Functionalize(const Row& row, int plain, bool out) : row_(row), plain_(plain), out_(out) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) const {
    namespace functional = at::functionalization::impl;
    const auto count = static_cast<size_t>(row_.arguments + (out_ ? row_.outputs : 0));
    c10::IValue* const arguments = stack->data() + stack->size() - count;
    at::Tensor written[kMaxOutputs];
    Stack call;
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& p = row_.parameters[i];
      if (p.role == Role::inout) written[0] = arguments[p.argument].toTensor();
      if (p.role == Role::output) written[p.argument] = outs(arguments)[p.argument].toTensor();
    }
    for (int i = 0; i < row_.arguments; ++i) {
      call.push_back(arguments[i]);
      if (!arguments[i].isTensor() || !functional::isFunctionalTensor(arguments[i].toTensor()))
        continue;
      functional::sync(arguments[i].toTensor());
      call.back() = functional::from_functional_tensor(arguments[i].toTensor());
    }
    {
      at::AutoDispatchSkipFunctionalize guard;
      operator_of(plain_).callBoxed(call);
    }
    ::torch::jit::drop(*stack, count);
    for (int i = 0; i < row_.outputs; ++i) {
      if (call[static_cast<size_t>(i)].toTensor().defined())
        put(call[static_cast<size_t>(i)].toTensor(), written[i]);
      stack->emplace_back(std::move(written[i]));
    }
  }

 private:
  const c10::IValue* outs(const c10::IValue* arguments) const { return arguments + row_.arguments; }

  // An output of another dtype gets the result rounded once more.
  void put(const at::Tensor& result, const at::Tensor& written) const {
    namespace functional = at::functionalization::impl;
    TORCH_CHECK_VALUE(functional::isFunctionalTensor(written), row_.python,
                      ": a captured call must not write into a tensor from outside the graph");
    TORCH_CHECK_VALUE(result.sym_sizes().equals(written.sym_sizes()), row_.python,
                      ": outputs must have the shape ", result.sym_sizes(), ", but got ",
                      written.sym_sizes());
    at::AutoDispatchSkipFunctionalize guard;
    functional::replace_(written, result.to(written.scalar_type()));
    functional::commit_update(written);
    functional::sync(written);
  }

  const Row& row_;
  const int plain_;
  const bool out_;
};

}  // namespace openaclnn::torch
