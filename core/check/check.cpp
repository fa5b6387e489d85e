// SPDX-License-Identifier: Apache-2.0
// Check mode begins when the library is loaded with OPENACLNN_CHECK=1, and then decides about the
// exit status of the process.
#include <unistd.h>

#include <cstdio>

#include "acl/acl_rt.h"
#include "core/check/host_access.h"
#include "core/check/state.h"
#include "core/runtime/environment.h"
#include "core/runtime/fork.h"
#include "core/runtime/immortal.h"

namespace openaclnn {

namespace check {
namespace {

// While this thread waits for streams on our own account, the program has learnt nothing.
thread_local bool unseen = false;

void made(const char* call, const char* thing, const void* handle) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.ledger.add(thing, call, handle);
}

template <class F>
void in_order(F change) {
  if (unseen) return;
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  change(state.order);
}

constexpr Observer kObserver = {
    .obtain = obtain,
    .give_back = give_back,
    .reachable = reachable,
    .reserve = reserve,
    .map = map,
    .made = made,
    .ending = ending,
    .refused = refused,
    .failed = failed,
    .finalised = finalised,
    .inspect_transfer = inspect_transfer,
    .touches = touches,
    .synchronised = [](const Stream* s) { in_order([=](Order& order) { order.synchronised(s); }); },
    .recorded = [](const void* event,
                   const Stream* s) { in_order([=](Order& order) { order.recorded(event, s); }); },
    .waits = [](const Stream* s,
                const void* event) { in_order([=](Order& order) { order.waits(s, event); }); },
    .reached = [](const void* event) { in_order([=](Order& order) { order.reached(event); }); },
};

constexpr PlanObserver kPlanObserver = {
    .planned = planned, .inspect = inspect_launch, .launches = launches};

pid_t process = 0;  // that loaded the library: children have what is left from it

[[gnu::constructor]] void begin() {
  if (environment_number("OPENACLNN_CHECK", 0, 1, 0) == 0) return;
  prepare_reports();
  prepare_stacks();
  if (!prepare_allocations()) {
    std::fputs(
        "openaclnn check: there are no addresses left for device memory: nothing is checked\n",
        stderr);
    return;
  }
  State::get();
  process = getpid();
  watch_host_access();
  observer = &kObserver;
  plan_observer = &kPlanObserver;
  watched = true;
}

bool missed_leaks() {
  State& state = State::get();
  if (state.finalised || getpid() != process) return false;
  std::lock_guard lock(state.mutex);
  return !state.ledger.empty() || block_count() > 0;
}

// After the exit handlers and destructors of the program, whose frees were still seen.
[[gnu::destructor]] void end() {
  if (observer == nullptr) return;
  if (missed_leaks()) {
    std::fputs("openaclnn check: aclFinalize was not called: leaks were not looked for\n", stderr);
  }
  if (reports_told() == 0) return;
  std::fprintf(stderr, "openaclnn check: %d %s\n", reports_told(),
               reports_told() == 1 ? "mistake" : "mistakes");
  if (exit_code() == 0) return;
  std::fflush(nullptr);
  _exit(exit_code());
}

}  // namespace

State::State() { hold_across_fork(mutex); }

State& State::get() {
  static Immortal<State> state;
  return *state;
}

uintptr_t block_of(uintptr_t address) {
  const void* pointer = reinterpret_cast<void*>(address);
  if (!is_device_address(pointer)) return 0;
  const Block* own = block_or_reservation_at(pointer);
  return own == nullptr ? 0 : own->begin;
}

void drain_unseen() {
  if (Stream::running_here() != nullptr) return;  // it would wait for itself
  unseen = true;
  drain_streams([](Stream&, void*) { return true; }, nullptr);
  unseen = false;
}

}  // namespace check
}  // namespace openaclnn
