// SPDX-License-Identifier: Apache-2.0
// Channels: bounded queues of datasets between threads of this process. Handles of one name share a
// queue.
#include <cstring>
#include <map>
#include <string>

#include "core/acl/description.h"
#include "core/acl/tdt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

namespace {

// A dataset on its way, with copies of the data.
using Message = std::vector<acltdtDataItem>;
using MessageQueue = openaclnn::BoundedQueue<Message>;

}  // namespace

struct acltdtChannelHandle {
  std::shared_ptr<MessageQueue> queue;
};

using namespace openaclnn;

namespace {

constexpr size_t kLeastCapacity = 2, kMostCapacity = 8192, kUsualCapacity = 128;

HandlePool<acltdtChannelHandle>& channels() { return pool_of<acltdtChannelHandle>(1 << 12); }

struct ChannelNames {
  ChannelNames() { hold_across_fork(mutex); }

  static ChannelNames& get() {
    static constinit NoDestructor<ChannelNames> names;
    return names.get();
  }

  std::mutex mutex;
  std::map<std::pair<uint32_t, std::string>, std::weak_ptr<MessageQueue>> queues;
};

acltdtChannelHandle* create_channel(const char* call, uint32_t device, const char* name,
                                    size_t capacity) {
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> acltdtChannelHandle* {
    Status status = not_null(call, "name", name);
    if (status.ok()) status = check_device(call, "deviceId", static_cast<int32_t>(device));
    if (status.ok() && (capacity < kLeastCapacity || capacity > kMostCapacity)) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "capacity must be in [%zu, %zu], but got %zu", kLeastCapacity, kMostCapacity,
                    capacity);
    }
    if (!status.ok()) return status.null();
    ChannelNames& names = ChannelNames::get();
    std::lock_guard lock(names.mutex);
    std::weak_ptr<MessageQueue>& known = names.queues[{device, name}];
    std::shared_ptr<MessageQueue> queue = known.lock();
    if (queue == nullptr) known = queue = std::make_shared<MessageQueue>(capacity);
    acltdtChannelHandle* made = channels().create(acltdtChannelHandle{queue});
    if (made != nullptr) return made;
    return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live channels").null();
  });
}

Status find_channel(const char* call, const acltdtChannelHandle* handle,
                    std::shared_ptr<MessageQueue>* queue) {
  HandlePool<acltdtChannelHandle>::Hold found;
  const Status status = find_object(channels(), call, "handle", handle, &found);
  if (status.ok()) *queue = found->queue;
  return status;
}

Status find_empty_dataset(const char* call, const acltdtDataset* handle,
                          HandlePool<acltdtDataset>::Hold* dataset) {
  Status status = find_object(tdt_datasets(), call, "dataset", handle, dataset);
  if (!status.ok() || (*dataset)->items.empty()) return status;
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "dataset must be empty, but has %zu items", (*dataset)->items.size());
}

Status copy_dataset(const char* call, const acltdtDataset* handle, Message* message) {
  HandlePool<acltdtDataset>::Hold dataset;
  Status status = find_object(tdt_datasets(), call, "dataset", handle, &dataset);
  for (size_t i = 0; status.ok() && i < dataset->items.size(); ++i) {
    HandlePool<acltdtDataItem>::Hold item;
    status = find_object(tdt_items(), call, "an item of dataset", dataset->items[i], &item);
    if (!status.ok()) break;
    acltdtDataItem& sent = message->emplace_back(*item);
    sent.is_received = true;
    if (item->data == nullptr || item->size == 0) continue;
    sent.copy = std::shared_ptr<char[]>(new char[item->size]);
    std::memcpy(sent.copy.get(), reachable(item->data), item->size);
    sent.data = sent.copy.get();
  }
  return status;
}

}  // namespace

namespace openaclnn {

Status check_queue_timeout(const char* call, int32_t timeout) {
  if (timeout >= -1) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "timeout must be -1 (no limit) or at least 0 ms, but got %d", timeout);
}

Status queue_status(const char* call, QueueResult result, const char* what) {
  switch (result) {
    case QueueResult::full:
      return fail(ACL_ERROR_RT_QUEUE_FULL, Reason::timed_out, call, "the %s is full", what);
    case QueueResult::empty:
      return fail(ACL_ERROR_RT_QUEUE_EMPTY, Reason::timed_out, call, "the %s is empty", what);
    case QueueResult::stopped:
      return fail(ACL_ERROR_FAILURE, Reason::call_missing, call, "the %s was stopped or destroyed",
                  what);
    default: return {};
  }
}

}  // namespace openaclnn

acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name) {
  return create_channel("acltdtCreateChannel", deviceId, name, kUsualCapacity);
}

acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                     size_t capacity) {
  return create_channel("acltdtCreateChannelWithCapacity", deviceId, name, capacity);
}

aclError acltdtDestroyChannel(acltdtChannelHandle* handle) {
  return end_object(channels(), "acltdtDestroyChannel", "handle", handle);
}

aclError acltdtStopChannel(acltdtChannelHandle* handle) {
  std::shared_ptr<MessageQueue> queue;
  const Status status = find_channel("acltdtStopChannel", handle, &queue);
  if (status.ok()) queue->stop();
  return status.code();
}

aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                          int32_t timeout) {
  constexpr const char* call = "acltdtSendTensor";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    std::shared_ptr<MessageQueue> queue;
    Message message;
    Status status = find_channel(call, handle, &queue);
    if (status.ok()) status = check_queue_timeout(call, timeout);
    if (status.ok()) status = copy_dataset(call, dataset, &message);
    if (!status.ok()) return status.code();
    const auto deadline = Deadline::in_milliseconds(timeout);
    return queue_status(call, queue->push(std::move(message), deadline), "channel").code();
  });
}

aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                             int32_t timeout) {
  constexpr const char* call = "acltdtReceiveTensor";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    std::shared_ptr<MessageQueue> queue;
    HandlePool<acltdtDataset>::Hold found;
    Status status = find_channel(call, handle, &queue);
    if (status.ok()) status = find_empty_dataset(call, dataset, &found);
    if (status.ok()) status = check_queue_timeout(call, timeout);
    if (!status.ok()) return status.code();
    found.release();  // other threads may use the dataset while this one waits
    Message message;
    const QueueResult result = queue->pop(Deadline::in_milliseconds(timeout), [&](Message& first) {
      message = std::move(first);
      return true;
    });
    if (result != QueueResult::done) return queue_status(call, result, "channel").code();
    status = find_empty_dataset(call, dataset, &found);
    if (!status.ok()) return status.code();
    found->is_received = true;
    for (acltdtDataItem& item : message) {
      acltdtDataItem* made = tdt_items().create(std::move(item));
      if (made == nullptr)
        return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").code();
      found->items.push_back(made);
    }
    return ACL_SUCCESS;
  });
}

aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size) {
  constexpr const char* call = "acltdtQueryChannelSize";
  std::shared_ptr<MessageQueue> queue;
  Status status = not_null(call, "size", size);
  if (status.ok()) status = find_channel(call, handle, &queue);
  if (status.ok()) *size = queue->size();
  return status.code();
}

aclError acltdtCleanChannel(acltdtChannelHandle* handle) {
  std::shared_ptr<MessageQueue> queue;
  const Status status = find_channel("acltdtCleanChannel", handle, &queue);
  if (status.ok()) queue->clear();
  return status.code();
}
