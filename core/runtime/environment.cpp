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

uint64_t environment_bytes(const char* name, uint64_t otherwise, const char* used) {
  constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), value);
  for (unsigned i = 0; error == std::errc() && value > 0 && i < 5; ++i) {
    if (std::strcmp(stop, kUnits[i]) == 0 && value <= UINT64_MAX >> 10 * i) return value << 10 * i;
  }
  warn_environment(name, "a size such as 64GiB or 512MiB", text, used);
  return otherwise;
}

}  // namespace openaclnn
