// SPDX-License-Identifier: Apache-2.0
// Events that processes share: two counters in a file in memory. A wait is for the record that is
// the newest when it begins, of whichever process.
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/runtime/task.h"

namespace openaclnn {
namespace {

// The counters wrap around.
bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

struct SharedWait {
  static constexpr const char* kCall = "aclrtStreamWaitEvent";
  SharedRecord record;
  int64_t seconds;  // 0: for ever

  void run() const {
    const Work work(kCall);
    const auto limit = Deadline::in_milliseconds(seconds == 0 ? -1 : seconds * 1000);
    Stream* stream = Stream::running_here();
    const auto reached = [](void* own) { return static_cast<SharedRecord*>(own)->is_reached(); };
    if (stream->poll_here(reached, const_cast<SharedRecord*>(&record), limit) !=
        Stream::Waited::too_long)
      return;
    stream->fail_task(ACL_ERROR_RT_WAIT_TIMEOUT, Reason::timed_out,
                      "aclrtStreamWaitEvent timed out after %lld s; the work behind it ran anyway",
                      static_cast<long long>(seconds));
  }
};

}  // namespace

bool SharedRecord::is_reached() const {
  return !is_before(file->header().reached.load(std::memory_order_acquire), number);
}

void SharedRecord::reach() const {
  std::atomic<uint32_t>& reached = file->header().reached;
  uint32_t before = reached.load(std::memory_order_relaxed);
  while (is_before(before, number) &&
         !reached.compare_exchange_weak(before, number, std::memory_order_release)) {
  }
}

bool SharedRecord::wait(Deadline deadline) const {
  while (!is_reached()) {  // another process announces nothing
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

SharedRecord next_record(std::shared_ptr<SharedFile> file) {
  const uint32_t number = file == nullptr ? 0 : ++file->header().word;
  return {std::move(file), number};
}

SharedRecord newest_record(std::shared_ptr<SharedFile> file) {
  const uint32_t number = file->header().word.load(std::memory_order_acquire);
  return {std::move(file), number};
}

Status wait_for_record(const char* call, Stream& stream, SharedRecord record, int64_t seconds) {
  if (record.is_reached()) return {};
  return hand_over_job(call, stream,
                       std::make_unique<SharedWait>(SharedWait{std::move(record), seconds}));
}

}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  return guarded_status("aclrtIpcGetEventHandle", [&](const char* call) {
    Status status = not_null(call, "event", event, ObjectKind::event);
    if (status.ok()) status = not_null(call, "handle", handle);
    if (!status.ok()) return status;
    return with_event(call, event, [&](const Event& own) {
      if (own.shared == nullptr) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::event}, call,
                    "event must be made by aclrtCreateEventExWithFlag with ACL_EVENT_IPC");
      }
      *handle = {};
      std::memcpy(handle->reserved, own.shared->key().data(), own.shared->key().size());
      return Status();
    });
  });
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  return guarded_status("aclrtIpcOpenEventHandle", [&](const char* call) {
    Status status = not_null(call, "event", event);
    if (status.ok() && !current_context()) status = no_context(call);
    if (!status.ok()) return status;
    char key[sizeof handle.reserved + 1] = {};
    std::memcpy(key, handle.reserved, sizeof handle.reserved);
    std::shared_ptr<SharedFile> file;
    status = SharedFile::open(call, SharedKind::event, key, &file);
    if (!status.ok()) return status;
    return make_event(call, EventMaker::ex_with_flag, ACL_EVENT_IPC, std::move(file), event);
  });
}
