// SPDX-License-Identifier: Apache-2.0
// The C functions of queues.
#include "core/acl/tdt_queue.h"

#include <cstring>

#include "core/acl/description.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"

struct acltdtQueueAttr {
  std::string name;
  uint32_t depth = 8;
};

using namespace openaclnn;

namespace {

constexpr size_t kMostName = 127, kMostUserData = 96;
constexpr uint32_t kMostDepth = 1 << 16;

HandlePool<acltdtQueueAttr>& queue_attributes() { return pool_of<acltdtQueueAttr>(1 << 12); }

Status check_length(const char* call, size_t got, size_t want) {
  if (got == want) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "len must be %zu, but got %zu",
              want, got);
}

Status wrong_attribute(const char* call, int type) {
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "type must be 0 (name) or 1 (depth), but got %d", type);
}

}  // namespace

namespace openaclnn {

TdtQueues::TdtQueues() { hold_across_fork(mutex); }

TdtQueues& TdtQueues::get() {
  static constinit NoDestructor<TdtQueues> queues;
  return queues.get();
}

Status find_queue(const char* call, const char* argument, uint32_t number,
                  std::shared_ptr<TdtQueue>* queue) {
  TdtQueues& all = TdtQueues::get();
  std::unique_lock lock(all.mutex);
  const auto found = all.queues.find(number);
  if (found != all.queues.end()) {
    *queue = found->second;
    return {};
  }
  lock.unlock();
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::dead_handle, call,
              "%s %u was destroyed or never created", argument, number);
}

}  // namespace openaclnn

acltdtQueueAttr* acltdtCreateQueueAttr(void) {
  acltdtQueueAttr* made = queue_attributes().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "acltdtCreateQueueAttr",
              "too many live objects")
      .null();
}

aclError acltdtDestroyQueueAttr(const acltdtQueueAttr* attr) {
  return end_object(queue_attributes(), "acltdtDestroyQueueAttr", "attr", attr);
}

aclError acltdtSetQueueAttr(acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            const void* param) {
  constexpr const char* call = "acltdtSetQueueAttr";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<acltdtQueueAttr>::Hold found;
    Status status = find_object(queue_attributes(), call, "attr", attr, &found);
    if (status.ok()) status = not_null(call, "param", param);
    if (!status.ok()) return status.code();
    switch (static_cast<int>(type)) {
      case ACL_TDT_QUEUE_NAME_PTR: {
        const char* name = nullptr;
        status = check_length(call, len, sizeof name);
        if (status.ok()) std::memcpy(&name, param, sizeof name);
        if (status.ok()) status = not_null(call, "the name", name);
        if (!status.ok()) return status.code();
        if (strnlen(name, kMostName + 1) <= kMostName) {
          found->name = name;
          return ACL_SUCCESS;
        }
        return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "the name must have at most %zu characters", kMostName)
            .code();
      }
      case ACL_TDT_QUEUE_DEPTH_UINT32: {
        uint32_t depth = 0;
        status = check_length(call, len, sizeof depth);
        if (status.ok()) std::memcpy(&depth, param, sizeof depth);
        if (status.ok() && (depth == 0 || depth > kMostDepth)) {
          status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                        "the depth must be in [1, %u], but got %u", kMostDepth, depth);
        }
        if (status.ok()) found->depth = depth;
        return status.code();
      }
      default: return wrong_attribute(call, type).code();
    }
  });
}

aclError acltdtGetQueueAttr(const acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            size_t* paramRetSize, void* param) {
  constexpr const char* call = "acltdtGetQueueAttr";
  HandlePool<acltdtQueueAttr>::Hold found;
  Status status = find_object(queue_attributes(), call, "attr", attr, &found);
  if (status.ok()) status = not_null(call, "paramRetSize", paramRetSize);
  if (status.ok()) status = not_null(call, "param", param);
  if (!status.ok()) return status.code();
  const char* name = found->name.c_str();
  const bool is_name = static_cast<int>(type) == ACL_TDT_QUEUE_NAME_PTR;
  if (!is_name && static_cast<int>(type) != ACL_TDT_QUEUE_DEPTH_UINT32)
    return wrong_attribute(call, type).code();
  const size_t size = is_name ? sizeof name : sizeof found->depth;
  status = check_length(call, len, size);
  if (!status.ok()) return status.code();
  std::memcpy(param, is_name ? static_cast<const void*>(&name) : &found->depth, size);
  *paramRetSize = size;
  return ACL_SUCCESS;
}

