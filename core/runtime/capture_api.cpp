// SPDX-License-Identifier: Apache-2.0
// The C functions of captures.
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

Status check_capture_mode(const char* call, int mode, int32_t code) {
  if (mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    return {};
  return fail(code, Reason::wrong_value, call, "mode must be in [0, 2], but got %d", mode);
}

// A stream that may be captured.
Status find_captured(const char* call, aclrtStream handle, int mode, PinnedStream* stream) {
  if (Status status = check_capture_mode(call, mode, ACL_ERROR_INVALID_PARAM); !status.ok())
    return status;
  if (handle != nullptr) {
    if (Status status = find_stream_for(call, handle, stream); !status.ok()) return status;
    const Context* owner = (*stream)->owner();
    if (owner == nullptr || owner->stream != stream->get()) return {};
  }
  return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, {Reason::wrong_value, ObjectKind::stream}, call,
              "the default stream cannot be captured; use a stream of aclrtCreateStream");
}

Status begin_graph(const char* call, aclrtStream handle, int mode) {
  PinnedStream stream;
  Status status = find_captured(call, handle, mode, &stream);
  if (!status.ok()) return status;
  Graph* graph = graphs().create();
  if (graph == nullptr)
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call, "too many live graphs");
  graph->captured = true;
  status = begin_capture(call, *stream, mode, graph, graph->tasks);
  if (!status.ok()) end_graph(graph);
  return status;
}

// Into a part of a condition.
Status begin_part(const char* call, aclrtStream handle, aclmdlRI model, int mode) {
  if (Status null = not_null(call, "stream", handle, ObjectKind::stream); !null.ok()) return null;
  PinnedGraph part;
  Status status = find_graph(call, model, &part);
  PinnedStream stream;
  if (status.ok()) status = find_captured(call, handle, mode, &stream);
  if (!status.ok()) return status;
  if (part->is_part() && part->captured.exchange(true)) return still_captured(call);
  if (part->is_part() && part->tasks->size() == 0) {
    status = begin_capture(call, *stream, mode, model, part->tasks);
  } else {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::graph}, call,
                  "modelRI must be an empty model of aclmdlRIAddCondTask");
  }
  if (part->is_part() && !status.ok()) part->captured = false;
  return status;
}

// A graph ends after the parts of its conditions.
Status check_parts(const char* call, Stream& stream) {
  const void* handle = nullptr;
  {
    std::lock_guard lock(capture_mutex());
    if (const auto& capture = stream.recording().capture) handle = capture->graph;
  }
  const PinnedGraph graph(graphs(), handle);
  if (!graph) return {};
  std::lock_guard lock(graph_mutex());
  for (const void* part_handle : graph->parts) {
    const PinnedGraph part(graphs(), part_handle);
    if (!part || !part->captured) continue;
    return fail(ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING, Reason::call_missing, call,
                "a model of a condition is still being captured; end that first");
  }
  return {};
}

Status finish_capture(const char* call, aclrtStream handle, aclmdlRI* model) {
  if (Status null = not_null(call, "modelRI", model); !null.ok()) return null;
  *model = nullptr;
  PinnedStream stream;
  if (Status status = find_stream_for(call, handle, &stream); !status.ok()) return status;
  if (Status status = check_parts(call, *stream); !status.ok()) return status;
  const void* handle_of_graph = nullptr;
  Status status = end_capture(call, *stream, &handle_of_graph);
  if (!status.ok()) {
    if (handle_of_graph != nullptr) drop_captured(handle_of_graph);
    return status;
  }
  const PinnedGraph graph(graphs(), handle_of_graph);
  if (!graph) {  // a stream took it along (aclrtDestroyStream)
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, Reason::wrong_value, call,
                "the graph that has the condition ended before this part of it");
  }
  *model = graph.get();
  if (!graph->is_part()) notify_made(call, ObjectKind::graph, graph.get());
  graph->captured = false;
  return status;
}

Status capture_info(const char* call, aclrtStream handle, aclmdlRICaptureStatus* status,
                    aclmdlRI* model) {
  if (Status null = not_null(call, "status", status); !null.ok()) return null;
  *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  if (model != nullptr) *model = nullptr;
  PinnedStream stream;
  if (Status missing = find_stream_for(call, handle, &stream); !missing.ok()) return missing;
  if (captures_alive == 0) return {};
  std::lock_guard lock(capture_mutex());
  const Capture* capture = stream->recording().capture.get();
  if (capture == nullptr || capture->is_build) return {};
  const bool valid = capture->broken.empty();
  *status = valid ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  if (valid && model != nullptr) *model = const_cast<void*>(capture->graph);
  return {};
}

}  // namespace

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  const int given = static_cast<int>(mode);
  return guarded_status("aclmdlRICaptureBegin",
                        [&](const char* call) { return begin_graph(call, stream, given); });
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                       aclmdlRICaptureMode mode) {
  const int given = static_cast<int>(mode);
  return guarded_status("aclmdlRICaptureToModelRIBegin",
                        [&](const char* call) { return begin_part(call, stream, modelRI, given); });
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  return guarded_status("aclmdlRICaptureEnd",
                        [&](const char* call) { return finish_capture(call, stream, modelRI); });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  return capture_info("aclmdlRICaptureGetInfo", stream, status, modelRI).code();
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  constexpr const char* call = "aclmdlRICaptureThreadExchangeMode";
  Status status = not_null(call, "mode", mode);
  if (status.ok())
    status = check_capture_mode(call, static_cast<int>(*mode), ACL_ERROR_RT_PARAM_INVALID);
  if (status.ok()) *mode = static_cast<aclmdlRICaptureMode>(exchange_capture_mode(*mode));
  return status.code();
}
