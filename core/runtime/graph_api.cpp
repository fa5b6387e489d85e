// SPDX-License-Identifier: Apache-2.0
// The C functions of graphs: replay, end, name, description.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/graph.h"
#include "core/runtime/task.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

// ---- replay ----

struct Replay {
  static constexpr const char* kCall = "aclmdlRIExecuteAsync";
  std::shared_ptr<TaskList> tasks;

  explicit Replay(std::shared_ptr<TaskList> its) : tasks(std::move(its)) { ++tasks->replays; }
  ~Replay() { --tasks->replays; }
  void run() const { tasks->run(*Stream::running_here()); }
};

// Another thread destroys it.
Status ended_graph(const char* call, aclmdlRI model) {
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "modelRI", model);
}

Status execute_graph(const char* call, aclmdlRI model, aclrtStream handle) {
  PinnedGraph graph;
  if (Status status = find_graph(call, model, &graph); !status.ok()) return status;
  if (graph->is_part()) {  // it may not outlive the memory of the condition
    return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::graph}, call,
                "modelRI belongs to a condition; execute the graph that has the condition");
  }
  PinnedStream stream;
  if (Status status = find_working_stream(call, handle, &stream); !status.ok()) return status;
  if (Status status = check_not_captured(call, *stream, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                                         "execute the graph on another stream");
      !status.ok()) {
    return status;
  }
  std::unique_ptr<Replay> job;
  {
    std::lock_guard lock(graph_mutex());
    if (!graph->ending) job = std::make_unique<Replay>(graph->tasks);
  }
  if (job == nullptr) return ended_graph(call, model);
  if (observer != nullptr) [[unlikely]]
    graph->tasks->observe(*stream);
  return hand_over_job(call, *stream, std::move(job));
}

Status destroy_graph(const char* call, aclmdlRI model) {
  {
    PinnedGraph graph;
    if (Status status = find_graph(call, model, &graph, false); !status.ok()) return status;
    if (graph->captured && graph->build == nullptr) return still_captured(call);
    if (graph->is_part()) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::graph}, call,
                  "modelRI belongs to a condition; it ends with the graph of that");
    }
    bool ending, running;
    {
      std::lock_guard lock(graph_mutex());
      ending = graph->ending;
      running = graph->tasks->replays > 0;
      graph->ending = ending || !running;
    }
    if (ending) return ended_graph(call, model);
    if (running) {
      return fail(ACL_ERROR_RT_MODEL_RUNNING, Reason::wrong_value, call,
                  "modelRI is running; synchronise its stream first");
    }
  }
  notify_ending(call, ObjectKind::graph, model);
  end_graph(model);
  return {};
}

// ---- descriptions ----

const char* name_of_task(TaskType type) {
  constexpr const char* kNames[] = {"other",       "kernel",      "event_record", "event_wait",
                                    "event_reset", "value_write", "value_wait"};
  return kNames[static_cast<int>(type)];
}

// Calls write(text) for each task.
template <class F>
void describe_tasks(const Graph& graph, F write) {
  const NodeList nodes = graph.tasks->nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    char text[400];
    const Node& node = *nodes[i];
    std::snprintf(
        text, sizeof text,
        "{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %zu, \"dur\": 1, \"pid\": \"model %u\", "
        "\"tid\": \"stream %u\", \"args\": {\"model\": %u, \"stream\": %u, \"task\": %zu, "
        "\"type\": \"%s\"}}",
        node.task.call, i, graph.id, node.stream, graph.id, node.stream, i,
        name_of_task(node.task.type));
    write(text);
  }
}

