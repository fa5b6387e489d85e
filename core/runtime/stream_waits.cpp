// SPDX-License-Identifier: Apache-2.0
// Waits of a stream for what others signal: in a task, and without a thread (pause).
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/runtime/stream.h"

namespace openaclnn {

Stream::Waited Stream::poll_here(bool (*ready)(void* context), void* context, Deadline deadline) {
  using std::chrono::microseconds;
  constexpr microseconds kLongest{1000};
  microseconds pause{1};
  while (!ready(context)) {
    if (interrupted_) return Waited::interrupted;
    if (deadline.passed()) return Waited::too_long;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
  return Waited::signalled;
}

Stream::Waited Stream::wait_here(OneShotEvent& event, Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    waits_for_ = &event;
  }
  const bool signalled = event.wait(deadline, &interrupted_);
  std::lock_guard lock(mutex_);
  waits_for_ = nullptr;
  if (signalled) return Waited::signalled;
  return interrupted_ ? Waited::interrupted : Waited::too_long;
}

bool Stream::pause(OneShotEvent& event, Deadline deadline, Task late) {
  if (records()) return false;
  std::lock_guard lock(mutex_);
  if (!idle() || !start_worker() || !event.listen(listener_)) return false;
  busy_ = true;
  count_task();
  has_work_.store(false, std::memory_order_release);
  paused_for_ = &event;
  late_ = late;
  late_.thread = number_of_this_thread();
  pause_ends_ = deadline;
  if (deadline.before(alarm_)) wake_worker_.notify_one();
  return true;
}

bool Stream::end_pause() {
  if (!paused_for_->forget(listener_)) return false;
  paused_for_ = nullptr;
  return true;
}

void Stream::resume() {
  Task late;
  {
    std::lock_guard lock(mutex_);
    paused_for_ = nullptr;
    late = late_;
  }
  late.drop(late.context);
  std::lock_guard lock(mutex_);
  finish_task();
}

// The deadline has come.
void Stream::give_up_pause(std::unique_lock<std::mutex>& lock) {
  if (!end_pause()) {  // resume() follows
    pause_ends_ = Deadline();
    return;
  }
  const Task late = late_;
  running_thread_ = late.thread;
  lock.unlock();
  run_as(this, late.run, late.context);
  late.drop(late.context);
  if (halted()) halt_others(*this);
  lock.lock();
  finish_task();
}

}  // namespace openaclnn
