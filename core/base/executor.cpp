// SPDX-License-Identifier: Apache-2.0
#include "core/base/executor.h"

#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/support/arithmetic.h"
#include "core/memory/memory.h"
#include "core/support/observer.h"
#include "core/support/parallel.h"
#include "core/support/threads.h"

namespace openaclnn {

namespace {

// Integer arithmetic: an address from outside may be NULL, or so large that the sum wraps.
std::byte* moved(std::byte* address, int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(address) +
                                      static_cast<uintptr_t>(bytes));
}

// Size-1 dims do not affect addresses and are dropped.
void keep_view(Executor::Operand& operand, const Tensor& tensor) {
  operand.dtype = tensor.dtype;
  operand.rank = 0;
  for (int i = 0; i < tensor.shape.rank && operand.rank < kMaxRank; ++i) {
    if (tensor.shape[i] == 1) continue;
    operand.shape[operand.rank] = tensor.shape[i];
    operand.strides[operand.rank++] = tensor.strides[i];
  }
}

Tensor view_of(const void* memory, int64_t bytes) {
  Tensor view;
  view.dtype = ACL_INT8;
  view.shape.rank = view.strides.rank = 1;
  view.shape[0] = bytes;
  view.strides[0] = 1;
  view.data = const_cast<void*>(memory);
  return view;
}

bool belongs(Role role, Executor::Group group) {
  if (group == Executor::Group::inputs) return role == Role::input || role == Role::inout;
  if (group == Executor::Group::outputs) return role == Role::output || role == Role::inout;
  return true;
}

}  // namespace

HandlePool<aclOpExecutor>& executors() { return pool_of<aclOpExecutor>(size_t{1} << 20); }

void Executor::describe(Operand& operand, const char* name, const Tensor* tensor, Role role) {
  operand.name = name;
  operand.role = role;
  operand.present = tensor != nullptr;
  operand.rank = -1;
  if (tensor == nullptr) return;
  const auto size = static_cast<int64_t>(dtype_size(tensor->dtype));
  int64_t low = 0, high = 0;
  (void)element_range(*tensor, &low, &high);  // phase 1 checked it against the storage
  operand.data = operand.planned = static_cast<std::byte*>(tensor->data);
  operand.offset = low == high ? 0 : tensor->offset * size;
  operand.alignment = static_cast<uint32_t>(size);
  operand.low = low * size;
  operand.high = high * size;
}

Tensor view_of(const Executor::Operand& operand) {
  Tensor view;
  view.dtype = operand.dtype;
  view.shape.rank = view.strides.rank = operand.rank;
  std::copy_n(operand.shape, operand.rank, view.shape.at);
  std::copy_n(operand.strides, operand.rank, view.strides.at);
  view.offset = operand.offset / operand.alignment;
  view.data = operand.data;
  return view;
}

void Executor::bind(const char* name, const Tensor* tensor, Role role, void** pointer_in_call,
                    bool out_of_place) {
  Operand& operand = operand_[operands_++];
  describe(operand, name, tensor, role);
  operand.out_of_place = out_of_place;
  if (tensor == nullptr) return;
  keep_view(operand, *tensor);
  operand.pointer = static_cast<uint32_t>(reinterpret_cast<std::byte*>(pointer_in_call) - call_);
  *pointer_in_call = moved(operand.data, operand.offset);
}

void Executor::reach() {
  if (foreign_ != nullptr) return;
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

Status Executor::can_set_addresses() const {
  if (foreign_ == nullptr) return {};
  return fail(ACLNN_ERR_INNER, Reason::not_supported, nullptr,
              "the addresses of an operator that ATen computes cannot be changed; call "
              "GetWorkspaceSize again");
}

Status Executor::set_address(Group group, size_t index, void* address) {
  if (Status status = can_set_addresses(); !status.ok()) return status;
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
        return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, nullptr,
                    "tensor %zu was NULL or unused in phase 1", index);
      operand.data = static_cast<std::byte*>(address);
      void* element = reachable(moved(operand.data, operand.offset));
      std::memcpy(call_ + operand.pointer, &element, sizeof element);
      moved_ = true;
      return {};
    }
  }
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, nullptr,
              "index must be less than the number of tensors %zu, but got %zu", position, index);
}

