// SPDX-License-Identifier: Apache-2.0
#include "core/support/parallel.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "core/support/environment.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"

namespace openaclnn {
namespace {

// The C interface of libtorch_cpu, torch/csrc/stable/c/shim.h: 0 means success.
using ParallelFor = int32_t (*)(int64_t begin, int64_t end, int64_t grain,
                                void (*part)(int64_t begin, int64_t end, void* context),
                                void* context);
using GetNumThreads = int32_t (*)(uint32_t* count);

// Set once, `torch_parallel_for` last: a thread that sees it sees the other too.
constinit std::atomic<GetNumThreads> torch_get_num_threads = nullptr;
constinit std::atomic<ParallelFor> torch_parallel_for = nullptr;
constinit std::atomic<bool> off = false;  // for good

// A program may load torch at any time, so regions look for it until it is found. A look takes
// about 1 us, reading the clock 20 ns, the shortest parallel region 3 us.
constexpr int64_t kBetweenLooks = 10'000'000;  // nanoseconds
constinit std::atomic<int64_t> next_look = 0;

// The kernel's PF_FORKNOEXEC, in the ninth field of /proc/self/stat, which follows the name in
// parentheses. If it cannot be read, the process counts as forked.
bool is_forked() {
  constexpr unsigned kForkedWithoutExec = 0x40;
  char text[512];
  std::FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return true;
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const char* rest = text + size;
  while (rest > text && *rest != ')') --rest;
  unsigned flags = kForkedWithoutExec;
  const int found = std::sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags);
  return found != 1 || (flags & kForkedWithoutExec) != 0;
}

bool look_for_torch() {
  static constinit NoDestructor<bool> setting;
  const bool wanted =
      setting.get([] { return environment_number("OPENACLNN_TORCH_THREADS", 1) == 1; });
  void* library =
      wanted ? dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : nullptr;
  if (library == nullptr) {
    if (!wanted) off.store(true, std::memory_order_relaxed);
    return false;
  }
  const auto number = reinterpret_cast<GetNumThreads>(dlsym(library, "torch_get_num_threads"));
  const auto run = reinterpret_cast<ParallelFor>(dlsym(library, "torch_parallel_for"));
  dlclose(library);  // it stays loaded: RTLD_NODELETE
  if (number == nullptr || run == nullptr || is_forked()) {
    off.store(true, std::memory_order_relaxed);
    return false;
  }
  after_fork_in_child([] { off.store(true, std::memory_order_relaxed); });
  torch_get_num_threads.store(number, std::memory_order_relaxed);
  torch_parallel_for.store(run, std::memory_order_release);
  return true;
}

bool has_torch() {
  if (torch_parallel_for.load(std::memory_order_acquire) != nullptr) return true;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  int64_t due = next_look.load(std::memory_order_relaxed);
  return now >= due && next_look.compare_exchange_strong(due, now + kBetweenLooks) &&
         look_for_torch();
}

thread_local constinit bool calls_torch = false;
thread_local constinit bool asked_for_main = false;

bool thread_calls_torch() {
  if (!asked_for_main) {
    asked_for_main = true;
    calls_torch = calls_torch || syscall(SYS_gettid) == getpid();  // gettid: glibc 2.30
  }
  return calls_torch;
}

}  // namespace

void this_thread_calls_torch() { calls_torch = true; }

int torch_threads() {
  if (off.load(std::memory_order_relaxed) || !thread_calls_torch() || !has_torch()) return 0;
  uint32_t count = 0;
  const bool found = torch_get_num_threads.load(std::memory_order_relaxed)(&count) == 0;
  return found ? static_cast<int>(count) : 0;
}

bool run_on_torch(int64_t parts, PartFunction part, void* context) {
  struct Call {
    PartFunction part;
    void* context;
  } call{part, context};
  const auto run = [](int64_t begin, int64_t end, void* given) {
    const Call& passed = *static_cast<const Call*>(given);
    passed.part(passed.context, begin, end);
  };
  return torch_parallel_for.load(std::memory_order_acquire)(0, parts, 1, run, &call) == 0;
}

}  // namespace openaclnn
