// SPDX-License-Identifier: Apache-2.0
// Task groups: operators of a graph, and what replaces them.
#include <cstring>
#include <memory>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/task.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

Status group_status(const char* call, const char* sentence) {
  return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, Reason::call_missing, call, "%s", sentence);
}

Status dropped_group(const char* call) {
  return group_status(call, "the tasks of the group were dropped; capture the model again");
}

Status begin_group(const char* call, aclrtStream handle) {
  PinnedStream stream;
  if (Status status = find_stream_for(call, handle, &stream); !status.ok()) return status;
  std::lock_guard lock(capture_mutex());
  Capture* capture = stream->recording().capture.get();
  if (capture == nullptr || capture->is_build) return not_captured(call);
  if (capture->group != nullptr)
    return group_status(call, "a task group of the capture is open; end it first");
  capture->group = stream.get();
  capture->group_begin = capture->tasks->size();
  return {};
}

Status end_group(const char* call, aclrtStream handle, aclrtTaskGrp* group) {
  if (Status null = not_null(call, "handle", group); !null.ok()) return null;
  *group = nullptr;
  PinnedStream stream;
  if (Status status = find_stream_for(call, handle, &stream); !status.ok()) return status;
  std::lock_guard lock(capture_mutex());
  Capture* capture = stream->recording().capture.get();
  if (capture == nullptr || capture->group != stream.get()) {
    return group_status(
        call, "the stream has no open task group; call aclmdlRICaptureTaskGrpBegin first");
  }
  capture->group = nullptr;
  const PinnedGraph owner(graphs(), capture->graph);
  if (!owner) return dropped_group(call);  // with the graph that it is a part of
  const size_t count = capture->tasks->size() - capture->group_begin;
  TaskGroup* made = task_groups().create(capture->tasks, capture->group_begin, count);
  if (made == nullptr) {
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
                "too many live task groups");
  }
  std::lock_guard graph_lock(graph_mutex());
  owner->groups.push_back(made);
  *group = made;
  return {};
}

using PinnedGroup = HandlePool<TaskGroup>::Pin;

Status begin_update(const char* call, aclrtStream handle, aclrtTaskGrp group_handle) {
  if (Status null = not_null(call, "handle", group_handle); !null.ok()) return null;
  PinnedStream stream;
  if (Status status = find_stream_for(call, handle, &stream); !status.ok()) return status;
  const PinnedGroup group(task_groups(), group_handle);
  if (!group) {
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "handle",
                       group_handle);
  }
  std::lock_guard lock(capture_mutex());
  if (stream->records())
    return group_status(call, "the stream is being captured or updates a group; use another one");
  const std::shared_ptr<TaskList> tasks = group->tasks.lock();
  if (tasks == nullptr) return dropped_group(call);
  if (group->busy.exchange(true))
    return group_status(call, "another stream updates the group; end that update first");
  stream->set_recording(
      {nullptr, std::make_shared<TaskUpdate>(TaskUpdate{group_handle, tasks, {}})});
  return {};
}

// A task of the stream: replays take the new tasks from then on.
struct Replacement {
  static constexpr const char* kCall = "aclmdlRICaptureTaskUpdateEnd";
  std::weak_ptr<TaskList> tasks;
  uint32_t captures;
  size_t first;
  NodeList nodes;

  void run() const {
    if (const std::shared_ptr<TaskList> live = tasks.lock()) live->replace(captures, first, nodes);
  }
};

Status end_update(const char* call, aclrtStream handle) {
  PinnedStream stream;
  if (Status status = find_stream_for(call, handle, &stream); !status.ok()) return status;
  std::shared_ptr<TaskUpdate> update;
  {
    std::lock_guard lock(capture_mutex());
    update = stream->recording().update;
    if (update != nullptr) stream->set_recording({});
  }
  if (update == nullptr) {
    return group_status(call,
                        "the stream updates no group; call aclmdlRICaptureTaskUpdateBegin first");
  }
  const PinnedGroup group(task_groups(), update->group);
  const std::shared_ptr<TaskList> tasks = group ? group->tasks.lock() : nullptr;
  if (tasks == nullptr) return dropped_group(call);
  group->busy = false;
  const NodeList& nodes = update->nodes;
  if (nodes.empty()) return {};  // the old tasks stay
  if (nodes.size() != group->count) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, Reason::wrong_value, call,
                "the group has %zu tasks, but the update submitted %zu", group->count,
                nodes.size());
  }
  const NodeList old = tasks->nodes();
  if (group->captures != tasks->captures()) return dropped_group(call);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const char* before = old[group->first + i]->task.call;
    if (std::strcmp(before, nodes[i]->task.call) == 0) continue;
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP, Reason::wrong_value, call,
                "task %zu of the group is %s, but the update submitted %s", i, before,
                nodes[i]->task.call);
  }
  submit_job(
      *stream,
      std::make_unique<Replacement>(Replacement{tasks, group->captures, group->first, nodes}),
      true);
  return {};
}

}  // namespace

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  return guarded_status("aclmdlRICaptureTaskGrpBegin",
                        [&](const char* call) { return begin_group(call, stream); });
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  return guarded_status("aclmdlRICaptureTaskGrpEnd",
                        [&](const char* call) { return end_group(call, stream, handle); });
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  return guarded_status("aclmdlRICaptureTaskUpdateBegin",
                        [&](const char* call) { return begin_update(call, stream, handle); });
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  return guarded_status("aclmdlRICaptureTaskUpdateEnd",
                        [&](const char* call) { return end_update(call, stream); });
}
