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
#include "core/support/fork.h"
#include "core/support/handles.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

struct Capture;
struct ModelStep;  // model_steps.h

// A recorded task, which it owns.
struct Node {
  explicit Node(const Task& its) : task(its), recorded_as(recorded_as_here()) {}
  ~Node() {
    if (task.drop != nullptr) task.drop(task.context);
  }
  Node(const Node&) = delete;
  void run() const {
    const RunsRecorded own(recorded_as == nullptr ? 0 : recorded_as->number);
    task.run(task.context);
  }

  Task task;
  const std::shared_ptr<const RecordedAs> recorded_as;  // for those who listen to work
  uint32_t stream = 0;                                  // index in the capture
  std::shared_ptr<const ModelStep> step;                // of a built model, instead of work
};
using NodeList = std::vector<std::shared_ptr<const Node>>;

// Shared by a graph and its replays.
class TaskList {
 public:
  TaskList() = default;
  ~TaskList();
  TaskList(const TaskList&) = delete;
  void run(Stream& stream);  // in a task of the stream; one replay at a time
  void observe(const Stream& stream) const;
  NodeList nodes() const;
  size_t size() const;
  void add(std::shared_ptr<const Node> node);
  // A replay that runs meanwhile takes each task when it gets there. No effect if the list was
  // cleared since `captures` was read, whatever it holds by now.
  void replace(uint32_t captures, size_t first, const NodeList& nodes);
  void clear();  // for another capture
  uint32_t captures() const { return captures_; }
  // Whether a task was recorded for it since, which may use memory made then (deferred.h).
  bool may_use(uint64_t made) const { return made < recorded_; }
  void note_recorded();
  // Calls then(context) when the tasks have ended; false: none may use what was made then.
  bool keep(uint64_t made, void (*then)(void*), void* context);
  // Each replay first sets 8 bytes of device memory.
  void reset_before(void* address, uint64_t value);
  // Of a built model: whether each stream starts with it. Without, the tasks run in order.
  void set_heads(std::vector<bool> heads);

  std::atomic<int> replays = 0;  // submitted and not over

 private:
  std::vector<std::pair<void*, uint64_t>> resets() const;

  using KeepAlive = std::vector<std::pair<void (*)(void*), void*>>;
  static void release(const KeepAlive& kept);

  mutable ForkSafeLock lock_;  // of nodes_ and kept_
  NodeList nodes_;
  KeepAlive kept_;  // what their tasks may use, and the program has freed
  std::atomic<uint64_t> recorded_ = 0;
  std::atomic<uint32_t> captures_ = 0;  // cleared so often
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
  const void* owner = nullptr;         // of a part of a condition: the graph with which it ends
  bool is_part() const { return owner != nullptr; }
  std::shared_ptr<Capture> build;  // of a built model
  // Guarded by graph_mutex().
  std::string name;
  bool ending = false;  // no replay begins
  std::vector<std::pair<aclrtCallback, void*>> at_end;
  // Handles that end with the graph.
  std::vector<const void*> groups, conditions, parts, streams, task_handles;
};
using PinnedGraph = HandlePool<Graph>::Pin;

HandlePool<Graph>& graphs();
std::mutex& graph_mutex();

// Fails for a handle that is not alive, and with `finished` for a graph that is being captured.
Status find_graph(const char* call, const void* handle, PinnedGraph* graph, bool finished = true);
Status still_captured(const char* call);
void set_value(void* address, uint64_t value);  // 8 bytes of device memory
void end_condition(const void* handle);         // graph_conditions.cpp
void end_inspection(const std::vector<const void*>& streams,
                    const std::vector<const void*>& tasks);  // graph_tasks.cpp
// After a capture that failed: a graph ends, and a part is empty again.
void drop_captured(const void* handle);
// Destroys the graph and what ends with it.
void end_graph(const void* handle);

// Operators of a graph that are replaced later; ends with the graph.
struct TaskGroup {
  static constexpr bool kPinned = true;

  std::weak_ptr<TaskList> tasks;
  const uint32_t captures;  // of the list, when the group was recorded
  const size_t first, count;
  std::atomic<bool> busy = false;  // in an update

  TaskGroup(const std::shared_ptr<TaskList>& its, size_t at, size_t number)
      : tasks(its), captures(its->captures()), first(at), count(number) {}
};
HandlePool<TaskGroup>& task_groups();

}  // namespace openaclnn
