// SPDX-License-Identifier: Apache-2.0
// Subscriptions of threads to streams, and pending callbacks. One lock guards both; callbacks run
// without it.
#include "core/runtime/stream.h"

#include <pthread.h>

#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

struct Turn : OneShotEvent {  // set when a callback that its stream waits for has returned
  bool dropped = false;
};

struct Callback {
  aclrtCallback function;
  void* data;
  Stream* stream;              // an identity: may be destroyed by force meanwhile
  std::shared_ptr<Turn> turn;  // nullptr: the stream does not wait

  void run() const {
    const auto call = [](void* own) {
      const auto* self = static_cast<const Callback*>(own);
      const Work work("aclrtLaunchCallback");
      self->function(self->data);
    };
    notify_reached(this);
    if (turn == nullptr) return function(data);
    Stream::run_as(stream, call, const_cast<Callback*>(this));
    turn->signal();
  }
};

std::atomic<bool> any_reporter = false;  // ever; most programs have none

struct Reporter {  // a thread of the program
  std::condition_variable wake;
  std::list<Callback> pending;
  int streams = 0;       // subscribed
  int active_calls = 0;  // calls of aclrtProcessReport: one, unless two threads have the same id

  bool unused() const { return streams == 0 && pending.empty() && active_calls == 0; }
};

struct Reporters {
  Reporters() {
    hold_across_fork(mutex);
    after_fork_in_child([] { get().reset(); });
  }

  static Reporters& get() {
    static constinit NoDestructor<Reporters> reporters;
    return reporters.get();
  }

  // In a child of fork. No destructors: threads of the parent may be waiting on these objects.
  void reset() {
    new (&of_thread) std::map<uint64_t, Reporter>;
    new (&of_stream) std::map<const Stream*, uint64_t>;
  }

  // Ends a subscription. Returns the pending callbacks that the stream waits for.
  std::list<Callback> leave(std::map<const Stream*, uint64_t>::iterator subscription) {
    std::list<Callback> dropped;
    const auto found = of_thread.find(subscription->second);
    Reporter& reporter = found->second;
    for (auto i = reporter.pending.begin(); i != reporter.pending.end();) {
      const auto next = std::next(i);
      if (i->stream == subscription->first && i->turn != nullptr)
        dropped.splice(dropped.end(), reporter.pending, i);
      i = next;
    }
    --reporter.streams;
    reporter.wake.notify_all();
    of_stream.erase(subscription);
    if (reporter.unused()) of_thread.erase(found);
    return dropped;
  }

  std::mutex mutex;
  std::map<uint64_t, Reporter> of_thread;
  std::map<const Stream*, uint64_t> of_stream;
};

void drop(const std::list<Callback>& callbacks) {
  for (const Callback& callback : callbacks) callback.turn->dropped = true, callback.turn->signal();
}

// A task of the stream. The list node is allocated at launch, so handing it over cannot fail.
struct Launch {
  std::list<Callback> node;

  void run() {
    Stream* stream = node.front().stream;
    const std::shared_ptr<Turn> turn = node.front().turn;
    Reporters& reporters = Reporters::get();
    bool handed = false;
    {
      std::lock_guard lock(reporters.mutex);
      if (const auto found = reporters.of_stream.find(stream); found != reporters.of_stream.end()) {
        Reporter& reporter = reporters.of_thread.find(found->second)->second;
        reporter.pending.splice(reporter.pending.end(), node);
        reporter.wake.notify_one();
        handed = true;
      }
    }
    if (handed && turn != nullptr) (void)stream->wait_here(*turn, Deadline());
    if (!handed || (turn != nullptr && turn->is_set() && turn->dropped)) {
      stream->fail_task(ACL_ERROR_STREAM_NOT_SUBSCRIBE, Reason::call_missing,
                        "aclrtUnSubscribeReport came before a callback of the stream had run");
    }
  }
};

Status find(const char* call, aclrtStream handle, PinnedStream* stream) {
  const Status status = find_stream(handle, stream);
  return status.ok() ? status : with_call(status, call);
}

Status launch(aclrtCallback function, void* data, int block, aclrtStream handle) {
  constexpr const char* call = "aclrtLaunchCallback";
  if (Status status = not_null(call, "fn", reinterpret_cast<void*>(function)); !status.ok()) {
    return status;
  }
  if (block != ACL_CALLBACK_NO_BLOCK && block != ACL_CALLBACK_BLOCK) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "blockType must be 0 or 1, but got %d", block);
  }
  PinnedStream stream;
  if (Status status = find_working_stream(call, handle, &stream); !status.ok()) return status;
  if (Status status = check_not_captured(call, *stream, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                                         "use aclrtLaunchHostFunc");
      !status.ok()) {
    return status;
  }
  Reporters& reporters = Reporters::get();
  {
    std::lock_guard lock(reporters.mutex);
    if (reporters.of_stream.count(stream.get()) == 0) {
      return fail(ACL_ERROR_STREAM_NOT_SUBSCRIBE, Reason::call_missing, call,
                  "no thread is subscribed to the stream; call aclrtSubscribeReport first");
    }
  }
  auto own = std::make_unique<Launch>();
  const bool waits = block == ACL_CALLBACK_BLOCK;
  own->node.push_back({function, data, stream.get(), waits ? std::make_shared<Turn>() : nullptr});
  notify_recorded(&own->node.front(),
                  stream.get());  // the callback happens after the work before it
  const auto run = [](void* context) { static_cast<Launch*>(context)->run(); };
  if (!waits && stream->run_if_idle(run, own.get())) return {};
  const auto drop = [](void* context) { delete static_cast<Launch*>(context); };
  if (!stream->hand_over({run, drop, own.get()})) return no_thread(call);
  (void)own.release();
  return {};
}

