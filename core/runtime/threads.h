// SPDX-License-Identifier: Apache-2.0
// How every thread of the library starts, and how much stack a thread has left.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <exception>
#include <thread>
#include <utility>

#include "core/runtime/arithmetic.h"

namespace openaclnn {

// False when the system gives no thread. A new thread has the arithmetic of the one that starts it:
// it takes that of C, which callbacks of the program then have too. Signals belong to the threads
// of the program, except those that report a fault in this very thread: blocked, they would end the
// process without its handler.
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

// Bytes of stack that the calling thread has left; 0 when that is unknown, as on a stack that the
// program made itself (coroutines).
size_t stack_room();

}  // namespace openaclnn
