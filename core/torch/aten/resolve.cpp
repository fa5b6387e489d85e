// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/resolve.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/support/no_destructor.h"

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

static ArgumentForm form_of(const c10::Argument& argument) {
  ArgumentForm form{};
  c10::TypePtr type = argument.type();
  if (const auto inner = type->cast<c10::OptionalType>()) {
    form.optional = true;
    type = inner->getElementType();
  }
  form.kind = type->kind();
  if (const auto list = type->cast<c10::ListType>())
    form.of_tensors = list->getElementType()->kind() == c10::TypeKind::TensorType;
  const std::string& name = argument.name();
  form.is_position = name == "index" || name == "indices" || name == "target";
  form.is_device = name == "device";
  form.otherwise = argument.default_value().value_or(IValue());
  return form;
}

// Whether `into` has the arguments of `op` and then one tensor that it writes, and a CPU kernel:
// without, it calls `op` and copies.
static bool writes_result(const c10::OperatorHandle& into, const c10::FunctionSchema& op) {
  const auto &with = into.schema().arguments(), &without = op.arguments();
  if (with.size() != without.size() + 1 || op.returns().size() != 1) return false;
  for (size_t i = 0; i < without.size(); ++i) {
    if (with[i].name() != without[i].name() || *with[i].type() != *without[i].type()) return false;
  }
  return with.back().alias_info() != nullptr && with.back().alias_info()->isWrite() &&
         with.back().type()->kind() == c10::TypeKind::TensorType &&
         into.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

static std::optional<c10::OperatorHandle> writer_of(const Row& row, const Resolved& found) {
  const std::string name = row.op, overload = row.overload;
  if (found.in_place || row.outputs[0] < 0 || row.outputs[1] >= 0) return {};
  // matmul of matrices is mm.
  const std::string base = name == "matmul" ? "aten::mm" : "aten::" + name;
  for (const std::string& chosen : {std::string("out"), overload + "_out"}) {
    const auto into = c10::Dispatcher::singleton().findSchema({base, chosen});
    if (!into) continue;
    if (name == "matmul" || writes_result(*into, found.op->schema())) return into;
  }
  return {};
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
  for (const c10::Argument& argument : found.op->schema().arguments())
    found.forms.push_back(form_of(argument));
  found.is_pointwise = found.op->hasTag(at::Tag::pointwise);
  // Others may resize the output on their way: losses write all elements before they reduce.
  if (found.is_pointwise || found.is_product) found.into = writer_of(row, found);
  if (name == "matmul") found.into_rank = 2;
  found.direct = direct_of(row, found);
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
IValue with_wide_positions(IValue value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const Tensor& tensor = value.toTensor();
  return tensor.scalar_type() == at::kInt ? IValue(tensor.to(at::kLong)) : value;
}

// Converts the value to the schema's type: CANN's tensor may be ATen's number, and vice versa.
IValue converted(IValue value, const ArgumentForm& form, const char* name) {
  if (value.isNone() && form.optional) return value;
  switch (form.kind) {
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
  if (form.of_tensors) {
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
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() != *all)
      value = value.toTensor().to(*all);
  }
}

}  // namespace

torch::jit::Stack stack_of(const Call& call, const Resolved& found, FloatCopies* written) {
  const Row& row = *call.row;
  const bool floats = row.computed == Row::Computed::in_float && !rounds_once(call, found);
  torch::jit::Stack stack;
  const auto& forms = found.forms;
  stack.reserve(forms.size() + 1);
  const IValue& out = call.values[static_cast<size_t>(row.outputs[0])];
  const bool without_data = out.isTensor() && out.toTensor().is_meta();
  for (size_t i = 0; i < forms.size(); ++i) {
    if (i < static_cast<size_t>(row.argument_count)) {
      const Argument& from = row.arguments[i];
      const bool named = from.from == Argument::From::parameter;
      IValue value = argument(from, call);
      if (floats) value = dtype_in_float(from, call, std::move(value));
      value = converted(std::move(value), forms[i], named ? row.parameters[from.integer].name : "");
      if (forms[i].is_position) value = with_wide_positions(std::move(value));
      stack.push_back(std::move(value));
    } else if (forms[i].is_device && without_data) {
      stack.push_back(at::Device(at::kMeta));  // factory operators
    } else {
      stack.push_back(forms[i].otherwise);
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
