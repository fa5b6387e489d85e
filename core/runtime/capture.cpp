// SPDX-License-Identifier: Apache-2.0
// What a capture records, and when it ends.
#include "core/runtime/capture.h"

#include <algorithm>
#include <utility>

#include "core/runtime/device.h"
#include "core/support/no_destructor.h"

namespace openaclnn {

std::atomic<int> captures_alive = 0;

namespace {

size_t index_in(const Capture& capture, const Stream& stream) {
  const auto found = std::find(capture.streams.begin(), capture.streams.end(), &stream);
  return static_cast<size_t>(found - capture.streams.begin());
}

void merge_clocks(TaskClock& seen, const TaskClock& other) {
  if (seen.size() < other.size()) seen.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) seen[i] = std::max(seen[i], other[i]);
}

void attach_stream(Stream& stream, const std::shared_ptr<Capture>& capture) {
  capture->seen.emplace_back(capture->streams.size() + 1);
  capture->streams.push_back(&stream);
  stream.set_recording({capture, nullptr});
}

// The tasks of the stream stay in the model.
void forget_stream(Capture& build, Stream& stream) {
  build.streams[index_in(build, stream)] = nullptr;
  stream.set_recording({});
  --captures_alive;
}

// Frees the streams of a capture. The tasks are released by the caller, without the lock.
std::shared_ptr<TaskList> detach_streams(Capture& capture) {
  for (const Stream* identity : capture.streams) {
    const PinnedStream stream(streams(), identity);
    if (stream && stream->recording().capture.get() == &capture) stream->set_recording({});
  }
  capture.ended = true;
  --captures_alive;
  return std::exchange(capture.tasks, nullptr);
}

// Whether the origin has waited for all tasks of a stream.
bool has_joined(const Capture& capture, size_t index) {
  const TaskClock& end = capture.seen[0];
  return index < end.size() && end[index] >= capture.seen[index][index];
}

// The first stream with tasks that the origin has not waited for; nullptr: all have joined.
const Stream* unjoined(const Capture& capture) {
  for (size_t i = 1; i < capture.streams.size(); ++i) {
    if (!has_joined(capture, i)) return capture.streams[i];
  }
  return nullptr;
}

// A stream that is no origin ends. Its tasks need it no more, but the order may still need it.
void detach_stream(Capture& capture, const Stream& stream) {
  const size_t index = index_in(capture, stream);
  if (capture.broken.empty() && !has_joined(capture, index))
    capture.broken = "a stream was destroyed before the origin waited for it";
  if (capture.broken.empty() && capture.group == &stream)
    capture.broken = "a stream with an open task group was destroyed";
  capture.streams[index] = nullptr;
}

}  // namespace

std::mutex& capture_mutex() {
  struct CaptureMutex : ForkHeldMutex {
    CaptureMutex() {
      after_fork_in_child([] { captures_alive = 0; });
    }
  };
  static constinit NoDestructor<CaptureMutex> held;
  return held.get().mutex;
}

void Stream::set_recording(GraphRecording recording) {
  records_.store(recording.capture != nullptr || recording.update != nullptr,
                 std::memory_order_release);
  std::swap(recording_, recording);
}

bool record(Stream& stream, const Task& task) {
  auto node = std::make_shared<Node>(task);  // from here on it owns the task
  try {
    std::lock_guard lock(capture_mutex());
    const GraphRecording& to = stream.recording();
    if (to.update != nullptr) {
      to.update->nodes.push_back(node);
      if (const auto tasks = to.update->tasks.lock()) tasks->note_recorded();
    } else if (to.capture != nullptr && to.capture->broken.empty() && !to.capture->ended) {
      Capture& capture = *to.capture;
      const size_t index = index_in(capture, stream);
      node->stream = static_cast<uint32_t>(index);
      capture.tasks->add(node);
      ++capture.seen[index][index];
    } else if (to.capture == nullptr) {
      node->task.drop = nullptr;
      return false;
    }
  } catch (...) {
    node->task.drop = nullptr;
    throw;
  }
  return true;
}

void forget_recording(Stream& stream) {
  if (!stream.records()) return;
  std::shared_ptr<TaskList> tasks;
  std::shared_ptr<TaskUpdate> update;
  const void* graph = nullptr;
  {
    std::lock_guard lock(capture_mutex());
    update = stream.recording().update;
    const std::shared_ptr<Capture> capture = stream.recording().capture;
    if (capture != nullptr && capture->is_build) {
      forget_stream(*capture, stream);
    } else if (capture != nullptr && capture->streams[0] == &stream) {
      graph = capture->graph;
      tasks = detach_streams(*capture);
    } else if (capture != nullptr) {
      detach_stream(*capture, stream);
    }
    stream.set_recording({});
  }
  if (update != nullptr) {
    const HandlePool<TaskGroup>::Pin group(task_groups(), update->group);
    if (group) group->busy = false;
  }
  if (graph == nullptr) return;
  const void* outer = nullptr;
  if (const PinnedGraph part(graphs(), graph); part) outer = part->owner;
  if (outer != nullptr) invalidate_capture(outer, "a stream that captured a part was destroyed");
  drop_captured(graph);
}

// ---- events ----

bool is_capturing(Stream& stream) {
  if (!stream.records()) return false;
  std::lock_guard lock(capture_mutex());
  return stream.recording().capture != nullptr;
}