Status print_graph(const char* call, aclmdlRI model, const char* path, uint32_t flags) {
  PinnedGraph graph;
  Status status = find_graph(call, model, &graph);
  if (status.ok()) status = not_null(call, "path", path);
  if (!status.ok()) return status;
  if (flags > ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "flags must be 0 or 1, but got %u", flags);
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "w"), std::fclose);
  if (file == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "cannot write %s: %s; its directory must exist", path, std::strerror(errno));
  }
  const char* before = "[\n";
  describe_tasks(*graph, [&](const char* text) {
    std::fprintf(file.get(), "%s%s", std::exchange(before, ",\n"), text);
  });
  std::fputs(before[0] == '[' ? "[]\n" : "\n]\n", file.get());
  if (std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call, "cannot write %s: %s", path,
              std::strerror(errno));
}

}  // namespace

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  return guarded_status("aclmdlRIExecuteAsync",
                        [&](const char* call) { return execute_graph(call, modelRI, stream); });
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  return guarded_status("aclmdlRIExecute", [&](const char* call) {
    Status status = timeout == 0 ? fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                                        "timeout must be -1 (no limit) or at least 1 ms")
                                 : check_timeout(call, timeout);
    if (status.ok()) status = execute_graph(call, modelRI, nullptr);
    return status.ok() ? Status(aclrtSynchronizeStreamWithTimeout(nullptr, timeout)) : status;
  });
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  return guarded_status("aclmdlRIDestroy",
                        [&](const char* call) { return destroy_graph(call, modelRI); });
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void* userData) {
  return guarded_status("aclmdlRIDestroyRegisterCallback", [&](const char* call) {
    PinnedGraph graph;
    Status status = find_graph(call, modelRI, &graph);
    if (status.ok()) status = not_null(call, "func", reinterpret_cast<void*>(func));
    if (!status.ok()) return status;
    std::lock_guard lock(graph_mutex());
    graph->at_end.emplace_back(func, userData);
    return status;
  });
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) {
  return guarded_status("aclmdlRIDestroyUnregisterCallback", [&](const char* call) {
    PinnedGraph graph;
    Status status = find_graph(call, modelRI, &graph);
    if (status.ok()) status = not_null(call, "func", reinterpret_cast<void*>(func));
    if (!status.ok()) return status;
    std::lock_guard lock(graph_mutex());
    std::erase_if(graph->at_end, [&](const auto& entry) { return entry.first == func; });
    return status;
  });
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  constexpr const char* call = "aclmdlRIGetId";
  PinnedGraph graph;
  Status status = find_graph(call, modelRI, &graph, false);
  if (status.ok()) status = not_null(call, "modelRIId", modelRIId);
  if (status.ok()) *modelRIId = graph->id;
  return status.code();
}

aclError aclmdlRISetName(aclmdlRI modelRI, const char* name) {
  return guarded_status("aclmdlRISetName", [&](const char* call) {
    PinnedGraph graph;
    Status status = find_graph(call, modelRI, &graph);
    if (status.ok()) status = not_null(call, "name", name);
    if (!status.ok()) return status;
    std::string given(name, strnlen(name, 512));
    std::lock_guard lock(graph_mutex());
    graph->name.swap(given);
    return status;
  });
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name) {
  constexpr const char* call = "aclmdlRIGetName";
  PinnedGraph graph;
  Status status = find_graph(call, modelRI, &graph);
  if (status.ok()) status = not_null(call, "name", name);
  if (status.ok() && maxLen == 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "maxLen must be at least 1");
  }
  if (!status.ok()) return status.code();
  std::lock_guard lock(graph_mutex());
  const size_t length = std::min<size_t>({graph->name.size(), maxLen - 1, 511});
  std::memcpy(name, graph->name.data(), length);
  name[length] = '\0';
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) {
  return guarded_status("aclmdlRIDebugJsonPrint",
                        [&](const char* call) { return print_graph(call, modelRI, path, flags); });
}

// Lines of the log.
aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  return guarded_status("aclmdlRIDebugPrint", [&](const char* call) {
    PinnedGraph graph;
    Status status = find_graph(call, modelRI, &graph);
    if (!status.ok()) return status;
    describe_tasks(*graph, [&](const char* text) {
      aclAppLog(ACL_INFO, call, "graph_api.cpp", 0, "%s", text);
    });
    return status;
  });
}
