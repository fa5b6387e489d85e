// SPDX-License-Identifier: Apache-2.0
// Queues of bytes, found by their number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "acl/acl_tdt_queue.h"
#include "core/acl/tdt.h"

namespace openaclnn {

struct QueueMessage {
  std::vector<char> data, user_data;
};

struct TdtQueue : BoundedQueue<QueueMessage> {
  TdtQueue(std::string its_name, uint32_t depth) : BoundedQueue(depth), name(std::move(its_name)) {}
  const std::string name;  // "": none
};

struct TdtQueues {
  TdtQueues();
  static TdtQueues& get();

  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<TdtQueue>> queues;
  uint32_t last = 0;
};

// nullptr, with a sentence, for an unknown number.
Status find_queue(const char* call, const char* argument, uint32_t number,
                  std::shared_ptr<TdtQueue>* queue);

// Ends the routes from and to the queue.
void unbind_queue(uint32_t number);

}  // namespace openaclnn
