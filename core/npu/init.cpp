// SPDX-License-Identifier: Apache-2.0
// The notice that no NPU computes, and what the profiler of torch_npu links.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/npu/calls.h"
#include "core/npu/finalization.h"
#include "core/npu/queue.h"
#include "core/support/no_destructor.h"

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
