// SPDX-License-Identifier: Apache-2.0
// Points in the work of streams, and what fork leaves of them.
#include "core/runtime/event.h"

#include <chrono>
#include <new>

#include "core/runtime/fork.h"
#include "core/runtime/no_destructor.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxEvents = 1 << 18;

// The work stayed in the parent: an event that was not reached there is as if never recorded. What
// it held is leaked, because other threads may have been waiting on it.
void reset_after_fork(Event& event) {
  if (event.waits != nullptr) *event.waits = 0;  // also of an event that was reset meanwhile
  if (event.point == nullptr) return;
  auto* leak = new (std::nothrow) std::shared_ptr<Point>(event.point);
  if (leak == nullptr || !event.point->reached.is_set()) new (&event.point) std::shared_ptr<Point>;
}

}  // namespace

void Point::reach(Stream& its) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  failure = its.failure();
  reached.signal();
}

void Point::give_up() { reached.signal(); }

std::mutex& event_mutex() {
  struct ForkHeldMutex {
    ForkHeldMutex() { hold_across_fork(mutex); }
    std::mutex mutex;
  };
  static constinit NoDestructor<ForkHeldMutex> held;
  return held.get().mutex;
}

HandlePool<Event>& events() {
  return pool_of<Event>(kMaxEvents, [] {
    events().forget_pins();
    events().for_each(reset_after_fork);
  });
}

}  // namespace openaclnn
