// SPDX-License-Identifier: Apache-2.0
// Where the pending failures of status.h are kept: those of each thread, of all threads, or those
// that FailuresSetAside hides.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "core/support/reason.h"
#include "core/support/status.h"

namespace openaclnn {

struct PendingFailure {
  static constexpr char kSeparator[] = ": ";

  int32_t code;
  Cause cause;
  bool mild;           // the next one takes its place
  const void* thread;  // &failing of the one that failed
  timespec time;
  size_t head;      // bytes of `text` before the sentence: the call and a separator, or 0
  char text[1000];  // all of it, as programs get it

  std::string_view call() const { return {text, head == 0 ? 0 : head - std::strlen(kSeparator)}; }
  const char* sentence() const { return text + head; }
  size_t write_head(const char* call) {
    head = 0;
    if (call == nullptr || *call == '\0') return 0;
    return head = static_cast<size_t>(snprintf(text, sizeof text, "%.200s%s", call, kSeparator));
  }
};

// If nobody asks for them, the newest kPending failures are kept.
struct PendingFailures {
  static constexpr unsigned kPending = 4;

  PendingFailure ring[kPending];
  unsigned count;  // ever recorded since they were last taken

  unsigned pending() const { return count < kPending ? count : kPending; }
  PendingFailure& newest(unsigned age) { return ring[(count - 1 - age) % kPending]; }
  PendingFailure& add(int32_t code, Cause cause, bool mild = false);
  PendingFailure* newest_of_this_thread();  // nullptr when there is none
};

struct FailureMessages {
  PendingFailures failures;
  char recent[PendingFailures::kPending * (sizeof(PendingFailure::text) + kDecoration)];
};

struct FailuresOfThread {
  // Allocated at the first failure of a thread: as thread-local storage, 9 KiB would come off the
  // stack of every thread, which may be only 16 KiB.
  FailureMessages* messages;
  PendingFailures* aside;   // those within FailuresSetAside
  int32_t last_of_runtime;  // the newest 107xxx, 207xxx or 507xxx that the outer call got
  bool unreported;          // the observer was not yet notified of the newest failure
};
extern constinit thread_local FailuresOfThread failing;

// Access to the failures that this thread sees; locked if they are shared.
class SeenFailures {
 public:
  SeenFailures();
  static bool any();  // whether there may be some
  PendingFailures* operator->() const { return failures_; }
  // The text that this thread gets, which is its own also where failures are not.
  char* recent() const;

 private:
  std::unique_lock<std::mutex> lock_;
  PendingFailures* failures_;
};

}  // namespace openaclnn
