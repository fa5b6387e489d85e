// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/sentences.h"

#include <algorithm>
#include <initializer_list>
#include <regex>

#include "core/support/no_destructor.h"

namespace openaclnn::aten {
namespace {

bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != text.npos; });
}

bool is_foreign(const std::string& text) {
  return has_any(text,
                 {"INTERNAL ASSERT", "report a", "to be true, but got false", "itensor", "IValue",
                  "isTensor()", "isIntList()", "could not create a", "Expected Tensor but got"});
}

bool needs_a_tensor(const std::string& text) {
  return has_any(text, {"undefined Tensor", "undefined tensor", "does not have a device",
                        "no tensor arguments", "Expected a proper Tensor", "but got None",
                        "doesn't have storage"});
}

// CPUFloatType and MetaFloatType become Float; c10::Half becomes Half.
std::string with_plain_types(const std::string& text) {
  static constinit NoDestructor<std::regex> typed;
  const std::regex& types =
      typed.get([] { return std::regex("(?:CPU|Meta)([A-Z][A-Za-z0-9]*)Type|c10::"); });
  return std::regex_replace(text, types, "$1");
}

std::string shown(const Tensor& tensor) {
  return c10::str(tensor.scalar_type(), " ", tensor.sizes());
}

std::string shown(const IValue& value) {
  if (value.isTensor()) return shown(value.toTensor());
  if (value.isIntList()) return c10::str(at::IntArrayRef(value.toIntVector()));
  if (value.isList()) return c10::str("a list of ", value.toListRef().size());
  if (value.isScalar()) return c10::str(value.toScalar());
  return "";
}

// "self Float [2, 3], other Int [4]", truncated.
std::string arguments_of(const Call& call) {
  constexpr size_t kLong = 300;
  std::string text;
  for (size_t i = 0; i < call.values.size(); ++i) {
    const std::string one = shown(call.values[i]);
    if (one.empty()) continue;
    if (text.size() > kLong) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::string(call.row->parameters[i].name) + " " + one;
  }
  return text;
}

// The inputs that are NULL.
std::string missing_of(const Call& call) {
  std::string names;
  for (size_t i = 0; i < call.values.size(); ++i) {
    const Parameter& parameter = call.row->parameters[i];
    if (call.values[i].isNone() && !parameter.written)
      names += (names.empty() ? "" : " and ") + std::string(parameter.name);
  }
  return names;
}

}  // namespace

Refusal refusal_of(const Call& call, const std::exception& error) {
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr)
    return Refusal("ATen has no kernel for these dtypes: " + arguments_of(call),
                   Reason::wrong_dtype);
  if (dynamic_cast<const std::logic_error*>(&error) != nullptr)  // a std::vector that is too long
    return Refusal("ATen refuses these arguments: " + arguments_of(call));
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return refusal_of(call, of_torch != nullptr ? of_torch->what_without_backtrace() : error.what());
}

// For these ATen has no type of exception but the general one.
Refusal refusal_of(const Call& call, const std::string& text) {
  if (has_any(text, {"can't allocate memory"}))
    return Refusal("out of memory; the arguments are " + arguments_of(call), Reason::out_of_memory,
                   ACLNN_ERR_INNER);
  if (has_any(text, {"ZeroDivisionError"})) return Refusal("integer division by 0");
  const std::string missing = missing_of(call);
  if (needs_a_tensor(text) && !missing.empty()) return Missing(missing);
  if (has_any(text, {"without overflow"}))
    return Refusal("a number does not fit the dtype in which it is computed: " +
                   arguments_of(call));
  if (has_any(text, {"not implemented for '"}))  // of a form without data written in Python
    return Refusal("ATen has no kernel for these dtypes: " + arguments_of(call),
                   Reason::wrong_dtype);
  if (is_foreign(text) || needs_a_tensor(text))
    return Refusal("ATen refuses these arguments: " + arguments_of(call));
  return Refusal(with_plain_types(first_line(text)));
}

}  // namespace openaclnn::aten
