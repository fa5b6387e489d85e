// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/resolve.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/runtime/no_destructor.h"

namespace openaclnn::aten {

// Kernels that take any strides for contiguous, give wrong results for broadcast tensors (median)
// or refuse other strides: ATen's public functions make tensors contiguous before they call these.
constexpr std::array<std::string_view, 15> kForDense = {"native_batch_norm_backward",
                                                        "native_group_norm",
                                                        "native_group_norm_backward",
                                                        "native_layer_norm_backward",
                                                        "group_norm_silu",
                                                        "group_norm_silu_v2",
                                                        "adaptive_max_pool3d_backward",
                                                        "add_layer_norm_grad",
                                                        "deep_norm_grad",
                                                        "median",
                                                        "nanmedian",
                                                        "_pdist_forward",
                                                        "nll_loss2d_backward",
                                                        "_foreach_addcdiv",
                                                        "_foreach_addcmul"};

constexpr std::array<std::string_view, 5> kSums = {"add", "sub", "rsub", "_foreach_add",
                                                   "_foreach_sub"};

template <class Names>
static bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Resolved resolve(const Row& row) {
  Resolved found;
  const std::string name = row.op;
  found.dense = has(kForDense, name);
  found.is_sum = has(kSums, name);
  found.is_product = name == "mm" || name == "matmul" || name == "bmm";
  found.is_convolution = name == "convolution" || name == "convolution_backward";
  if (row.overload == nullptr) {
    found.composite = find_composite(row.op);
    if (found.composite == nullptr || found.composite->parameters != row.parameter_count)
      throw Refusal(
          std::string("internal error: no composite ") + row.op + " of that many parameters",
          Reason::internal);
    return found;
  }
  found.op = c10::Dispatcher::singleton().findSchema({"aten::" + name, row.overload});
  if (!found.op)
    throw Refusal("this torch has no operator " + name + "." + row.overload,
                  Reason::missing_library);
  if (found.op->schema().arguments().size() < static_cast<size_t>(row.argument_count))
    throw Refusal("this torch has fewer arguments of " + name + "." + row.overload,
                  Reason::missing_library);
  found.in_place = name.back() == '_';
  return found;
}

const Resolved& resolved(const Row& row) {
  using Known = std::vector<NoDestructor<Resolved>>;
  static constinit NoDestructor<Known> known;
  Known& all = known.get([] { return Known(static_cast<size_t>(row_count)); });
  return all[static_cast<size_t>(&row - rows)].get([&] { return resolve(row); });
}

namespace {

IValue as_scalar(const IValue& value) {
  if (!value.isTensor()) return value;
  need_data(value.toTensor());
  return value.toTensor().item();
}

// A device accepts 32-bit indices wherever it accepts 64-bit ones; many ATen operators do not.
IValue with_wide_positions(const IValue& value, const std::string& argument) {
  const bool positions = argument == "index" || argument == "indices" || argument == "target";
  if (!positions || !value.isTensor() || !value.toTensor().defined()) return value;
  const Tensor& tensor = value.toTensor();
  return tensor.scalar_type() == at::kInt ? tensor.to(at::kLong) : tensor;
}

// Converts the value to the schema's type: CANN's tensor may be ATen's number, and vice versa.
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

// 16-bit dtypes that the call names are float for an operator in float: put() rounds.
IValue dtype_in_float(const Argument& from, const Call& call, IValue value) {
  const bool is_dtype = from.from == Argument::From::dtype_of_out ||
                        (from.from == Argument::From::parameter &&
                         call.row->parameters[from.integer].kind == Kind::dtype);
  if (!is_dtype || !value.isInt()) return value;
  return has_16_bits(static_cast<at::ScalarType>(value.toInt()))
             ? IValue(static_cast<int64_t>(at::kFloat))
             : value;
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

// Whether the operator writes the argument, and not put(): running statistics.
bool changes_argument(const Row& row, const Argument& from) {
  if (from.from != Argument::From::parameter || !row.parameters[from.integer].written) return false;
  for (const int* output = row.outputs; *output >= 0; ++output) {
    if (*output == from.integer) return false;
  }
  return true;
}

// Promotes the tensors to the common dtype of all and out: 16-bit products for a 32-bit out are
// summed in 32 bits.
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

torch::jit::Stack stack_of(const Call& call, const c10::OperatorHandle& op, FloatCopies* written) {
  const Row& row = *call.row;
  const Resolved& found = resolved(row);
  const bool floats = row.computed == Row::Computed::in_float && !rounds_once(call, found);
  torch::jit::Stack stack;
  const auto& arguments = op.schema().arguments();
  stack.reserve(arguments.size());
  const IValue& out = call.values[static_cast<size_t>(row.outputs[0])];
  const bool without_data = out.isTensor() && out.toTensor().is_meta();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i < static_cast<size_t>(row.argument_count)) {
      const Argument& from = row.arguments[i];
      const bool named = from.from == Argument::From::parameter;
      IValue value = argument(from, call);
      if (floats) value = dtype_in_float(from, call, std::move(value));
      value = converted(std::move(value), arguments[i].type(),
                        named ? row.parameters[from.integer].name : "");
      stack.push_back(with_wide_positions(value, arguments[i].name()));
    } else if (arguments[i].name() == "device" && without_data) {
      stack.push_back(at::Device(at::kMeta));  // factory operators
    } else {
      stack.push_back(arguments[i].default_value().value_or(IValue()));
    }
  }
  if (floats) {
    const at::ScalarType wide = wide_of(stack);
    for (size_t i = 0; i < stack.size(); ++i) {
      const bool is_given = i < static_cast<size_t>(row.argument_count);
      const bool changes = is_given && changes_argument(row, row.arguments[i]);
      stack[i] = in_float(stack[i], wide, changes ? written : nullptr);
    }
  }
  if (row.computed == Row::Computed::promoted) promoted(stack, call);
  if (found.dense) {
    for (IValue& value : stack) value = dense(value);
  }
  return stack;
}

}  // namespace openaclnn::aten
