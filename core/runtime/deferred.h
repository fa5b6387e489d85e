// SPDX-License-Identifier: Apache-2.0
// Ends what the work of streams may still use, memory mostly, once that work has ended. A program
// that frees memory under queued work has made a mistake (check mode reports it), which must not
// kill the process. Waiting instead would be a deadlock where the work waits for the host.
#pragma once

#include <atomic>
#include <new>
#include <utility>

namespace openaclnn {

class Deferred {
 public:
  Deferred() = default;
  Deferred(const Deferred&) = delete;
  virtual ~Deferred() = default;

 private:
  friend void defer(Deferred* deferred);

  virtual void end() = 0;
  static void leave(void* deferred);  // the last one to leave ends it

  std::atomic<uint32_t> inside_ = 1;  // tasks of streams that it waits for, and defer()
};

// Whether any stream has work that may use memory.
bool work_is_queued();

// Calls end() and deletes it once the work has ended that streams have now. Takes ownership.
void defer(Deferred* deferred);

// Calls end() once the work has ended that all streams have now; at once if there is none. Out of
// memory or threads while work is queued, it never does.
template <class End>
void after_queued_work(End end) {
  if (!work_is_queued()) return end();
  struct Ends final : Deferred {
    explicit Ends(End its) : end_(std::move(its)) {}
    void end() override { end_(); }
    End end_;
  };
  if (auto* deferred = new (std::nothrow) Ends(std::move(end)); deferred != nullptr) {
    defer(deferred);
  }
}

}  // namespace openaclnn
