// SPDX-License-Identifier: Apache-2.0
// A refusal is one sentence with Python's names, raised as ValueError.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "core/ops/direct.h"

namespace openaclnn::torch {

[[noreturn]] inline void refuse(const Row& row, const Parameter& parameter,
                                const std::string& what) {
  TORCH_CHECK_VALUE(false, row.python, ": ", parameter.python, " must ", what);
}

// Raises the library's sentence about this thread's newest call.
[[noreturn]] inline void refuse_as_told(const Row& row) {
  char sentence[1024], text[1024];
  openaclnn_take_sentence(sentence, sizeof sentence);
  openaclnn_python_sentence(&row, sentence, text, sizeof text);
  TORCH_CHECK_VALUE(false, text);
}

inline std::string dtype_text(at::ScalarType dtype) {
  return std::string(c10::getDtypeNames(dtype).first);
}

// Names the kind of a tensor whose memory the library cannot read; empty for other tensors.
inline std::string strange_kind(const at::Tensor& tensor) {
  if (!tensor.defined()) return "None";
  if (tensor.is_nested()) return "a nested one";
  if (tensor.is_quantized()) return "a quantised one";
  if (tensor.layout() != at::kStrided) return "one of layout torch." + c10::str(tensor.layout());
  if (!tensor.device().is_cpu() && !tensor.device().is_cuda())
    return "on the device " + tensor.device().str();
  if (!tensor.has_storage()) return "one without memory";
  return "";
}

inline void refuse_strange(const Row& row, const Parameter& parameter, const at::Tensor& tensor) {
  refuse(row, parameter, "be a dense tensor in CPU or CUDA memory, but is " + strange_kind(tensor));
}

// The kernel of a row for all other backends names the tensor that none can read.
class Refuse final : public c10::OperatorKernel {
 public:
  explicit Refuse(const Row& row) : row_(row) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  ::torch::jit::Stack* stack) const {
    const size_t count = op.schema().arguments().size();
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& parameter = row_.parameters[i];
      if (parameter.kind != Kind::tensor) continue;
      const bool output = parameter.role == Role::output;
      const size_t position = static_cast<size_t>(parameter.argument) +
                              (output ? static_cast<size_t>(row_.arguments) : 0);
      if (position >= count) continue;
      const c10::IValue& value = (*stack)[stack->size() - count + position];
      if (value.isTensor() && !strange_kind(value.toTensor()).empty())
        refuse_strange(row_, parameter, value.toTensor());
    }
    TORCH_CHECK_VALUE(false, row_.python,
                      ": tensors must be dense and in the memory of one device");
  }

 private:
  const Row& row_;
};

}  // namespace openaclnn::torch
