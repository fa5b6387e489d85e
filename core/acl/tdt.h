// SPDX-License-Identifier: Apache-2.0
// What channels send, and a bounded queue between threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/acl_tdt.h"
#include "core/support/handles.h"
#include "core/support/status.h"
#include "core/support/waiting.h"

struct acltdtDataItem {
  acltdtTensorType type = ACL_TENSOR_DATA_UNDEFINED;
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> dims;
  void* data = nullptr;
  size_t size = 0;
  bool is_received = false;
  std::shared_ptr<char[]> copy;  // what `data` points to if it was received
};

struct acltdtDataset {
  std::vector<acltdtDataItem*> items;
  bool is_received = false;  // owns its items
};

namespace openaclnn {

HandlePool<acltdtDataItem>& tdt_items();
HandlePool<acltdtDataset>& tdt_datasets();

enum class QueueResult { done, full, empty, stopped };

// Values in order, at most `capacity` of them.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  QueueResult push(T value, Deadline deadline) {
    std::unique_lock lock(mutex_);
    const bool room =
        deadline.wait(changed_, lock, [&] { return stopped_ || values_.size() < capacity_; });
    if (stopped_) return QueueResult::stopped;
    if (!room) return QueueResult::full;
    values_.push_back(std::move(value));
    changed_.notify_all();
    return QueueResult::done;
  }

  // take(value) may refuse the first value, which then stays: it returns a bool.
  template <class F>
  QueueResult pop(Deadline deadline, F take) {
    std::unique_lock lock(mutex_);
    const bool any = deadline.wait(changed_, lock, [&] { return stopped_ || !values_.empty(); });
    if (stopped_) return QueueResult::stopped;
    if (!any) return QueueResult::empty;
    if (take(values_.front())) {
      values_.pop_front();
      changed_.notify_all();
    }
    return QueueResult::done;
  }

  void stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  void clear() {
    std::lock_guard lock(mutex_);
    values_.clear();
    changed_.notify_all();
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool stopped_ = false;
};

// The status of a result; `what` is a channel or a queue.
Status queue_status(const char* call, QueueResult result, const char* what);
// In milliseconds; -1: no limit, 0: none.
Status check_queue_timeout(const char* call, int32_t timeout);

}  // namespace openaclnn
