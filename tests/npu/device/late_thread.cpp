// SPDX-License-Identifier: Apache-2.0
// A thread that wants Python's lock while Python finalises, in a function that lets nothing
// through, as a thread of autograd does in a destructor.
#include <dlfcn.h>
#include <unistd.h>

#include <thread>

namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void want_the_lock() noexcept {
  auto* finalises = find<int()>("Py_IsFinalizing");
  if (finalises == nullptr) finalises = find<int()>("_Py_IsFinalizing");
  while (finalises() == 0) usleep(1000);
  (void)find<int()>("PyGILState_Ensure")();
}

}  // namespace

extern "C" void start_late_thread() { std::thread(want_the_lock).detach(); }
