// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/environment.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace openaclnn {

void warn_environment(const char* name, const char* must_be, const char* value, const char* used) {
  std::fprintf(stderr, "openaclnn: %s must be %s, but is \"%s\"; %s is used\n", name, must_be,
               value, used);
}

int64_t environment_number(const char* name, int64_t low, int64_t high, int64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  int64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stop == end && value >= low && value <= high) return value;
  char must_be[80], used[24];
  std::snprintf(must_be, sizeof must_be, "a whole number from %lld to %lld",
                static_cast<long long>(low), static_cast<long long>(high));
  std::snprintf(used, sizeof used, "%lld", static_cast<long long>(otherwise));
  warn_environment(name, must_be, text, used);
  return otherwise;
}

}  // namespace openaclnn
