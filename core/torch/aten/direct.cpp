// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/direct.h"

#include <algorithm>
#include <utility>

#include "core/torch/aten/resolve.h"

namespace openaclnn::aten {
namespace {

constexpr size_t kMost = 3;
constexpr c10::DispatchKeySet kCpu{c10::DispatchKey::CPU};

const Tensor& taken(const IValue& value, std::type_identity<const Tensor&>) {
  return value.toTensor();
}
at::Scalar taken(const IValue& value, std::type_identity<const at::Scalar&>) {
  return value.toScalar();
}

// Kernels take it as a reference, and change the elements only. A copy is two atomic operations.
Tensor& written(const IValue& value) { return const_cast<IValue&>(value).toTensor(); }

// The kernel writes the output of the row, behind the arguments.
template <class... A>
auto writing(const c10::OperatorHandle& op) {
  return [kernel = op.typed<Tensor&(A..., Tensor&)>()](const Direct& own, const Call& call) {
    Tensor& out = written(call.values[static_cast<size_t>(call.row->outputs[0])]);
    [&]<size_t... I>(std::index_sequence<I...>) {
      kernel.redispatch(kCpu, taken(own.sources[I].of(call), std::type_identity<A>())..., out);
    }(std::index_sequence_for<A...>());
  };
}

// The kernel writes its first argument.
template <class First, class... A>
auto in_place(const c10::OperatorHandle& op) {
  return [kernel = op.typed<Tensor&(Tensor&, A...)>()](const Direct& own, const Call& call) {
    Tensor& self = written(own.sources[0].of(call));
    [&]<size_t... I>(std::index_sequence<I...>) {
      kernel.redispatch(kCpu, self, taken(own.sources[I + 1].of(call), std::type_identity<A>())...);
    }(std::index_sequence_for<A...>());
  };
}

// The caller for the kinds of the sources; Known are those of the first ones.
template <class... Known>
void choose(const Resolved& found, Direct& direct) {
  if constexpr (sizeof...(Known) > 0) {
    if (sizeof...(Known) == direct.sources.size()) {
      if (found.in_place)
        direct.run = in_place<Known...>(*found.op);
      else
        direct.run = writing<Known...>(*found.into);
      return;
    }
  }
  if constexpr (sizeof...(Known) < kMost) {
    if (direct.sources[sizeof...(Known)].is_tensor)
      return choose<Known..., const Tensor&>(found, direct);
    if constexpr (sizeof...(Known) > 0) choose<Known..., const at::Scalar&>(found, direct);
  }
}

}  // namespace

Direct direct_of(const Row& row, const Resolved& found) {
  const c10::OperatorHandle* op = found.in_place ? &*found.op : found.into ? &*found.into : nullptr;
  const size_t count = found.forms.size();
  const auto is_index = [](const Parameter& own) { return own.limits.factors > 0; };
  if (std::any_of(row.parameters, row.parameters + row.parameter_count, is_index)) return {};
  if (op == nullptr || found.dense || count == 0 || count > kMost ||
      count != static_cast<size_t>(row.argument_count) || op->schema().returns().size() != 1 ||
      !op->hasKernelForDispatchKey(c10::DispatchKey::CPU))
    return {};
  Direct direct;
  for (size_t i = 0; i < count; ++i) {
    const ArgumentForm& form = found.forms[i];
    const Argument& from = row.arguments[i];
    const bool is_tensor = form.kind == c10::TypeKind::TensorType;
    if (form.optional || form.is_position ||
        !(is_tensor || (i > 0 && form.kind == c10::TypeKind::NumberType)))
      return {};
    switch (from.from) {
      case Argument::From::parameter:
        direct.sources.push_back({static_cast<int>(from.integer), {}, is_tensor});
        break;
      case Argument::From::integer: direct.sources.push_back({-1, from.integer, is_tensor}); break;
      case Argument::From::real: direct.sources.push_back({-1, from.real, is_tensor}); break;
      default: return {};
    }
  }
  choose(found, direct);
  return direct;
}

bool takes_directly(const Call& call, const Resolved& found) {
  if (!found.direct.run) return false;
  for (const Direct::Source& source : found.direct.sources) {
    const IValue& value = source.of(call);
    const bool fits =
        source.is_tensor ? value.isTensor() && value.toTensor().defined() : value.isScalar();
    if (!fits) return false;
  }
  const Row& row = *call.row;
  if (row.computed != Row::Computed::in_float && row.computed != Row::Computed::promoted)
    return true;
  // In the dtypes as they are.
  std::optional<at::ScalarType> common;
  for (const IValue& value : call.values) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::ScalarType own = value.toTensor().scalar_type();
    if (has_16_bits(own)) return false;
    if (row.computed == Row::Computed::promoted && common.value_or(own) != own) return false;
    common = own;
  }
  return true;
}

}  // namespace openaclnn::aten
