// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/limits.h"

#include <algorithm>
#include <sstream>

#include "core/torch/aten/sizes.h"
#include "core/torch/aten/resolve.h"

namespace openaclnn::aten {
namespace {

bool is_integral(const Tensor& tensor) {
  return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

void check_numbers(const Parameter& parameter, const Tensor& tensor) {
  if (parameter.limits.numbers == Limits::Numbers::packed) return;
  const bool floating = parameter.limits.numbers == Limits::Numbers::floating;
  if (floating ? tensor.is_floating_point() : is_integral(tensor)) return;
  std::ostringstream text;
  text << parameter.name << " must have " << (floating ? "floating-point numbers" : "integers")
       << ", but is " << tensor.scalar_type();
  throw Refusal(text.str(), Reason::wrong_dtype);
}

void check_range(const Parameter& parameter, int64_t number) {
  const auto [least, most] = std::pair(parameter.limits.least, parameter.limits.most);
  if (number >= least && number <= most) return;
  std::ostringstream text;
  text << parameter.name << " must be ";
  if (most == INT64_MAX)
    text << "at least " << least;
  else
    text << "from " << least << " to " << most;
  text << ", but got " << number;
  throw Refusal(text.str());
}

void check_multiple(const Call& call, const Parameter& parameter, int64_t number) {
  const int64_t by = call.values[static_cast<size_t>(parameter.limits.multiple)].toInt();
  if (by == 0 || number % by == 0) return;  // 0 is refused by the other's range
  throw Refusal(c10::str(parameter.name, " must be a multiple of ",
                         call.row->parameters[parameter.limits.multiple].name, ", ", by,
                         ", but got ", number));
}

// ATen divides by a positive scale and makes an index of the result.
void check_scale(const Parameter& parameter, double scale) {
  constexpr double kLeast = 1e-6;
  if (!(scale > 0) || scale >= kLeast) return;
  throw Refusal(c10::str(parameter.name, " must be 0 or less, which leaves it to the sizes, or at ",
                         "least ", kLeast, ", but got ", scale));
}

template <class F>
void for_each_number(const IValue& value, F f) {
  if (value.isInt()) f(value.toInt());
  if (value.isIntList())
    for (const int64_t number : value.toIntVector()) f(number);
}

int64_t length(const IValue& value) {
  return static_cast<int64_t>(value.isIntList()      ? value.toIntVector().size()
                              : value.isBoolList()   ? value.toBoolList().size()
                              : value.isDoubleList() ? value.toDoubleVector().size()
                                                     : value.toListRef().size());
}

void check_parameter(const Call& call, const Parameter& parameter, const IValue& value,
                     Sizes* sizes) {
  const Limits& limits = parameter.limits;
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return;
    if (limits.numbers != Limits::Numbers::any) check_numbers(parameter, tensor);
    if (limits.sizes >= 0) sizes->check(parameter, tensor.sizes());
  } else if (value.isList() && limits.sizes >= 0) {
    sizes->check(parameter, {length(value)});
  }
  if (limits.least != INT64_MIN || limits.most != INT64_MAX)
    for_each_number(value, [&](int64_t number) { check_range(parameter, number); });
  if (limits.numbers == Limits::Numbers::scale) check_scale(parameter, value.toDouble());
  if (limits.multiple >= 0) check_multiple(call, parameter, value.toInt());
}

bool flag(const Call& call, int parameter, bool without) {
  return parameter < 0 ? without : call.values[static_cast<size_t>(parameter)].toBool();
}

// Inputs define named sizes before outputs do, so that sentences blame the output.
Sizes checked(const Call& call) {
  Sizes sizes(call);
  for (const bool written : {false, true}) {
    for (int i = 0; i < call.row->parameter_count; ++i) {
      const Parameter& parameter = call.row->parameters[i];
      if (!flag(call, parameter.limits.condition, true)) continue;
      if (parameter.written == written)
        check_parameter(call, parameter, call.values[static_cast<size_t>(i)], &sizes);
    }
  }
  return sizes;
}

void check_values(const Call& call, const Parameter& parameter, const Tensor& indices,
                  int64_t bound) {
  if (!indices.defined() || indices.numel() == 0) return;
  const auto [least, most] = at::aminmax(indices);
  if (least.item().toLong() >= 0 && most.item().toLong() < bound) return;
  Tensor wrong = (indices < 0).logical_or_(indices >= bound);
  if (parameter.limits.ignored >= 0) {
    const IValue& ignored = call.values[static_cast<size_t>(parameter.limits.ignored)];
    // An attribute that is absent is torch's default.
    wrong.logical_and_(indices != (ignored.isNone() ? -100 : ignored.toInt()));
  }
  if (!wrong.any().item().toBool()) return;
  std::ostringstream text;
  text << parameter.name << " must have indices from 0 to " << bound - 1;
  if (parameter.limits.ignored >= 0)
    text << " or " << call.row->parameters[parameter.limits.ignored].name;
  text << ", but has " << indices.masked_select(wrong)[0].item().toLong();
  throw Refusal(text.str());
}

bool is_list(Kind kind) {
  return kind == Kind::ints || kind == Kind::bools || kind == Kind::floats;
}

// Whether ATen's operator needs a tensor, a number or a list there; of a composite every input that
// its row does not call nullable.
bool is_needed(const Call& call, int i) {
  const Row& row = *call.row;
  const Parameter& parameter = row.parameters[i];
  if (row.outputs[0] == i) return row.outputs[1] < 0;  // the only result
  if (parameter.limits.condition >= 0) return flag(call, parameter.limits.condition, true);
  if (parameter.limits.unless >= 0) return !flag(call, parameter.limits.unless, true);
  if (parameter.limits.nullable) return false;
  if (parameter.kind == Kind::tensors || (parameter.limits.sizes >= 0 && is_list(parameter.kind)))
    return true;
  const bool handle = parameter.kind == Kind::tensor || parameter.kind == Kind::scalar;
  const Resolved& found = resolved(row);
  if (!found.op) return handle && !parameter.written;
  const auto& arguments = found.op->schema().arguments();
  for (int k = 0; k < row.argument_count; ++k) {
    const Argument& from = row.arguments[k];
    if (from.from != Argument::From::parameter || from.integer != i) continue;
    const auto kind = arguments[static_cast<size_t>(k)].type()->kind();
    return kind == c10::TypeKind::TensorType || kind == c10::TypeKind::NumberType;
  }
  return false;
}

}  // namespace

void check_missing(const Call& call) {
  for (int i = 0; i < call.row->parameter_count; ++i) {
    if (call.values[static_cast<size_t>(i)].isNone() && is_needed(call, i))
      throw Missing(call.row->parameters[i].name);
  }
}

void check_limits(const Call& call) { (void)checked(call); }

void check_indices(const Call& call) {
  const Row& row = *call.row;
  const auto has_bound = [](const Parameter& p) { return p.limits.factors > 0; };
  if (std::none_of(row.parameters, row.parameters + row.parameter_count, has_bound)) return;
  const Sizes sizes = checked(call);
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& parameter = row.parameters[i];
    if (!has_bound(parameter)) continue;
    const auto bound = sizes.product(parameter.limits.bound, parameter.limits.factors);
    const IValue& value = call.values[static_cast<size_t>(i)];
    if (bound && value.isTensor()) check_values(call, parameter, value.toTensor(), *bound);
  }
}

}  // namespace openaclnn::aten
