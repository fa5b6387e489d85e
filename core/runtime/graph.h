// SPDX-License-Identifier: Apache-2.0
// A graph is a list of recorded tasks. Streams of a capture wait only for tasks recorded before, so
// the order of recording is an order in which one stream can replay them all.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/runtime/fork.h"
#include "core/runtime/handles.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

struct Capture;
struct ModelStep;  // model_steps.h

// A recorded task, which it owns.
struct Node {
  explicit Node(const Task& its) : task(its) {}
  ~Node() {
    if (task.drop != nullptr) task.drop(task.context);
  }
  Node(const Node&) = delete;

  Task task;
  uint32_t stream = 0;                    // index in the capture
  std::shared_ptr<const ModelStep> step;  // of a built model, instead of work
};
using NodeList = std::vector<std::shared_ptr<const Node>>;

// Shared by a graph and its replays.
class TaskList {
 public:
  void run(Stream& stream);  // in a task of the stream; one replay at a time
  void observe(const Stream& stream) const;
  NodeList nodes() const;
  size_t size() const;
  void add(std::shared_ptr<const Node> node);
  // A replay that runs meanwhile takes each task when it gets there. No effect on a list that was
  // cleared.
  void replace(size_t first, const NodeList& nodes);
  void clear();
  // Each replay first sets 8 bytes of device memory.
  void reset_before(void* address, uint64_t value);
  // Of a built model: whether each stream starts with it. Without, the tasks run in order.
  void set_heads(std::vector<bool> heads);

  std::atomic<int> replays = 0;  // submitted and not over

 private:
  std::vector<std::pair<void*, uint64_t>> resets() const;

  mutable ForkSafeLock lock_;  // of nodes_
  NodeList nodes_;
  std::vector<std::pair<void*, uint64_t>> resets_;
  std::vector<bool> heads_;
  ForkSafeLock running_;
};

struct Graph {
  static constexpr bool kPinned = true;

  Graph();

  const uint32_t id;
  const std::shared_ptr<TaskList> tasks = std::make_shared<TaskList>();
  std::atomic<bool> captured = false;  // still being recorded
  bool part = false;                   // of a condition: its graph owns it
  std::shared_ptr<Capture> build;      // of a built model
  // Guarded by graph_mutex().
  std::string name;
  bool ending = false;  // no replay begins
  std::vector<std::pair<aclrtCallback, void*>> at_end;
  std::vector<const void*> groups, conditions, parts;  // handles that end with the graph
};
using PinnedGraph = HandlePool<Graph>::Pin;

HandlePool<Graph>& graphs();
std::mutex& graph_mutex();

// Fails for a handle that is not alive, and with `finished` for a graph that is being captured.
Status find_graph(const char* call, const void* handle, PinnedGraph* graph, bool finished = true);
Status still_captured(const char* call);
void set_value(void* address, uint64_t value);  // 8 bytes of device memory
void end_condition(const void* handle);         // graph_conditions.cpp
void end_groups(Graph& graph);
// Destroys the graph and what ends with it.
void end_graph(const void* handle);

// Operators of a graph that are replaced later; ends with the graph.
struct TaskGroup {
  static constexpr bool kPinned = true;

  std::weak_ptr<TaskList> tasks;
  size_t first, count;
  std::atomic<bool> busy = false;  // in an update

  TaskGroup(const std::shared_ptr<TaskList>& its, size_t at, size_t number)
      : tasks(its), first(at), count(number) {}
};
HandlePool<TaskGroup>& task_groups();

}  // namespace openaclnn
