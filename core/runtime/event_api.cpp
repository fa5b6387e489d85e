// SPDX-License-Identifier: Apache-2.0
// The C functions that record, wait for and reset events.
#include "core/runtime/event.h"

#include <atomic>
#include <utility>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

// The timeout that aclrtSetOpWaitTimeout set; 0: no limit.
std::atomic<uint32_t> wait_seconds = 0;

// For work on a stream that is not in capture.
Status check_event_apart(const char* call, const std::shared_ptr<const CapturedPoint>& captured,
                         uint32_t flag) {
  if (flag != ACL_EVENT_RECORD_DEFAULT) {
    return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, Reason::call_missing, call,
                "flag 1 (external) needs a stream that is being captured; pass 0");
  }
  if (!is_captured(captured)) return {};
  return fail(ACL_ERROR_RT_EVENT_CAPTURED, {Reason::wrong_value, ObjectKind::event}, call,
              "event marks the work of a stream in capture, so other streams cannot record it; use "
              "another event");
}

// A task of the stream; runs at once if the stream is idle.
struct Recording {
  std::shared_ptr<Point> point;
  Stream* stream;
  SharedRecord shared;

  void run() const {
    point->reach(*stream);
    if (shared.file != nullptr) shared.reach();
  }
};

Status check_not_shared(const char* call, Stream& stream, const SharedFile* shared) {
  if (shared == nullptr || !is_capturing(stream)) return {};
  return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, {Reason::wrong_value, ObjectKind::event}, call,
              "a graph cannot record an event that processes share; use another event");
}

constexpr uint32_t kExternal = ACL_EVENT_RECORD_EXTERNAL;

Status record(const char* call, aclrtEvent handle, aclrtStream stream_handle, uint32_t flag = 0) {
  std::shared_ptr<const CapturedPoint> captured;
  std::shared_ptr<SharedFile> shared;
  Status found = with_event(call, handle, [&](Event& event) {
    captured = event.captured;
    shared = event.shared;
    return Status();
  });
  if (!found.ok()) return found;
  PinnedStream stream;
  if (Status status = find_working_stream(call, stream_handle, &stream); !status.ok()) {
    return status;
  }
  if (Status status = check_not_shared(call, *stream, shared.get()); !status.ok()) return status;
  if (is_capturing(*stream)) return record_in_capture(call, handle, *stream, flag == kExternal);
  if (Status status = check_event_apart(call, captured, flag); !status.ok()) return status;
  notify_recorded(handle, stream.get());
  auto point = std::make_shared<Point>(stream.get());
  const auto run = [](void* own) { static_cast<Recording*>(own)->run(); };
  Recording now{point, stream.get(), next_record(std::move(shared))};
  if (!stream->run_if_idle(run, &now)) {
    const auto drop = [](void* own) {
      const std::unique_ptr<Recording> owned(static_cast<Recording*>(own));
      if (!owned->point->reached.is_set()) owned->point->give_up();
    };
    auto later = std::make_unique<Recording>(now);
    stream->submit({run, drop, later.get()});
    (void)later.release();
  }
  captured.reset();
  return with_event(call, handle, [&](Event& event) {
    event.point.swap(point);
    event.captured.swap(captured);
    return Status();
  });
}

// A task of the stream. Makes the event unrecorded, unless it was recorded again meanwhile.
struct Reset {
  aclrtEvent handle;
  std::shared_ptr<Point> point;  // the newest when the reset was submitted

  void run() {
    std::shared_ptr<Point> released;
    const HandlePool<Event>::Pin event(events(), handle);
    std::lock_guard lock(event_mutex());
    if (!event || event->destroyed || event->point != point) return;
    released.swap(event->point);
  }
};

Status reset(const char* call, aclrtEvent handle, aclrtStream stream_handle) {
  auto own = std::make_unique<Reset>();
  const Status status = with_event(call, handle, [&](Event& event) {
    if (event.maker == EventMaker::with_flag && event.may(ACL_EVENT_SYNC)) {
      *own = {handle, event.point};
      return Status();
    }
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::event}, call,
                "only an event of aclrtCreateEventWithFlag with ACL_EVENT_SYNC can be reset");
  });
  if (!status.ok()) return status;
  PinnedStream stream;
  if (Status found = find_working_stream(call, stream_handle, &stream); !found.ok()) return found;
  if (is_capturing(*stream)) return reset_in_capture(call, handle, *stream);
  const auto run = [](void* self) { static_cast<Reset*>(self)->run(); };
  if (stream->run_if_idle(run, own.get())) return {};
  stream->submit({run, [](void* self) { delete static_cast<Reset*>(self); }, own.get()});
  (void)own.release();
  return {};
}

