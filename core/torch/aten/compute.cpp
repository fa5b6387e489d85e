// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/compute.h"

#include "core/torch/aten/resolve.h"
#include "core/torch/aten/weight_tiles.h"

namespace openaclnn::aten {
namespace {

void put_list(const Parameter& parameter, const IValue& out, const std::vector<Tensor>& results) {
  const auto places = out.toListRef();
  if (places.size() != results.size())
    throw Refusal(std::string(parameter.name) + " must have " + std::to_string(results.size()) +
                  " tensors, but has " + std::to_string(places.size()));
  for (size_t k = 0; k < results.size(); ++k)
    if (!places[k].isNone()) put(places[k].toTensor(), results[k], parameter.name);
}

void put_results(const Call& call, const torch::jit::Stack& results, bool* fits) {
  const int* outputs = call.row->outputs;
  if (fits != nullptr && outputs[0] >= 0 && results.size() == 1 && results[0].isTensor()) {
    const Tensor out = call.tensor(static_cast<size_t>(outputs[0]));
    const Tensor& result = results[0].toTensor();
    *fits = out.defined() && result.defined() && out.sizes() == result.sizes() &&
            out.scalar_type() == result.scalar_type();
  }
  for (size_t i = 0; outputs[i] >= 0 && i < results.size(); ++i) {
    const IValue& out = call.values[static_cast<size_t>(outputs[i])];
    if (out.isTensor()) {
      if (is_not_computed(i, results[i])) {
        leave(out.toTensor());
      } else {
        put(out.toTensor(), results[i].toTensor(), call.row->parameters[outputs[i]].name);
      }
    } else if (!out.isNone()) {
      put_list(call.row->parameters[outputs[i]], out, results[i].toTensorVector());
    }
  }
}

// The product of two matrices of several dtypes; false if it takes the common way.
bool computed_in_tiles(const Call& call, const Resolved& found) {
  if (!found.is_product || call.row->computed != Row::Computed::promoted) return false;
  const auto place = static_cast<size_t>(call.row->outputs[0]);
  const Tensor out = call.tensor(place);
  if (!out.defined()) return false;
  const IValue& weight = call.values[1];
  if (!weight.isTensor() || weight.toTensor().scalar_type() == at::kFloat) return false;
  const Tensor y = promoted_product(call.tensor(0), call.tensor(1), out.scalar_type());
  if (y.defined()) put(out, y, call.row->parameters[place].name);
  return y.defined();
}

}  // namespace

void compute(const Call& call, bool* fits) {
  const Resolved& found = resolved(*call.row);
  if (call.direct) return found.direct.run(found.direct, call);
  if (found.composite != nullptr) {
    const bool in_float =
        call.row->computed == Row::Computed::in_float && !rounds_once(call, found);
    const bool changed = in_float || found.dense;
    return found.composite->run(changed ? prepared_for_composite(call, in_float, found.dense)
                                        : call);
  }
  if (computed_in_tiles(call, found)) return;
  FloatCopies written;
  torch::jit::Stack stack = stack_of(call, found, &written);
  if (call.writes_out) {
    stack.push_back(call.values[static_cast<size_t>(call.row->outputs[0])]);
    found.into->callBoxed(stack);
  } else {
    found.op->callBoxed(stack);
  }
  for (const auto& [tensor, copy] : written) tensor.copy_(copy);
  if (!found.in_place && !call.writes_out) put_results(call, stack, fits);
}

}  // namespace openaclnn::aten
