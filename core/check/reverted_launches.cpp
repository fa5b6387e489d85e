// SPDX-License-Identifier: Apache-2.0
// Undoes the records of a launch: outputs left unwritten, work that never ran, plans that phase 2
// refused.
#include "core/check/state.h"

namespace openaclnn::check {
namespace {

constexpr size_t kMostDropped = 1024;

// Under the lock of the state.
void note_dropped(State& state, const char* call, const char* argument, uintptr_t low,
                  uintptr_t high, const Stack& here) {
  if (state.dropped.size() == kMostDropped) return;
  Access& access = state.dropped.emplace_back();
  access.call = call;
  access.argument = argument;
  access.low = low;
  access.high = high;
  access.stack = here;
}

}  // namespace

void left(const void* reachable, size_t bytes) {
  const uintptr_t low = address_of_program(reachable);
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.initialised.restore(low, low + bytes);
}

void dropped(const char* call, const Range& range) {
  const Stack here = stack_here();
  const auto low = reinterpret_cast<uintptr_t>(range.address);
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.initialised.unmark(low, low + range.bytes);
  note_dropped(state, call, range.argument, low, low + range.bytes, here);
}

void dropped_plan(const char* op, const Executor& plan) {
  const Stack here = stack_here();
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  plan.for_each_operand([&](const Executor::Operand& operand) {
    if (operand.role == Role::input) return;
    const auto data = reinterpret_cast<uintptr_t>(operand.data);
    const uintptr_t low = data + static_cast<uintptr_t>(operand.low);
    const uintptr_t high = data + static_cast<uintptr_t>(operand.high);
    if (operand.rank >= 0) {
      state.initialised.unmark(view_of(operand));
    } else {  // not bound: a plan of another library
      state.initialised.restore(low, high);
    }
    note_dropped(state, op, operand.name, low, high, here);
  });
}

void not_launched(const void* executor) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  if (state.plans.count(static_cast<const aclOpExecutor*>(executor)) != 0)
    state.not_launched.insert(executor);
}

void forget_dropped(State& state, uintptr_t low, uintptr_t high) {
  std::erase_if(state.dropped,
                [=](const Access& access) { return low <= access.low && access.high <= high; });
}

}  // namespace openaclnn::check