struct Wait {
  std::shared_ptr<Point> point;
  std::shared_ptr<std::atomic<int>> waits;
  Stream* stream;
  int64_t seconds;  // 0: for ever
  bool paused;      // the stream itself

  ~Wait() {
    if (waits != nullptr) --*waits;
  }
  Deadline limit() const { return Deadline::in_milliseconds(seconds == 0 ? -1 : seconds * 1000); }
  void run() const {
    const Work work("aclrtStreamWaitEvent");
    if (!paused && stream->wait_here(point->reached, limit()) != Stream::Waited::too_long) return;
    stream->fail_task(ACL_ERROR_RT_WAIT_TIMEOUT, Reason::timed_out,
                      "aclrtStreamWaitEvent timed out after %lld s; the work behind it ran anyway",
                      static_cast<long long>(seconds));
  }
};

Status wait(const char* call, aclrtStream stream_handle, aclrtEvent handle, int64_t seconds,
            uint32_t flag = 0) {
  auto own = std::make_unique<Wait>();
  std::shared_ptr<SharedFile> shared;
  const Status status = with_event(call, handle, [&](Event& event) {
    shared = event.shared;
    if (!event.may(ACL_EVENT_SYNC)) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::event}, call,
                  "event was created without ACL_EVENT_SYNC: its flag is %#x", event.flags);
    }
    own->point = event.point;
    own->waits = event.waits;
    ++*own->waits;
    return Status();
  });
  if (!status.ok()) return status;
  PinnedStream stream;
  if (Status found = find_working_stream(call, stream_handle, &stream); !found.ok()) return found;
  if (Status refused = check_not_shared(call, *stream, shared.get()); !refused.ok()) return refused;
  if (shared != nullptr) {
    notify_waits(stream.get(), handle);
    return wait_for_record(call, *stream, newest_record(std::move(shared)), seconds);
  }
  bool done = false;
  Status captured = wait_in_capture(call, handle, *stream, seconds, flag == kExternal, &done);
  if (!captured.ok() || done) return captured;
  notify_waits(stream.get(), handle);
  if (own->point == nullptr || own->point->reached.is_set()) return {};
  own->stream = stream.get();
  own->seconds = seconds;
  const auto run = [](void* self) { static_cast<Wait*>(self)->run(); };
  const auto drop = [](void* self) { delete static_cast<Wait*>(self); };
  own->paused = !work_is_reported();
  const Task task{run, drop, own.get()};
  if (own->paused && stream->pause(own->point->reached, own->limit(), task)) {
    (void)own.release();
    return {};
  }
  own->paused = false;
  if (!stream->hand_over(task)) return no_thread(call);
  (void)own.release();
  return {};
}

}  // namespace

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return guarded_status("aclrtRecordEvent",
                        [&](const char* call) { return record(call, event, stream); });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return guarded_status("aclrtResetEvent",
                        [&](const char* call) { return reset(call, event, stream); });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return guarded_status("aclrtStreamWaitEvent",
                        [&](const char* call) { return wait(call, stream, event, wait_seconds); });
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  return guarded_status("aclrtStreamWaitEventWithTimeout", [&](const char* call) {
    if (timeout >= 0) return wait(call, stream, event, timeout);
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "timeout must be at least 0 s (0: no limit), but got %d", timeout);
  });
}

namespace {

Status check_event_flag(const char* call, uint32_t flag) {
  if (flag <= kExternal) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "flag must be 0 or 1, but got %u",
              flag);
}

}  // namespace

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  return guarded_status("aclrtRecordEventWithFlag", [&](const char* call) {
    const Status status = check_event_flag(call, flag);
    return status.ok() ? record(call, event, stream, flag) : status;
  });
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  return guarded_status("aclrtStreamWaitEventWithFlag", [&](const char* call) {
    const Status status = check_event_flag(call, flag);
    return status.ok() ? wait(call, stream, event, timeout, flag) : status;
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  constexpr const char* call = "aclrtGetEventId";
  Status status = not_null(call, "eventId", eventId);
  if (status.ok()) {
    status = with_event(call, event, [&](const Event& own) {
      *eventId = own.id;
      return Status();
    });
  }
  return status.code();
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  wait_seconds = timeout;
  return ACL_SUCCESS;
}
