// SPDX-License-Identifier: Apache-2.0
// Reports tensors and workspaces in memory that the executor must not access.
#include <utility>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/check/state.h"

namespace openaclnn::check {
namespace {

constexpr const char* kWorkspace = "workspace";

const PlannedTensor* planned_tensor(const aclOpExecutor& executor, const char* name) {
  const auto plan = State::get().plans.find(&executor);
  if (plan == State::get().plans.end()) return nullptr;
  for (const PlannedTensor& tensor : plan->second) {
    if (std::strcmp(tensor.name, name) == 0) return &tensor;
  }
  return nullptr;
}

// Returns a copy, since other threads may plan meanwhile.
PlannedTensor tensor_of(const aclOpExecutor& executor, const char* name) {
  std::lock_guard lock(State::get().mutex);
  const PlannedTensor* tensor = planned_tensor(executor, name);
  return tensor == nullptr ? PlannedTensor{name, nullptr, nullptr, {}} : *tensor;
}

size_t storage_bytes(const PlannedTensor& tensor) {
  int64_t count = 0;
  if (tensor.view == nullptr || !element_count(tensor.view->storage, &count)) return 0;
  return static_cast<size_t>(count) * dtype_size(tensor.view->dtype);
}

Status report_freed(const char* op, const char* name, const void* data,
                    const PlannedTensor& tensor) {
  Report report("use_after_free");
  report.what.add(op).add(" would work on ").add(name).add(" at ").pointer(data);
  report.what.add(", memory that was freed.");
  report.at("here", op, stack_here());
  if (tensor.made_by != nullptr) report.at("tensor made by", tensor.made_by, tensor.made);
  add_memory(report, reinterpret_cast<uintptr_t>(data));
  report.advice = "free memory after the streams that use it were synchronised for the last time.";
  emit(report);
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op, "the memory of %s at %p was freed",
              name, data);
}

void report_outside(const char* op, const Executor::Operand& operand, const Block& own,
                    const PlannedTensor& tensor, bool view) {
  const auto data = reinterpret_cast<uintptr_t>(operand.data);
  Report report("view_outside_allocation");
  report.what.add(op).add(" got ").add(operand.name).add(", whose ");
  report.what.add(view ? "view" : "storage");
  report.what.add(" spans bytes ").signed_number(view ? operand.low : 0).add(" to ");
  report.what.number(view ? static_cast<uint64_t>(operand.high) : storage_bytes(tensor));
  report.what.add(" from ").hex(data).add(", but the allocation there has ");
  report.what.number(own.bytes_left(data)).add(" bytes left.");
  report.at("here", op, stack_here());
  if (tensor.made_by != nullptr) report.at("tensor made by", tensor.made_by, tensor.made);
  add_memory(report, data);
  report.advice =
      "allocate what the storage shape needs, times the size of an element, from the address on.";
  emit(report);
}

// Works here only because all memory is host memory.
void report_host_memory(const char* op, const char* name, const void* data,
                        const PlannedTensor& tensor) {
  Report report("not_device_memory");
  report.what.add(op).add(" would work on ").add(name).add(" at ").pointer(data);
  report.what.add(", which is memory of the host: a device cannot reach it.");
  report.at("here", op, stack_here());
  if (tensor.made_by != nullptr) report.at("tensor made by", tensor.made_by, tensor.made);
  report.advice =
      is_called_from(report.site[0].stack, "libtorch")
          ? "move the tensor to the device first: x.npu(), or device=\"npu\" where it is made."
          : "give tensors and workspace the address of aclrtMalloc, and copy data there with "
            "aclrtMemcpy.";
  emit(report);
}

Status check_operand(const char* op, const aclOpExecutor& executor,
                     const Executor::Operand& operand) {
  if (!is_device_address(operand.data)) {
    report_host_memory(op, operand.name, operand.data, tensor_of(executor, operand.name));
    return {};
  }
  const PlannedTensor tensor = tensor_of(executor, operand.name);
  const auto data = reinterpret_cast<uintptr_t>(operand.data);
  const Block* own = block_at(operand.data);
  if (own == nullptr || (!own->live && data < own->begin + own->pages)) {
    return report_freed(op, operand.name, operand.data, tensor);
  }
  if (own->is_reservation()) {
    return report_not_mapped(ACLNN_ERR_PARAM_INVALID, op, operand.name, operand.data);
  }
  const size_t room = own->bytes_left(data), storage = storage_bytes(tensor);
  const auto is_outside = [&](size_t end) { return static_cast<size_t>(operand.high) > end; };
  const bool view = operand.low < 0 || is_outside(room);
  if (!view && storage <= room) return {};
  report_outside(op, operand, *own, tensor, view);
  // Bytes reserved by rounding up are accessible; those beyond are not.
  const size_t reserved = own->reserved_left(data);
  if (operand.low >= 0 && !is_outside(reserved) && storage <= reserved) return {};
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
              "%s must stay inside its allocation of %zu bytes, but reaches outside", operand.name,
              own->size);
}

