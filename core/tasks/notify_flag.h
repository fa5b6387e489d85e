// SPDX-License-Identifier: Apache-2.0
// What a notification holds: a flag that is set once for each stream that waits, in this process or
// in memory that processes share.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/support/api_guard.h"
#include "core/support/shared_file.h"
#include "core/runtime/stream.h"

namespace openaclnn {

class NotifyFlag {
 public:
  NotifyFlag() = default;
  explicit NotifyFlag(std::shared_ptr<SharedFile> file) : file_(std::move(file)) {}

  // Moves it to memory that other processes reach; fails while a stream waits.
  Status share(const char* call, bool any_process, std::shared_ptr<SharedFile>* file) {
    std::lock_guard lock(mutex_);
    if (file_ == nullptr && !waiters_.empty()) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
                  "a stream waits for notify already; export it before the first wait");
    }
    if (file_ == nullptr) {
      if (Status status = SharedFile::create(call, SharedKind::notify, 0, any_process, &file_);
          !status.ok())
        return status;
      file_->header().word = is_set_;
    }
    *file = file_;
    return {};
  }
  std::shared_ptr<SharedFile> file() {
    std::lock_guard lock(mutex_);
    return file_;
  }

  void set() {
    OneShotEvent* first = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (file_ != nullptr) {
        file_->header().word.store(1, std::memory_order_release);
        return;
      }
      if (waiters_.empty()) {
        is_set_ = true;
        return;
      }
      first = waiters_.front();
      waiters_.pop_front();
      // Under the lock: a waiter whose time is over looks here before its event ends.
      first->signal();
    }
  }

  void clear() {
    std::lock_guard lock(mutex_);
    is_set_ = false;
    if (file_ != nullptr) file_->header().word = 0;
  }

  // For a task of the stream: waits until it is set, and clears it.
  Stream::Waited wait(Stream& stream, Deadline deadline) {
    OneShotEvent own;
    std::shared_ptr<SharedFile> shared;
    {
      std::lock_guard lock(mutex_);
      shared = file_;
      if (shared == nullptr && is_set_) {
        is_set_ = false;
        return Stream::Waited::signalled;
      }
      if (shared == nullptr) waiters_.push_back(&own);
    }
    if (shared != nullptr) {  // another process may set it, and announces nothing
      const auto take = [](void* word) {
        return static_cast<std::atomic<uint32_t>*>(word)->exchange(0) != 0;
      };
      return stream.poll_here(take, &shared->header().word, deadline);
    }
    const Stream::Waited waited = stream.wait_here(own, deadline);
    std::lock_guard lock(mutex_);
    if (own.is_set()) return Stream::Waited::signalled;
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &own));
    return waited;
  }

 private:
  std::mutex mutex_;
  bool is_set_ = false;
  std::shared_ptr<SharedFile> file_;   // of one that processes share
  std::deque<OneShotEvent*> waiters_;  // in the order in which they began to wait
};

}  // namespace openaclnn