bool is_bound(Stream& stream) {
  if (!stream.records()) return false;
  std::lock_guard lock(capture_mutex());
  const Capture* capture = stream.recording().capture.get();
  return capture != nullptr && capture->is_build;
}

bool is_captured(const std::shared_ptr<const CapturedPoint>& point) {
  if (point == nullptr) return false;
  std::lock_guard lock(capture_mutex());
  return !point->capture->ended;
}

std::shared_ptr<const CapturedPoint> capture_point(Stream& stream) {
  std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture>& capture = stream.recording().capture;
  if (capture == nullptr) return nullptr;
  return std::make_shared<const CapturedPoint>(
      CapturedPoint{capture, capture->seen[index_in(*capture, stream)]});
}

Status join_capture(const char* call, Stream& stream, const CapturedPoint& point) {
  std::lock_guard lock(capture_mutex());
  const GraphRecording& own = stream.recording();
  const std::shared_ptr<Capture>& capture = point.capture;
  if (own.update != nullptr) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, Reason::call_missing, call,
                "the stream updates a task group; call aclmdlRICaptureTaskUpdateEnd first");
  }
  if (own.capture != nullptr && own.capture != capture) {
    return fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, {Reason::foreign_handle, ObjectKind::event},
                call, "event was recorded in another capture than that of the stream");
  }
  const Context* owner = stream.owner();
  if (owner != nullptr && owner->stream == &stream) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, {Reason::wrong_value, ObjectKind::stream},
                call, "the default stream cannot be captured; use a stream of aclrtCreateStream");
  }
  if (own.capture == nullptr && !capture->ended) attach_stream(stream, capture);
  if (!capture->ended) merge_clocks(capture->seen[index_in(*capture, stream)], point.seen);
  return {};
}

// ---- begin and end ----

static Status still_bound(const char* call) {
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
              "the stream is bound to a model already; call aclmdlRIUnbindStream first");
}

Status begin_capture(const char* call, Stream& stream, int mode, const void* graph,
                     std::shared_ptr<TaskList> tasks) {
  auto capture = std::make_shared<Capture>();
  capture->graph = graph;
  capture->tasks = std::move(tasks);
  capture->mode = mode;
  capture->thread = number_of_this_thread();
  capture->owner = stream.owner();
  std::lock_guard lock(capture_mutex());
  if (stream.records()) {
    const bool captures = stream.recording().capture != nullptr;
    if (captures && stream.recording().capture->is_build) return still_bound(call);
    return fail(captures ? ACL_ERROR_RT_STREAM_CAPTURED : ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                Reason::already_done, call,
                captures ? "the stream is being captured already; call aclmdlRICaptureEnd first"
                         : "the stream updates a task group; call aclmdlRICaptureTaskUpdateEnd "
                           "first");
  }
  attach_stream(stream, capture);
  ++captures_alive;
  return {};
}

Status not_captured(const char* call) {
  return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, Reason::call_missing, call,
              "the stream is not being captured; call aclmdlRICaptureBegin first");
}

Status end_capture(const char* call, Stream& stream, const void** graph) {
  std::shared_ptr<TaskList> tasks;  // released without the lock
  std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream.recording().capture;
  if (capture == nullptr || capture->is_build) return not_captured(call);
  if (capture->streams[0] != &stream) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, {Reason::foreign_handle, ObjectKind::stream},
                call, "the capture began on stream %p; end it there",
                static_cast<const void*>(capture->streams[0]));
  }
  if (capture->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED &&
      capture->thread != number_of_this_thread()) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, Reason::wrong_value, call,
                "thread %u began the capture; end it there, or capture in mode relaxed",
                capture->thread);
  }
  *graph = capture->graph;
  const Stream* loose = unjoined(*capture);
  const std::string broken = capture->broken;
  const bool open = capture->group != nullptr;
  tasks = detach_streams(*capture);
  if (!broken.empty()) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, Reason::wrong_value, call,
                "the capture is invalid: %s", broken.c_str());
  }
  if (open) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, Reason::call_missing, call,
                "a task group is open; call aclmdlRICaptureTaskGrpEnd before the capture ends");
  }
  if (loose != nullptr) {
    return fail(ACL_ERROR_RT_STREAM_UNJOINED, {Reason::call_missing, ObjectKind::event}, call,
                "stream %p has tasks that the origin does not wait for; record an event there and "
                "wait for it on the origin before the capture ends",
                static_cast<const void*>(loose));
  }
  return {};
}

// ---- models that are built ----

Status bind_stream(const char* call, Stream& stream, const std::shared_ptr<Capture>& build,
                   bool head) {
  std::lock_guard lock(capture_mutex());
  if (stream.records()) return still_bound(call);
  build->heads.push_back(head);
  attach_stream(stream, build);
  ++captures_alive;
  return {};
}

Status unbind_stream(const char* call, Stream& stream, const Capture& build) {
  std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> own = stream.recording().capture;
  if (own.get() == &build) return forget_stream(*own, stream), Status();
  return fail(ACL_ERROR_RT_STREAM_MODEL, {Reason::foreign_handle, ObjectKind::stream}, call,
              "stream is not bound to modelRI");
}

void unbind_streams(Capture& build) {
  std::lock_guard lock(capture_mutex());
  for (const Stream* identity : build.streams) {
    const PinnedStream stream(streams(), identity);
    if (stream && stream->recording().capture.get() == &build) forget_stream(build, *stream);
  }
}

}  // namespace openaclnn
