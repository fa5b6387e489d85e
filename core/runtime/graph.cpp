// SPDX-License-Identifier: Apache-2.0
// Graphs as lists of tasks: replay, lookup, end.
#include "core/runtime/graph.h"

#include <mutex>

#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/deferred.h"
#include "core/runtime/model_steps.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

std::atomic<uint32_t> graphs_made = 0;

}  // namespace

Graph::Graph() : id(graphs_made++) {}

void TaskList::run(Stream& stream) {
  const auto locked = [](void* lock) { return static_cast<ForkSafeLock*>(lock)->try_lock(); };
  if (stream.poll_here(locked, &running_, {}) != Stream::Waited::signalled) return;
  const std::lock_guard one(running_, std::adopt_lock);
  for (const auto& [address, value] : resets()) set_value(address, value);
  if (!heads_.empty()) return run_model(nodes(), heads_, stream);
  for (size_t i = 0; !stream.halted() && !stream.interrupted(); ++i) {
    std::shared_ptr<const Node> node;
    {
      std::lock_guard lock(lock_);
      if (i == nodes_.size()) return;
      node = nodes_[i];
    }
    node->run();
  }
}

std::vector<std::pair<void*, uint64_t>> TaskList::resets() const {
  std::lock_guard lock(lock_);
  return resets_;
}

void TaskList::reset_before(void* address, uint64_t value) {
  std::lock_guard lock(lock_);
  resets_.emplace_back(address, value);
}

void TaskList::set_heads(std::vector<bool> heads) { heads_ = std::move(heads); }

TaskList::~TaskList() {
  nodes_.clear();
  release(kept_);
}

void TaskList::release(const KeepAlive& kept) {
  for (const auto& [then, context] : kept) then(context);
}

void TaskList::clear() {
  NodeList old;
  KeepAlive kept;
  {
    std::lock_guard lock(lock_);
    nodes_.swap(old);
    kept_.swap(kept);
    recorded_ = 0;
    ++captures_;
  }
  release(kept);
}

void TaskList::note_recorded() { recorded_ = ++tasks_recorded; }

bool TaskList::keep(uint64_t made, void (*then)(void*), void* context) {
  std::lock_guard lock(lock_);
  if (!may_use(made)) return false;
  try {
    kept_.emplace_back(then, context);
  } catch (const std::bad_alloc&) {
  }
  return true;
}

void set_value(void* address, uint64_t value) {
  std::atomic_ref(*static_cast<uint64_t*>(reachable(address)))
      .store(value, std::memory_order_release);
}

void TaskList::observe(const Stream& stream) const {
  for (const auto& node : nodes()) {
    if (node->task.observe != nullptr) node->task.observe(node->task.context, stream);
  }
}

NodeList TaskList::nodes() const {
  std::lock_guard lock(lock_);
  return nodes_;
}

size_t TaskList::size() const {
  std::lock_guard lock(lock_);
  return nodes_.size();
}

void TaskList::add(std::shared_ptr<const Node> node) {
  std::lock_guard lock(lock_);
  nodes_.push_back(std::move(node));
  note_recorded();
}

void TaskList::replace(uint32_t captures, size_t first, const NodeList& nodes) {
  NodeList old = nodes;  // ends outside the lock: dropping a task runs code of others
  std::lock_guard lock(lock_);
  if (captures != captures_) return;
  for (size_t i = 0; i < old.size(); ++i) nodes_[first + i].swap(old[i]);
}

HandlePool<Graph>& graphs() {
  return pool_of<Graph>(1 << 16, [] { graphs().forget_pins(); });
}

HandlePool<TaskGroup>& task_groups() {
  return pool_of<TaskGroup>(1 << 18, [] { task_groups().forget_pins(); });
}

std::mutex& graph_mutex() {
  static constinit NoDestructor<ForkHeldMutex> held;
  return held.get().mutex;
}

Status still_captured(const char* call) {
  return fail(ACL_ERROR_RT_MODEL_CAPTURED, Reason::call_missing, call,
              "modelRI is still being captured; call aclmdlRICaptureEnd first");
}

Status find_graph(const char* call, const void* handle, PinnedGraph* graph, bool finished) {
  if (Status null = not_null(call, "modelRI", handle, ObjectKind::graph); !null.ok()) return null;
  *graph = PinnedGraph(graphs(), handle);
  if (!*graph) {
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, "modelRI", handle);
  }
  if (!finished || !(*graph)->captured) return {};
  if ((*graph)->build == nullptr) return still_captured(call);
  return fail(ACL_ERROR_RT_MODEL_CAPTURED, Reason::call_missing, call,
              "modelRI is still being built; call aclmdlRIBuildEnd first");
}

void end_graph(const void* handle) {
  std::vector<const void*> groups, conditions, parts, streams, tasks;
  std::vector<std::pair<aclrtCallback, void*>> callbacks;
  std::shared_ptr<Capture> build;
  const bool ended = graphs().destroy(handle, [&](Graph& graph) {
    std::lock_guard lock(graph_mutex());
    groups.swap(graph.groups);
    parts.swap(graph.parts);
    conditions.swap(graph.conditions);
    streams.swap(graph.streams);
    tasks.swap(graph.task_handles);
    callbacks.swap(graph.at_end);
    build.swap(graph.build);
  });
  if (!ended) return;
  if (build != nullptr) unbind_streams(*build);
  for (const auto& [function, data] : callbacks) function(data);
  for (const void* group : groups) task_groups().destroy(group);
  for (const void* condition : conditions) end_condition(condition);
  for (const void* part : parts) end_graph(part);
  end_inspection(streams, tasks);
}

void drop_captured(const void* handle) {
  PinnedGraph graph(graphs(), handle);
  if (!graph) return;  // a part whose graph has ended
  if (graph->is_part()) {
    std::vector<const void*> groups;
    {
      std::lock_guard lock(graph_mutex());
      groups.swap(graph->groups);
    }
    for (const void* group : groups) task_groups().destroy(group);
    graph->tasks->clear();
    graph->captured = false;  // from now on another capture may begin here
    return;
  }
  graph->captured = false;
  graph.release();
  end_graph(handle);
}

}  // namespace openaclnn
