// SPDX-License-Identifier: Apache-2.0
// The log of a program. There are no log files.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl_base_rt.h"
#include "core/support/no_destructor.h"

namespace {

int number_in(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : std::atoi(value);
}

}  // namespace

// As on CANN, messages of levels from ASCEND_GLOBAL_LOG_LEVEL up (by default 3, errors) go to the
// terminal if ASCEND_LOG_PRINT_TO_STDOUT, or ASCEND_SLOG_PRINT_TO_STDOUT as older ones call it,
// is 1.
void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  // Read once: any thread logs, and setenv may invalidate getenv's pointer.
  static constinit openaclnn::NoDestructor<int> lowest_level, to_stdout;
  const int lowest =
      lowest_level.get([] { return number_in("ASCEND_GLOBAL_LOG_LEVEL", ACL_ERROR); });
  const bool shown = to_stdout.get([] {
    return number_in("ASCEND_LOG_PRINT_TO_STDOUT", number_in("ASCEND_SLOG_PRINT_TO_STDOUT", 0));
  }) == 1;
  const int level = static_cast<int>(logLevel);
  if (!shown || fmt == nullptr || level < lowest || level > ACL_ERROR) return;
  constexpr const char* names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  char text[1024];
  va_list arguments;
  va_start(arguments, fmt);
  vsnprintf(text, sizeof text, fmt, arguments);
  va_end(arguments);
  const char* slash = file == nullptr ? nullptr : std::strrchr(file, '/');
  printf("[%s] APP(%d) %s:%u %s: %s\n", names[level < 0 ? 0 : level], getpid(),
         slash != nullptr  ? slash + 1
         : file != nullptr ? file
                           : "",
         line, func ? func : "", text);
}
