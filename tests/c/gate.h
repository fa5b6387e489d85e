// SPDX-License-Identifier: Apache-2.0
// A gate is work of a stream that lasts until the test opens it: a callback that waits, on its
// own thread.
//
//   Gate gate(stream);   // everything submitted from here on has to wait
//   gate.open();
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "check.h"

class Gate {
 public:
  explicit Gate(aclrtStream stream) : stream_(stream) {
    std::unique_lock lock(mutex_);
    thread_ = std::thread([this] { serve(); });
    wake_.wait(lock, [this] { return id_ != 0; });
    lock.unlock();
    CHECK_EQ(aclrtSubscribeReport(id_, stream_), 0);
    CHECK_EQ(aclrtLaunchCallback(hold, this, ACL_CALLBACK_BLOCK, stream_), 0);
  }
  ~Gate() {
    open();
    CHECK_EQ(aclrtSynchronizeStream(stream_), 0);
    CHECK_EQ(aclrtUnSubscribeReport(id_, stream_), 0);
    thread_.join();
  }
  Gate(const Gate&) = delete;

  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    wake_.notify_all();
  }

 private:
  static void hold(void* own) {
    auto* gate = static_cast<Gate*>(own);
    std::unique_lock lock(gate->mutex_);
    gate->wake_.wait(lock, [gate] { return gate->open_; });
  }
  void serve() {
    {
      std::lock_guard lock(mutex_);
      id_ = static_cast<uint64_t>(pthread_self());
      wake_.notify_all();
    }
    while (true) {
      const aclError code = aclrtProcessReport(1);
      if (code == 100035 && done_) break;
      if (code == 0) done_ = true;
      if (code != 0 && code != 100036) std::this_thread::yield();
    }
  }

  aclrtStream stream_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool open_ = false;
  bool done_ = false;  // of the serving thread
  uint64_t id_ = 0;
  std::thread thread_;
};
