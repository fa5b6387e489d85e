// SPDX-License-Identifier: Apache-2.0
// Events on streams in capture. One recorded there marks what the stream has recorded; a stream
// that waits for it joins the capture. An external event is a task of each replay instead.
#include <memory>
#include <utility>

#include "core/runtime/capture.h"
#include "core/runtime/event.h"
#include "core/runtime/task.h"
#include "core/runtime/work_listener.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

// Tasks of one stream replay in the order of recording, which is all that events of a capture ask.
struct Marker {
  static constexpr const char* kCall = "";
  void run() const {}
};

void record_marker(const char* call, TaskType type, Stream& stream) {
  auto job = std::make_unique<Marker>();
  Task task = task_of(job.get());
  task.call = call, task.type = type;
  stream.submit(task);
  (void)job.release();
}

// Calls f(Event&) for the event, if it is alive; false if not.
template <class F>
bool with_live_event(const void* handle, F f) {
  const HandlePool<Event>::Pin event(events(), handle);
  std::lock_guard lock(event_mutex());
  if (!event || event->destroyed) return false;
  f(*event);
  return true;
}

struct ExternalRecord {
  static constexpr const char* kCall = "aclrtRecordEvent";
  static constexpr TaskType kType = TaskType::event_record;
  const void* event;

  void observe(const Stream& stream) const { notify_recorded(event, &stream); }
  void run() const {
    Stream* stream = Stream::running_here();
    auto point = std::make_shared<Point>(stream);
    point->reach(*stream);
    (void)with_live_event(event, [&](Event& own) { own.point.swap(point); });
  }
};

// Until the event has been recorded and reached.
struct ExternalWait {
  static constexpr const char* kCall = "aclrtStreamWaitEvent";
  static constexpr TaskType kType = TaskType::event_wait;
  const void* event;
  int64_t seconds;  // 0: for ever

  void observe(const Stream& stream) const { notify_consumes(&stream, nullptr); }
  static bool is_reached(void* self) {
    bool reached = false;
    const bool alive = with_live_event(static_cast<ExternalWait*>(self)->event, [&](Event& own) {
      reached = own.point != nullptr && own.point->reached.is_set();
    });
    return reached || !alive;
  }
  void run() {
    const Work work(kCall);
    const auto limit = Deadline::in_milliseconds(seconds == 0 ? -1 : seconds * 1000);
    Stream* stream = Stream::running_here();
    if (stream->poll_here(is_reached, this, limit) != Stream::Waited::too_long) return;
    stream->fail_task(ACL_ERROR_RT_WAIT_TIMEOUT, Reason::timed_out,
                      "aclrtStreamWaitEvent timed out after %lld s in a graph; the work behind it "
                      "ran anyway",
                      static_cast<long long>(seconds));
  }
};

struct ExternalReset {
  static constexpr const char* kCall = "aclrtResetEvent";
  static constexpr TaskType kType = TaskType::event_reset;
  const void* event;

  void run() const {
    std::shared_ptr<Point> point;
    (void)with_live_event(event, [&](Event& own) { own.point.swap(point); });
  }
};

struct EventState {
  bool external;
  std::shared_ptr<const CapturedPoint> captured;
};

Status state_of_event(const char* call, const void* event, bool external, EventState* state) {
  return with_event(call, event, [&](Event& own) {
    *state = {external || own.is_external(), own.captured};
    return Status();
  });
}

}  // namespace

Status record_in_capture(const char* call, const void* event, Stream& stream, bool external) {
  EventState state = {};
  const bool separate = external || is_bound(stream);
  if (Status status = state_of_event(call, event, separate, &state); !status.ok()) return status;
  if (state.external) {
    submit_job(stream, std::make_unique<ExternalRecord>(ExternalRecord{event}), false);
    return {};
  }
  record_marker(call, TaskType::event_record, stream);
  std::shared_ptr<const CapturedPoint> mark = capture_point(stream);
  std::shared_ptr<Point> point;
  return with_event(call, event, [&](Event& own) {
    own.captured.swap(mark);
    own.point.swap(point);
    return Status();
  });
}

Status wait_in_capture(const char* call, const void* event, Stream& stream, int64_t seconds,
                       bool external, bool* done) {
  const bool capturing = is_capturing(stream);
  *done = false;
  if (!capturing && captures_alive == 0 && !external) return {};
  EventState state = {};
  const bool separate = external || is_bound(stream);
  if (Status status = state_of_event(call, event, separate, &state); !status.ok()) return status;
  if (!capturing && external) {
    return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, Reason::call_missing, call,
                "flag 1 (external) needs a stream that is being captured; pass 0");
  }
  const bool marked = is_captured(state.captured);
  if (!capturing && !marked) return {};
  *done = true;
  if (capturing && state.external) {
    submit_job(stream, std::make_unique<ExternalWait>(ExternalWait{event, seconds}), false);
    return {};
  }
  if (!marked) {
    return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY, {Reason::call_missing, ObjectKind::event}, call,
                "event was not recorded in this capture; record it on a stream of the capture, or "
                "create it with ACL_EVENT_EXTERNAL to wait for other work");
  }
  Status status = join_capture(call, stream, *state.captured);
  if (status.ok()) record_marker(call, TaskType::event_wait, stream);
  return status;
}

Status reset_in_capture(const char* call, const void* event, Stream& stream) {
  EventState state = {};
  if (Status status = state_of_event(call, event, false, &state); !status.ok()) return status;
  if (!is_captured(state.captured)) {
    submit_job(stream, std::make_unique<ExternalReset>(ExternalReset{event}), false);
    return {};
  }
  record_marker(call, TaskType::event_reset, stream);
  std::shared_ptr<const CapturedPoint> none;
  return with_event(call, event, [&](Event& own) {
    own.captured.swap(none);
    return Status();
  });
}

}  // namespace openaclnn
