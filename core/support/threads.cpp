// SPDX-License-Identifier: Apache-2.0
#include "core/support/threads.h"

#include <pthread.h>

#include <cstdint>

namespace openaclnn {
namespace {

struct Bounds {
  uintptr_t low = 0, high = 0;

  Bounds() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* address = nullptr;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
      low = reinterpret_cast<uintptr_t>(address);
      high = low + size;
    }
    pthread_attr_destroy(&attributes);
  }
};

}  // namespace

size_t stack_room() {
  static thread_local const Bounds stack;  // once a thread: the main thread reads /proc for it
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > stack.low && here <= stack.high ? here - stack.low : 0;
}

}  // namespace openaclnn
