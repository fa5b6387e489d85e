// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/floats.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace openaclnn::aten {
namespace {

bool is_list_of_tensors(const IValue& value) {
  if (!value.isList()) return false;
  const auto type = value.toList().elementType();
  return type->isSubtypeOf(*c10::OptionalType::create(c10::TensorType::get()));
}

// oneDNN has kernels for bfloat16 on this CPU: AVX-512 and above.
bool has_bfloat16_kernels() {
  static const bool has = [] {
    const auto op =
        c10::Dispatcher::singleton().findSchema({"mkldnn::_is_mkldnn_bf16_supported", ""});
    if (!op) return false;
    torch::jit::Stack stack;
    op->callBoxed(stack);
    return !stack.empty() && stack[0].toBool();
  }();
  return has;
}

}  // namespace

at::ScalarType wide_of(const std::vector<IValue>& values) {
  for (const IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined() &&
        value.toTensor().scalar_type() == at::kDouble)
      return at::kDouble;
  }
  return at::kFloat;
}

IValue in_float(const IValue& value, at::ScalarType wide, FloatCopies* written) {
  const auto converted = [&](const Tensor& tensor) {
    if (!tensor.defined() || !has_16_bits(tensor.scalar_type())) return tensor;
    const Tensor copy = tensor.to(wide);
    if (written != nullptr) written->emplace_back(tensor, copy);
    return copy;
  };
  if (value.isTensor()) return converted(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(converted(tensor));
    return list;
  }
  if (!is_list_of_tensors(value)) return value;
  c10::List<std::optional<Tensor>> list;
  for (const IValue& element : value.toListRef())
    list.push_back(element.isNone() ? std::nullopt : std::optional(converted(element.toTensor())));
  return list;
}

Call in_float(const Call& call) {
  Call made{call.row, {}, call.handles};
  const at::ScalarType wide = wide_of(call.values);
  for (size_t i = 0; i < call.values.size(); ++i) {
    const bool is_written = call.row->parameters[i].written;
    made.values.push_back(is_written ? call.values[i] : in_float(call.values[i], wide));
  }
  return made;
}

bool keeps_bfloat16(const Call& call) {
  if (std::string(call.row->op) != "convolution") return false;
  for (const IValue& value : call.values) {
    if (value.isTensor() && value.toTensor().scalar_type() != at::kBFloat16) return false;
  }
  return at::globalContext().userEnabledMkldnn() && has_bfloat16_kernels();
}

}  // namespace openaclnn::aten
