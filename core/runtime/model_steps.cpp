// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/model_steps.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

template <class T>
T load(const void* address) {
  T value;
  std::memcpy(&value, reachable(address), sizeof value);
  return value;
}

bool holds(int condition, int64_t left, int64_t right) {
  switch (condition) {
    case ACL_RT_EQUAL: return left == right;
    case ACL_RT_NOT_EQUAL: return left != right;
    case ACL_RT_GREATER: return left > right;
    case ACL_RT_GREATER_OR_EQUAL: return left >= right;
    case ACL_RT_LESS: return left < right;
    default: return left <= right;
  }
}

bool holds(const ModelStep& step) {
  if (step.is_int64)
    return holds(step.condition, load<int64_t>(step.left), load<int64_t>(step.right));
  return holds(step.condition, load<int32_t>(step.left), load<int32_t>(step.right));
}

class ModelRun {
 public:
  ModelRun(const NodeList& nodes, const std::vector<bool>& heads)
      : nodes_(nodes), streams_(heads.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      BoundStream& own = streams_[nodes[i]->stream];
      const ModelStep* step = nodes[i]->step.get();
      if (step != nullptr && step->kind == ModelStep::Kind::label)
        labels_[step->target] = {&own, own.tasks.size()};
      own.tasks.push_back(i);
    }
    for (size_t i = 0; i < heads.size(); ++i)
      streams_[i].next = heads[i] ? 0 : streams_[i].tasks.size();
  }

  void run(Stream& stream) {
    while (!stream.halted() && !stream.interrupted()) {
      BoundStream* own = active();
      if (own == nullptr) return;
      const Node& node = *nodes_[own->tasks[own->next++]];
      if (node.step == nullptr) {
        node.run();
      } else if (!obey(*node.step, *own)) {
        stream.fail_task(ACL_ERROR_RT_LABEL_CONTEXT, Reason::call_missing,
                         "aclrtSwitchLabelByIndex: the label was not set on a stream of the model");
        return;
      }
    }
  }

 private:
  struct BoundStream {
    std::vector<size_t> tasks;  // indices of nodes
    size_t next = 0;            // behind the last one: not active
    bool is_active() const { return next < tasks.size(); }
    void stop() { next = tasks.size(); }
    void start() {
      if (!is_active()) next = 0;
    }
  };

  BoundStream* active() {
    BoundStream* first = nullptr;
    for (BoundStream& own : streams_) {
      if (own.is_active() && (first == nullptr || own.tasks[own.next] < first->tasks[first->next]))
        first = &own;
    }
    return first;
  }

  // False for a label that no stream has.
  bool obey(const ModelStep& step, BoundStream& own) {
    switch (step.kind) {
      case ModelStep::Kind::end: own.stop(); return true;
      case ModelStep::Kind::label: return true;
      case ModelStep::Kind::start: streams_[step.target].start(); return true;
      case ModelStep::Kind::branch:
        if (!holds(step)) return true;
        own.stop();
        streams_[step.target].start();
        return true;
      case ModelStep::Kind::jump: break;
    }
    const size_t index = std::min<size_t>(load<uint32_t>(step.left), step.labels.size() - 1);
    const auto found = labels_.find(step.labels[index]);
    if (found == labels_.end()) return false;
    own.stop();
    found->second.first->next = found->second.second;
    return true;
  }

  const NodeList& nodes_;
  std::vector<BoundStream> streams_;
  std::map<uint32_t, std::pair<BoundStream*, size_t>> labels_;
};

Status not_bound(const char* call, const char* argument) {
  return fail(ACL_ERROR_RT_STREAM_MODEL, {Reason::call_missing, ObjectKind::stream}, call,
              "%s must be bound to a model that is being built; call aclmdlRIBindStream first",
              argument);
}

}  // namespace

void run_model(const NodeList& nodes, const std::vector<bool>& heads, Stream& stream) {
  ModelRun(nodes, heads).run(stream);
}

Status add_step(const char* call, const void* handle, ModelStep step, const void* next) {
  if (Status null = not_null(call, "stream", handle, ObjectKind::stream); !null.ok()) return null;
  PinnedStream stream, target;
  Status status = find_working_stream(call, handle, &stream);
  if (status.ok() && next != nullptr) status = find_stream_for(call, next, &target);
  if (!status.ok()) return status;
  auto node = std::make_shared<Node>(Task{[](void*) {}, nullptr, nullptr, call});
  std::lock_guard lock(capture_mutex());
  Capture* build = stream->recording().capture.get();
  if (build == nullptr || !build->is_build || build->ended) return not_bound(call, "stream");
  if (target && target->recording().capture.get() != build)
    return not_bound(call, "the stream to run");
  const auto index_of = [&](const Stream* own) {
    const auto& all = build->streams;
    return static_cast<uint32_t>(std::find(all.begin(), all.end(), own) - all.begin());
  };
  if (target) step.target = index_of(target.get());
  node->stream = index_of(stream.get());
  node->step = std::make_shared<const ModelStep>(std::move(step));
  build->tasks->add(std::move(node));
  return {};
}

}  // namespace openaclnn
