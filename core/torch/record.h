// SPDX-License-Identifier: Apache-2.0
// Kernels above the CPU kernel: record calls for autograd, propagate tangents, bump version
// counters.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>

#include <string>
#include <utility>

#include "compute.h"
#include "gradient.h"

namespace openaclnn::torch {

// Marks the results of a call that wrote into tensors of the caller, so that a backward pass that
// saved one of them fails.
inline void count_writes(const at::Tensor* written, int count) {
  for (int i = 0; i < count; ++i) ::torch::autograd::increment_version(written[i]);
}

// Calls the next kernel below and counts the writes to the arguments. The results may be other
// tensors: a transform of torch.func returns another wrapper.
inline void redispatch(const Row& row, bool out, const c10::OperatorHandle& op,
                       c10::DispatchKeySet below, Stack* stack) {
  at::Tensor written[kMaxOutputs];
  const auto count = static_cast<size_t>(row.arguments + (out ? row.outputs : 0));
  const c10::IValue* arguments = stack->data() + stack->size() - count;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& p = row.parameters[i];
    if (p.role == Role::inout) written[0] = arguments[p.argument].toTensor();
    if (p.role == Role::output && out)
      written[p.argument] = arguments[row.arguments + p.argument].toTensor();
  }
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(below, stack);
  }
  if (out || row.inplace) count_writes(written, row.outputs);
}

