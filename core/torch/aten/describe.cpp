// SPDX-License-Identifier: Apache-2.0
// An operator of PyTorch and its tensors, for core/trace/fallback.cpp.
#include "core/torch/aten/call.h"

namespace openaclnn::aten {
namespace {

using Add = void (*)(void* made, const char* name, int32_t dtype, uint64_t rank);

void add(const Tensor& tensor, const std::string& name, void* made, Add each) {
  if (tensor.defined())
    each(made, name.c_str(), acl_dtype(tensor.scalar_type()), static_cast<uint64_t>(tensor.dim()));
}

}  // namespace
}  // namespace openaclnn::aten

// Returns the name of the operator; `stack` holds its arguments.
extern "C" __attribute__((visibility("default"))) const char* openaclnn_describe_operator(
    const void* operation, const void* stack, void* made, openaclnn::aten::Add each) {
  using namespace openaclnn::aten;
  static thread_local std::string name;
  const auto& op = *static_cast<const c10::OperatorHandle*>(operation);
  const auto& values = *static_cast<const std::vector<c10::IValue>*>(stack);
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = values[values.size() - arguments.size() + i];
    if (value.isTensor()) add(value.toTensor(), arguments[i].name(), made, each);
    if (value.isList()) {  // of Tensor or Tensor?
      for (const c10::IValue& element : value.toListRef())
        if (element.isTensor()) add(element.toTensor(), arguments[i].name(), made, each);
    }
  }
  name = c10::str(op.operator_name());
  return name.c_str();
}