Status Executor::check_addresses(const char* op) const {
  for (int i = 0; moved_ && i < operands_; ++i) {
    const Operand& operand = operand_[i];
    if (!operand.present || operand.low == operand.high) continue;
    if (operand.data == nullptr) {
      return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, ObjectKind::device_memory}, op,
                  "%s has no data: the address set is NULL", operand.name);
    }
    if (reinterpret_cast<uintptr_t>(operand.data) % operand.alignment != 0) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                  "%s must be aligned to its element size %u, but the address set is %p",
                  operand.name, operand.alignment, static_cast<void*>(operand.data));
    }
    if (moved(operand.data, operand.high) < operand.data) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                  "%s must end inside the address space, but %lld bytes follow the address set "
                  "%p",
                  operand.name, static_cast<long long>(operand.high),
                  static_cast<void*>(operand.data));
    }
    for (int k = 0; k < operands_ && operand.role != Role::input; ++k) {
      const Operand& other = operand_[k];
      if (k == i || !other.present || other.low == other.high) continue;
      const bool disjoint = moved(operand.data, operand.high) <= moved(other.data, other.low) ||
                            moved(other.data, other.high) <= moved(operand.data, operand.low);
      const bool as_planned = operand.data - other.data == operand.planned - other.planned;
      if (disjoint || as_planned) continue;
      const bool may_be_same =
          other.role == Role::input && !operand.out_of_place && !other.out_of_place;
      const Tensor view = view_of(operand), its_view = view_of(other);
      if (may_be_same && same_view(view, its_view)) continue;
      if (!views_overlap(view, its_view)) continue;
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                  may_be_same ? "%s must be the same view as %s or share no memory with it, "
                                "but overlaps it at the addresses set%s"
                              : "%s must share no memory with %s, but overlaps it at the "
                                "addresses set%s",
                  operand.name, other.name,
                  SpansText(operand.name, view, other.name, its_view).text);
    }
  }
  return {};
}

Status Executor::check_workspace(const char* op, void* workspace, uint64_t size) const {
  if (size < workspace_size_) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                "workspaceSize must be at least %llu as phase 1 asked for, but got %llu",
                static_cast<unsigned long long>(workspace_size_),
                static_cast<unsigned long long>(size));
  }
  if (workspace_size_ == 0) return {};
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAddressAlignment != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                "workspace must be aligned to %zu bytes, but its address is %p",
                kWorkspaceAddressAlignment, workspace);
  }
  const size_t behind = bytes_behind(workspace);  // 0: not memory of aclrtMalloc
  if (behind != 0 && behind < workspace_size_) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                "workspace must have the %llu bytes that phase 1 asked for, but the allocation "
                "of %p has %zu left",
                static_cast<unsigned long long>(workspace_size_), workspace, behind);
  }
  for (int i = 0; i < operands_; ++i) {
    if (!operand_[i].meets(workspace, workspace_size_)) continue;
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op,
                "workspace must share no memory with %s, but overlaps it", operand_[i].name);
  }
  return {};
}

bool Executor::Operand::meets(const void* memory, uint64_t bytes) const {
  if (!present || low == high) return false;
  // Relative to the data of the operand.
  const __int128 begin = static_cast<__int128>(reinterpret_cast<uintptr_t>(memory)) -
                         static_cast<__int128>(reinterpret_cast<uintptr_t>(data));
  if (begin + static_cast<__int128>(bytes) <= low || high <= begin) return false;
  if (rank < 0 || bytes > INT64_MAX) return true;
  return views_overlap(view_of(*this), view_of(memory, static_cast<int64_t>(bytes)));
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

void Executor::run_with_enough_stack(void* workspace) const {
  if (fits_stack()) return run(workspace);
  std::thread roomy;
  if (!start_thread(roomy, [&] { run(workspace); })) throw std::bad_alloc();
  roomy.join();
}

}  // namespace openaclnn
