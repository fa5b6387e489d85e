// SPDX-License-Identifier: Apache-2.0
// The environment variables that openaclnn reads as numbers, sizes or words, and all that begin
// with OPENACLNN_: others that begin so are reported when the library is loaded.
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/runtime/device.h"
#include "core/support/environment.h"
#include "core/support/parallel.h"
#include "core/support/product.h"

namespace openaclnn {
namespace {

enum class Values { any, number, bytes, product, isa, nan, python };

struct Variable {
  const char* name;
  Values values = Values::any;
  int64_t low = 0, high = 1;  // of a number
};

constexpr int64_t kLongestTimeout = INT32_MAX / 1000;  // seconds that in milliseconds are an int

constexpr Variable kVariables[] = {
    {"HCCL_CONNECT_TIMEOUT", Values::number, 1, kLongestTimeout},
    {"HCCL_EXEC_TIMEOUT", Values::number, 1, kLongestTimeout},
    {"LOCAL_WORLD_SIZE", Values::number, 1, kMaxDevices},
    {"OPENACLNN_CACHE"},
    {"OPENACLNN_CHECK", Values::number},
    {"OPENACLNN_CHECK_EXIT_CODE", Values::number, 0, 255},
    {"OPENACLNN_CHECK_JSON"},
    {"OPENACLNN_CHECK_SEEN"},
    {"OPENACLNN_DEVICES", Values::number, 0, kMaxDevices},
    {"OPENACLNN_DEVICE_MEMORY", Values::bytes},
    {"OPENACLNN_FILL", Values::nan},
    {"OPENACLNN_HCCL_FAULT"},
    {"OPENACLNN_ISA", Values::isa},
    {"OPENACLNN_NPU_NOTICE", Values::number},
    {"OPENACLNN_NUM_THREADS", Values::number, 1, kMaxThreads},
    {"OPENACLNN_PRODUCT", Values::product},
    {"OPENACLNN_REPORT"},
    {"OPENACLNN_REPORTED_NAMES"},
    {"OPENACLNN_REPORT_PRODUCTS"},
    {"OPENACLNN_SOC_NAME"},
    {"OPENACLNN_STREAMING_BYTES", Values::number, 1, int64_t{1} << 62},
    {"OPENACLNN_TEST_SEED"},
    {"OPENACLNN_TORCH", Values::python},
    {"OPENACLNN_TORCH_THREADS", Values::number},
    {"OPENACLNN_TRACE_JSON"},
    {"OPENACLNN_TRACE_SEEN"},
    {"OPENACLNN_TRACE_TEXT"},
    {"OPENACLNN_WHEELS"},
};

const Variable* find(std::string_view name) {
  for (const Variable& variable : kVariables) {
    if (name == variable.name) return &variable;
  }
  return nullptr;
}

std::optional<int64_t> to_number(std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return {};
  return value;
}

// G and GiB are 2^30, GB is 10^9.
std::optional<uint64_t> to_bytes(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value == 0) return {};
  if (stop == end) return value;
  const char* prefix = std::strchr("KkMmGgTt", *stop);
  const std::string unit(stop + 1, end);
  const bool decimal = strcasecmp(unit.c_str(), "B") == 0;
  if (prefix == nullptr || (!decimal && !unit.empty() && strcasecmp(unit.c_str(), "iB") != 0))
    return {};
  for (auto power = (prefix - "KkMmGgTt") / 2; power >= 0; --power) {
    if (__builtin_mul_overflow(value, decimal ? 1000 : 1024, &value)) return {};
  }
  return value;
}

bool is_valid(const Variable& variable, const char* value) {
  switch (variable.values) {
    case Values::number: {
      const auto number = to_number(value);
      return number && *number >= variable.low && *number <= variable.high;
    }
    case Values::bytes: return to_bytes(value).has_value();
    case Values::product: return is_product(value);
    case Values::isa:  // whether the CPU has it, its reader decides
      for (const char* level : {"v2", "v3", "v4", "native"}) {
        if (std::strcmp(value, level) == 0) return true;
      }
      return false;
    case Values::nan: return std::strcmp(value, "nan") == 0;
    case Values::python: return std::strcmp(value, "python") == 0;
    case Values::any: break;
  }
  return true;
}

std::string must_be(const Variable& variable) {
  switch (variable.values) {
    case Values::number:
      return "a whole number from " + std::to_string(variable.low) + " to " +
             std::to_string(variable.high);
    case Values::bytes: return "a size such as 64GiB or 512MiB";
    case Values::product: return product_keys();
    case Values::isa: return "v2, v3 or v4";
    case Values::nan: return "nan";
    case Values::python: return "python";
    case Values::any: break;
  }
  return "";
}

const char* value_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

void warn(const char* name, const char* text, const char* used) {
  warn_environment(name, must_be(*find(name)).c_str(), text, used);
}

// Levenshtein's
size_t distance(std::string_view a, std::string_view b) {
  std::string row(b.size() + 1, '\0');  // names are short
  for (size_t k = 0; k <= b.size(); ++k) row[k] = static_cast<char>(k);
  for (size_t i = 1; i <= a.size(); ++i) {
    char diagonal = std::exchange(row[0], static_cast<char>(i));
    for (size_t k = 1; k <= b.size(); ++k) {
      const char substituted = static_cast<char>(diagonal + (a[i - 1] != b[k - 1]));
      diagonal = row[k];
      row[k] =
          std::min({substituted, static_cast<char>(row[k] + 1), static_cast<char>(row[k - 1] + 1)});
    }
  }
  return static_cast<size_t>(row[b.size()]);
}

constexpr std::string_view kPrefix = "OPENACLNN_";
constexpr size_t kLongest = 60;

// The variable that was probably meant, or nullptr.
const char* nearest(std::string_view name) {
  if (name.size() > kLongest) return nullptr;
  const char* best = nullptr;
  size_t least = std::max<size_t>(2, (name.size() - kPrefix.size()) / 3) + 1;
  for (const Variable& variable : kVariables) {
    const size_t here = distance(name, variable.name);
    if (here < least) least = here, best = variable.name;
  }
  return best;
}

// Whether the process that started this one has reported the name.
bool was_reported(std::string_view name) {
  const char* names = std::getenv("OPENACLNN_REPORTED_NAMES");
  const std::string all = ":" + std::string(names == nullptr ? "" : names) + ":";
  return all.find(":" + std::string(name) + ":") != std::string::npos;
}

[[gnu::constructor]] void warn_of_unknown_names() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name(*entry, std::strcspn(*entry, "="));
    if (!name.starts_with(kPrefix) || find(name) != nullptr || was_reported(name)) continue;
    const char* meant = nearest(name);
    const std::string hint = meant != nullptr
                                 ? std::string("did you mean ") + meant + "?"
                                 : "`openaclnn docs configuration` lists the variables";
    std::fprintf(stderr, "openaclnn: %.*s is unknown; %s\n", static_cast<int>(name.size()),
                 name.data(), hint.c_str());
  }
}

}  // namespace

int64_t environment_number(const char* name, int64_t otherwise) {
  const char* text = value_of(name);
  if (text == nullptr) return otherwise;
  if (is_valid(*find(name), text)) return *to_number(text);
  warn(name, text, std::to_string(otherwise).c_str());
  return otherwise;
}

uint64_t environment_bytes(const char* name, uint64_t otherwise, const char* used) {
  const char* text = value_of(name);
  if (text == nullptr) return otherwise;
  if (const auto bytes = to_bytes(text)) return *bytes;
  warn(name, text, used);
  return otherwise;
}

std::string variable_problem(const char* name, const char* value) {
  const Variable* variable = find(name);
  if (variable == nullptr || *value == '\0' || is_valid(*variable, value)) return "";
  std::string problem =
      std::string(name) + " must be " + must_be(*variable) + ", but is \"" + value + "\"";
  if (variable->values == Values::product) problem += chip_hint(value);
  return problem;
}

}  // namespace openaclnn
