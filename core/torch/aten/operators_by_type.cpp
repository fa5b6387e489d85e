// SPDX-License-Identifier: Apache-2.0
// Operators by type (the older interface): rows whose name is not a C function. Tensors in the
// order of the row, attributes by name; one call does both phases.
#include "core/acl/typed_call.h"

#include <algorithm>
#include <unordered_map>

#include "core/support/no_destructor.h"
#include "core/torch/aten/composite.h"

namespace openaclnn::aten {
namespace {

const Row* find_type(const std::string& type) {
  static constinit NoDestructor<std::unordered_map<std::string, const Row*>> place;
  const auto& types = place.get([] {
    std::unordered_map<std::string, const Row*> found;
    for (int i = 0; i < row_count; ++i) {
      if (std::string_view(rows[i].name).substr(0, 3) != "acl") found[rows[i].name] = &rows[i];
    }
    return found;
  });
  const auto found = types.find(type);
  return found == types.end() ? nullptr : found->second;
}

IValue attribute(const TypedCall& call, const Parameter& parameter) {
  for (int i = 0; i < call.attribute_count; ++i) {
    const TypedAttribute& a = call.attributes[i];
    if (std::string_view(a.name) != parameter.name) continue;
    if (parameter.kind == Kind::text) return std::string(a.text);
    if (parameter.kind == Kind::ints)
      return c10::List<int64_t>(at::ArrayRef<int64_t>(a.integers, a.count));
    if (parameter.kind == Kind::floats)
      return c10::List<double>(at::ArrayRef<double>(a.reals, a.count));
    if (a.count != 1)
      throw Refusal(std::string(a.name) + " must be one number, but got " +
                    std::to_string(a.count));
    switch (parameter.kind) {
      case Kind::integer: return a.integers[0];
      case Kind::flag: return a.integers[0] != 0;
      default: return a.reals[0];
    }
  }
  if (parameter.limits.nullable) return {};
  throw Refusal("the attribute " + std::string(parameter.name) + " is missing");
}

// What is left of the inputs for a parameter that is a list.
int list_size(const Row& row, const TypedCall& given) {
  int others = 0;
  for (int i = 0; i < row.parameter_count; ++i)
    others += row.parameters[i].kind == Kind::tensor && !row.parameters[i].written;
  return std::max(given.input_count - others, 0);
}

Call as_call(const Row& row, const TypedCall& given) {
  Call call{&row, {}, {}};
  int inputs = 0, outputs = 0;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& parameter = row.parameters[i];
    if (parameter.kind == Kind::tensors) {
      Parameter element = parameter;
      element.kind = Kind::tensor;
      c10::List<std::optional<Tensor>> list;
      for (const int end = inputs + list_size(row, given); inputs < end; ++inputs) {
        const IValue one = to_ivalue(element, Value{.pointer = given.inputs[inputs]});
        list.push_back(one.isNone() ? std::nullopt : std::optional(one.toTensor()));
      }
      call.values.emplace_back(list);
      call.handles.push_back(nullptr);
      continue;
    }
    if (parameter.kind != Kind::tensor) {
      call.values.push_back(attribute(given, parameter));
      call.handles.push_back(nullptr);
      continue;
    }
    int& next = parameter.written ? outputs : inputs;
    const int count = parameter.written ? given.output_count : given.input_count;
    const void* handle = nullptr;
    if (next < count) handle = (parameter.written ? given.outputs : given.inputs)[next];
    ++next;
    call.take(parameter, Value{.pointer = handle});
  }
  if (given.input_count > inputs || given.output_count > outputs)
    throw Refusal("there must be at most " + std::to_string(inputs) + " inputs and " +
                  std::to_string(outputs) + " outputs, but got " +
                  std::to_string(given.input_count) + " and " + std::to_string(given.output_count));
  return call;
}

}  // namespace
}  // namespace openaclnn::aten

// attribute_count -1: only checks whether the type exists.
extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_aten_by_type(const openaclnn::TypedCall* call, void* stream) {
  using namespace openaclnn::aten;
  const Row* row = find_type(call->type);
  if (row == nullptr) return -1;
  if (call->attribute_count < 0) return 0;
  return perform(*row, [&] { return as_call(*row, *call); }, stream);
}
