// SPDX-License-Identifier: Apache-2.0
// The CPU kernel of every row: the arguments of the dispatcher as plain data, then both phases.
// It is boxed, one class for all rows: calls from Python arrive boxed anyway.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>

#include <string>
#include <utility>

#include "core/ops/direct.h"
#include "dtypes.h"
#include "refuse.h"

namespace openaclnn::torch {

using Stack = ::torch::jit::Stack;

// "float32, float16 or bfloat16", of float dtypes.
inline std::string dtype_list(uint64_t dtypes) {
  std::string text;
  for (uint64_t left = dtypes; left != 0; left &= left - 1) {
    const bool last = (left & (left - 1)) == 0;
    text += text.empty() ? "" : last ? " or " : ", ";
    text += dtype_text(*scalar_type_of(__builtin_ctzll(left)));
  }
  return text;
}

class Call {
 public:
  // `arguments` are those of the schema; with `out` the outputs follow.
  Call(const Row& row, const c10::IValue* arguments, bool out) : row_(row), arguments_(arguments) {
    for (int i = 0; i < row.parameter_count; ++i) {
      const Parameter& p = row.parameters[i];
      const bool output = p.role == Role::output;
      value_[i].tensor = nullptr;
      if (output && !out) continue;
      const c10::IValue& value = arguments[p.argument + (output ? row.arguments : 0)];
      switch (p.kind) {
        case Kind::tensor:
          if (!value.isNone()) view(i, value.toTensor());
          break;
        case Kind::scalar: value_[i].real = number(p, value); break;
        case Kind::real: value_[i].real = value.toDouble(); break;
        case Kind::integer: value_[i].integer = value.toInt(); break;
        case Kind::flag: value_[i].integer = value.toBool(); break;
        case Kind::text:
          if (!value.isNone()) value_[i].text = value.toStringRef().c_str();
          break;
      }
    }
  }

  // Makes new outputs; unwanted ones are undefined.
  void make_outputs(at::Tensor* made) {
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& p = row_.parameters[i];
      if (p.role != Role::output) continue;
      if (p.condition >= 0 && value_[p.condition].integer == 0) continue;
      at::Tensor& output = made[p.argument];
      output = empty(i);
      view(i, output);
    }
  }

  void run() const {
    if (openaclnn_call(&row_, value_) != 0) refuse_as_told(row_);
  }

 private:
  void view(int i, const at::Tensor& tensor) {
    const Parameter& p = row_.parameters[i];
    if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.has_storage())
      refuse_strange(row_, p, tensor);
    openaclnn_view& view = view_[i];
    view.dtype = acl_dtype(tensor.scalar_type());
    if (view.dtype == ACL_DT_UNDEFINED) {
      refuse(row_, p, "have a dtype of the aclnn API, but got " + dtype_text(tensor.scalar_type()));
    }
    view.data = p.role == Role::input ? const_cast<void*>(tensor.const_data_ptr())
                                      : tensor.mutable_data_ptr();
    view.shape = tensor.sizes().data();
    view.strides = tensor.strides().data();
    view.rank = static_cast<int32_t>(tensor.dim());
    value_[i].tensor = &view;
  }

  double number(const Parameter& p, const c10::IValue& value) const {
    if (value.isDouble()) return value.toDouble();
    if (value.isComplexDouble()) refuse(row_, p, "be a real number, but is complex");
    return value.toScalar().toDouble();
  }

  // Makes a new output. Its memory layout is that of the first dense input of its shape, else that
  // of the first input of its shape without the gaps, else row by row. The fake kernels do the
  // same.
  at::Tensor empty(int i) const {
    if (const at::Tensor* like = all_alike())
      return at::detail::empty_strided_cpu(like->sizes(), like->strides(), like->scalar_type());
    int32_t dtype = 0, rank = 0;
    int64_t shape[kMaxRank];
    if (openaclnn_infer(&row_, value_, i, &dtype, &rank, shape) != 0) refuse_as_told(row_);
    const at::IntArrayRef sizes(shape, static_cast<size_t>(rank));
    const at::ScalarType made = *scalar_type_of(dtype);
    const at::Tensor* like = nullptr;
    for (int k = 0; k < row_.parameter_count; ++k) {
      if (!is_input(k)) continue;
      const at::Tensor& tensor = arguments_[row_.parameters[k].argument].toTensor();
      if (tensor.sizes() != sizes) continue;
      if (tensor.is_non_overlapping_and_dense())
        return at::detail::empty_strided_cpu(sizes, tensor.strides(), made);
      if (like == nullptr) like = &tensor;
    }
    if (like != nullptr) return at::empty_like(*like, like->options().dtype(made));
    return at::detail::empty_cpu(sizes, made);
  }

  // Returns the first input if it is dense, all inputs have its shape and dtype, and the results
  // are like it. This saves 0.1 us for infer. If the row does not have the dtype, the call reports
  // it.
  const at::Tensor* all_alike() const {
    if (!row_.pointwise) return nullptr;
    const at::Tensor* first = nullptr;
    for (int k = 0; k < row_.parameter_count; ++k) {
      if (!is_input(k)) continue;
      const at::Tensor& tensor = arguments_[row_.parameters[k].argument].toTensor();
      if (first == nullptr) {
        first = &tensor;
        if (!tensor.is_non_overlapping_and_dense()) return nullptr;
      } else if (tensor.scalar_type() != first->scalar_type() || tensor.sizes() != first->sizes()) {
        return nullptr;
      }
    }
    return first;
  }

  bool is_input(int k) const {
    const Parameter& p = row_.parameters[k];
    return p.kind == Kind::tensor && p.role == Role::input && value_[k].tensor != nullptr;
  }

  const Row& row_;
  const c10::IValue* arguments_;
  openaclnn_view view_[kMaxParameters];
  openaclnn_value value_[kMaxParameters];
};

class Compute final : public c10::OperatorKernel {
 public:
  Compute(const Row& row, bool out) : row_(row), out_(out) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) const {
    const auto count = static_cast<size_t>(row_.arguments + (out_ ? row_.outputs : 0));
    c10::IValue* const arguments = stack->data() + stack->size() - count;
    at::Tensor results[kMaxOutputs];
    {
      Call call(row_, arguments, out_);
      if (!out_ && !row_.inplace) call.make_outputs(results);
      call.run();
    }
    if (out_ || row_.inplace) {
      for (int i = 0; i < row_.parameter_count; ++i) {
        const Parameter& p = row_.parameters[i];
        if (p.role == Role::output)
          results[p.argument] = std::move(arguments[row_.arguments + p.argument]).toTensor();
        if (p.role == Role::inout) results[0] = std::move(arguments[p.argument]).toTensor();
      }
    }
    ::torch::jit::drop(*stack, count);
    for (int i = 0; i < row_.outputs; ++i) stack->emplace_back(std::move(results[i]));
  }

 private:
  const Row& row_;
  const bool out_;
};

}  // namespace openaclnn::torch
