// SPDX-License-Identifier: Apache-2.0
// What a thread needs before it calls ATen.
#pragma once

#include <cstddef>
#include <string>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "core/aten/row.h"
#include "core/runtime/fork.h"
#include "core/runtime/status.h"
#include "core/runtime/threads.h"

namespace openaclnn::aten {

// Bytes of stack. Loading PyTorch and an addition take between 16 and 32 KiB; how much LAPACK and
// kernels that oneDNN compiles take is not known.
inline constexpr size_t kStackRoom = 512 << 10;

// The status f() returns, on the calling thread or, where that has little stack left, on another
// one meanwhile.
template <class F>
int32_t with_stack_room(const char* call, F f) {
  if (stack_room() >= kStackRoom) return f();
  int32_t code = 0;
  TakenFailure failure;
  std::thread roomy;
  const bool started = start_thread(roomy, [&] {
    code = f();
    if (code != 0) failure = take_failure(code);
  });
  if (!started)
    return fail(ACLNN_ERR_INNER, Reason::no_resource, call,
                "less than %zu KiB of stack left on this thread, and the system could not start "
                "another one",
                kStackRoom >> 10)
        .code();
  roomy.join();
  return code == 0 ? 0 : fail(failure).code();
}

// In a child of fork the OpenMP threads of the parent are missing, and the next parallel region of
// the thread that forked would wait for them: each thread of a child computes alone.
inline void compute_alone_after_fork(const Backend& backend) {
  static thread_local uint32_t known = 1;  // of the process that exec started
  if (known == process_generation()) [[likely]]
    return;
  known = process_generation();
  backend.set_threads(1);
}

}  // namespace openaclnn::aten
