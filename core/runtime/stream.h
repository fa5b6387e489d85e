// SPDX-License-Identifier: Apache-2.0
// A stream is an in-order queue with one worker thread, started when the first task has to wait.
//
// Tasks of one stream run one after another; streams run concurrently with each other and with the
// host. If the stream is idle, work cheaper than waking a thread runs on the submitting thread; the
// order of submission holds in any case.
//
// A task may wait for another stream (wait_here), since its worker has nothing else to do. If
// nothing is queued before the wait, it needs no thread (pause). No deadlock: a stream waits only
// for work submitted earlier.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "core/support/handles.h"
#include "core/support/status.h"
#include "core/runtime/stream_task.h"
#include "core/support/waiting.h"

namespace openaclnn {

struct Context;
struct Capture;
struct TaskUpdate;

// Where a stream records its tasks instead of running them. capture_mutex() guards the members.
struct GraphRecording {
  std::shared_ptr<Capture> capture;
  std::shared_ptr<TaskUpdate> update;
};

// The failure of a task; code 0: none.
struct TaskFailure {
  int32_t code = 0;
  Cause cause;
  char sentence[200] = "";

  Status as_status(const char* call) const;  // as a failure of this thread, headed by `call`
};

// What a program chose for a stream.
struct StreamSettings {
  uint32_t flags = 0;  // ACL_STREAM_*
  uint32_t priority = 0;
};

class Stream {
 public:
  static constexpr bool kPinned =
      true;  // a call that works on a stream found by its handle pins it

  explicit Stream(Context* owner, StreamSettings settings = {});
  ~Stream();  // waits for the queue to drain; never on a thread that runs a task of this stream

  // If nothing is queued or running, and the stream does not record its tasks, runs the work on the
  // calling thread and returns true. Otherwise does nothing and returns false.
  bool run_if_idle(void (*run)(void* context), void* context);
  // Queues the task. Without memory for that, waits for the stream and runs the task here; called
  // from a task of this stream, throws std::bad_alloc instead.
  void submit(Task task);
  // The same for a task that no graph may record.
  void submit_unrecorded(Task task);
  // Queues a task that itself waits; never blocks. Throws std::bad_alloc; false, with nothing
  // submitted, if no thread can be started.
  bool hand_over(Task task);
  // Stops the queue until the event is signalled, without a waiting thread. If the deadline passes
  // first, the worker runs `late`, which is dropped in any case. False, with no effect, if the
  // stream has work, the event is set or no thread can be started.
  bool pause(OneShotEvent& event, Deadline deadline, Task late);
  // Whether anything is queued or runs; a pause before nothing does not count. Work that was
  // submitted before, by this thread or one that it has synchronised with, is seen.
  bool has_work() const { return has_work_.load(std::memory_order_acquire); }
  // Calls then(context) once the work that is queued or runs now has ended or was dropped. False,
  // with no effect, if there is none. Never calls it if memory or a thread for that is lacking.
  bool follow(void (*then)(void* context), void* context);
  // Waits for the tasks submitted before the call; false if the deadline comes first.
  bool synchronize(Deadline deadline = {}) {
    const Waiter waiter(*this);
    return waiter.wait(deadline);
  }
  class Waiter {
   public:
    explicit Waiter(Stream& stream);
    Waiter(Stream& stream, uint64_t submitted);  // of submitted_if_busy
    ~Waiter();
    Waiter(const Waiter&) = delete;
    // Waits for what was submitted before the waiter was made or, with the second constructor,
    // before that number was read.
    bool wait(Deadline deadline) const;
    TaskFailure forget_failure() const;
    bool aborted() const;  // abort() ended the wait

