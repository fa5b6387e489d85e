// SPDX-License-Identifier: Apache-2.0
#include "core/base/executor.h"

#include <memory>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/object.h"
#include "core/base/plan_observer.h"
#include "core/base/view.h"
#include "core/runtime/arithmetic.h"
#include "core/runtime/device.h"
#include "core/runtime/parallel.h"
#include "core/runtime/stack_room.h"
#include "core/runtime/timeline.h"

namespace openaclnn {

constinit Watch<const PlanObserver*> plan_observer = nullptr;

namespace {

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

// In integers: an address from outside may be NULL, or so large that the sum wraps around.
std::byte* moved(std::byte* address, int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(address) +
                                      static_cast<uintptr_t>(bytes));
}

bool belongs(Role role, Executor::Group group) {
  if (group == Executor::Group::inputs) return role == Role::input || role == Role::inout;
  if (group == Executor::Group::outputs) return role == Role::output || role == Role::inout;
  return true;
}

}  // namespace

HandlePool<aclOpExecutor>& executors() { return pool_of<aclOpExecutor>(size_t{1} << 20); }

void Executor::bind(const char* name, const Tensor* tensor, Role role, void** pointer_in_call,
                    bool apart) {
  Operand& operand = operand_[operands_++];
  operand.name = name;
  operand.role = role;
  operand.apart = apart;
  operand.present = tensor != nullptr;
  if (tensor == nullptr) return;
  const auto size = static_cast<int64_t>(dtype_size(tensor->dtype));
  int64_t low = 0, high = 0;
  (void)element_range(*tensor, &low, &high);  // phase 1 checked it against the storage
  operand.data = operand.planned = static_cast<std::byte*>(tensor->data);
  operand.offset = low == high ? 0 : tensor->offset * size;
  operand.alignment = static_cast<uint32_t>(size);
  operand.low = low * size;
  operand.high = high * size;
  operand.layout = layout_of(*tensor);
  operand.pointer = static_cast<uint32_t>(reinterpret_cast<std::byte*>(pointer_in_call) - call_);
  *pointer_in_call = moved(operand.data, operand.offset);
}

void Executor::reach() {
  for_each_operand([this](const Operand& operand) {
    void* element = reachable(moved(operand.data, operand.offset));
    std::memcpy(call_ + operand.pointer, &element, sizeof element);
  });
}

void Executor::add_step(Kernel kernel, int64_t items, int64_t grain, int64_t rounds) {
  step_[steps_++] = {kernel, items, grain, rounds};
}

void Executor::estimate(int64_t nanoseconds) { nanoseconds_ += nanoseconds; }

void Executor::need_stack(size_t bytes) { stack_ = bytes; }

bool Executor::fits_stack() const { return stack_ == 0 || stack_room() >= stack_; }

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
      void* element = reachable(moved(operand.data, operand.offset));
      std::memcpy(call_ + operand.pointer, &element, sizeof element);
      moved_ = true;
      return {};
    }
  }
  return fail(ACLNN_ERR_PARAM_INVALID,
              "index must be less than the number of tensors %zu, but got %zu", position, index);
}

Status Executor::check_addresses(const char* op) const {
  for (int i = 0; moved_ && i < operands_; ++i) {
    const Operand& operand = operand_[i];
    if (!operand.present || operand.low == operand.high) continue;
    if (operand.data == nullptr) {
      return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s must have data, but the address set is NULL", op,
                  operand.name);
    }
    if (reinterpret_cast<uintptr_t>(operand.data) % operand.alignment != 0) {
      return fail(ACLNN_ERR_PARAM_INVALID,
                  "%s: %s must be aligned to its element size %u, but the address set is %p", op,
                  operand.name, operand.alignment, static_cast<void*>(operand.data));
    }
    if (moved(operand.data, operand.high) < operand.data) {
      return fail(ACLNN_ERR_PARAM_INVALID,
                  "%s: %s must end inside the address space, but %lld bytes follow the address set "
                  "%p",
                  op, operand.name, static_cast<long long>(operand.high),
                  static_cast<void*>(operand.data));
    }
    for (int k = 0; k < operands_ && operand.role != Role::input; ++k) {
      const Operand& other = operand_[k];
      if (k == i || !other.present || other.low == other.high) continue;
      const bool apart = moved(operand.data, operand.high) <= moved(other.data, other.low) ||
                         moved(other.data, other.high) <= moved(operand.data, operand.low);
      const bool may_be_same = other.role == Role::input && !operand.apart && !other.apart;
      const bool same = may_be_same && operand.layout == other.layout &&
                        moved(operand.data, operand.offset) == moved(other.data, other.offset);
      const bool as_planned = operand.data - other.data == operand.planned - other.planned;
      if (apart || same || as_planned) continue;
      return fail(ACLNN_ERR_PARAM_INVALID,
                  may_be_same ? "%s: %s must be the same view as %s or share no memory with it, "
                                "but overlaps it at the addresses set"
                              : "%s: %s must share no memory with %s, but overlaps it at the "
                                "addresses set",
                  op, operand.name, other.name);
    }
  }
  return {};
}

