// SPDX-License-Identifier: Apache-2.0
// The gradient of a recorded call, computed by the operator of the gradient row. That operator is
// called through the dispatcher, so it can be recorded in turn.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "refuse.h"

namespace openaclnn::torch {

using ::torch::autograd::edge_list;
using ::torch::autograd::SavedVariable;
using ::torch::autograd::variable_list;
using Stack = ::torch::jit::Stack;

// Returns the functional operator of a row. No guarded local static: a child of fork could wait for
// its guard for ever.
inline const c10::OperatorHandle& operator_of(int row) {
  using Handles = std::vector<c10::OperatorHandle>;
  static constinit std::atomic<const Handles*> handles = nullptr;  // never freed
  const Handles* known = handles.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto found = std::make_unique<Handles>();
    for (int i = 0; openaclnn_row(i) != nullptr; ++i) {
      const std::string name = std::string("openaclnn::") + openaclnn_row(i)->python;
      found->push_back(c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), ""));
    }
    // The first of several threads wins.
    if (handles.compare_exchange_strong(known, found.get(), std::memory_order_acq_rel))
      known = found.release();
  }
  return (*known)[static_cast<size_t>(row)];
}

inline int position_of(const Row& row) {
  int i = 0;
  while (openaclnn_row(i) != &row) ++i;
  return i;
}

// Calls the gradient row. `incoming` is a gradient or a tangent, value(i) gives the IValue of
// parameter i of the row, wanted(i) says whether the gradient of input i is needed; take(i, tensor)
// receives it.
template <class Value, class Wanted, class Take>
void call_gradient(const Row& row, const at::Tensor& incoming, const Value& value,
                   const Wanted& wanted, const Take& take) {
  const Row& gradient = *openaclnn_row(row.gradient.row);
  Stack stack(static_cast<size_t>(gradient.arguments));
  for (int p = 0; p < row.gradient.source_count; ++p) {
    const Source& source = row.gradient.sources[p];
    if (source.from == From::made) continue;
    c10::IValue& argument = stack[static_cast<size_t>(gradient.parameters[p].argument)];
    switch (source.from) {
      case From::incoming: argument = incoming; break;
      case From::value: argument = value(source.parameter); break;
      case From::constant: argument = source.constant; break;
      case From::wanted: argument = wanted(source.parameter); break;
      case From::made: break;
    }
  }
  operator_of(row.gradient.row).callBoxed(stack);
  for (int p = 0; p < row.gradient.source_count; ++p) {
    const Source& source = row.gradient.sources[p];
    if (source.from != From::made) continue;
    take(source.parameter,
         std::move(stack[static_cast<size_t>(gradient.parameters[p].argument)]).toTensor());
  }
}

// The tensors of a row that a gradient may be asked for, as edges of the graph: its inputs in
// order.
template <class See>
void for_each_input(const Row& row, const See& see) {
  int edge = 0;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& p = row.parameters[i];
    if (p.kind == Kind::tensor && p.role != Role::output) see(i, edge++);
  }
}

// The parameters whose value the gradient uses.
template <class See>
void for_each_value(const Row& row, const See& see) {
  for (int p = 0; p < row.gradient.source_count; ++p) {
    const Source& source = row.gradient.sources[p];
    if (source.from == From::value) see(source.parameter);
  }
}

inline bool makes(const Row& row, int input) {
  for (int p = 0; p < row.gradient.source_count; ++p) {
    const Source& source = row.gradient.sources[p];
    if (source.from == From::made && source.parameter == input) return true;
  }
  return false;
}

// ---- second derivatives that no row computes ----

// ELU: the derivative of elu_backward(g, a, s, i, is_result, x) by x is 0 where x > 0. Elsewhere
// the value of elu_backward is g i (x + a s) from the result x and g i a s exp(i x) from the input
// x.
inline bool has_second(const Row& row, int parameter) {
  return std::strcmp(row.name, "aclnnEluBackward") == 0 &&
         std::strcmp(row.parameters[parameter].name, "selfOrResult") == 0;
}