   private:
    Stream& stream_;
    uint64_t target_;
    uint32_t aborts_ = 0;  // before the wait
    bool present_;         // false: all tasks are done without failure
  };
  bool query();                  // nothing is queued or running
  uint64_t submitted_if_busy();  // tasks submitted so far; 0 when nothing is queued or running
  void discard_pending();  // drops what has not started and ends waits for moments; the destructor
                           // then waits only for the running task
  // Drops what has not started, ends waits, and waits for the running task. Threads that wait for
  // the stream see Waiter::aborted. Never on a thread that runs a task of this stream.
  void abort();
  void wait_for_running_task();
  bool awaited() const { return awaited_; }  // false: aclrtSynchronizeStream does not wait for it

  // ---- for the task that runs ----
  // Returns the stream whose task the calling thread is running, or nullptr. The thread must not
  // wait for that stream, since it would wait for itself.
  static Stream* running_here();
  // Of the task from the queue that the calling thread runs; empty for work that runs inline.
  static Submission submission_here();
  // Returns the context of that stream, or nullptr if the stream or its context is gone: the stream
  // of a callback may be destroyed by force while the callback runs.
  static Context* owner_here();
  // Runs `run` with the calling thread marked as one that runs a task of the stream.
  static void run_as(Stream* stream, void (*run)(void* context), void* context);
  enum class Waited { signalled, too_long, interrupted };
  Waited wait_here(OneShotEvent& event, Deadline deadline);
  // Asks ready(context) again and again, for what no thread of this process announces.
  Waited poll_here(bool (*ready)(void* context), void* context, Deadline deadline);
  bool interrupted() const { return interrupted_; }  // its work is being dropped
  // Records a failure. The stream keeps the first one until a synchronisation takes it; later tasks
  // run all the same.
  [[gnu::format(printf, 4, 5)]] void fail_task(int32_t code, Cause cause, const char* sentence,
                                               ...);
  TaskFailure failure();
  TaskFailure forget_failure();  // returns failure() and clears it
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // ---- graphs ----
  bool records() const { return records_.load(std::memory_order_acquire); }
  // capture_mutex() is held. The tasks submitted before still run.
  void set_recording(GraphRecording recording);
  const GraphRecording& recording() const { return recording_; }  // capture_mutex() is held

  // ---- what a program sets for the stream ----
  // From the first failure on nothing runs, here and in the other streams of the context.
  void stop_on_failure() { stops_on_failure_ = true; }
  bool stops_on_failure() const { return stops_on_failure_; }
  bool halted() const { return stops_on_failure_ && failed(); }
  void halt(const TaskFailure& failure);  // because of another stream
  const int32_t id;
  const StreamSettings settings;
  std::atomic<uint32_t> cores[2] = {0, 0};  // by aclrtDevResLimitType; 0: not limited
  std::atomic<uint32_t> overflow_switch = 0;
  std::atomic<uint32_t> priority;
  std::atomic<uint32_t> tag = 0;

  // The context of the stream; nullptr once that was destroyed: then submitting is an error.
  Context* owner() const { return owner_.load(std::memory_order_acquire); }
  bool orphan(Context* owner);  // false when it belongs to another; the worker ends when the queue
                                // is drained

  void reset_after_fork();  // the child has no worker, and its queue is empty

 private:
  void count_task();  // mutex_ is held
  bool start_worker();
  void work();
  bool idle() const { return queue_.empty() && !busy_; }
  void run_front(std::unique_lock<std::mutex>& lock);
  void finish_task();
  bool worker_is_needed() const {
    return queue_.empty() ? stopping_ && paused_for_ == nullptr : !busy_;
  }
  bool end_pause();  // before the event; false if that is set
  void resume();     // at the event
  void give_up_pause(std::unique_lock<std::mutex>& lock);

