// SPDX-License-Identifier: Apache-2.0
// Preconditions of a thread that calls ATen: enough stack, and no OpenMP after fork.
#pragma once

#include <cstddef>
#include <string>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "core/aten/row.h"
#include "core/support/fork.h"
#include "core/support/status.h"
#include "core/support/threads.h"

namespace openaclnn::aten {

// Bytes of stack. Loading PyTorch and an addition take between 16 and 32 KiB; how much LAPACK and
// kernels that oneDNN compiles take is not known.
inline constexpr size_t kStackRoom = 512 << 10;

// Returns f(), called on this thread or, if its stack is small, on a new one.
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

// A child of fork lacks the OpenMP threads of the parent, and the next parallel region of the
// forking thread would wait for them: in a child, ATen uses one thread.
inline void compute_alone_after_fork(const Backend& backend) {
  static thread_local uint32_t known = 1;  // of the process that exec started
  if (known == process_generation()) [[likely]]
    return;
  known = process_generation();
  backend.set_threads(1);
}

}  // namespace openaclnn::aten
