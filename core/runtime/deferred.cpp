// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deferred.h"

#include "core/runtime/graph.h"
#include "core/runtime/stream.h"

namespace openaclnn {

std::atomic<uint64_t> tasks_recorded = 0;

void Deferred::leave(void* deferred) {
  auto* own = static_cast<Deferred*>(deferred);
  if (own->inside_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  own->end();
  delete own;
}

bool may_be_used(uint64_t made) {
  bool any = false;
  streams().for_each([&](Stream& stream) { any = any || stream.has_work(); });
  if (any || made == tasks_recorded) return any;
  graphs().for_each([&](Graph& graph) { any = any || graph.tasks->may_use(made); });
  return any;
}

void defer(Deferred* deferred, uint64_t made) {
  streams().for_each([&](Stream& stream) {
    deferred->inside_.fetch_add(1, std::memory_order_relaxed);
    if (!stream.follow(&Deferred::leave, deferred)) Deferred::leave(deferred);
  });
  graphs().for_each([&](Graph& graph) {
    deferred->inside_.fetch_add(1, std::memory_order_relaxed);
    if (!graph.tasks->keep(made, &Deferred::leave, deferred)) Deferred::leave(deferred);
  });
  Deferred::leave(deferred);
}

}  // namespace openaclnn