Status subscribe(uint64_t thread, aclrtStream handle) {
  constexpr const char* call = "aclrtSubscribeReport";
  PinnedStream stream;
  if (Status status = find(call, handle, &stream); !status.ok()) return status;
  Reporters& reporters = Reporters::get();
  std::lock_guard lock(reporters.mutex);
  const auto [subscription, is_new] = reporters.of_stream.emplace(stream.get(), thread);
  if (!is_new) {
    return fail(ACL_ERROR_REPEAT_SUBSCRIBE, Reason::already_done, call,
                "thread %llu is already subscribed to the stream",
                static_cast<unsigned long long>(subscription->second));
  }
  try {
    ++reporters.of_thread[thread].streams;
    any_reporter = true;
  } catch (...) {
    reporters.of_stream.erase(subscription);
    throw;
  }
  return {};
}

Status unsubscribe(uint64_t thread, aclrtStream handle) {
  constexpr const char* call = "aclrtUnSubscribeReport";
  PinnedStream stream;
  if (Status status = find(call, handle, &stream); !status.ok()) return status;
  Reporters& reporters = Reporters::get();
  std::list<Callback> dropped;
  {
    std::lock_guard lock(reporters.mutex);
    const auto found = reporters.of_stream.find(stream.get());
    if (found == reporters.of_stream.end()) {
      return fail(ACL_ERROR_STREAM_NOT_SUBSCRIBE, Reason::call_missing, call,
                  "no thread is subscribed to the stream");
    }
    if (found->second != thread) {
      return fail(ACL_ERROR_THREAD_NOT_SUBSCRIBE, Reason::call_missing, call,
                  "threadId must be the thread subscribed to stream, %llu, but got %llu",
                  static_cast<unsigned long long>(found->second),
                  static_cast<unsigned long long>(thread));
    }
    dropped = reporters.leave(found);
  }
  drop(dropped);
  return {};
}

// Runs one callback.
Status process(int32_t timeout) {
  constexpr const char* call = "aclrtProcessReport";
  if (timeout < -1 || timeout == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "timeout must be -1 (no limit) or at least 1 ms, but got %d", timeout);
  }
  const auto deadline = Deadline::in_milliseconds(timeout);
  Reporters& reporters = Reporters::get();
  std::list<Callback> taken;
  {
    std::unique_lock lock(reporters.mutex);
    const auto found = reporters.of_thread.find(static_cast<uint64_t>(pthread_self()));
    if (found == reporters.of_thread.end()) {
      return fail(ACL_ERROR_THREAD_NOT_SUBSCRIBE, Reason::call_missing, call,
                  "this thread is not subscribed to a stream; call aclrtSubscribeReport first");
    }
    Reporter& reporter = found->second;
    ++reporter.active_calls;
    const bool in_time = deadline.wait(
        reporter.wake, lock, [&] { return !reporter.pending.empty() || reporter.streams == 0; });
    --reporter.active_calls;
    if (!reporter.pending.empty())
      taken.splice(taken.end(), reporter.pending, reporter.pending.begin());
    if (reporter.unused()) reporters.of_thread.erase(found);
    if (taken.empty() && in_time) {
      return fail(ACL_ERROR_THREAD_NOT_SUBSCRIBE, Reason::call_missing, call,
                  "the last stream of this thread was unsubscribed while it waited");
    }
  }
  if (taken.empty()) {
    return fail(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, Reason::timed_out, call,
                "timed out: no callback within %d ms", timeout);
  }
  taken.front().run();
  return {};
}

}  // namespace

namespace openaclnn {

void forget_reporter(Stream* stream) {
  Reporters& reporters = Reporters::get();
  std::list<Callback> dropped;
  {
    std::lock_guard lock(reporters.mutex);
    const auto found = reporters.of_stream.find(stream);
    if (found == reporters.of_stream.end()) return;
    dropped = reporters.leave(found);
  }
  drop(dropped);
}

bool reports_here() {
  if (!any_reporter) return false;
  Reporters& reporters = Reporters::get();
  std::lock_guard lock(reporters.mutex);
  return reporters.of_thread.count(static_cast<uint64_t>(pthread_self())) != 0;
}

}  // namespace openaclnn

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  return guarded("aclrtLaunchCallback", ACL_ERROR_RT_MEMORY_ALLOCATION,
                 [&] { return launch(fn, userData, static_cast<int>(blockType), stream).code(); });
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded("aclrtSubscribeReport", ACL_ERROR_RT_MEMORY_ALLOCATION,
                 [&] { return subscribe(threadId, stream).code(); });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return unsubscribe(threadId, stream).code();
}

aclError aclrtProcessReport(int32_t timeout) { return process(timeout).code(); }
