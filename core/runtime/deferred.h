// SPDX-License-Identifier: Apache-2.0
// Ends what the work of streams and the tasks of graphs may still use, memory mostly, once that
// work and those graphs have ended. A program that frees memory under queued work, or executes a
// graph after it freed memory of its tasks, has made a mistake (check mode reports it), which must
// not kill the process. Waiting instead would be a deadlock where the work waits for the host.
//
// Which memory a task uses is unknown here: a graph keeps what was made before its last task was
// recorded. So what a program allocates and frees later is not kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

namespace openaclnn {

class Deferred {
 public:
  Deferred() = default;
  Deferred(const Deferred&) = delete;
  virtual ~Deferred() = default;

 private:
  friend void defer(Deferred* deferred, uint64_t made);

  virtual void end() = 0;
  static void leave(void* deferred);  // the last one to leave ends it

  std::atomic<uint32_t> inside_ = 1;  // tasks of streams and graphs it waits for, and defer()
};

// How many tasks graphs have recorded: the time at which memory was made.
extern std::atomic<uint64_t> tasks_recorded;

// Whether a stream has work, or a graph has tasks, that may use memory made then; 0: made early.
bool may_be_used(uint64_t made = 0);

// Calls end() and deletes it once the work and the graphs have ended that there are now. Takes
// ownership.
void defer(Deferred* deferred, uint64_t made);

// Calls end() once the work and the graphs have ended that may use what was made then; at once if
// there are none. Out of memory or threads otherwise, it never does.
template <class End>
void after_last_use(End end, uint64_t made = 0) {
  if (!may_be_used(made)) return end();
  struct Ends final : Deferred {
    explicit Ends(End its) : end_(std::move(its)) {}
    void end() override { end_(); }
    End end_;
  };
  if (auto* deferred = new (std::nothrow) Ends(std::move(end)); deferred != nullptr) {
    defer(deferred, made);
  }
}

}  // namespace openaclnn
