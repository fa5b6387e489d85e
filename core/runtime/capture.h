// SPDX-License-Identifier: Apache-2.0
// Captures: which streams record their tasks, what must not happen meanwhile, and whether all
// streams joined. Stream::submit and hand_over are where a task is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/runtime/graph.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

// By index of a stream: how many of its tasks come before.
using TaskClock = std::vector<uint32_t>;

// capture_mutex() guards the members.
struct Capture {
  const void* graph;  // a handle, pinned by nobody: it lives as long as the capture
  std::shared_ptr<TaskList> tasks;
  int mode;         // aclmdlRICaptureMode
  uint32_t thread;  // that began it
  const Context* owner;
  std::vector<Stream*> streams;   // identities; the first is the origin
  std::vector<TaskClock> seen;    // by each stream
  const Stream* group = nullptr;  // the stream with an open task group
  size_t group_begin = 0;
  bool ended = false;
  std::string broken;  // why it is invalid; empty: valid
  // Of a model that is built instead: its streams are bound one by one, and stay so after the end.
  bool is_build = false;
  std::vector<bool> heads;  // by stream: starts with the model
};

// The work before an event that was recorded on a stream in capture.
struct CapturedPoint {
  std::shared_ptr<Capture> capture;
  TaskClock seen;
};

// What replaces the tasks of a group.
struct TaskUpdate {
  const void* group;              // a handle
  std::weak_ptr<TaskList> tasks;  // of the graph
  NodeList nodes;
};

std::mutex& capture_mutex();
extern std::atomic<int> captures_alive;

// Records the task; false if the stream no longer records.
bool record(Stream& stream, const Task& task);
void forget_recording(Stream& stream);  // before the stream ends

// ---- rules; without `call`, the sentence is one without the name of a call ----

// For all work submitted to the stream.
Status check_capture(Stream& stream);
// For work that is no operator.
Status check_no_group(Stream& stream);
// For a call that a graph cannot record, such as one that waits for the stream. Invalidates the
// capture.
Status check_not_captured(const char* call, Stream& stream, int32_t code, const char* advice);
// The same for the captures of a device.
Status check_device_not_captured(const char* call, int32_t device);
// For a call that does its work before it returns: the modes of captures may forbid it, which
// invalidates them.
Status check_capture_modes(const char* call);
int exchange_capture_mode(int mode);  // of this thread

// ---- events ----

bool is_captured(const std::shared_ptr<const CapturedPoint>& point);
// For a call that asks for the state of a captured event. Invalidates the capture.
Status check_not_captured(const char* call, const std::shared_ptr<const CapturedPoint>& point);
// Of this graph, if it is still being captured.
void invalidate_capture(const void* graph, const char* why);
// The point after what the stream has recorded; nullptr if it is not in capture.
std::shared_ptr<const CapturedPoint> capture_point(Stream& stream);
// The stream waits for the point, and becomes part of its capture.
Status join_capture(const char* call, Stream& stream, const CapturedPoint& point);
bool is_capturing(Stream& stream);

// ---- models that are built (built_models.cpp) ----

bool is_bound(Stream& stream);
Status bind_stream(const char* call, Stream& stream, const std::shared_ptr<Capture>& build,
                   bool head);
Status unbind_stream(const char* call, Stream& stream, const Capture& build);
void unbind_streams(Capture& build);

// ---- what the C functions are made of ----

Status begin_capture(const char* call, Stream& stream, int mode, const void* graph,
                     std::shared_ptr<TaskList> tasks);
// For a stream that must be in capture.
Status not_captured(const char* call);
// The graph, or nullptr and the reason.
Status end_capture(const char* call, Stream& stream, const void** graph);

}  // namespace openaclnn
