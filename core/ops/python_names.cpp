// SPDX-License-Identifier: Apache-2.0
// Rows, parameters and dtypes as Python names them.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl_base_rt.h"
#include "core/base/dtype.h"
#include "core/ops/direct.h"

namespace openaclnn {
namespace {

struct PythonName {
  aclDataType dtype;
  const char* name;
};
constexpr PythonName kDtypes[] = {
    {ACL_FLOAT, "float32"},
    {ACL_FLOAT16, "float16"},
    {ACL_BF16, "bfloat16"},
    {ACL_DOUBLE, "float64"},
    {ACL_INT8, "int8"},
    {ACL_INT16, "int16"},
    {ACL_INT32, "int32"},
    {ACL_INT64, "int64"},
    {ACL_UINT8, "uint8"},
    {ACL_UINT16, "uint16"},
    {ACL_UINT32, "uint32"},
    {ACL_UINT64, "uint64"},
    {ACL_BOOL, "bool"},
    {ACL_COMPLEX64, "complex64"},
    {ACL_COMPLEX128, "complex128"},
    {ACL_COMPLEX32, "complex32"},
    {ACL_INT4, "int4"},
    {ACL_FLOAT8_E5M2, "float8_e5m2"},
    {ACL_FLOAT8_E4M3FN, "float8_e4m3fn"},
};

std::string_view translated(const Row& row, std::string_view word) {
  if (word == row.name) return row.python;
  for (int i = 0; i < row.parameter_count; ++i) {
    if (word == row.parameters[i].name) return row.parameters[i].python;
  }
  for (const PythonName& known : kDtypes) {
    if (word == dtype_name(known.dtype)) return known.name;
  }
  return word == "NULL" ? "None" : word;
}

std::string python_sentence(const Row& row, std::string_view sentence) {
  const auto is_letter = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
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

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

extern "C" void openaclnn_python_sentence(const Row* row, const char* sentence, char* text,
                                          size_t size) {
  if (size == 0) return;
  const std::string translated = python_sentence(*row, sentence);
  const size_t length = std::min(translated.size(), size - 1);
  std::memcpy(text, translated.data(), length);
  text[length] = 0;
}

extern "C" int32_t openaclnn_dtype(const char* python) {
  for (const PythonName& known : kDtypes) {
    if (std::strcmp(known.name, python) == 0) return known.dtype;
  }
  return ACL_DT_UNDEFINED;
}
