// SPDX-License-Identifier: Apache-2.0
// Starting threads of the library, and the stack that a thread has left.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <exception>
#include <thread>
#include <utility>

#include "core/support/arithmetic.h"

namespace openaclnn {

// False if the system gives no thread. The thread resets its floating-point environment to C's, so
// callbacks of the program have it too. It blocks all signals but faults, which would otherwise end
// the process without its handler.
template <class F>
bool start_thread(std::thread& thread, F f) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  bool started = true;
  try {
    thread = std::thread([f = std::move(f)]() mutable {
      const DefaultEnvironment environment;
      const DefaultArithmetic arithmetic;
      f();
    });
  } catch (const std::exception&) {  // EAGAIN, or no memory
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// Bytes of stack that the calling thread has left; 0: unknown, as on the stack of a coroutine.
size_t stack_room();

}  // namespace openaclnn
