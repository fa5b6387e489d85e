// SPDX-License-Identifier: Apache-2.0
// Functions of the program as tasks of a stream, on its thread; and the threads that would run CPU
// operators of models, which find none.
#include <pthread.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"
#include "core/runtime/task.h"

using namespace openaclnn;

namespace {

struct HostFunction {
  static constexpr const char* kCall = "aclrtLaunchHostFunc";
  aclrtHostFunc function;
  void* arguments;

  // It happens after the work before it.
  void observe(const Stream& stream) const { notify_recorded(this, &stream); }
  void run() const {
    const Work work(kCall);
    notify_reached(this);
    function(arguments);
  }
};

Status launch_host_function(const char* call, aclrtStream handle, aclrtHostFunc function,
                            void* arguments) {
  Status status = not_null(call, "fn", reinterpret_cast<void*>(function));
  PinnedStream stream;
  if (status.ok()) status = find_working_stream(call, handle, &stream);
  if (!status.ok()) return status;
  auto job = std::make_unique<HostFunction>(HostFunction{function, arguments});
  observe_job(*stream, *job);
  return hand_over_job(call, *stream, std::move(job));
}

// Streams and the threads that would run their operators.
struct Subscriptions {
  Subscriptions() {
    hold_across_fork(mutex);
    after_fork_in_child([] { new (&get().changed) std::condition_variable; });
  }

  static Subscriptions& get() {
    static constinit NoDestructor<Subscriptions> subscriptions;
    return subscriptions.get();
  }

  bool has(uint64_t thread) const {
    for (const auto& [stream, own] : threads) {
      if (own == thread) return true;
    }
    return false;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<int32_t, uint64_t> threads;  // by the number of the stream
};

Status find_subscribed(const char* call, aclrtStream handle, PinnedStream* stream) {
  if (Status null = not_null(call, "exeStream", handle, ObjectKind::stream); !null.ok())
    return null;
  return find_stream_for(call, handle, stream);
}

}  // namespace

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  return guarded_status("aclrtLaunchHostFunc", [&](const char* call) {
    return launch_host_function(call, stream, fn, args);
  });
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
  return guarded_status("aclrtSubscribeHostFunc", [&](const char* call) {
    PinnedStream stream;
    Status status = find_subscribed(call, exeStream, &stream);
    if (!status.ok()) return status;
    Subscriptions& all = Subscriptions::get();
    std::lock_guard lock(all.mutex);
    if (all.threads.emplace(stream->id, hostFuncThreadId).second) return status;
    return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, Reason::already_done, call,
                "a thread is already subscribed to the stream");
  });
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
  constexpr const char* call = "aclrtUnSubscribeHostFunc";
  PinnedStream stream;
  if (Status status = find_subscribed(call, exeStream, &stream); !status.ok()) return status.code();
  Subscriptions& all = Subscriptions::get();
  std::lock_guard lock(all.mutex);
  const auto found = all.threads.find(stream->id);
  if (found == all.threads.end() || found->second != hostFuncThreadId) {
    return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, Reason::call_missing, call,
                "the thread is not subscribed to the stream; call aclrtSubscribeHostFunc first")
        .code();
  }
  all.threads.erase(found);
  all.changed.notify_all();
  return ACL_SUCCESS;
}

aclError aclrtProcessHostFunc(int32_t timeout) {
  constexpr const char* call = "aclrtProcessHostFunc";
  if (Status status = check_timeout(call, timeout); !status.ok()) return status.code();
  Subscriptions& all = Subscriptions::get();
  const auto self = static_cast<uint64_t>(pthread_self());
  std::unique_lock lock(all.mutex);
  const auto not_subscribed = [&](const char* why) {
    return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, Reason::call_missing, call, "%s", why).code();
  };
  if (!all.has(self)) {
    return not_subscribed(
        "this thread is not subscribed to a stream; call aclrtSubscribeHostFunc first");
  }
  const bool ended =
      Deadline::in_milliseconds(timeout).wait(all.changed, lock, [&] { return !all.has(self); });
  if (ended)
    return not_subscribed("the last stream of this thread was unsubscribed while it waited");
  return fail(ACL_ERROR_RT_REPORT_TIMEOUT, Reason::timed_out, call,
              "timed out: no host function within %d ms (only models have them)", timeout)
      .code();
}
