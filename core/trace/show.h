// SPDX-License-Identifier: Apache-2.0
// Arguments as text. The functions for enumerated types are generated with the calls.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "aclnn/aclnn_base.h"
#include "core/trace/enumerations.h"

namespace openaclnn::trace {

std::string show(const void* address);
std::string show(const char* text);  // in quotes, as in C
std::string show(bool value);
std::string show(double value);
std::string show(float value);
std::string show(const aclTensor* tensor);  // FLOAT [4, 2], and what is special about it
std::string show(const aclScalar* scalar);  // its dtype and number
std::string show_stream(const void* handle);
// A tensor without a handle.
std::string show_view(aclDataType dtype, const int64_t* shape, const int64_t* strides, int rank,
                      const void* data);
std::string show_scalar(const void* value, aclDataType dtype);
const char* dtype_name(aclDataType dtype);

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
std::string show(T value) {
  return std::to_string(value);
}

template <class T>
std::string show_array(const T* values, uint64_t count) {
  if (values == nullptr) return "NULL";
  constexpr uint64_t kShown = 16;
  std::string text = "[";
  for (uint64_t i = 0; i < count && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += show(values[i]);
  }
  if (count > kShown) text += ", ...";
  return text + "]";
}

// The value that a call wrote through a pointer argument.
template <class T>
std::string show_result(T* result) {
  return result == nullptr ? "NULL" : "&" + show(*result);
}

// Learns from calls which handles are alive.
void know_tensor(const aclTensor* tensor);
void forget_tensor(const aclTensor* tensor);
bool is_known(const aclTensor* tensor);
void know_scalar(const aclScalar* scalar, std::string text);

}  // namespace openaclnn::trace
