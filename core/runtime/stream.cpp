// SPDX-License-Identifier: Apache-2.0
// The queue of a stream and its worker. A task starts only when no other is running; work runs
// inline only when the queue is empty too. So the order of submission holds.
//
// Lock order: the stream's mutex, then that of the event it waits for. No callback runs under
// either.
#include "core/runtime/stream.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "acl/acl_rt.h"
#include "core/runtime/capture.h"
#include "core/support/fork.h"
#include "core/support/threads.h"

namespace openaclnn {
namespace {

thread_local Stream* running = nullptr;
thread_local const Task* running_task = nullptr;  // from the queue of `running`
thread_local const Stream* running_task_of = nullptr;
thread_local uint32_t last_task = 0;

// Flags of streams that the host does not wait for.
constexpr uint32_t kUnawaited =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

std::atomic<int32_t> streams_made = 0;

}  // namespace

uint32_t number_of_this_thread() {
  thread_local uint32_t id = 0, of_generation = 0;
  if (of_generation != process_generation()) {  // the first call, also in a child of fork
    of_generation = process_generation();
    id = static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return id;
}

uint32_t last_task_of_thread() { return last_task; }

Stream::Stream(Context* owner, StreamSettings its_settings)
    : id(streams_made++),
      settings(its_settings),
      priority(its_settings.priority),
      owner_(owner),
      awaited_((its_settings.flags & kUnawaited) == 0) {}

Status TaskFailure::as_status(const char* call) const {
  return code == 0 ? Status() : fail(code, cause, call, "%s", sentence);
}

Stream* Stream::running_here() { return running; }

Submission Stream::submission_here() {
  return running_task != nullptr && running_task_of == running ? running_task->submission
                                                               : Submission();
}

Context* Stream::owner_here() {
  if (running == nullptr) return nullptr;
  const PinnedStream own(streams(), running);
  return own ? own->owner() : nullptr;
}

void Stream::run_as(Stream* stream, void (*run)(void*), void* context) {
  Stream* outer = running;
  running = stream;
  run(context);
  running = outer;
}

Stream::~Stream() {
  forget_recording(*this);
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_worker_.notify_all();
  ++waiters_;
  wake_waiters_.wait(lock, [this] { return idle(); });
  lock.unlock();
  if (worker_.joinable()) worker_.join();
  forget_reporter(this);
}

void Stream::count_task() {
  last_task = static_cast<uint32_t>(++submitted_);
  has_work_.store(true, std::memory_order_relaxed);
}

bool Stream::run_if_idle(void (*run)(void*), void* context) {
  if (records()) [[unlikely]]
    return false;
  {
    std::lock_guard lock(mutex_);
    if (!idle()) return false;
    busy_ = true;
    running_thread_ = 0;
    count_task();
  }
  run_as(this, run, context);
  if (halted()) [[unlikely]]
    halt_others(*this);
  std::lock_guard lock(mutex_);
  finish_task();
  return true;
}

void Stream::submit(Task task) {
  if (records() && record(*this, task)) [[unlikely]]
    return;
  submit_unrecorded(task);
}

void Stream::submit_unrecorded(Task task) {
  task.thread = number_of_this_thread();
  task.submission = submission_begins();
  std::list<Task> node;
  try {
    node.push_back(task);
  } catch (const std::bad_alloc&) {
    if (running == this) throw;
    while (!run_if_idle(task.run, task.context)) (void)synchronize();
    if (task.drop != nullptr) task.drop(task.context);
    return;
  }
  std::unique_lock lock(mutex_);
  if (task.submission.begin != 0) node.front().submission.end = steady_nanoseconds();
  queue_.splice(queue_.end(), node);
  count_task();
  if (start_worker()) {
    if (!busy_) wake_worker_.notify_one();
    return;
  }
  if (running == this) return;  // the thread that runs the current task continues with this one
  while (!queue_.empty()) {
    if (busy_) {
      wake_worker_.wait(lock);
    } else {
      run_front(lock);
    }
  }
  wake_worker_.notify_all();
}

bool Stream::hand_over(Task task) {
  if (records() && record(*this, task)) [[unlikely]]
    return true;
  task.thread = number_of_this_thread();
  task.submission = submission_begins();
  std::list<Task> node{task};
  std::lock_guard lock(mutex_);
  if (!start_worker()) return false;
  if (task.submission.begin != 0) node.front().submission.end = steady_nanoseconds();
  queue_.splice(queue_.end(), node);
  count_task();
  if (!busy_) wake_worker_.notify_one();
  return true;
}

bool Stream::follow(void (*then)(void*), void* context) {
  std::lock_guard lock(mutex_);
  if (!has_work()) return false;
  Task task = {[](void*) {}, then, context};
  task.stays = true;
  try {
    queue_.push_back(task);
  } catch (const std::bad_alloc&) {
    return true;
  }
  if (!start_worker()) {
    queue_.pop_back();
    return true;
  }
  ++submitted_;
  if (!busy_) wake_worker_.notify_one();
  return true;
}

bool Stream::query() {
  std::lock_guard lock(mutex_);
  return idle();
}

uint64_t Stream::submitted_if_busy() {
  std::lock_guard lock(mutex_);
  return idle() ? 0 : submitted_;
}

bool Stream::orphan(Context* owner) {
  if (!owner_.compare_exchange_strong(owner, nullptr)) return false;
  std::lock_guard lock(mutex_);
  stopping_ = true;
  wake_worker_.notify_all();
  return true;
}

// False when the system gives no thread; then the caller does the work.
bool Stream::start_worker() {
  if (working_) return true;
  if (worker_.joinable()) worker_.join();  // its loop has ended (orphan)
  working_ = start_thread(worker_, [this] { work(); });
  return working_;
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  const auto paused_until = [this] { return paused_for_ == nullptr ? Deadline() : pause_ends_; };
  while (true) {
    if (paused_until().before(alarm_) || alarm_.passed()) alarm_ = paused_until();
    (void)alarm_.wait(wake_worker_, lock,
                      [&] { return worker_is_needed() || paused_until().before(alarm_); });
    if (paused_until().passed()) {
      give_up_pause(lock);
    } else if (worker_is_needed()) {
      if (queue_.empty()) break;
      run_front(lock);
    }
  }
  working_ = false;
  alarm_ = Deadline();
}

void Stream::run_front(std::unique_lock<std::mutex>& lock) {
  const Task task = queue_.front();
  queue_.pop_front();
  busy_ = true;
  running_thread_ = task.thread;
  lock.unlock();
  const bool runs = !halted();
  if (runs) {
    running_task = &task, running_task_of = this;
    run_as(this, task.run, task.context);
    running_task = nullptr;
  }
  if (runs && halted()) halt_others(*this);
  if (task.drop != nullptr) task.drop(task.context);
  lock.lock();
  finish_task();
}

void Stream::finish_task() {
  busy_ = false;
  has_work_.store(!queue_.empty(), std::memory_order_release);
  ++finished_;
  if (!queue_.empty() || stopping_) wake_worker_.notify_one();
  if (waiters_ > 0 && (finished_ >= wake_at_ || idle())) {
    wake_at_ = UINT64_MAX;
    wake_waiters_.notify_all();
  }
}

}  // namespace openaclnn