class Record final : public c10::OperatorKernel {
 public:
  Record(const Row& row, bool out)
      : row_(row),
        out_(out),
        compute_(row, out),
        gradient_(row.gradient.row < 0 ? nullptr : openaclnn_row(row.gradient.row)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const auto count = static_cast<size_t>(row_.arguments + (out_ ? row_.outputs : 0));
    c10::IValue* arguments = stack->data() + stack->size() - count;
    bool wanted = false, tangents = false;
    for (size_t i = 0; i < count; ++i) {
      if (!arguments[i].isTensor()) continue;
      const at::Tensor& tensor = arguments[i].toTensor();
      if (!tensor.defined()) continue;
      wanted |= tensor.requires_grad();
      tangents |= tensor._fw_grad(0).defined();
    }
    wanted = wanted && c10::GradMode::is_enabled();
    bool complete = true;
    for_each_input(row_, [&](int i, int) { complete &= tensor_of(arguments, i).defined(); });
    // None is refused by the call.
    if (!complete || (!wanted && !tangents)) return go_on(op, keys, stack);
    if (out_) {
      TORCH_CHECK_VALUE(false, row_.python,
                        ": tensors of a call with out= must not require a gradient or carry a "
                        "tangent");
    }
    check(arguments, tangents);
    const at::Tensor inout = row_.inplace ? tensor_of(arguments, inout_index()) : at::Tensor();
    if (row_.inplace) ::torch::autograd::check_inplace(inout, wanted);

    NodePointer node;
    Gradient* gradient = nullptr;
    if (wanted) {
      edge_list edges;
      for_each_input(row_, [&](int i, int) {
        edges.push_back(::torch::autograd::impl::gradient_edge(tensor_of(arguments, i)));
      });
      std::tie(node, gradient) = make_gradient(row_, std::move(edges));
    }
    c10::IValue values[kMaxParameters];  // by parameter
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& p = row_.parameters[i];
      if (p.role != Role::output) values[i] = arguments[p.argument];
    }
    go_on(op, keys, stack);
    const c10::IValue* results = stack->data() + stack->size() - static_cast<size_t>(row_.outputs);
    for (int i = 0; i < row_.parameter_count; ++i) {
      if (row_.parameters[i].role == Role::output) values[i] = results[row_.parameters[i].argument];
    }
    if (row_.inplace) stack->back() = inout;  // autograd stores the history there
    const at::Tensor result = results[result_index()].toTensor();
    if (row_.inplace && wanted) {
      ::torch::autograd::rebase_history(result, node);
    } else if (wanted && row_.gradient.row >= 0) {
      ::torch::autograd::set_history(result, node);
    } else if (wanted) {
      // Without history a result would be a constant, and a derivative through it would silently
      // lack terms; the node refuses it.
      for (int i = 0; i < row_.outputs; ++i)
        ::torch::autograd::set_history(results[i].toTensor(), node);
    }
    if (tangents) push_tangent(values, result);
    if (wanted) save(*gradient, values);
  }

 private:
  // Calls the kernels below autograd and below the counting of writes. Dense CPU tensors go to
  // their kernel at once; the dispatcher has nothing else to find for them, and would take 40 ns.
  void go_on(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
    if (below.highestPriorityTypeId() != c10::DispatchKey::CPU)
      return redispatch(row_, out_, op, below, stack);
    compute_(op, below, stack);
    for (int i = 1; (out_ || row_.inplace) && i <= row_.outputs; ++i)
      count_writes(&(*stack)[stack->size() - static_cast<size_t>(i)].toTensor(), 1);
  }

  const at::Tensor& tensor_of(const c10::IValue* arguments, int i) const {
    return arguments[row_.parameters[i].argument].toTensor();
  }

  int inout_index() const {
    int i = 0;
    while (row_.parameters[i].role != Role::inout) ++i;
    return i;
  }

  // The result whose gradient comes in; without a gradient row, the first.
  int result_index() const {
    for (int p = 0; p < row_.gradient.source_count; ++p) {
      const Source& source = row_.gradient.sources[p];
      if (source.from != From::incoming) continue;
      const Parameter& output = row_.parameters[source.parameter];
      return output.role == Role::inout ? 0 : output.argument;
    }
    return 0;
  }

  // Records a call if the row has a gradient, or computes a tangent.
  void check(const c10::IValue* arguments, bool tangents) const {
    if (row_.gradient.row < 0) return;
    for_each_input(row_, [&](int i, int) {
      const auto dtype = tensor_of(arguments, i).scalar_type();
      const int32_t known = acl_dtype(dtype);
      const uint64_t bit = known < 0 ? 0 : uint64_t{1} << known;
      const uint64_t having = row_.dtypes & gradient_->dtypes;
      if ((having & bit) != 0) return;
      // What no product has, but the library computes.
      const bool extra = (row_.computed & gradient_->computed & bit) != 0;
      if (extra && openaclnn_accepts(gradient_, known) != 0) return;
      refuse(row_, row_.parameters[i],
             "have dtype " + dtype_list(having) + " where a gradient is recorded, but got " +
                 dtype_text(dtype) + (extra ? "; openaclnn.set_product(None) allows it" : ""));
    });
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& p = row_.parameters[i];
      if (p.role != Role::attribute) continue;
      const c10::IValue& value = arguments[p.argument];
      if ((row_.gradient.nonnegative >> i & 1) != 0 && value.toScalar().toDouble() < 0) {
        refuse(row_, p,
               "not be negative where a gradient is recorded, which is found from the result; the "
               "function that is not in place takes it");
      }
      if (i == row_.gradient.only_if && !value.toBool())
        refuse(row_, p, "be True where a gradient is recorded");
    }
    if (tangents && !row_.pointwise) {
      TORCH_CHECK_NOT_IMPLEMENTED(false, row_.python,
                                  ": there is no forward-mode derivative of this operator; use "
                                  "reverse mode");
    }
  }

  static c10::IValue without_tangent(const c10::IValue& value) {
    if (!value.isTensor() || !value.toTensor()._fw_grad(0).defined()) return value;
    return value.toTensor()._fw_primal(0);
  }

  void save(Gradient& gradient, const c10::IValue* values) const {
    for_each_value(
        row_, [&](int i) { gradient.save(i, values[i], row_.parameters[i].role == Role::inout); });
    for_each_input(row_, [&](int i, int) {
      const bool second = has_second(row_, i);
      if (second) gradient.save(0, values[0], false);
      // a zero gradient is like its input
      if (second || (row_.gradient.zero >> i & 1) != 0) gradient.save(i, values[i], false);
    });
  }

  // For a pointwise row: its Jacobian is diagonal, so the gradient row also maps tangents.
  void push_tangent(const c10::IValue* values, const at::Tensor& result) const {
    at::Tensor sum;
    const auto add = [&](const at::Tensor& term) { sum = sum.defined() ? sum.add(term) : term; };
    for_each_input(row_, [&](int i, int) {
      const at::Tensor& input = values[i].toTensor();
      const at::Tensor tangent = input._fw_grad(0);
      if (!tangent.defined()) return;
      if (makes(row_, i)) {
        call_gradient(
            row_, tangent, [&](int k) { return without_tangent(values[k]); },
            [&](int k) { return k == i; },
            [&](int k, at::Tensor&& term) {
              if (k == i) add(term);
            });
      } else if ((row_.gradient.zero >> i & 1) != 0) {
        add(at::zeros_like(result));
      } else if (has_second(row_, i)) {
        add(second(row_, tangent, [&](int k) { return without_tangent(values[k]); }));
      } else {
        TORCH_CHECK_NOT_IMPLEMENTED(false, row_.python, ": there is no forward-mode derivative by ",
                                    row_.parameters[i].python);
      }
    });
    if (!sum.defined()) return;
    if (const at::Tensor& own = result._fw_grad(0); row_.inplace && own.defined()) {
      own.copy_(sum);
    } else {
      result._set_fw_grad(sum, 0, row_.inplace);
    }
  }

  const Row& row_;
  const bool out_;
  const Compute compute_;
  const Row* const gradient_;  // nullptr: none
};

// In inference mode autograd is off, but writes to ordinary tensors still count.
class CountWrites final : public c10::OperatorKernel {
 public:
  CountWrites(const Row& row, bool out) : row_(row), out_(out) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    redispatch(row_, out_, op, keys & c10::after_ADInplaceOrView_keyset, stack);
  }

 private:
  const Row& row_;
  const bool out_;
};

}  // namespace openaclnn::torch
