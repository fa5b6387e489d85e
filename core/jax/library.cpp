// SPDX-License-Identifier: Apache-2.0
// The custom calls of XLA that openaclnn.jax makes, one for each row.
#include <atomic>

#include "call.h"

namespace openaclnn::jax {

#include "rows.inc"

template <const Row& row>
ffi::Error run(ffi::RemainingArgs arguments, ffi::RemainingRets results,
               ffi::Dictionary attributes) {
  // No local static: a child of fork could wait for its guard for ever.
  static constinit std::atomic<const openaclnn_operator*> known = nullptr;
  const openaclnn_operator* op = known.load(std::memory_order_relaxed);
  if (op == nullptr) known.store(op = openaclnn_find(row.c_name), std::memory_order_relaxed);
  return Call(row, arguments, results, attributes).run(op);
}

}  // namespace openaclnn::jax

#define ROW(name)                                                                        \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* openaclnn_jax_##name( \
      XLA_FFI_CallFrame*);                                                               \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(                                                         \
      openaclnn_jax_##name, openaclnn::jax::run<openaclnn::jax::name##_row>,             \
      xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs<xla::ffi::Dictionary>())
#include "names.inc"
