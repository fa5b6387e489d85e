// SPDX-License-Identifier: Apache-2.0
// All streams of the process: lookup, waiting, and the child of fork.
#include "core/runtime/stream.h"
#include "core/runtime/stream_library.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxStreams = 1 << 16;

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

// Waits for a marker task in every busy stream, which wakes each worker; allocates nothing if all
// are idle.
void wait_for_all(PickStream pick, void* context, std::vector<const Stream*>& waited) {
  Gate gate;
  streams().for_each([&](Stream& stream) {
    if (!pick(stream, context)) return;
    if (observer != nullptr) [[unlikely]]
      waited.push_back(&stream);
    const auto nothing = [](void*) {};
    if (stream.run_if_idle(nothing, nullptr)) return;
    gate.enter();
    stream.submit_unrecorded(
        {nothing, [](void* entered) { static_cast<Gate*>(entered)->leave(); }, &gate});
  });
  gate.wait();
}

// Waits without markers. A stream that was destroyed meanwhile has done its work.
bool wait_until(PickStream pick, void* context, Deadline deadline,
                std::vector<const Stream*>& waited) {
  struct Target {
    const Stream* stream;
    uint64_t submitted;
  };
  std::vector<Target> targets;
  streams().for_each([&](Stream& stream) {
    if (!pick(stream, context)) return;
    if (observer != nullptr) [[unlikely]]
      waited.push_back(&stream);
    if (const uint64_t submitted = stream.submitted_if_busy(); submitted > 0) {
      targets.push_back({&stream, submitted});
    }
  });
  for (const Target& target : targets) {
    const PinnedStream stream(streams(), target.stream);
    if (stream && !Stream::Waiter(*stream, target.submitted).wait(deadline)) return false;
  }
  return true;
}

}  // namespace

Stream::Waiter::Waiter(Stream& stream) : stream_(stream) {
  std::lock_guard lock(stream.mutex_);
  target_ = stream.submitted_;
  aborts_ = stream.aborts_;
  present_ = !stream.idle() || stream.failed();
  if (present_) ++stream.waiters_;
}

Stream::Waiter::Waiter(Stream& stream, uint64_t submitted) : stream_(stream), target_(submitted) {
  std::lock_guard lock(stream.mutex_);
  aborts_ = stream.aborts_;
  present_ = !stream.idle();
  if (present_) ++stream.waiters_;
}

Stream::Waiter::~Waiter() {
  if (!present_) return;
  std::lock_guard lock(stream_.mutex_);
  --stream_.waiters_;
}

TaskFailure Stream::Waiter::forget_failure() const {
  return present_ ? stream_.forget_failure() : TaskFailure();
}

bool Stream::Waiter::aborted() const {
  if (!present_) return false;
  std::lock_guard lock(stream_.mutex_);
  return stream_.aborts_ != aborts_;
}

bool Stream::Waiter::wait(Deadline deadline) const {
  if (!present_) return true;
  std::unique_lock lock(stream_.mutex_);
  return deadline.wait(stream_.wake_waiters_, lock, [this] {
    if (stream_.finished_ >= target_ || stream_.idle()) return true;
    stream_.wake_at_ = std::min(stream_.wake_at_, target_);
    return false;
  });
}

// No destructors: a thread of the parent may hold the mutex or be changing the queue.
void Stream::reset_after_fork() {
  new (&mutex_) std::mutex;
  new (&wake_worker_) std::condition_variable;
  new (&wake_waiters_) std::condition_variable;
  new (&queue_) std::list<Task>;
  new (&worker_) std::thread;
  waits_for_ = paused_for_ = nullptr;
  pause_ends_ = alarm_ = Deadline();
  interrupted_ = working_ = busy_ = has_work_ = stopping_ = records_ = false;
  new (&recording_) GraphRecording;
  waiters_ = 0;
  finished_ = submitted_;
  wake_at_ = UINT64_MAX;
  failure_ = {};
  failed_ = false;
}

HandlePool<Stream>& streams() {
  return pool_of<Stream>(kMaxStreams, [] {
    streams().forget_pins();
    streams().for_each([](Stream& stream) { stream.reset_after_fork(); });
  });
}

