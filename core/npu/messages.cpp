// SPDX-License-Identifier: Apache-2.0
// The notice that no NPU computes, and torch_npu's log.
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/npu/calls.h"
#include "core/npu/finalization.h"
#include "core/npu/queue.h"
#include "core/runtime/no_destructor.h"

namespace {

int number_of(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : std::atoi(value);
}

constexpr char kNotice[] =
    "openaclnn: the device npu of this process is the CPU; no NPU computes here "
    "(OPENACLNN_NPU_NOTICE=0 silences this)\n";

}  // namespace

extern "C" aclError openaclnn_aclInit(const char* configPath);
extern "C" void openaclnn_defer_refusals();  // core/ops/foreign.h

// torch_npu calls this first, once in a process.
extern "C" __attribute__((visibility("default"))) aclError aclInit(const char* configPath) {
  static std::atomic<bool> called = false;
  if (!called.exchange(true)) {
    openaclnn::npu::stop_late_threads();
    if (openaclnn::npu::phase1_queued()) openaclnn_defer_refusals();
    if (number_of("OPENACLNN_NPU_NOTICE", 1) != 0) {
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kNotice, sizeof kNotice - 1);
    }
  }
  return openaclnn_aclInit(configPath);
}

// As on CANN, messages of levels from ASCEND_GLOBAL_LOG_LEVEL up (by default 3, errors) go to the
// terminal if ASCEND_SLOG_PRINT_TO_STDOUT is 1. There are no log files.
void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  // Read once: any thread logs, and setenv may invalidate getenv's pointer.
  static constinit openaclnn::NoDestructor<int> lowest_level, to_stdout;
  const int lowest =
      lowest_level.get([] { return number_of("ASCEND_GLOBAL_LOG_LEVEL", ACL_ERROR); });
  const bool shown = to_stdout.get([] { return number_of("ASCEND_SLOG_PRINT_TO_STDOUT", 0); }) == 1;
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

// FNV-1a, 64 bits.
uint64_t MsprofGetHashId(const char* hashInfo, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; hashInfo != nullptr && i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(hashInfo[i])) * 0x100000001b3u;
  }
  return hash;
}

uint64_t MsprofSysCycleTime(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}
