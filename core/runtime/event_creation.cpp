// SPDX-License-Identifier: Apache-2.0
// The C functions that create and destroy events.
#include <atomic>
#include <memory>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/support/observer.h"

using namespace openaclnn;

namespace {

std::atomic<uint32_t> events_made = 0;

constexpr uint32_t kFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

Status create(const char* call, aclrtEvent* event, EventMaker maker, uint32_t flags,
              uint32_t accepted) {
  if (Status status = not_null(call, "event", event); !status.ok()) return status;
  const bool external = flags == ACL_EVENT_EXTERNAL && maker == EventMaker::with_flag;
  const bool shared = flags == ACL_EVENT_IPC && maker == EventMaker::ex_with_flag;
  if ((flags & ~accepted) != 0 && !external && !shared) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "flag must only have bits of %#x, but got %#x", accepted, flags);
  }
  if (!current_context()) return no_context(call);
  std::shared_ptr<SharedFile> file;
  if (shared) {
    if (Status status = SharedFile::create(call, SharedKind::event, 0, true, &file); !status.ok())
      return status;
  }
  return make_event(call, maker, flags, std::move(file), event);
}

}  // namespace

Status openaclnn::make_event(const char* call, EventMaker maker, uint32_t flags,
                             std::shared_ptr<SharedFile> shared, aclrtEvent* event) {
  Event* made =
      events().create(Event{maker, flags, nullptr, nullptr, std::make_shared<std::atomic<int>>(0),
                            false, events_made++, std::move(shared)});
  if (made == nullptr) {
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call, "too many live events");
  }
  notify_made(call, ObjectKind::event, made);
  *event = made;
  return {};
}

namespace {

Status destroy(const char* call, aclrtEvent handle) {
  std::shared_ptr<Point> point;  // released outside the lock
  std::shared_ptr<std::atomic<int>> waits;
  const Status status = with_event(call, handle, [&](Event& event) {
    event.destroyed = true;
    point.swap(event.point);
    waits.swap(event.waits);
    return Status();
  });
  if (!status.ok()) return status;
  notify_ending(call, ObjectKind::event, handle);
  events().destroy(handle);
  return status;
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) {
  return guarded_status("aclrtCreateEvent", [&](const char* call) {
    return create(call, event, EventMaker::plain, 0, 0);
  });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return guarded_status("aclrtCreateEventWithFlag", [&](const char* call) {
    return create(call, event, EventMaker::with_flag, flag, kFlags | ACL_EVENT_DEVICE_USE_ONLY);
  });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return guarded_status("aclrtCreateEventExWithFlag", [&](const char* call) {
    return create(call, event, EventMaker::ex_with_flag, flag, kFlags);
  });
}

aclError aclrtDestroyEvent(aclrtEvent event) { return destroy("aclrtDestroyEvent", event).code(); }
