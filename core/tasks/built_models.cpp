// SPDX-License-Identifier: Apache-2.0
// The C functions of models that a program builds from streams, and of the streams in them.
#include <utility>

#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/runtime/model_steps.h"
#include "core/support/observer.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

Status begin_model(const char* call, aclmdlRI* model, uint32_t flag) {
  Status status = not_null(call, "modelRI", model);
  if (status.ok()) status = check_zero(call, "flag", flag);
  if (status.ok() && !current_context()) status = no_context(call);
  if (!status.ok()) return status;
  auto build = std::make_shared<Capture>();
  Graph* graph = graphs().create();
  if (graph == nullptr)
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call, "too many live graphs");
  build->graph = graph;
  build->tasks = graph->tasks;
  build->mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  build->thread = number_of_this_thread();
  build->owner = nullptr;  // the default stream of the context goes on
  build->is_build = true;
  graph->build = std::move(build);
  graph->captured = true;
  notify_made(call, ObjectKind::graph, graph);
  *model = graph;
  return {};
}

// A model of aclmdlRIBuildBegin; `building`: before aclmdlRIBuildEnd.
Status find_built(const char* call, const void* handle, PinnedGraph* graph, bool building) {
  if (Status status = find_graph(call, handle, graph, false); !status.ok()) return status;
  if ((*graph)->build == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::graph}, call,
                "modelRI must be of aclmdlRIBuildBegin, but is of a capture");
  }
  if (!building || (*graph)->captured) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
              "modelRI is built already; begin another model");
}

Status find_both(const char* call, const void* model, const void* handle, bool building,
                 PinnedGraph* graph, PinnedStream* stream) {
  Status status = find_built(call, model, graph, building);
  if (status.ok()) status = not_null(call, "stream", handle, ObjectKind::stream);
  return status.ok() ? find_stream_for(call, handle, stream) : status;
}

Status bind(const char* call, aclmdlRI model, aclrtStream handle, uint32_t flag) {
  PinnedGraph graph;
  PinnedStream stream;
  Status status = find_both(call, model, handle, true, &graph, &stream);
  if (!status.ok()) return status;
  if (flag != ACL_MODEL_STREAM_FLAG_HEAD && flag != ACL_MODEL_STREAM_FLAG_DEFAULT) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "flag must be 0 (head) or 0x7FFFFFFF (default), but got %#x", flag);
  }
  if ((stream->settings.flags & ACL_STREAM_PERSISTENT) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::wrong_value, ObjectKind::stream}, call,
                "stream must be created with ACL_STREAM_PERSISTENT "
                "(aclrtCreateStreamWithConfig), but its flags are %#x",
                stream->settings.flags);
  }
  return bind_stream(call, *stream, graph->build, flag == ACL_MODEL_STREAM_FLAG_HEAD);
}

Status unbind(const char* call, aclmdlRI model, aclrtStream handle) {
  PinnedGraph graph;
  PinnedStream stream;
  const Status status = find_both(call, model, handle, false, &graph, &stream);
  return status.ok() ? unbind_stream(call, *stream, *graph->build) : status;
}

Status end_stream(const char* call, aclmdlRI model, aclrtStream handle) {
  PinnedGraph graph;
  PinnedStream stream;
  if (Status status = find_both(call, model, handle, true, &graph, &stream); !status.ok())
    return status;
  {
    std::lock_guard lock(capture_mutex());
    if (stream->recording().capture != graph->build) {
      return fail(ACL_ERROR_RT_STREAM_MODEL, {Reason::foreign_handle, ObjectKind::stream}, call,
                  "stream is not bound to modelRI");
    }
  }
  return add_step(call, handle, {ModelStep::Kind::end});
}

Status end_model(const char* call, aclmdlRI model, const void* reserve) {
  PinnedGraph graph;
  if (Status status = find_built(call, model, &graph, true); !status.ok()) return status;
  if (reserve != nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "reserve must be NULL, but got %p", reserve);
  }
  std::lock_guard lock(capture_mutex());
  if (graph->build->ended) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
                "another thread ended modelRI");
  }
  if (graph->build->streams.empty()) {
    return fail(ACL_ERROR_RT_STREAM_MODEL, Reason::call_missing, call,
                "modelRI has no stream; call aclmdlRIBindStream first");
  }
  graph->build->ended = true;
  graph->tasks->set_heads(graph->build->heads);
  graph->captured = false;
  return {};
}

Status check_value(const char* call, const char* argument, const void* address, size_t bytes) {
  Status status = not_null(call, argument, address, ObjectKind::device_memory);
  return status.ok() ? check_known_range(call, argument, address, bytes) : status;
}

Status add_branch(const char* call, ModelStep step, int type, aclrtStream then,
                  aclrtStream otherwise, aclrtStream stream) {
  if (type != ACL_RT_SWITCH_INT32 && type != ACL_RT_SWITCH_INT64) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "dataType must be 0 (INT32) or 1 (INT64), but got %d", type);
  }
  if (step.condition < ACL_RT_EQUAL || step.condition > ACL_RT_LESS_OR_EQUAL) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "cond must be in [0, 5], but got %d", step.condition);
  }
  step.is_int64 = type == ACL_RT_SWITCH_INT64;
  const size_t bytes = step.is_int64 ? sizeof(int64_t) : sizeof(int32_t);
  Status status = check_value(call, "leftValue", step.left, bytes);
  if (status.ok()) status = check_value(call, "rightValue", step.right, bytes);
  if (status.ok()) status = not_null(call, "trueStream", then, ObjectKind::stream);
  if (status.ok() && otherwise != nullptr) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "falseStream must be NULL: where the condition does not hold, stream goes on");
  }
  return status.ok() ? add_step(call, stream, std::move(step), then) : status;
}

}  // namespace

aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag) {
  return guarded_status("aclmdlRIBuildBegin",
                        [&](const char* call) { return begin_model(call, modelRI, flag); });
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag) {
  return guarded_status("aclmdlRIBindStream",
                        [&](const char* call) { return bind(call, modelRI, stream, flag); });
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream) {
  return guarded_status("aclmdlRIUnbindStream",
                        [&](const char* call) { return unbind(call, modelRI, stream); });
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream) {
  return guarded_status("aclmdlRIEndTask",
                        [&](const char* call) { return end_stream(call, modelRI, stream); });
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve) {
  return guarded_status("aclmdlRIBuildEnd",
                        [&](const char* call) { return end_model(call, modelRI, reserve); });
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream) {
  return guarded_status("aclrtActiveStream", [&](const char* call) {
    const Status status = not_null(call, "activeStream", activeStream, ObjectKind::stream);
    return status.ok() ? add_step(call, stream, {ModelStep::Kind::start}, activeStream) : status;
  });
}

aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                           aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream) {
  const int condition = static_cast<int>(cond), type = static_cast<int>(dataType);
  return guarded_status("aclrtSwitchStream", [&](const char* call) {
    ModelStep step{ModelStep::Kind::branch};
    step.left = leftValue, step.right = rightValue, step.condition = condition;
    return add_branch(call, std::move(step), type, trueStream, falseStream, stream);
  });
}
