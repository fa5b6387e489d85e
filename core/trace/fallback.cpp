// SPDX-License-Identifier: Apache-2.0
// Calls that torch_npu hands to the CPU: it copies the tensors there and back, which on a device is
// a stall. This library is preloaded, so its at::native::cpu_fallback is found before that of
// PyTorch, which it calls. The library in which ATen computes knows torch's types and names the
// operator.
#include <dlfcn.h>

#include <atomic>

#include "core/support/no_destructor.h"
#include "core/trace/name.h"
#include "core/trace/recorder.h"
#include "core/trace/show.h"

#define CPU_FALLBACK                                                                  \
  "_ZN2at6native12cpu_fallbackERKN3c1014OperatorHandleEPSt6vectorINS1_6IValueESaIS6_" \
  "EEbNS1_11DispatchKeyE"

namespace openaclnn::trace {
namespace {

using Fallback = void (*)(const void* op, void* stack, bool error_on_views, uint16_t key);
using Describe = const char* (*)(const void* op, const void* stack, void* made,
                                 void (*add)(void* made, const char* name, int32_t dtype,
                                             uint64_t rank));

void* in_library(const char* library, const char* symbol) {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return loaded == nullptr ? nullptr : dlsym(loaded, symbol);
}

// The library may be loaded later; each look-up takes a reference.
Describe find_describe() {
  static constinit std::atomic<Describe> found = nullptr;
  Describe known = found.load(std::memory_order_relaxed);
  if (known != nullptr) return known;
  known = reinterpret_cast<Describe>(in_library("libaclnn_math.so", "openaclnn_describe_operator"));
  found.store(known, std::memory_order_relaxed);
  return known;
}

// RAII, because the operator may throw.
struct Watched {
  Watched(const void* op, const void* stack) {
    const Describe describe = find_describe();
    if (describe != nullptr)
      name = describe(op, stack, &signature,
                      [](void* made, const char* argument, int32_t dtype, uint64_t rank) {
                        static_cast<Signature*>(made)->push_back(
                            {lasting(argument), dtype_name(static_cast<aclDataType>(dtype)), rank});
                      });
    begin = steady_nanoseconds();
  }
  ~Watched() { Recorder::get().fell_back(name, signature, begin, steady_nanoseconds()); }
  Watched(const Watched&) = delete;

  std::string name = "an operator";
  Signature signature;
  int64_t begin;
};

}  // namespace
}  // namespace openaclnn::trace

extern "C" __attribute__((visibility("default"))) void openaclnn_trace_cpu_fallback(
    const void* op, void* stack, bool error_on_views, uint16_t key) __asm__(CPU_FALLBACK);

void openaclnn_trace_cpu_fallback(const void* op, void* stack, bool error_on_views, uint16_t key) {
  using namespace openaclnn::trace;
  static constinit openaclnn::NoDestructor<Fallback> real;
  const Watched watched(op, stack);
  real.get([] { return reinterpret_cast<Fallback>(in_library("libtorch_cpu.so", CPU_FALLBACK)); })(
      op, stack, error_on_views, key);
}
