// SPDX-License-Identifier: Apache-2.0
// A refusal is one sentence with Python's names, raised as ValueError.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "core/ops/direct.h"
#include "row.h"

namespace openaclnn::torch {

[[noreturn]] inline void refuse(const Row& row, const Parameter& parameter,
                                const std::string& what) {
  TORCH_CHECK_VALUE(false, row.name, ": ", parameter.name, " must ", what);
}

// Translates a word of the library's sentences for Python.
inline std::string_view translated(const Row& row, std::string_view word) {
  static constexpr std::string_view words[][2] = {{"FLOAT", "float32"},
                                                  {"FLOAT16", "float16"},
                                                  {"BFLOAT16", "bfloat16"},
                                                  {"DOUBLE", "float64"},
                                                  {"INT8", "int8"},
                                                  {"INT16", "int16"},
                                                  {"INT32", "int32"},
                                                  {"INT64", "int64"},
                                                  {"UINT8", "uint8"},
                                                  {"BOOL", "bool"},
                                                  {"NULL", "None"},
                                                  {"COMPLEX64", "complex64"},
                                                  {"COMPLEX128", "complex128"}};
  if (word == row.c_name) return row.name;
  for (int i = 0; i < row.parameter_count; ++i) {
    if (word == row.parameters[i].c_name) return row.parameters[i].name;
  }
  for (const auto& [from, to] : words) {
    if (word == from) return to;
  }
  return word;
}

inline std::string translated_sentence(const Row& row, std::string_view sentence) {
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string text;
  for (size_t i = 0; i < sentence.size();) {
    size_t end = i;
    while (end < sentence.size() && is_letter(sentence[end])) ++end;
    if (end == i) {
      text += sentence[i++];
    } else {
      text += translated(row, sentence.substr(i, end - i));
      i = end;
    }
  }
  return text;
}

// Returns the library's sentence about this thread's newest call.
[[noreturn]] inline void refuse_as_told(const Row& row) {
  char sentence[1024];
  openaclnn_take_sentence(sentence, sizeof sentence);
  TORCH_CHECK_VALUE(false, translated_sentence(row, sentence));
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
  if (!tensor.device().is_cpu()) return "on the device " + tensor.device().str();
  if (!tensor.has_storage()) return "one without memory";
  return "";
}

inline void refuse_strange(const Row& row, const Parameter& parameter, const at::Tensor& tensor) {
  refuse(row, parameter, "be a dense tensor in CPU memory, but is " + strange_kind(tensor));
}

// The kernel of a row for all other backends names the tensor that is not on the CPU.
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
    TORCH_CHECK_VALUE(false, row_.name, ": tensors must be dense and in CPU memory");
  }

 private:
  const Row& row_;
};

}  // namespace openaclnn::torch