// values: g, a, s, i, is_result, x
template <class Value>
at::Tensor second(const Row& row, const at::Tensor& incoming, const Value& value) {
  const at::Tensor x = value(5).toTensor();
  const at::Tensor product = incoming.mul(value(0).toTensor()).mul(value(3).toScalar());
  const at::Tensor below = at::where(x.gt(0), 0, product);
  if (value(4).toBool()) return below;
  Stack stack = {below, value(1), value(2), value(3), false, x};
  operator_of(position_of(row)).callBoxed(stack);
  return std::move(stack.back()).toTensor();
}

class Gradient final : public ::torch::autograd::Node {
 public:
  Gradient(const Row& row, edge_list&& edges) : Node(std::move(edges)), row_(row) {
    saved_.reserve(5);
  }

  std::string name() const override {
    return std::string("openaclnn::") + row_.python + "Backward";
  }

  // The values of the call; `is_output` where this node made the tensor.
  void save(int i, const c10::IValue& value, bool is_output) {
    if (!value.isTensor()) {
      values_[i] = value;
    } else if (saved_of(i) == nullptr) {
      const at::Tensor& tensor = value.toTensor();
      saved_.push_back({i, is_output, {tensor, is_output, is_output && tensor.is_view()}});
    }
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Saved& saved : saved_) saved.tensor.reset_data();
  }

  variable_list apply(variable_list&& incoming) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    variable_list gradients(num_outputs());
    // Several if the row has no gradient.
    if (std::none_of(incoming.begin(), incoming.end(), [](const auto& g) { return g.defined(); }))
      return gradients;
    bool call = false;
    for_each_input(row_, [&](int i, int edge) {
      if (!task_should_compute_output(static_cast<size_t>(edge))) return;
      if (makes(row_, i)) {
        call = true;
      } else if ((row_.gradient.zero >> i & 1) != 0) {
        gradients[static_cast<size_t>(edge)] = at::zeros_like(unpack(i).toTensor());
      } else if (has_second(row_, i)) {
        gradients[static_cast<size_t>(edge)] =
            second(row_, incoming[0], [&](int k) { return unpack(k); });
      } else {
        TORCH_CHECK_NOT_IMPLEMENTED(false, row_.python, ": there is no gradient by ",
                                    row_.parameters[i].python,
                                    row_.gradient.row >= 0 ? ", a second derivative" : "");
      }
    });
    if (!call) return gradients;
    call_gradient(
        row_, incoming[0], [&](int i) { return unpack(i); },
        [&](int i) { return task_should_compute_output(edge_of(i)); },
        [&](int i, at::Tensor&& gradient) {
          if (task_should_compute_output(edge_of(i))) gradients[edge_of(i)] = std::move(gradient);
        });
    return gradients;
  }

 private:
  struct Saved {
    int parameter;
    bool is_output;
    SavedVariable tensor;
  };

  Saved* saved_of(int i) {
    for (Saved& saved : saved_) {
      if (saved.parameter == i) return &saved;
    }
    return nullptr;
  }

  c10::IValue unpack(int i) {
    Saved* const saved = saved_of(i);
    if (saved == nullptr) return values_[i];
    return saved->is_output ? saved->tensor.unpack(getptr()) : saved->tensor.unpack();
  }

  size_t edge_of(int input) const {
    size_t found = 0;
    for_each_input(row_, [&](int i, int edge) {
      if (i == input) found = static_cast<size_t>(edge);
    });
    return found;
  }

  const Row& row_;
  c10::IValue values_[kMaxParameters];  // attributes, by parameter
  std::vector<Saved> saved_;
  std::mutex mutex_;
};

using NodePointer = decltype(::torch::autograd::Edge::function);

// Before torch 2.13 nodes were owned by std::shared_ptr.
template <class Pointer = NodePointer>
std::pair<Pointer, Gradient*> make_gradient(const Row& row, edge_list&& edges) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<::torch::autograd::Node>>) {
    auto made = std::make_shared<Gradient>(row, std::move(edges));
    Gradient* const raw = made.get();
    return {Pointer(std::move(made)), raw};
  } else {
    Pointer made = c10::make_intrusive<Gradient>(row, std::move(edges));
    Gradient* const raw = static_cast<Gradient*>(made.get());
    return {std::move(made), raw};
  }
}

}  // namespace openaclnn::torch
