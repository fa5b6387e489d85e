// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/floats.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstring>

#include "core/support/no_destructor.h"
#include "core/torch/aten/resolve.h"

namespace openaclnn::aten {
namespace {

bool is_list_of_tensors(const IValue& value) {
  if (!value.isList()) return false;
  const auto type = value.toList().elementType();
  return type->isSubtypeOf(*c10::OptionalType::create(c10::TensorType::get()));
}

// Applies f to the tensor, or to the tensors of a list.
template <class F>
IValue map_tensors(const IValue& value, F f) {
  if (value.isTensor()) return f(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(f(tensor));
    return list;
  }
  if (!is_list_of_tensors(value)) return value;
  c10::List<std::optional<Tensor>> list;
  for (const IValue& element : value.toListRef())
    list.push_back(element.isNone() ? std::nullopt : std::optional(f(element.toTensor())));
  return list;
}

// oneDNN has kernels for bfloat16 on this CPU: AVX-512 and above.
bool has_bfloat16_kernels() {
  static constinit NoDestructor<bool> has;
  return has.get([] {
    const auto op =
        c10::Dispatcher::singleton().findSchema({"mkldnn::_is_mkldnn_bf16_supported", ""});
    if (!op) return false;
    torch::jit::Stack stack;
    op->callBoxed(stack);
    return !stack.empty() && stack[0].toBool();
  });
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
  return map_tensors(value, [&](const Tensor& tensor) {
    if (!tensor.defined() || !has_16_bits(tensor.scalar_type())) return tensor;
    const Tensor wider = tensor.to(wide);
    if (written != nullptr) written->emplace_back(tensor, wider);
    return wider;
  });
}

IValue dense(const IValue& value) {
  return map_tensors(
      value, [](const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; });
}

Call prepared_for_composite(const Call& call, bool floats, bool contiguous) {
  Call made{call.row, {}, call.handles};
  const at::ScalarType wide = wide_of(call.values);
  for (size_t i = 0; i < call.values.size(); ++i) {
    IValue value = call.values[i];
    if (!call.row->parameters[i].written) {
      if (floats) value = in_float(value, wide);
      if (contiguous) value = dense(value);
    }
    made.values.push_back(std::move(value));
  }
  return made;
}

// oneDNN's kernels for bfloat16 sum in float, and with AMX are several times as fast as those for
// float. In half it has none for gradients.
static bool is_for_bfloat16_kernels(const Call& call) {
  for (const IValue& value : call.values) {
    if (value.isTensor() && value.toTensor().scalar_type() != at::kBFloat16) return false;
  }
  return at::globalContext().userEnabledMkldnn() && has_bfloat16_kernels();
}

// ATen rounds the product of alpha and other, and then the sum.
static bool has_no_factor(const Call& call) {
  for (int i = 0; i < call.row->parameter_count; ++i) {
    if (std::strcmp(call.row->parameters[i].name, "alpha") != 0) continue;
    const IValue& alpha = call.values[static_cast<size_t>(i)];
    if (alpha.isNone()) return false;
    if (!alpha.isTensor()) return alpha.toScalar().equal(1);
    const Tensor tensor = alpha.toTensor();
    return tensor.is_cpu() && tensor.numel() == 1 && tensor.item().equal(1);
  }
  return false;
}

bool rounds_once(const Call& call, const Resolved& found) {
  return found.is_sum ? has_no_factor(call) : found.is_convolution && is_for_bfloat16_kernels(call);
}

}  // namespace openaclnn::aten
