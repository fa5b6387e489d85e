// SPDX-License-Identifier: Apache-2.0
// Conditions: tasks that run other graphs, chosen by 8 bytes of device memory when they get there.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/graph.h"
#include "core/support/observer.h"
#include "core/runtime/task.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

struct Condition {
  static constexpr bool kPinned = true;
  const void* graph;  // a handle
  void* value;        // 8 bytes of aclrtMalloc

  Condition(const void* its, void* at) : graph(its), value(at) {}
  ~Condition() { (void)aclrtFree(value); }
};

HandlePool<Condition>& conditions() {
  return pool_of<Condition>(1 << 16, [] { conditions().forget_pins(); });
}
using PinnedCondition = HandlePool<Condition>::Pin;

Status find_condition(const char* call, const void* handle, PinnedCondition* condition) {
  if (Status null = not_null(call, "handle", handle, ObjectKind::graph); !null.ok()) return null;
  *condition = PinnedCondition(conditions(), handle);
  if (*condition) return {};
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "handle", handle);
}

Status create_condition(const char* call, aclmdlRI model, uint32_t first, int flag,
                        aclmdlRICondHandle* handle) {
  PinnedGraph graph;
  Status status = find_graph(call, model, &graph, false);
  if (status.ok()) status = not_null(call, "handle", handle);
  if (status.ok() && (flag < 0 || flag > ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT)) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "flag must be 0 or 1, but got %d", flag);
  }
  if (!status.ok()) return status;
  void* value = nullptr;
  if (const aclError code = aclrtMalloc(&value, sizeof(uint64_t), ACL_MEM_MALLOC_HUGE_FIRST);
      code != ACL_SUCCESS) {
    return Status(code);
  }
  const Transfer fill{value, nullptr, sizeof(uint64_t), 0, call};
  fill.notify(nullptr);
  set_value(value, first);
  Condition* made = conditions().create(model, value);
  if (made == nullptr) {
    (void)aclrtFree(value);
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
                "too many live conditions");
  }
  if (flag == ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) graph->tasks->reset_before(value, first);
  std::lock_guard lock(graph_mutex());
  graph->conditions.push_back(made);
  *handle = made;
  return {};
}

// A task of a capture.
struct Choice {
  static constexpr const char* kCall = "aclmdlRIAddCondTask";
  void* value;
  aclmdlRICondTaskType type;
  std::vector<std::shared_ptr<TaskList>> branches;

  void observe(const Stream& stream) const { notify_consumes(&stream, nullptr); }
  uint64_t read() const {
    return std::atomic_ref(*static_cast<uint64_t*>(reachable(value)))
        .load(std::memory_order_acquire);
  }
  void run() const {
    Stream& stream = *Stream::running_here();
    switch (type) {
      case ACL_MODEL_RI_COND_TYPE_WHILE:
        while (read() != 0 && !stream.halted() && !stream.interrupted()) branches[0]->run(stream);
        return;
      case ACL_MODEL_RI_COND_TYPE_IF: return run_branch(read() != 0 ? 0 : 1, stream);
      default: return run_branch(read(), stream);
    }
  }
  void run_branch(uint64_t index, Stream& stream) const {
    if (index < branches.size()) branches[index]->run(stream);
  }
};

constexpr uint32_t kMostBranches = 1024;

Status check_condition(const char* call, const aclmdlRICondTaskParams& given) {
  const int type = static_cast<int>(given.type);
  if (type < ACL_MODEL_RI_COND_TYPE_IF || type > ACL_MODEL_RI_COND_TYPE_SWITCH) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "type must be in [0, 2], but got %d", type);
  }
  const uint32_t most = type == ACL_MODEL_RI_COND_TYPE_IF      ? 2
                        : type == ACL_MODEL_RI_COND_TYPE_WHILE ? 1
                                                               : kMostBranches;
  if (given.size == 0 || given.size > most) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "size must be in [1, %u] for type %d, but got %u", most, type, given.size);
  }
  return not_null(call, "modelRIArray", given.modelRIArray);
}

// The models of a condition. Those in `made` end with this.
struct NewParts {
  Graph& owner;
  std::vector<Graph*> made;

  ~NewParts() {
    if (made.empty()) return;
    {
      std::lock_guard lock(graph_mutex());
      std::erase_if(owner.parts, [this](const void* part) {
        return std::find(made.begin(), made.end(), part) != made.end();
      });
    }
    for (const Graph* part : made) end_graph(part);
  }
};

Status add_condition(const char* call, const aclmdlRICondTaskParams& given, aclrtStream handle,
                     uint32_t flags) {
  Status status = not_null(call, "stream", handle, ObjectKind::stream);
  if (status.ok()) status = check_zero(call, "flags", flags);
  if (status.ok()) status = check_condition(call, given);
  PinnedCondition condition;
  if (status.ok()) status = find_condition(call, given.handle, &condition);
  PinnedStream stream;
  if (status.ok()) status = find_working_stream(call, handle, &stream);
  if (!status.ok()) return status;
  const void* captured = nullptr;
  {
    std::lock_guard lock(capture_mutex());
    if (const auto& capture = stream->recording().capture) captured = capture->graph;
  }
  if (captured == nullptr) return not_captured(call);
  if (captured != condition->graph) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::graph}, call,
                "handle belongs to another model than the one that the stream records");
  }
  const PinnedGraph owner(graphs(), captured);
  if (!owner) {
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "handle",
                       given.handle);
  }
  auto job = std::make_unique<Choice>(Choice{condition->value, given.type, {}});
  NewParts parts{*owner, {}};
  parts.made.reserve(given.size);
  for (uint32_t i = 0; i < given.size; ++i) {
    Graph* part = graphs().create();
    if (part == nullptr) {
      return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
                  "too many live graphs");
    }
    parts.made.push_back(part);
    part->owner = captured;
    job->branches.push_back(part->tasks);
    std::lock_guard lock(graph_mutex());
    owner->parts.push_back(part);
  }
  submit_job(*stream, std::move(job), false);
  std::copy(parts.made.begin(), parts.made.end(), given.modelRIArray);
  parts.made.clear();
  return {};
}

}  // namespace

namespace openaclnn {

void end_condition(const void* handle) { conditions().destroy(handle); }

}  // namespace openaclnn

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                  aclmdlRICondHandleFlag flag, aclmdlRICondHandle* handle) {
  const int given = static_cast<int>(flag);
  return guarded_status("aclmdlRICondHandleCreate", [&](const char* call) {
    return create_condition(call, modelRI, defaultLaunchValue, given, handle);
  });
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr) {
  constexpr const char* call = "aclmdlRICondHandleGetCondPtr";
  PinnedCondition condition;
  Status status = find_condition(call, handle, &condition);
  if (status.ok()) status = not_null(call, "ptr", ptr);
  if (status.ok()) *ptr = static_cast<uint64_t*>(condition->value);
  return status.code();
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags) {
  return guarded_status("aclmdlRIAddCondTask", [&](const char* call) {
    return add_condition(call, params, stream, flags);
  });
}