aclError acltdtCreateQueue(const acltdtQueueAttr* attr, uint32_t* qid) {
  constexpr const char* call = "acltdtCreateQueue";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    acltdtQueueAttr given;
    Status status = not_null(call, "qid", qid);
    if (status.ok() && attr != nullptr) {
      HandlePool<acltdtQueueAttr>::Hold found;
      status = find_object(queue_attributes(), call, "attr", attr, &found);
      if (status.ok()) given = *found;
    }
    if (!status.ok()) return status.code();
    TdtQueues& all = TdtQueues::get();
    std::unique_lock lock(all.mutex);
    for (const auto& [number, queue] : all.queues) {
      if (given.name.empty() || queue->name != given.name) continue;
      lock.unlock();
      return fail(ACL_ERROR_INVALID_PARAM, Reason::already_done, call,
                  "there is already a queue of the name \"%s\"", given.name.c_str())
          .code();
    }
    auto made = std::make_shared<TdtQueue>(given.name, given.depth);
    all.queues[all.last] = made;
    *qid = all.last++;
    return ACL_SUCCESS;
  });
}

aclError acltdtDestroyQueue(uint32_t qid) {
  std::shared_ptr<TdtQueue> queue;
  const Status status = find_queue("acltdtDestroyQueue", "qid", qid, &queue);
  if (!status.ok()) return status.code();
  queue->stop();
  unbind_queue(qid);
  TdtQueues& all = TdtQueues::get();
  std::lock_guard lock(all.mutex);
  all.queues.erase(qid);
  return ACL_SUCCESS;
}

aclError acltdtEnqueueData(uint32_t qid, const void* data, size_t dataSize, const void* userData,
                           size_t userDataSize, int32_t timeout, uint32_t rsv) {
  constexpr const char* call = "acltdtEnqueueData";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    std::shared_ptr<TdtQueue> queue;
    Status status = not_null(call, "data", data);
    if (status.ok()) status = check_zero(call, "rsv", rsv);
    if (status.ok()) status = check_queue_timeout(call, timeout);
    if (status.ok() && (dataSize == 0 || userDataSize > kMostUserData ||
                        (userData == nullptr && userDataSize > 0))) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "dataSize must be at least 1 and userDataSize at most %zu (0 for NULL), but "
                    "got %zu and %zu",
                    kMostUserData, dataSize, userDataSize);
    }
    if (status.ok()) status = find_queue(call, "qid", qid, &queue);
    if (!status.ok()) return status.code();
    const auto* bytes = static_cast<const char*>(reachable(data));
    const auto* extra = static_cast<const char*>(userData);
    QueueMessage message{{bytes, bytes + dataSize}, {extra, extra + userDataSize}};
    const auto deadline = Deadline::in_milliseconds(timeout);
    return queue_status(call, queue->push(std::move(message), deadline), "queue").code();
  });
}

aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                           void* userData, size_t userDataSize, int32_t timeout) {
  constexpr const char* call = "acltdtDequeueData";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    std::shared_ptr<TdtQueue> queue;
    Status status = not_null(call, "data", data);
    if (status.ok()) status = not_null(call, "retDataSize", retDataSize);
    if (status.ok()) status = check_queue_timeout(call, timeout);
    if (status.ok()) status = find_queue(call, "qid", qid, &queue);
    if (!status.ok()) return status.code();
    size_t needed = 0;
    const auto take = [&](const QueueMessage& first) {
      needed = first.data.size();
      if (needed > dataSize) return false;
      std::memcpy(reachable(data), first.data.data(), needed);
      if (userData != nullptr)
        std::memcpy(userData, first.user_data.data(),
                    std::min(userDataSize, first.user_data.size()));
      return true;
    };
    const QueueResult result = queue->pop(Deadline::in_milliseconds(timeout), take);
    if (result != QueueResult::done) return queue_status(call, result, "queue").code();
    if (needed > dataSize) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                  "dataSize must be at least %zu, but got %zu", needed, dataSize)
          .code();
    }
    *retDataSize = needed;
    return ACL_SUCCESS;
  });
}
