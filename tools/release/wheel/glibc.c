// SPDX-License-Identifier: Apache-2.0
// What the C++ library of this machine's compiler asks of glibc, and an older one does not have.
// None of it is seen from outside the library that it is linked into.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32 sets it while a process has one thread, so that shared_ptr counts without atomic
// instructions. 0: there may be others.
HIDDEN char __libc_single_threaded = 0;

// glibc keeps these two in an archive beside libc.so, and the folder has only libc.so. What they
// register is forgotten when the library that called them is closed.
extern void* __dso_handle;
int __cxa_atexit(void (*function)(void*), void* argument, void* library);
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                      void* library);
HIDDEN int atexit(void (*function)(void)) {
  return __cxa_atexit((void (*)(void*))function, NULL, &__dso_handle);
}
HIDDEN int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  return __register_atfork(before, parent, child, &__dso_handle);
}

// glibc 2.36; std::random_device uses it.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

// glibc 2.30; std::condition_variable waits with it for times of the steady clock, and looks at
// that clock itself afterwards. So a system clock that is set forward during the wait ends it
// early, and nothing else: the time that is left is added to the system clock, which older versions
// wait for.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* end) {
  struct timespec now, until;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += end->tv_sec - now.tv_sec;
  until.tv_nsec += end->tv_nsec - now.tv_nsec;  // from -999,999,999 to 1,999,999,998
  if (until.tv_nsec < 0) {
    until.tv_nsec += 1000000000;
    until.tv_sec -= 1;
  } else if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec += 1;
  }
  return pthread_cond_timedwait(condition, mutex, &until);
}