// The arguments of phase 1 must stay until phase 2 has returned. The executor here has copies.
void check_tensors_alive(const char* op, const aclOpExecutor& executor) {
  struct Ended {
    PlannedTensor tensor;
    Object object;
  };
  std::vector<Ended> all;
  {
    State& state = State::get();
    std::lock_guard lock(state.mutex);
    const auto plan = state.plans.find(&executor);
    if (plan == state.plans.end()) return;
    for (const PlannedTensor& tensor : plan->second) {
      if (tensor.made_by == nullptr) continue;
      const Object* object = state.ledger.find(tensor.handle);
      const bool same = object != nullptr && object->number == tensor.number;
      if (!same || !object->live) all.push_back({tensor, same ? *object : Object{}});
    }
  }
  for (const Ended& ended : all) {
    Report report("use_after_destroy");
    report.what.add(op).add(" runs with ").add(ended.tensor.name).add(" ");
    report.what.pointer(ended.tensor.handle);
    report.what.add(", an aclTensor that was destroyed after phase 1.");
    report.at("here", op, stack_here());
    report.at("made by", ended.tensor.made_by, ended.tensor.made);
    if (ended.object.ended_by != nullptr) {  // else another object has this handle by now
      report.at("destroyed by", ended.object.ended_by, ended.object.ended);
    }
    report.advice =
        "destroy the arguments of phase 1 after phase 2 has returned; a device may read them until "
        "then.";
    emit(report);
  }
}

Status check_workspace(const char* op, const aclOpExecutor& executor, const void* workspace,
                       uint64_t size) {
  const uint64_t needed = executor.workspace_size();
  const auto at = reinterpret_cast<uintptr_t>(workspace);
  const Block* own = nullptr;
  if (size > 0 && !is_device_address(workspace)) {
    report_host_memory(op, kWorkspace, workspace, {kWorkspace, nullptr, nullptr, {}});
  } else if (size > 0) {
    own = block_at(workspace);
    if (own == nullptr || (!own->live && at < own->begin + own->pages)) {
      return report_freed(op, kWorkspace, workspace, {kWorkspace, nullptr, nullptr, {}});
    }
    if (own->is_reservation()) {
      return report_not_mapped(ACLNN_ERR_PARAM_INVALID, op, kWorkspace, workspace);
    }
  }
  const uint64_t room = own == nullptr ? size : own->bytes_left(at);
  if (size >= needed && room >= size) return {};
  Report report("workspace_too_small");
  report.what.add(op).add(" needs ").number(needed).add(" bytes of workspace, but ");
  if (size < needed) {
    report.what.add("workspaceSize says ").number(size).add(".");
  } else if (room < needed) {
    report.what.add("the allocation has ").number(room).add(" left at workspace.");
  } else {
    report.what.add("workspaceSize says ").number(size).add(" and the allocation has ");
    report.what.number(room).add(" left at workspace.");
  }
  report.at("here", op, stack_here());
  add_memory(report, at);
  report.advice = "allocate the workspaceSize that phase 1 of the same call returned.";
  emit(report);
  const uint64_t reserved = own == nullptr ? size : own->reserved_left(at);
  if (size >= needed && reserved >= size) return {};  // rounding up has reserved it
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
              "workspace must have %llu bytes, but has %llu",
              static_cast<unsigned long long>(size < needed ? needed : size),
              static_cast<unsigned long long>(size < needed ? size : room));
}

void check_workspace_overlap(const char* op, const Executor::Operand& operand,
                             const void* workspace, uint64_t size) {
  if (!operand.meets(workspace, size)) return;
  const auto begin = reinterpret_cast<uintptr_t>(workspace);
  const uintptr_t low =
      reinterpret_cast<uintptr_t>(operand.data) + static_cast<uintptr_t>(operand.low);
  Report report("workspace_overlap");
  report.what.add(op).add(" got a workspace of ").number(size).add(" bytes at ").hex(begin);
  report.what.add(" that overlaps ").add(operand.name).add(" at ").hex(low).add(".");
  report.at("here", op, stack_here());
  add_memory(report, low);
  report.advice =
      "use the memory of the workspace for nothing else until the stream was synchronised.";
  emit(report);
}

}  // namespace

void planned(const char* op, const aclOpExecutor& executor, const NamedTensor* tensors, int count) {
  called(op);
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  const char* call = state.names.insert(std::string(op) + "GetWorkspaceSize").first->c_str();
  state.ledger.add(ObjectKind::executor, call, &executor);
  state.not_launched.erase(&executor);  // an earlier executor at this address
  std::vector<PlannedTensor>& plan = state.plans[&executor];
  plan.clear();
  for (int i = 0; i < count; ++i) {
    const Object* object = state.ledger.find(tensors[i].tensor);
    PlannedTensor tensor{
        tensors[i].name, std::make_shared<Tensor>(*tensors[i].tensor), nullptr, {}};
    if (object != nullptr) {
      tensor.made_by = object->call, tensor.made = object->made;
      tensor.handle = tensors[i].tensor, tensor.number = object->number;
    }
    plan.push_back(std::move(tensor));
  }
}

Status inspect_launch(const char* op, const aclOpExecutor& executor, const void* workspace,
                      uint64_t workspace_size) {
  called(op);
  check_tensors_alive(op, executor);
  Status status;
  executor.for_each_operand([&](const Executor::Operand& operand) {
    if (status.ok()) status = check_operand(op, executor, operand);
  });
  if (status.ok()) status = check_workspace(op, executor, workspace, workspace_size);
  if (!status.ok() || workspace_size == 0) return status;
  executor.for_each_operand([&](const Executor::Operand& operand) {
    check_workspace_overlap(op, operand, workspace, workspace_size);
  });
  return {};
}

}  // namespace openaclnn::check
