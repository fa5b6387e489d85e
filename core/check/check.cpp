// SPDX-License-Identifier: Apache-2.0
// Starts check mode when the library is loaded with OPENACLNN_CHECK=1, and sets the exit status at
// the end of the process.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl_rt.h"
#include "core/check/host_access.h"
#include "core/check/state.h"
#include "core/check/suppression.h"
#include "core/support/environment.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/runtime/stream.h"

namespace openaclnn {

namespace check {
namespace {

// Set while check mode itself waits for streams: such waits are not synchronisation of the program.
thread_local bool unseen = false;

void made(const char* call, ObjectKind kind, const void* handle) {
  called(call);
  if (needs_device(kind)) note_device();
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.ledger.add(kind, call, handle);
}

template <class F>
void in_order(F change) {
  if (unseen) return;
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  change(state);
}

void* obtain_seen(const char* call, size_t size, size_t reserved) {
  called(call);
  note_device();
  return obtain(call, size, reserved);
}

constexpr Observer kObserver = {
    .obtain = obtain_seen,
    .give_back = give_back,
    .reachable = reachable,
    .reserve = reserve,
    .map = map,
    .made = made,
    .ending = ending,
    .refused = refused,
    .failed = failed,
    .used = used,
    .initialised = [] { State::get().was_initialised = true, State::get().finalised = false; },
    .finalised = finalised,
    .inspect_transfer = inspect_transfer,
    .touches = touches,
    .works = works,
    .left = left,
    .dropped = dropped,
    .synchronised =
        [](const Stream* s) {
          in_order([=](State& state) {
            state.happens_before.synchronised(s);
            state.calling_back.erase(s);
          });
        },
    .recorded =
        [](const void* event, const Stream* s) {
          in_order([=](State& state) {
            state.happens_before.recorded(event, s);
            const Object* own = state.ledger.find(event);
            const bool is_object =
                own != nullptr && own->live &&
                (own->kind == ObjectKind::event || own->kind == ObjectKind::notify);
            if (!is_object) state.calling_back.insert(s);  // the point of a callback
          });
        },
    .waits =
        [](const Stream* s, const void* event) {
          in_order([=](State& state) { state.happens_before.waits(s, event); });
        },
    .reached =
        [](const void* event) {
          in_order([=](State& state) { state.happens_before.reached(event); });
        },
    .consumes =
        [](const Stream* s, const void* notify) {
          in_order([=](State& state) { state.happens_before.consumes(s, notify); });
        },
};

constexpr PlanObserver kPlanObserver = {.planned = planned,
                                        .inspect = inspect_launch,
                                        .launches = launches,
                                        .recorded = recorded,
                                        .replayed = replayed,
                                        .not_launched = not_launched,
                                        .dropped = dropped_plan};

pid_t process = 0;  // the process that loaded the library; forked children inherit its state

[[gnu::constructor]] void begin() {
  if (environment_number("OPENACLNN_CHECK", 0) == 0) return;
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

// Runs after the exit handlers and destructors of the program, so that it sees their frees.
[[gnu::destructor]] void end() {
  if (observer == nullptr) return;
  if (missed_leaks()) {
    std::fputs(State::get().was_initialised
                   ? "openaclnn check: leaks were not looked for: no aclFinalize succeeded\n"
                   : "openaclnn check: aclInit was never called, which a device needs; leaks were "
                     "not looked for\n",
               stderr);
  }
  if (mistakes_reported() == 0) return;
  print_total();
  if (exit_code() == 0) return;
  std::fflush(nullptr);
  _exit(exit_code());
}

}  // namespace

State::State() { hold_across_fork(mutex); }

State& State::get() {
  static constinit NoDestructor<State> state;
  return state.get();
}

uintptr_t block_of(uintptr_t address) {
  const void* pointer = reinterpret_cast<void*>(address);
  if (!is_device_address(pointer)) return 0;
  const Block* own = block_or_reservation_at(pointer);
  return own == nullptr ? 0 : own->begin;
}

// Creates the file named by OPENACLNN_CHECK_SEEN, for which `openaclnn check` looks.
void used() {
  static std::atomic<bool> reported = false;
  if (reported.load(std::memory_order_relaxed) || reported.exchange(true)) return;
  const char* path = std::getenv("OPENACLNN_CHECK_SEEN");
  if (path == nullptr || *path == '\0') return;
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file >= 0) close(file);
}

void drain_unseen() {
  if (Stream::running_here() != nullptr) return;  // it would wait for itself
  unseen = true;
  drain_streams([](Stream&, void*) { return true; }, nullptr);
  unseen = false;
}

}  // namespace check
}  // namespace openaclnn
