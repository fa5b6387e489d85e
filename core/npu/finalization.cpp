// SPDX-License-Identifier: Apache-2.0
// While Python finalises, a thread that wants its lock is ended; up to Python 3.13 by pthread_exit,
// whose unwinding calls std::terminate in a destructor. torch's autograd threads do that: they free
// data of the last backward pass some time after it returned, and for a device every pass uses
// them. On a machine with 2 CPUs and 8 such processes at a time, 19 of 1,250 ended with SIGABRT.
// Such a thread now waits for the end of the process, as it does from Python 3.14 on.
#include "core/npu/finalization.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace openaclnn::npu {
namespace {

using Handler = void (*)();

Handler previous = nullptr;

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

bool python_finalises() {
  auto* finalises = find<int()>(RTLD_DEFAULT, "Py_IsFinalizing");  // from 3.13 on
  if (finalises == nullptr) finalises = find<int()>(RTLD_DEFAULT, "_Py_IsFinalizing");
  return finalises != nullptr && finalises() != 0;
}

// The libstdc++ of the process; ours may be linked statically.
void* standard_library() { return dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD); }

void on_terminate() {
  const auto exception = find<const void*()>(standard_library(), "__cxa_current_exception_type");
  const bool forced = exception == nullptr || exception() == nullptr;  // unwinding, no exception
  if (forced && syscall(SYS_gettid) != getpid() && python_finalises()) {
    for (;;) pause();
  }
  if (previous != nullptr) previous();
  std::abort();
}

}  // namespace

void stop_late_threads() {
  void* const library = standard_library();
  if (library == nullptr) return;
  const auto set = find<Handler(Handler)>(library, "_ZSt13set_terminatePFvvE");
  if (set != nullptr) previous = set(on_terminate);
}

}  // namespace openaclnn::npu
