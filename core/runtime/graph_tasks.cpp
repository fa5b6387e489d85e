// SPDX-License-Identifier: Apache-2.0
// The streams and tasks of a graph, as handles; tasks that replays leave out.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/graph.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

struct GraphStream {
  static constexpr bool kPinned = true;
  const void* graph;  // a handle
  const uint32_t index;

  GraphStream(const void* its, uint32_t number) : graph(its), index(number) {}
};

struct GraphTask {
  static constexpr bool kPinned = true;
  const void* graph;  // a handle
  const size_t index;
  std::atomic<bool> disabled = false;  // from the next update on

  GraphTask(const void* its, size_t number) : graph(its), index(number) {}
};

HandlePool<GraphStream>& graph_streams() {
  return pool_of<GraphStream>(1 << 16, [] { graph_streams().forget_pins(); });
}
HandlePool<GraphTask>& graph_tasks() {
  return pool_of<GraphTask>(1 << 18, [] { graph_tasks().forget_pins(); });
}

// Handles for the first `count` objects; false: too many are alive.
template <class T>
bool make_handles(HandlePool<T>& pool, const void* graph, size_t count,
                  std::vector<const void*>* handles) {
  handles->reserve(count);
  while (handles->size() < count) {
    const T* made = pool.create(graph, static_cast<uint32_t>(handles->size()));
    if (made == nullptr) return false;
    handles->push_back(made);
  }
  return true;
}

Status too_many(const char* call) {
  return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
              "too many handles of streams and tasks of graphs are alive; destroy graphs");
}

// Array NULL: the number only.
Status give(const char* call, const char* name, const std::vector<const void*>& found, void** array,
            uint32_t* count) {
  const auto size = static_cast<uint32_t>(found.size());
  const uint32_t room = array == nullptr ? size : *count;
  *count = size;
  if (room < size) {
    return fail(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY, Reason::wrong_value, call,
                "%s has room for %u, but there are %u; call with NULL for the number", name, room,
                size);
  }
  if (array == nullptr) return {};
  std::transform(found.begin(), found.end(), array,
                 [](const void* handle) { return const_cast<void*>(handle); });
  return {};
}

Status list_streams(const char* call, aclmdlRI model, aclrtStream* streams, uint32_t* count) {
  PinnedGraph graph;
  Status status = find_graph(call, model, &graph);
  if (status.ok()) status = not_null(call, "numStreams", count);
  if (!status.ok()) return status;
  size_t most = 1;
  for (const auto& node : graph->tasks->nodes()) most = std::max<size_t>(most, node->stream + 1);
  if (graph->build != nullptr) {  // its streams may be without tasks
    std::lock_guard lock(capture_mutex());
    most = std::max(most, graph->build->streams.size());
  }
  std::lock_guard lock(graph_mutex());
  if (!make_handles(graph_streams(), model, most, &graph->streams)) return too_many(call);
  return give(call, "streams", graph->streams, streams, count);
}

Status list_tasks(const char* call, aclrtStream handle, aclmdlRITask* tasks, uint32_t* count) {
  Status status = not_null(call, "stream", handle, ObjectKind::stream);
  if (status.ok()) status = not_null(call, "numTasks", count);
  if (!status.ok()) return status;
  const HandlePool<GraphStream>::Pin stream(graph_streams(), handle);
  const PinnedGraph graph(graphs(), stream ? stream->graph : nullptr);
  if (!graph) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, {Reason::dead_handle, ObjectKind::stream}, call,
                "stream %p is none of aclmdlRIGetStreams, or its graph was destroyed", handle);
  }
  if (graph->captured) return still_captured(call);  // a part that was empty
  const NodeList nodes = graph->tasks->nodes();
  std::lock_guard lock(graph_mutex());
  if (!make_handles(graph_tasks(), stream->graph, nodes.size(), &graph->task_handles))
    return too_many(call);
  std::vector<const void*> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->stream == stream->index) found.push_back(graph->task_handles[i]);
  }
  return give(call, "tasks", found, tasks, count);
}

