// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deferred.h"

#include "core/runtime/stream.h"

namespace openaclnn {

void Deferred::leave(void* deferred) {
  auto* own = static_cast<Deferred*>(deferred);
  if (own->inside_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  own->end();
  delete own;
}

bool work_is_queued() {
  bool any = false;
  streams().for_each([&](Stream& stream) { any = any || stream.has_work(); });
  return any;
}

void defer(Deferred* deferred) {
  streams().for_each([&](Stream& stream) {
    deferred->inside_.fetch_add(1, std::memory_order_relaxed);
    if (!stream.follow(&Deferred::leave, deferred)) Deferred::leave(deferred);
  });
  Deferred::leave(deferred);
}

}  // namespace openaclnn