Status find_stream(const void* handle, PinnedStream* stream, const char* call) {
  if (handle == nullptr) {
    // While its context is pinned, its default stream is alive.
    if (const PinnedContext context = current_context()) {
      *stream = PinnedStream(streams(), context->stream);
      return {};
    }
    return fail(
        ACL_ERROR_RT_CONTEXT_NULL, {Reason::no_context, ObjectKind::device}, nullptr,
        "no device is set for this thread, so it has no default stream; call aclrtSetDevice first");
  }
  PinnedStream found(streams(), handle);
  if (!found) {
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::stream, "stream", handle);
  }
  if (found->owner() == nullptr) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT, {Reason::dead_handle, ObjectKind::context}, nullptr,
                "the context of stream %p was destroyed or reset", handle);
  }
  *stream = std::move(found);
  return {};
}

Status check_running(Stream& stream) {
  if (!stream.halted()) [[likely]]
    return check_capture(stream);
  const TaskFailure failure = stream.failure();
  return fail(failure.code, failure.cause, nullptr,
              "the stream stopped at a failure (aclrtSetStreamFailureMode): %s", failure.sentence);
}

Status find_stream_for(const char* call, const void* handle, PinnedStream* stream) {
  const Status status = find_stream(handle, stream, call);
  return status.ok() ? status : with_call(status, call);
}

Status find_working_stream(const char* call, const void* handle, PinnedStream* stream) {
  Status status = find_stream(handle, stream, call);
  if (status.ok()) status = check_running(**stream);
  if (status.ok()) status = check_no_group(**stream);
  return status.ok() ? status : with_call(status, call);
}

void halt_others(const Stream& failed) {
  const Context* owner = failed.owner();
  const TaskFailure failure = const_cast<Stream&>(failed).failure();
  streams().for_each([&](Stream& stream) {
    if (&stream != &failed && owner != nullptr && stream.owner() == owner) stream.halt(failure);
  });
}

void wait_quietly(const void* handle) {
  PinnedStream stream(streams(), handle);
  if (handle == nullptr) {
    if (const PinnedContext context = current_context()) {
      stream = PinnedStream(streams(), context->stream);
    }
  }
  if (!stream || stream.get() == Stream::running_here()) return;
  if (stream->owner() != nullptr && stream->awaited()) (void)stream->synchronize();
}

void drain_streams(PickStream pick, void* context) {
  std::vector<const Stream*> waited;  // for the observer
  wait_for_all(pick, context, waited);
  for (const Stream* stream : waited) notify_synchronised(stream);
}

bool drain_streams(PickStream pick, void* context, Deadline deadline) {
  std::vector<const Stream*> waited;
  try {
    if (!wait_until(pick, context, deadline, waited)) return false;
  } catch (const std::bad_alloc&) {
    if (!deadline.never()) throw;
    waited.clear();
    wait_for_all(pick, context, waited);
  }
  for (const Stream* stream : waited) notify_synchronised(stream);
  return true;
}

namespace {

void fail_task_of(Stream& stream, const TakenFailure& failure) {
  stream.fail_task(failure.code, failure.cause, "%s%s%s", failure.call.c_str(),
                   failure.call.empty() ? "" : ": ", failure.sentence.c_str());
}

}  // namespace

Status take_failures(const char* call, PickStream pick, void* context) {
  TaskFailure first;
  streams().for_each([&](Stream& stream) {
    if (!pick(stream, context)) return;
    const TaskFailure failure = stream.forget_failure();
    if (first.code == 0) first = failure;
  });
  return first.as_status(call);
}

void fail_context(const TakenFailure& failure) {
  const Stream* own = Stream::running_here();
  Context* context = Stream::owner_here();
  streams().for_each([&](Stream& stream) {
    const bool same = context != nullptr && stream.owner() == context;
    if (&stream == own || same) fail_task_of(stream, failure);
  });
}

int32_t fail_stream(void* handle, const TakenFailure& failure) {
  PinnedStream found;
  Status status = find_stream(handle, &found);
  if (status.ok()) fail_task_of(*found, failure);
  return status.code();
}

}  // namespace openaclnn