  std::atomic<Context*> owner_;
  std::atomic<bool> records_ = false;
  GraphRecording recording_;
  const bool awaited_;
  std::mutex mutex_;
  std::condition_variable wake_worker_;
  std::condition_variable wake_waiters_;
  std::list<Task> queue_;  // an empty list allocates nothing
  std::thread worker_;
  OneShotEvent* waits_for_ = nullptr;      // of wait_here
  std::atomic<bool> interrupted_ = false;  // wait_here is over
  OneShotEvent* paused_for_ = nullptr;     // of pause; busy_ is set then
  OneShotEvent::Listener listener_{[](void* own) { static_cast<Stream*>(own)->resume(); }, this};
  Task late_ = {};
  Deadline pause_ends_;
  Deadline
      alarm_;  // until when the worker sleeps at most: a pause that ends later need not wake it
  bool working_ = false;  // the worker is in its loop
  bool busy_ = false;     // a task is running, on the worker or inline
  std::atomic<bool> has_work_ = false;
  uint32_t running_thread_ = 0;  // that submitted the running task
  uint32_t aborts_ = 0;
  std::atomic<bool> stops_on_failure_ = false;
  bool stopping_ = false;  // the worker ends once the queue is empty
  int waiters_ = 0;
  uint64_t submitted_ = 0;  // tasks ever; those discarded are never finished
  uint64_t finished_ = 0;
  uint64_t wake_at_ = UINT64_MAX;  // the smallest finished_ that a waiter needs
  TaskFailure failure_;
  std::atomic<bool> failed_ = false;
};

using PinnedStream = HandlePool<Stream>::Pin;

// ---- all streams of the process (streams.cpp) ----

HandlePool<Stream>& streams();

// Finds and pins the stream behind a handle; NULL is the default stream of the current context.
// Fails, with a sentence without the name of a call, if the stream or its context is not alive or
// no context is current. `call` is only for observers.
Status find_stream(const void* handle, PinnedStream* stream, const char* call = nullptr);

// The same with the name of the call.
Status find_stream_for(const char* call, const void* handle, PinnedStream* stream);

// After the failure of a stream that stops: the other streams of its context stop too.
void halt_others(const Stream& failed);

// Fails, with a sentence without the name of a call, for a stream that stopped at a failure, and
// where a capture forbids work on it.
Status check_running(Stream& stream);
// find_stream and check_running for a call that submits work other than an operator.
Status find_working_stream(const char* call, const void* handle, PinnedStream* stream);

// Creates a stream in the current context.
Status create_stream(const char* call, void** stream, StreamSettings settings);

// The number of the newest task that this thread submitted to a stream that it or another thread
// created; 0: none.
uint32_t last_task_of_thread();

uint32_t number_of_this_thread();  // the system's

// A task that failed, for callbacks.
struct FailedTask {
  uint32_t task, stream, thread, device;
  int32_t code;
};
// Called on the thread of the task, before its stream reports the failure.
extern std::atomic<void (*)(const FailedTask& task)> task_failure_listener;

// Waits for the submitted work of a stream. No-op if the handle is wrong or this thread must not
// wait. Failures stay for the next synchronisation.
void wait_quietly(const void* handle);

// Waits for what was submitted so far to all streams that `pick` accepts; `pick` is called once for
// each stream and must not block. Other threads may submit to, create and destroy streams
// meanwhile.
using PickStream = bool (*)(Stream& stream, void* context);
void drain_streams(PickStream pick, void* context);
// With a deadline; false if it passed. Out of memory: calls `pick` again for each stream if the
// deadline is never, else throws std::bad_alloc.
bool drain_streams(PickStream pick, void* context, Deadline deadline);
// Returns the first failure of these streams and clears all of theirs.
Status take_failures(const char* call, PickStream pick, void* context);

// ---- callbacks: a stream hands them to the thread of the program that is subscribed to it ----

// Ends the subscription of a stream, if any. Drops callbacks that the stream waits for and no
// thread has taken; the stream's next synchronisation reports that. Other callbacks stay.
void forget_reporter(Stream* stream);

// Whether the calling thread is subscribed to a stream: work may be waiting for a callback that
// this thread must run.
bool reports_here();

}  // namespace openaclnn
