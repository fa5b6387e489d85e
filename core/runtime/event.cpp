// SPDX-License-Identifier: Apache-2.0
// Points in the work of streams; how the host asks and waits for them.
#include "core/runtime/event.h"

#include <chrono>
#include <new>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/support/arithmetic.h"
#include "core/runtime/capture.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxEvents = 1 << 18;

// In a child of fork the work is lost: an event that was not reached counts as never recorded. Its
// point is leaked, because threads of the parent may be waiting on it.
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

// ---- queries, waits and times on the host ----

using namespace openaclnn;

namespace {

enum class Recorded { never, not_yet, reached };

// The newest point of the event; nullptr before the first record.
Status newest_point(const char* call, aclrtEvent handle, std::shared_ptr<Point>* point,
                    std::shared_ptr<SharedFile>* shared) {
  return with_event(call, handle, [&](Event& event) {
    *point = event.point;
    *shared = event.shared;
    return Status();
  });
}

Status not_reached(const char* call, int32_t timeout) {
  return fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, Reason::timed_out, call,
              "timed out: the event was not reached within %d ms", timeout);
}

Status refuse_ex(const char* call, const Event& event) {
  if (event.maker != EventMaker::ex_with_flag) return {};
  return fail(
      ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::event}, call,
      "an event of aclrtCreateEventExWithFlag has no such status; call aclrtQueryEventStatus");
}

// An event of a capture has no state.
Status check_event_not_captured(const char* call, aclrtEvent handle) {
  std::shared_ptr<const CapturedPoint> captured;
  Status status = with_event(call, handle, [&](Event& event) {
    captured = event.captured;
    return Status();
  });
  return status.ok() ? check_not_captured(call, captured) : status;
}

Status query(const char* call, aclrtEvent handle, const void* status, bool allow_ex,
             Recorded* recorded) {
  if (Status null = not_null(call, "status", status); !null.ok()) return null;
  if (Status captured = check_event_not_captured(call, handle); !captured.ok()) return captured;
  const Status asked = with_event(call, handle, [&](Event& event) {
    const bool ex = event.maker == EventMaker::ex_with_flag;
    if (event.shared != nullptr) {
      const bool reached = newest_record(event.shared).is_reached();
      *recorded = reached ? Recorded::reached : Recorded::not_yet;
    } else if (event.point == nullptr) {
      *recorded = ex ? Recorded::reached : Recorded::never;
    } else {
      *recorded = event.point->reached.is_set() ? Recorded::reached : Recorded::not_yet;
    }
    return allow_ex ? Status() : refuse_ex(call, event);
  });
  if (asked.ok() && *recorded == Recorded::reached) notify_reached(handle);
  return asked;
}

Status synchronize_event(const char* call, aclrtEvent handle, int32_t timeout) {
  if (Status status = check_timeout(call, timeout); !status.ok()) return status;
  if (Status status = check_event_not_captured(call, handle); !status.ok()) return status;
  std::shared_ptr<Point> point;
  std::shared_ptr<SharedFile> shared;
  Status status = newest_point(call, handle, &point, &shared);
  if (!status.ok()) return status;
  if (point != nullptr && !point->reached.is_set() && point->stream == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task must not wait for an event of the stream it runs on");
  }
  const Deadline deadline = Deadline::in_milliseconds(timeout);
  if (shared != nullptr && !newest_record(std::move(shared)).wait(deadline))
    return not_reached(call, timeout);
  if (point == nullptr) return {};
  if (!point->reached.wait(deadline)) return not_reached(call, timeout);
  notify_reached(handle);
  return point->failure.as_status(call);
}

// Nanoseconds on the steady clock.
Status time_of(const char* call, const char* argument, aclrtEvent handle, int64_t* nanoseconds) {
  return with_event(
      call, handle,
      [&](Event& event) {
        const auto invalid = [&](const char* why) {
          return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, Reason::call_missing, call, "%s %s",
                      argument, why);
        };
        if (!event.has_time()) return invalid("was created without ACL_EVENT_TIME_LINE");
        if (event.point == nullptr) return invalid("was never recorded");
        if (!event.point->reached.is_set()) {
          return invalid("was not reached yet; call aclrtSynchronizeEvent first");
        }
        if (event.point->nanoseconds < 0) {
          return invalid("was never reached: its stream was destroyed by force");
        }
        *nanoseconds = event.point->nanoseconds;
        return Status();
      },
      argument);
}

}  // namespace

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  Recorded recorded = Recorded::never;
  const Status queried = query("aclrtQueryEventStatus", event, status, true, &recorded);
  if (!queried.ok()) return queried.code();
  *status = recorded == Recorded::reached ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                          : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  Recorded recorded = Recorded::never;
  const Status queried = query("aclrtQueryEvent", event, status, false, &recorded);
  if (!queried.ok()) return queried.code();
  *status = recorded == Recorded::reached ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  constexpr const char* call = "aclrtQueryEventWaitStatus";
  if (Status null = not_null(call, "status", status); !null.ok()) return null.code();
  return with_event(call, event,
                    [&](Event& own) {
                      if (Status refused = refuse_ex(call, own); !refused.ok()) return refused;
                      *status = *own.waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE
                                                : ACL_EVENT_WAIT_STATUS_NOT_READY;
                      return Status();
                    })
      .code();
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return synchronize_event("aclrtSynchronizeEvent", event, -1).code();
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return synchronize_event("aclrtSynchronizeEventWithTimeout", event, timeout).code();
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  constexpr const char* call = "aclrtEventElapsedTime";
  int64_t start = 0, end = 0;
  Status status = not_null(call, "ms", ms);
  if (status.ok()) status = time_of(call, "startEvent", startEvent, &start);
  if (status.ok()) status = time_of(call, "endEvent", endEvent, &end);
  if (status.ok() && end < start) {
    status =
        fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, Reason::wrong_value, call,
             "endEvent was reached %lld ns before startEvent", static_cast<long long>(start - end));
  }
  if (status.ok()) {
    const DefaultArithmetic arithmetic;
    int64_t nanoseconds = end - start;
    pin(nanoseconds);
    *ms = static_cast<float>(static_cast<double>(nanoseconds) * 1e-6);
    pin(*ms);
  }
  return status.code();
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  constexpr const char* call = "aclrtEventGetTimestamp";
  int64_t nanoseconds = 0;
  Status status = not_null(call, "timestamp", timestamp);
  if (status.ok()) status = time_of(call, "event", event, &nanoseconds);
  if (status.ok()) *timestamp = static_cast<uint64_t>(nanoseconds / 1000);
  return status.code();
}
