// SPDX-License-Identifier: Apache-2.0
// The custom calls of XLA that openaclnn.jax makes, one for each row.
#include <atomic>

#include "call.h"

namespace openaclnn::jax {

template <const char* name>
ffi::Error run(ffi::RemainingArgs arguments, ffi::RemainingRets results,
               ffi::Dictionary attributes) {
  // Without the guard of a local static, for which a child of fork could wait for ever.
  static constinit std::atomic<const Row*> known = nullptr;
  const Row* row = known.load(std::memory_order_relaxed);
  if (row == nullptr) known.store(row = openaclnn_find(name), std::memory_order_relaxed);
  return Call(*row, arguments, results, attributes).run();
}

}  // namespace openaclnn::jax

#define ROW(name)                                                                        \
  static constexpr char name##_name[] = #name;                                           \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* openaclnn_jax_##name( \
      XLA_FFI_CallFrame*);                                                               \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(                                                         \
      openaclnn_jax_##name, openaclnn::jax::run<name##_name>,                            \
      xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs<xla::ffi::Dictionary>())
#include "names.inc"
