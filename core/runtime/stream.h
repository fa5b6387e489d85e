// SPDX-License-Identifier: Apache-2.0
// A stream is an in-order queue with one worker thread, started when the first task has to wait.
//
// Tasks of one stream run one after another, streams run beside each other and beside the host.
// Work cheaper than waking a thread runs on the submitting thread when the stream is idle; order is
// kept all the same.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "core/runtime/handles.h"
#include "core/runtime/status.h"

namespace openaclnn {

struct Context;

struct Task {
  void (*run)(void* context);
  void (*drop)(void* context);  // frees `context`, after run or instead of it (stream destroyed by
                                // force); may be nullptr
  void* context;
};

class Stream {
 public:
  explicit Stream(Context* owner) : owner_(owner) {}
  ~Stream();  // waits for the queue to drain; never on a thread that runs a task of this stream

  // Runs the work here, before it returns, when nothing is queued or running; false, and nothing
  // done, otherwise.
  bool run_if_idle(void (*run)(void* context), void* context);
  void submit(Task task);
  void synchronize();
  void discard_pending();  // drops what has not started; the destructor then waits only for the
                           // running task

  // The stream whose task the calling thread is running, or nullptr: to wait for that one would be
  // to wait for oneself.
  static const Stream* running_here();

  // The context this stream was made in; nullptr once that was destroyed, and then submitting is an
  // error of the caller.
  Context* owner() const { return owner_.load(std::memory_order_acquire); }
  bool orphan(Context* owner);  // false when it belongs to another; the worker ends when the queue
                                // is drained

  void reset_after_fork();  // the worker and its queue stayed in the parent

 private:
  bool start_worker();
  void work();
  bool idle() const { return queue_.empty() && !busy_; }
  void run_front(std::unique_lock<std::mutex>& lock);
  void finish_task();

  std::atomic<Context*> owner_;
  std::mutex mutex_;
  std::condition_variable wake_worker_;
  std::condition_variable wake_waiters_;
  std::deque<Task> queue_;
  std::thread worker_;
  bool working_ = false;   // the worker is in its loop
  bool busy_ = false;      // a task is running, on the worker or inline
  bool stopping_ = false;  // the worker ends once the queue is empty
  int waiters_ = 0;
};

HandlePool<Stream>& streams();

// Waits for what was submitted so far to all streams that `pick` accepts. Other threads may submit
// to, create and destroy streams meanwhile; `pick` must not block.
void drain_streams(bool (*pick)(Stream& stream, void* context), void* context);

}  // namespace openaclnn