// Calls f(GraphTask&, const Node&).
template <class F>
Status with_task(const char* call, aclmdlRITask handle, F f) {
  if (Status null = not_null(call, "task", handle, ObjectKind::graph); !null.ok()) return null;
  const HandlePool<GraphTask>::Pin task(graph_tasks(), handle);
  const PinnedGraph graph(graphs(), task ? task->graph : nullptr);
  const NodeList nodes = graph ? graph->tasks->nodes() : NodeList();
  if (!graph || task->index >= nodes.size())
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "task", handle);
  return f(*task, *nodes[task->index]);
}

Status disable_task(const char* call, GraphTask& task, const Node& node) {
  if (node.step != nullptr) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                "task directs the streams of its model and cannot be left out");
  }
  task.disabled = true;
  return {};
}

std::shared_ptr<const Node> empty_node(const Node& old) {
  const auto nothing = [](void*) {};
  auto made = std::make_shared<Node>(Task{nothing, nullptr, nullptr, old.task.call, old.task.type});
  made->stream = old.stream;
  return made;
}

Status update_graph(const char* call, aclmdlRI model) {
  PinnedGraph graph;
  if (Status status = find_graph(call, model, &graph); !status.ok()) return status;
  TaskList& tasks = *graph->tasks;
  std::vector<const void*> handles;
  {
    std::lock_guard lock(graph_mutex());
    if (tasks.replays > 0) {
      return fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, Reason::wrong_value, call,
                  "modelRI is running; synchronise its stream first");
    }
    handles = graph->task_handles;
  }
  // Without the lock: dropping a task runs code of others.
  const NodeList nodes = tasks.nodes();
  for (size_t i = 0; i < std::min(handles.size(), nodes.size()); ++i) {
    const HandlePool<GraphTask>::Pin task(graph_tasks(), handles[i]);
    if (task && task->disabled) tasks.replace(tasks.captures(), i, {empty_node(*nodes[i])});
  }
  return {};
}

}  // namespace

namespace openaclnn {

void end_inspection(const std::vector<const void*>& streams,
                    const std::vector<const void*>& tasks) {
  for (const void* stream : streams) graph_streams().destroy(stream);
  for (const void* task : tasks) graph_tasks().destroy(task);
}

}  // namespace openaclnn

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams, uint32_t* numStreams) {
  return guarded_status("aclmdlRIGetStreams", [&](const char* call) {
    return list_streams(call, modelRI, streams, numStreams);
  });
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks, uint32_t* numTasks) {
  return guarded_status("aclmdlRIGetTasksByStream", [&](const char* call) {
    return list_tasks(call, stream, tasks, numTasks);
  });
}

aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType* type) {
  return guarded_status("aclmdlRITaskGetType", [&](const char* call) {
    return with_task(call, task, [&](GraphTask&, const Node& node) {
      const Status status = not_null(call, "type", type);
      if (status.ok()) *type = static_cast<aclmdlRITaskType>(node.task.type);
      return status;
    });
  });
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t* id) {
  return guarded_status("aclmdlRITaskGetSeqId", [&](const char* call) {
    return with_task(call, task, [&](GraphTask& own, const Node&) {
      const Status status = not_null(call, "id", id);
      if (status.ok()) *id = static_cast<uint32_t>(own.index);
      return status;
    });
  });
}

aclError aclmdlRITaskDisable(aclmdlRITask task) {
  return guarded_status("aclmdlRITaskDisable", [&](const char* call) {
    return with_task(call, task, [&](GraphTask& own, const Node& node) {
      return disable_task(call, own, node);
    });
  });
}

aclError aclmdlRIUpdate(aclmdlRI modelRI) {
  return guarded_status("aclmdlRIUpdate",
                        [&](const char* call) { return update_graph(call, modelRI); });
}
