// SPDX-License-Identifier: Apache-2.0
#include "core/base/executor.h"

#include <memory>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/runtime/device.h"
#include "core/runtime/parallel.h"

namespace openaclnn {
namespace {

constexpr uint64_t kWorkspaceAlignment = 64;

// What distinguishes two views apart from their address.
uint64_t layout_of(const Tensor& tensor) {
  uint64_t hash = static_cast<uint64_t>(tensor.dtype) * 0x9e3779b97f4a7c15u;
  const auto mix = [&hash](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  };
  for (int i = 0; i < tensor.shape.rank; ++i) {
    if (tensor.shape[i] != 1) mix(tensor.shape[i]), mix(tensor.strides[i]);
  }
  return hash;
}

bool belongs(Role role, Executor::Group group) {
  if (group == Executor::Group::inputs) return role == Role::input || role == Role::inout;
  if (group == Executor::Group::outputs) return role == Role::output || role == Role::inout;
  return true;
}

// A plan on its way through a stream: its own copy when it is repeatable, because its addresses may
// be set anew meanwhile.
struct Run {
  aclOpExecutor plan;
  void* workspace;
};

void run_once(void* context) {
  auto* run = static_cast<Run*>(context);
  run->plan.run(run->workspace);
}

}  // namespace

HandlePool<aclOpExecutor>& executors() { return pool_of<aclOpExecutor>(size_t{1} << 20); }

void Executor::bind(const Tensor* tensor, Role role, void** pointer_in_call) {
  Operand& operand = operand_[operands_++];
  operand.role = role;
  operand.present = tensor != nullptr;
  if (tensor == nullptr) return;
  const auto size = static_cast<int64_t>(dtype_size(tensor->dtype));
  int64_t low = 0, high = 0;
  (void)element_range(*tensor, &low, &high);  // phase 1 checked it against the storage
  operand.data = static_cast<std::byte*>(tensor->data);
  operand.offset = tensor->offset * size;
  operand.low = low * size;
  operand.high = high * size;
  operand.layout = layout_of(*tensor);
  operand.pointer = static_cast<uint32_t>(reinterpret_cast<std::byte*>(pointer_in_call) - call_);
  *pointer_in_call = operand.data + operand.offset;
}

void Executor::add_step(Kernel kernel, int64_t items, int64_t grain) {
  step_[steps_++] = {kernel, items, grain};
}

void Executor::estimate(int64_t nanoseconds) { nanoseconds_ += nanoseconds; }

uint64_t Executor::book(uint64_t bytes) {
  const uint64_t offset = workspace_size_;
  workspace_size_ += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return offset;
}

Status Executor::set_address(Group group, size_t index, void* address) {
  // inputs first, then outputs; absent optional tensors keep their index in their group and have
  // none among all
  size_t position = 0;
  for (const Role pass : {Role::input, Role::output}) {
    for (int i = 0; i < operands_; ++i) {
      Operand& operand = operand_[i];
      const bool in_pass =
          pass == Role::output ? operand.role == Role::output : operand.role != Role::output;
      const bool counts = group == Group::all ? in_pass && operand.present
                                              : pass == Role::input && belongs(operand.role, group);
      if (!counts || position++ != index) continue;
      if (!operand.present)
        return fail(ACLNN_ERR_PARAM_INVALID, "tensor %zu was NULL in phase 1", index);
      operand.data = static_cast<std::byte*>(address);
      void* element = operand.data + operand.offset;
      std::memcpy(call_ + operand.pointer, &element, sizeof element);
      moved_ = true;
      return {};
    }
  }
  return fail(ACLNN_ERR_PARAM_INVALID,
              "index must be less than the number of tensors %zu, but got %zu", position, index);
}

Status Executor::check_addresses() const {
  for (int o = 0; moved_ && o < operands_; ++o) {
    const Operand& out = operand_[o];
    if (!out.present || out.role == Role::input || out.low == out.high) continue;
    if (out.data == nullptr)
      return fail(ACLNN_ERR_PARAM_NULLPTR, "the address set for an output must not be NULL");
    for (int i = 0; i < operands_; ++i) {
      const Operand& other = operand_[i];
      if (i == o || !other.present || other.low == other.high) continue;
      if (other.data == nullptr)
        return fail(ACLNN_ERR_PARAM_NULLPTR, "the address set for an input must not be NULL");
      const bool apart = out.data + out.high <= other.data + other.low ||
                         other.data + other.high <= out.data + out.low;
      const bool same =
          out.data + out.offset == other.data + other.offset && out.layout == other.layout;
      if (!apart && !(same && other.role == Role::input)) {
        return fail(ACLNN_ERR_PARAM_INVALID,
                    "the addresses set make an output overlap another tensor in part");
      }
    }
  }
  return {};
}

void Executor::run(void* workspace) const {
  for (int i = 0; i < steps_; ++i) {
    const Step& step = step_[i];
    parallel_for(step.items, step.grain,
                 [&](int64_t begin, int64_t end) { step.kernel(call_, workspace, begin, end); });
  }
}

Status launch(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
              aclOpExecutor* handle, void* stream_handle) {
  if (handle == nullptr)
    return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: executor must not be NULL", name);
  if (workspace == nullptr && workspace_size > 0) {
    return fail(ACLNN_ERR_PARAM_NULLPTR,
                "%s: workspace must not be NULL when workspaceSize is %llu", name,
                static_cast<unsigned long long>(workspace_size));
  }
  aclOpExecutor* executor = executors().find(handle);
  if (executor == nullptr) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: executor must come from %sGetWorkspaceSize and be run once (make it "
                "repeatable to run it again), but "
                "got one that was already run, destroyed or never created",
                name, name);
  }
  if (executor->maker() != maker) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: executor must come from %sGetWorkspaceSize, but got one of another operator",
                name, name);
  }
  if (workspace_size < executor->workspace_size()) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: workspaceSize must be at least %llu as phase 1 asked for, but got %llu", name,
                static_cast<unsigned long long>(executor->workspace_size()),
                static_cast<unsigned long long>(workspace_size));
  }
  if (Status status = executor->check_addresses(); !status.ok()) return status;
  Stream* stream = nullptr;
  if (Status status = find_stream(stream_handle, &stream); !status.ok()) {
    return fail(ACLNN_ERR_RUNTIME_ERROR, "%s: stream must be a live stream: %s", name,
                take_sentence().c_str());
  }
  if (executor->brief()) {  // runs here when the stream is idle; a copy is made only when it has to
                            // wait
    struct Inline {
      aclOpExecutor* executor;
      void* workspace;
    } now{executor, workspace};
    const auto run_now = [](void* context) {
      auto* self = static_cast<Inline*>(context);
      self->executor->run(self->workspace);
    };
    if (stream->run_if_idle(run_now, &now)) {
      if (!executor->repeatable) executors().destroy(executor);
      return {};
    }
  }
  auto run = std::make_unique<Run>(Run{*executor, workspace});
  if (!executor->repeatable) executors().destroy(executor);
  stream->submit(
      {run_once, [](void* context) { delete static_cast<Run*>(context); }, run.release()});
  return {};
}

}  // namespace openaclnn
