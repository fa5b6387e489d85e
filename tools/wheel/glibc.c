// SPDX-License-Identifier: Apache-2.0
// What the C++ library of this machine's compiler asks of glibc, and an older one does not have.
// None of it is seen from outside the library that it is linked into.
#include <stdint.h>
#include <stdlib.h>
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
