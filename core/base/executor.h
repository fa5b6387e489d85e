// SPDX-License-Identifier: Apache-2.0
// The executor is the plan: what phase 1 decided, as plain data plus addresses. Phase 2 decides
// nothing.
//
//   auto& call = executor.emplace_call<ElementwiseCall>();        // phase 1 fills the call …
//   executor.bind("self", tensor, Role::input, &call.operand[0].data);  // … and names its pointers
//   executor.add_step(kernel, items, grain);
//   executor.run(workspace);                                      // phase 2: kernel(&call,
//   workspace, begin, end)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "acl/acl_base_rt.h"
#include "core/base/parameter.h"
#include "core/base/tensor.h"
#include "core/support/fork.h"
#include "core/support/handles.h"
#include "core/support/status.h"

namespace openaclnn {

// One step of a plan: items [0, items) in any order and on any thread.
using Kernel = void (*)(const void* call, void* workspace, int64_t begin, int64_t end);

class Executor {
 public:
  struct Operand {
    const char* name;
    std::byte* data;     // storage base
    std::byte* planned;  // data in phase 1
    int64_t offset;      // bytes from data to element (0, …, 0)
    int64_t low, high;   // range of bytes from data that the view spans
    uint32_t pointer;    // offset in call_ of the pointer to element (0, …, 0)
    uint32_t alignment;
    Role role;
    bool present;
    bool out_of_place;  // must not share memory with an output
    // The view of a bound tensor; rank -1: not bound.
    aclDataType dtype;
    int rank;
    int64_t shape[kMaxRank], strides[kMaxRank];

    // Whether an element lies in these bytes. Approximated by the span of the view if the search
    // would be long or the tensor is not bound.
    bool meets(const void* memory, uint64_t bytes) const;
  };

  // Work of another library (core/ops/foreign.h), with any number of tensors.
  struct Foreign {
    virtual ~Foreign() = default;
    std::vector<Operand> operands;
    bool moves = false;  // only moves values of its inputs
  };

  explicit Executor(const void* maker) : maker_(maker) {}

  const void* maker() const { return maker_; }  // identity of the operator whose phase 1 made it
  uint64_t workspace_size() const { return workspace_size_; }

  // ---- phase 1 ----
  template <class Call>
  Call& emplace_call() {
    static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= kCallBytes &&
                  alignof(Call) <= 16);
    return *new (call_) Call;
  }
  // Binds the call's pointer to element (0, …, 0) of a tensor. A missing optional tensor (NULL)
  // keeps its index. `out_of_place`: must not share memory with an output.
  void bind(const char* name, const Tensor* tensor, Role role, void** pointer_in_call,
            bool out_of_place = false);
  void reach();  // updates the call's pointers to reachable addresses (observer.h)
  // Consecutive steps with several rounds alternate: in each round, every step runs an equal part
  // of its items, in order.
  void add_step(Kernel kernel, int64_t items, int64_t grain, int64_t rounds = 1);
  void estimate(int64_t nanoseconds);  // estimated cost of a run: brief work may run inline
  void need_stack(size_t bytes);       // of a run, if large
  uint64_t book(uint64_t bytes);       // 64-byte aligned offset into the workspace
  // The operands belong to the work, which the plan and its copies share.
  void hold(std::shared_ptr<const Foreign> work) { foreign_ = std::move(work); }
  bool is_foreign() const { return foreign_ != nullptr; }
  bool moves() const { return foreign_ != nullptr && foreign_->moves; }
  static void describe(Operand& operand, const char* name, const Tensor* tensor, Role role);

  // ---- between the phases (aclSet…TensorAddr) ----
  enum class Group { inputs, outputs, all };
  Status can_set_addresses() const;
  Status set_address(Group group, size_t index, void* address);

  // ---- phase 2 ----
  // Checks that the workspace is large enough, as far as its size is known, and overlaps no tensor.
  Status check_workspace(const char* op, void* workspace, uint64_t size) const;
  // After set_address: outputs must still overlap inputs in full or not at all.
  Status check_addresses(const char* op) const;
  void run(void* workspace) const;
  // Runs on this thread or, if its stack is too small, on a new one.
  void run_with_enough_stack(void* workspace) const;
  bool brief() const { return nanoseconds_ <= kBriefNanoseconds; }
  bool fits_stack() const;  // of the calling thread

  // Calls see(Operand) for every tensor that has elements: a run touches these.
  template <class F>
  void for_each_operand(F see) const {
    const Operand* first = foreign_ != nullptr ? foreign_->operands.data() : operand_;
    const size_t count = foreign_ != nullptr ? foreign_->operands.size() : operand_count();
    for (size_t i = 0; i < count; ++i) {
      if (first[i].present && first[i].low < first[i].high) see(first[i]);
    }
  }

  bool repeatable = false;  // otherwise phase 2 consumes it

 private:
  static constexpr size_t kCallBytes = 1024;
  static constexpr int kMaxOperands = 16;
  static constexpr int kMaxSteps = 6;
  static constexpr int64_t kBriefNanoseconds = 10'000;  // the cost of waking a worker

  struct Step {
    Kernel kernel;
    int64_t items, grain, rounds;
  };

  size_t operand_count() const { return static_cast<size_t>(operands_); }
  void run_part(const Step& step, int64_t round, void* workspace) const;

  const void* maker_;
  uint64_t workspace_size_ = 0;
  int64_t nanoseconds_ = 0;
  size_t stack_ = 0;
  int operands_ = 0;
  int steps_ = 0;
  bool moved_ = false;  // an address was set after phase 1
  Operand operand_[kMaxOperands];
  Step step_[kMaxSteps];
  alignas(16) std::byte call_[kCallBytes];
  std::shared_ptr<const Foreign> foreign_;  // of most plans nullptr
};

// The view of a bound operand at its current address.
Tensor view_of(const Executor::Operand& operand);

}  // namespace openaclnn

struct aclOpExecutor : openaclnn::Executor {
  using Executor::Executor;
};

namespace openaclnn {

HandlePool<aclOpExecutor>& executors();

inline constexpr size_t kWorkspaceAlignment = 64;  // of what is booked in it
// The alignment of its address: kernels keep fp64 sums, fp32 values and 64-bit atomics there, and
// nothing larger is read or written as one object. aclrtMalloc gives 64, malloc 16.
inline constexpr size_t kWorkspaceAddressAlignment = 8;

}  // namespace openaclnn
