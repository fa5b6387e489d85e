// SPDX-License-Identifier: Apache-2.0
// The queue of a stream and its worker. A task leaves the queue only when none is running, and work
// runs inline only when the queue is empty besides: that keeps the order of submission.
#include "core/runtime/stream.h"

#include <new>
#include <system_error>

#include "acl/acl_rt.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxStreams = 1 << 16;

thread_local const Stream* running = nullptr;

void run_as(const Stream* stream, void (*run)(void*), void* context) {
  const Stream* outer = running;
  running = stream;
  run(context);
  running = outer;
}

// Held while streams are visited, so that none of them is destroyed meanwhile.
std::mutex& visiting() {
  static auto& mutex = *[] {
    auto* created = new std::mutex;
    hold_across_fork(*created);
    return created;
  }();
  return mutex;
}

// Counts the markers that are still in some queue.
class Gate {
 public:
  void enter() {
    std::lock_guard lock(mutex_);
    ++inside_;
  }
  void leave() {
    std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();  // under the lock: the waiter destroys the gate
  }
  void wait() {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
};

}  // namespace

HandlePool<Stream>& streams() {
  static auto& pool = []() -> HandlePool<Stream>& {
    visiting();
    after_fork_in_child(
        [] { streams().for_each([](Stream& stream) { stream.reset_after_fork(); }); });
    return pool_of<Stream>(kMaxStreams);
  }();
  return pool;
}

const Stream* Stream::running_here() { return running; }

Stream::~Stream() {
  visiting().lock();  // a visitor that found this stream alive has left it after this
  visiting().unlock();
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_worker_.notify_all();
  ++waiters_;
  wake_waiters_.wait(lock, [this] { return idle(); });
  lock.unlock();
  if (worker_.joinable()) worker_.join();
}

bool Stream::run_if_idle(void (*run)(void*), void* context) {
  {
    std::lock_guard lock(mutex_);
    if (!idle()) return false;
    busy_ = true;
  }
  run_as(this, run, context);
  std::lock_guard lock(mutex_);
  finish_task();
  return true;
}

void Stream::submit(Task task) {
  std::unique_lock lock(mutex_);
  queue_.push_back(task);
  if (start_worker()) {
    if (!busy_) wake_worker_.notify_one();
    return;
  }
  if (running == this) return;  // whoever runs the present task goes on with this one
  while (!queue_.empty()) {
    if (busy_) {
      wake_worker_.wait(lock);
    } else {
      run_front(lock);
    }
  }
  wake_worker_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  ++waiters_;
  wake_waiters_.wait(lock, [this] { return idle(); });
  --waiters_;
}

void Stream::discard_pending() {
  std::deque<Task> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(queue_);
    if (!busy_) wake_waiters_.notify_all();
  }
  for (const Task& task : dropped) {
    if (task.drop != nullptr) task.drop(task.context);
  }
}

bool Stream::orphan(Context* owner) {
  if (!owner_.compare_exchange_strong(owner, nullptr)) return false;
  std::lock_guard lock(mutex_);
  stopping_ = true;
  wake_worker_.notify_all();
  return true;
}

// Without destructors: the mutex may be locked and the queue half-way in a thread of the parent.
void Stream::reset_after_fork() {
  new (&mutex_) std::mutex;
  new (&wake_worker_) std::condition_variable;
  new (&wake_waiters_) std::condition_variable;
  new (&queue_) std::deque<Task>;
  new (&worker_) std::thread;
  working_ = busy_ = stopping_ = false;
  waiters_ = 0;
}

// False when the system gives no thread; then the caller does the work.
bool Stream::start_worker() {
  if (working_) return true;
  if (worker_.joinable()) worker_.join();  // an orphan's, past its loop
  try {
    worker_ = std::thread([this] { work(); });
    working_ = true;
  } catch (const std::system_error&) {
  }
  return working_;
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_worker_.wait(lock, [this] { return queue_.empty() ? stopping_ : !busy_; });
    if (queue_.empty()) break;
    run_front(lock);
  }
  working_ = false;
}

void Stream::run_front(std::unique_lock<std::mutex>& lock) {
  const Task task = queue_.front();
  queue_.pop_front();
  busy_ = true;
  lock.unlock();
  run_as(this, task.run, task.context);
  if (task.drop != nullptr) task.drop(task.context);
  lock.lock();
  finish_task();
}

void Stream::finish_task() {
  busy_ = false;
  if (!queue_.empty()) {
    wake_worker_.notify_one();
  } else if (waiters_ > 0) {
    wake_waiters_.notify_all();
  }
}

void drain_streams(bool (*pick)(Stream&, void*), void* context) {
  Gate gate;
  {
    std::lock_guard lock(visiting());
    streams().for_each([&](Stream& stream) {
      if (!pick(stream, context)) return;
      const auto nothing = [](void*) {};
      if (stream.run_if_idle(nothing, nullptr)) return;
      gate.enter();
      stream.submit({nothing, [](void* own) { static_cast<Gate*>(own)->leave(); }, &gate});
    });
  }
  gate.wait();
}

}  // namespace openaclnn
