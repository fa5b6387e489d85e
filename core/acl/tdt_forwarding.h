// SPDX-License-Identifier: Apache-2.0
// One route at work: a thread that takes messages from a queue and gives them to another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "core/acl/tdt_queue.h"

namespace openaclnn {

class Forwarding {
 public:
  Forwarding(uint32_t source, uint32_t destination, std::shared_ptr<TdtQueue> from,
             std::shared_ptr<TdtQueue> to)
      : source_(source), destination_(destination), from_(std::move(from)), to_(std::move(to)) {
    thread_ = std::thread([this] { forward(); });
  }
  ~Forwarding() {
    stopping_ = true;
    thread_.join();
  }

  bool is(uint32_t source, uint32_t destination) const {
    return source_ == source && destination_ == destination;
  }
  uint32_t source() const { return source_; }
  uint32_t destination() const { return destination_; }

 private:
  void forward() {
    constexpr int64_t kLook = 10;  // milliseconds
    while (!stopping_) {
      QueueMessage message;
      const auto take = [&](QueueMessage& first) {
        message = std::move(first);
        return true;
      };
      const QueueResult taken = from_->pop(Deadline::in_milliseconds(kLook), take);
      if (taken == QueueResult::stopped) return;
      QueueResult given = taken == QueueResult::done ? QueueResult::full : QueueResult::done;
      while (given == QueueResult::full && !stopping_)
        given = to_->push(message, Deadline::in_milliseconds(kLook));
      if (given == QueueResult::stopped) return;
    }
  }

  const uint32_t source_, destination_;
  const std::shared_ptr<TdtQueue> from_, to_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace openaclnn