void Executor::run_part(const Step& step, int64_t round, void* workspace) const {
  const int64_t items = step.items / step.rounds, first = round * items;
  parallel_for(items, step.grain, [&](int64_t begin, int64_t end) {
    const DefaultArithmetic arithmetic;
    step.kernel(call_, workspace, first + begin, first + end);
  });
}

void Executor::run(void* workspace) const {
  for (int i = 0, end = 0; i < steps_; i = end) {
    const int64_t rounds = step_[i].rounds;
    while (end < steps_ && step_[end].rounds == rounds) ++end;
    for (int64_t round = 0; round < rounds; ++round) {
      for (int k = i; k < end; ++k) run_part(step_[k], round, workspace);
    }
  }
}

void enqueue(const char* name, const Executor& executor, void* workspace, Stream& stream) {
  struct Run {
    Executor plan;
    void* workspace;
    const char* name;
  };
  auto run = std::make_unique<Run>(Run{executor, workspace, name});
  stream.submit({[](void* context) {
                   auto* now = static_cast<Run*>(context);
                   const Work work(now->name);
                   now->plan.run(now->workspace);
                 },
                 [](void* context) { delete static_cast<Run*>(context); }, run.get()});
  run.release();  // submit has it; had it thrown, we would
}

namespace {

template <bool kWatched>
Status launch_as(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
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
    tell_refused(name, thing<aclOpExecutor>(), "executor", handle);
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
  if (kWatched && plan_observer != nullptr) {
    Status status = plan_observer->inspect(name, *executor, workspace, workspace_size);
    if (!status.ok()) return status;
  }
  if (workspace_size < executor->workspace_size()) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: workspaceSize must be at least %llu as phase 1 asked for, but got %llu", name,
                static_cast<unsigned long long>(executor->workspace_size()),
                static_cast<unsigned long long>(workspace_size));
  }
  if (executor->workspace_size() > 0 &&
      reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAddressAlignment != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: workspace must be aligned to %zu bytes, but its address is %p", name,
                kWorkspaceAddressAlignment, workspace);
  }
  if (Status status = executor->check_addresses(name); !status.ok()) return status;
  Stream* stream = nullptr;
  if (Status status = find_stream(stream_handle, &stream, name); !status.ok()) {
    return prefix_newest(ACLNN_ERR_RUNTIME_ERROR, "%s: ", name);
  }
  if (kWatched && plan_observer != nullptr) {
    plan_observer->launches(name, *executor, workspace, workspace_size, *stream);
    workspace = reachable(workspace);
  }
  const auto consume = [&] {
    if (executor->repeatable) return;
    executors().destroy(executor, [&](const aclOpExecutor& consumed) {
      if (kWatched) tell_ending(name, thing<aclOpExecutor>(), &consumed);
    });
  };
  // runs here when the stream is idle; a copy is made only when it has to wait
  if (executor->brief() && executor->fits_stack()) {
    struct Inline {
      aclOpExecutor* executor;
      void* workspace;
      const char* name;
    } now{executor, workspace, name};
    const auto run_now = [](void* context) {
      auto* self = static_cast<Inline*>(context);
      std::conditional_t<kWatched, Work, const char*> work(self->name);
      self->executor->run(self->workspace);
      (void)work;
    };
    if (stream->run_if_idle(run_now, &now)) {
      consume();
      return {};
    }
  }
  enqueue(name, *executor, workspace, *stream);
  consume();
  return {};
}

[[gnu::noinline, gnu::cold]] Status launch_watched(const char* name, const void* maker,
                                                   void* workspace, uint64_t workspace_size,
                                                   aclOpExecutor* executor, void* stream) {
  return launch_as<true>(name, maker, workspace, workspace_size, executor, stream);
}

}  // namespace

Status launch(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
              aclOpExecutor* executor, void* stream) {
  if (watched) [[unlikely]] {
    return launch_watched(name, maker, workspace, workspace_size, executor, stream);
  }
  return launch_as<false>(name, maker, workspace, workspace_size, executor, stream);
}

}  // namespace openaclnn
