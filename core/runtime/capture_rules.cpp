// SPDX-License-Identifier: Apache-2.0
// What is refused while streams are in capture.
#include <string>

#include "core/runtime/capture.h"
#include "core/runtime/device.h"

namespace openaclnn {
namespace {

thread_local int thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

const char* name_of_mode(int mode) {
  return mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL ? "global" : "thread-local";
}

// capture_mutex() is held.
void invalidate(Capture& capture, const char* call) {
  if (capture.broken.empty()) capture.broken = std::string(call) + " is not allowed meanwhile";
}

bool forbids(const Capture& capture) {
  const bool own = capture.thread == number_of_this_thread();
  switch (capture.mode) {
    case ACL_MODEL_RI_CAPTURE_MODE_GLOBAL:
      return own ? thread_mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED
                 : thread_mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    case ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL:
      return own && thread_mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    default: return false;
  }
}

// Calls see(Capture&) under capture_mutex(), for the origin of each capture.
template <class F>
void for_each_capture(F see) {
  streams().for_each([&](Stream& stream) {
    if (!stream.records()) return;
    std::lock_guard lock(capture_mutex());
    const auto& capture = stream.recording().capture;
    if (capture != nullptr && capture->streams[0] == &stream) see(*capture);
  });
}

bool none_captured() { return captures_alive.load(std::memory_order_acquire) == 0; }

}  // namespace

int exchange_capture_mode(int mode) { return std::exchange(thread_mode, mode); }

void invalidate_capture(const void* graph, const char* why) {
  for_each_capture([&](Capture& capture) {
    if (capture.graph == graph && capture.broken.empty()) capture.broken = why;
  });
}

Status check_capture(Stream& stream) {
  if (none_captured()) [[likely]]
    return {};
  const Context* owner = stream.owner();
  if (owner != nullptr && owner->stream == &stream) {
    bool captured = false;
    for_each_capture([&](const Capture& capture) { captured |= capture.owner == owner; });
    if (!captured) return {};
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, {Reason::wrong_value, ObjectKind::stream},
                nullptr,
                "the default stream takes no work while a stream of its context is captured; use "
                "another stream");
  }
  if (!stream.records()) return {};
  std::lock_guard lock(capture_mutex());
  const Capture* capture = stream.recording().capture.get();
  if (capture == nullptr) return {};
  if (capture->is_build && capture->ended) {
    return fail(ACL_ERROR_RT_STREAM_MODEL, Reason::wrong_value, nullptr,
                "the model of the stream is built and takes no more work; call "
                "aclmdlRIUnbindStream first");
  }
  if (!capture->broken.empty()) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, Reason::wrong_value, nullptr,
                "the capture of the stream is invalid: %s", capture->broken.c_str());
  }
  if (capture->group != nullptr && capture->group != &stream) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_INTR, Reason::call_missing, nullptr,
                "another stream of the capture has an open task group; call "
                "aclmdlRICaptureTaskGrpEnd there first");
  }
  return {};
}

Status check_no_group(Stream& stream) {
  if (!stream.records()) [[likely]]
    return {};
  std::lock_guard lock(capture_mutex());
  const GraphRecording& own = stream.recording();
  if (own.update == nullptr && (own.capture == nullptr || own.capture->group != &stream)) return {};
  return fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, Reason::not_supported, nullptr,
              "a task group holds operators only; submit other work before it or after it");
}

Status check_not_captured(const char* call, Stream& stream, int32_t code, const char* advice) {
  if (!stream.records()) [[likely]]
    return {};
  std::lock_guard lock(capture_mutex());
  const auto& capture = stream.recording().capture;
  if (capture == nullptr) return {};
  if (capture->is_build)
    return fail(code, Reason::wrong_value, call, "not allowed on a stream of a model; %s", advice);
  invalidate(*capture, call);
  return fail(code, Reason::wrong_value, call,
              "not allowed while the stream is captured, and the capture is invalid now; %s",
              advice);
}

Status check_device_not_captured(const char* call, int32_t device) {
  if (none_captured()) [[likely]]
    return {};
  bool captured = false;
  for_each_capture([&](Capture& capture) {
    const PinnedContext owner(contexts(), capture.owner);
    if (!owner || owner->device != device) return;
    invalidate(capture, call);
    captured = true;
  });
  if (!captured) return {};
  return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, Reason::wrong_value, call,
              "not allowed while a stream of the device is captured, and the capture is invalid "
              "now; call it before or after the capture");
}

Status check_capture_modes(const char* call) {
  if (none_captured()) [[likely]]
    return {};
  const char* mode = nullptr;
  for_each_capture([&](Capture& capture) {
    if (!forbids(capture)) return;
    invalidate(capture, call);
    mode = name_of_mode(capture.mode);
  });
  if (mode == nullptr) return {};
  return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, Reason::wrong_value, call,
              "not allowed while a stream is captured in mode %s, and the capture is invalid now; "
              "use asynchronous calls and memory of aclrtMallocHost, or capture in mode relaxed "
              "(aclmdlRICaptureThreadExchangeMode)",
              mode);
}

Status check_not_captured(const char* call, const std::shared_ptr<const CapturedPoint>& point) {
  if (point == nullptr) return {};
  std::lock_guard lock(capture_mutex());
  if (point->capture->ended) return {};
  invalidate(*point->capture, call);
  return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, Reason::wrong_value, call,
              "event was recorded on a stream in capture, and the capture is invalid now; call it "
              "after the graph has run");
}

}  // namespace openaclnn
