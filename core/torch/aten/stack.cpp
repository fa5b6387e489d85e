// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/stack.h"

#include "core/runtime/immortal.h"

namespace openaclnn::aten {

Resolved resolve(const Row& row) {
  Resolved found;
  if (row.overload == nullptr) {
    found.composite = find_composite(row.op);
    if (found.composite == nullptr || found.composite->parameters != row.parameter_count)
      throw Refusal(std::string("there is no composite ") + row.op + " of that many parameters");
    return found;
  }
  const std::string name = row.op;
  found.op = c10::Dispatcher::singleton().findSchema({"aten::" + name, row.overload});
  if (!found.op) throw Refusal("this torch has no operator " + name + "." + row.overload);
  if (found.op->schema().arguments().size() < static_cast<size_t>(row.argument_count))
    throw Refusal("this torch has fewer arguments of " + name + "." + row.overload);
  found.in_place = name.back() == '_';
  return found;
}

const Resolved& resolved(const Row& row) {
  using Known = std::vector<Immortal<Resolved>>;
  static constinit Immortal<Known> known;
  Known& all = known.get([] { return Known(static_cast<size_t>(row_count)); });
  return all[static_cast<size_t>(&row - rows)].get([&] { return resolve(row); });
}

namespace {

IValue as_scalar(const IValue& value) {
  if (!value.isTensor()) return value;
  need_data(value.toTensor());
  return value.toTensor().item();
}

// A device takes 32-bit positions wherever it takes 64-bit ones; many operators of ATen do not.
IValue with_wide_positions(const IValue& value, const std::string& argument) {
  const bool positions = argument == "index" || argument == "indices" || argument == "target";
  if (!positions || !value.isTensor() || !value.toTensor().defined()) return value;
  const Tensor& tensor = value.toTensor();
  return tensor.scalar_type() == at::kInt ? tensor.to(at::kLong) : tensor;
}

// The value as the schema wants it: what CANN passes as a tensor may be ATen's number, and the
// other way round.
IValue converted(IValue value, c10::TypePtr type, const char* name) {
  bool optional = false;
  if (const auto inner = type->cast<c10::OptionalType>()) {
    optional = true;
    type = inner->getElementType();
  }
  if (value.isNone() && optional) return value;
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      if (value.isNone()) return Tensor();
      return value.isTensor() ? value : IValue(at::native::wrapped_scalar_tensor(value.toScalar()));
    case c10::TypeKind::NumberType: return as_scalar(value);
    case c10::TypeKind::FloatType: return as_scalar(value).toScalar().toDouble();
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::IntType: return as_scalar(value).toScalar().toLong();
    case c10::TypeKind::BoolType: return as_scalar(value).toScalar().toBool();
    case c10::TypeKind::ListType: break;
    default: return value;
  }
  const auto element = type->expect<c10::ListType>()->getElementType();
  if (element->kind() == c10::TypeKind::TensorType) {
    c10::List<Tensor> list;
    if (value.isTensor())
      list.push_back(value.toTensor());
    else if (!value.isNone())
      for (const IValue& e : value.toListRef()) {
        if (e.isNone()) throw missing_element(name, list.size());
        list.push_back(e.toTensor());
      }
    return list;
  }
  if (value.isNone()) return c10::List<int64_t>();
  return value;
}

IValue argument(const Argument& from, const Call& call) {
  switch (from.from) {
    case Argument::From::parameter: return call.values[static_cast<size_t>(from.integer)];
    case Argument::From::dtype_of_out:
      return static_cast<int64_t>(
          call.tensor(static_cast<size_t>(call.row->outputs[0])).scalar_type());
    case Argument::From::none: return {};
    case Argument::From::flag: return from.integer != 0;
    case Argument::From::integer: return from.integer;
    case Argument::From::real: return from.real;
    case Argument::From::text: return std::string(from.text);
  }
  return {};
}

void in_float(torch::jit::Stack& stack) {
  for (IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::ScalarType dtype = value.toTensor().scalar_type();
    if (dtype == at::kHalf || dtype == at::kBFloat16) value = value.toTensor().to(at::kFloat);
  }
}

// The tensors in the dtype that holds all of them and out: what is multiplied in 16 bits for an out
// of 32 is summed in 32.
void promoted(torch::jit::Stack& stack, const Call& call) {
  const Tensor out = call.tensor(static_cast<size_t>(call.row->outputs[0]));
  std::optional<at::ScalarType> all;
  if (out.defined()) all = out.scalar_type();
  for (const IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::ScalarType own = value.toTensor().scalar_type();
    all = all ? c10::promoteTypes(*all, own) : own;
  }
  for (IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) value = value.toTensor().to(*all);
  }
}

}  // namespace

torch::jit::Stack stack_of(const Call& call, const c10::OperatorHandle& op) {
  const Row& row = *call.row;
  torch::jit::Stack stack;
  const auto& arguments = op.schema().arguments();
  stack.reserve(arguments.size());
  const IValue& out = call.values[static_cast<size_t>(row.outputs[0])];
  const bool without_data = out.isTensor() && out.toTensor().is_meta();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i < static_cast<size_t>(row.argument_count)) {
      const Argument& from = row.arguments[i];
      const bool named = from.from == Argument::From::parameter;
      const IValue value = converted(argument(from, call), arguments[i].type(),
                                     named ? row.parameters[from.integer].name : "");
      stack.push_back(with_wide_positions(value, arguments[i].name()));
    } else if (arguments[i].name() == "device" && without_data) {
      stack.push_back(at::Device(at::kMeta));  // operators that make a tensor from numbers
    } else {
      stack.push_back(arguments[i].default_value().value_or(IValue()));
    }
  }
  if (row.computed == Row::Computed::in_float) in_float(stack);
  if (row.computed == Row::Computed::promoted) promoted(stack, call);
  return stack;
}

}  // namespace openaclnn::aten
