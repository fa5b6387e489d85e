// SPDX-License-Identifier: Apache-2.0
// An event refers to a point in the work of a stream. Each record makes a new point. A wait is for
// the point that is newest when the wait begins, and no longer needs the event.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/support/handles.h"
#include "core/support/observer.h"
#include "core/support/shared_file.h"
#include "core/runtime/stream.h"
#include "core/support/waiting.h"

namespace openaclnn {

// A point in the work of a stream.
struct Point {
  explicit Point(const Stream* its) : stream(its) {}

  void reach(Stream& its);  // by its task
  void give_up();           // ends waits without a time (stream destroyed by force)

  const Stream* const stream;  // an identity: may be destroyed
  int64_t nanoseconds = -1;    // when it was reached, on the steady clock; -1: given up
  TaskFailure failure;         // of the work before it, not yet returned by a synchronisation
  OneShotEvent reached;        // after which the rest may be read
};

struct CapturedPoint;  // capture.h

enum class EventMaker { plain, with_flag, ex_with_flag };

struct Event {
  static constexpr bool kPinned = true;

  EventMaker maker;
  uint32_t flags;
  std::shared_ptr<Point> point;                             // the newest; nullptr before the first
  std::shared_ptr<const CapturedPoint> captured = nullptr;  // of a capture, instead of a point
  std::shared_ptr<std::atomic<int>> waits;                  // of streams, not over yet
  bool destroyed = false;
  uint32_t id = 0;
  std::shared_ptr<SharedFile> shared = nullptr;  // of one that processes share

  bool may(uint32_t flag) const {
    return maker != EventMaker::with_flag || (flags & flag) != 0 || is_external();
  }
  // Between a graph and other work: a task of a graph, and no part of its capture.
  bool is_external() const { return (flags & ACL_EVENT_EXTERNAL) != 0; }
  bool has_time() const { return maker == EventMaker::plain || (flags & ACL_EVENT_TIME_LINE) != 0; }
};

HandlePool<Event>& events();
Status make_event(const char* call, EventMaker maker, uint32_t flags,
                  std::shared_ptr<SharedFile> shared, aclrtEvent* event);

// Guards the members of all events. A leaf: no other lock is taken under it.
std::mutex& event_mutex();

// Calls f(Event&) under event_mutex(), or fails if the handle is not alive.
template <class F>
Status with_event(const char* call, const void* handle, F f, const char* argument = "event") {
  if (Status status = not_null(call, argument, handle, ObjectKind::event); !status.ok())
    return status;
  HandlePool<Event>& pool = events();  // the first call takes locks
  {
    const HandlePool<Event>::Pin event(pool, handle);
    std::lock_guard lock(event_mutex());
    if (event && !event->destroyed) return f(*event);
  }
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::event, argument, handle);
}

// ---- events that processes share (ipc_events.cpp): each record has a number ----

// The newest record of a process; 0: none.
struct SharedRecord {
  std::shared_ptr<SharedFile> file;
  uint32_t number;

  bool is_reached() const;
  void reach() const;
  // For the host; false if the deadline comes first.
  bool wait(Deadline deadline) const;
};
SharedRecord next_record(std::shared_ptr<SharedFile> file);
SharedRecord newest_record(std::shared_ptr<SharedFile> file);
Status wait_for_record(const char* call, Stream& stream, SharedRecord record, int64_t seconds);

// ---- events and captures (captured_events.cpp) ----

// A stream in capture records the event, as a task of each replay if that is for work outside.
Status record_in_capture(const char* call, const void* event, Stream& stream, bool external);
// Whether a wait of the stream is one of a capture. It is done then.
Status wait_in_capture(const char* call, const void* event, Stream& stream, int64_t seconds,
                       bool external, bool* done);
Status reset_in_capture(const char* call, const void* event, Stream& stream);

}  // namespace openaclnn
