// SPDX-License-Identifier: Apache-2.0
// 64-bit values in device memory that streams write and wait for. Copies and the host may write
// them too, so a wait asks again and again.
#include <atomic>
#include <cstdint>
#include <memory>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/support/observer.h"
#include "core/runtime/task.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

uint64_t load_value(void* address) {
  return std::atomic_ref(*static_cast<uint64_t*>(address)).load(std::memory_order_acquire);
}

struct ValueWrite {
  static constexpr const char* kCall = "aclrtValueWrite";
  static constexpr TaskType kType = TaskType::value_write;
  void* address;
  uint64_t value;

  void observe(const Stream& stream) const {
    const Range range = {"devAddr", address, sizeof value, true};
    observer->touches(kCall, &range, 1, &stream);
  }

  void run() const {
    const Work work(kCall);
    std::atomic_ref(*static_cast<uint64_t*>(reachable(address)))
        .store(value, std::memory_order_release);
  }
};

struct ValueWait {
  static constexpr const char* kCall = "aclrtValueWait";
  static constexpr TaskType kType = TaskType::value_wait;
  void* address;
  uint64_t value;
  uint32_t flag;

  void observe(const Stream& stream) const { notify_consumes(&stream, nullptr); }
  bool ready() const {
    const uint64_t now = load_value(reachable(address));
    switch (flag) {
      case ACL_STREAM_WAIT_VALUE_GEQ: return static_cast<int64_t>(now - value) >= 0;
      case ACL_STREAM_WAIT_VALUE_EQ: return now == value;
      case ACL_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
      default: return ~(now | value) != 0;
    }
  }
  void run() {
    const Work work(kCall);
    const auto is_ready = [](void* self) { return static_cast<ValueWait*>(self)->ready(); };
    (void)Stream::running_here()->poll_here(is_ready, this, Deadline());
  }
};

Status check_value_address(const char* call, const void* address) {
  Status status = not_null(call, "devAddr", address, ObjectKind::device_memory);
  if (status.ok() && reinterpret_cast<uintptr_t>(address) % alignof(uint64_t) != 0) {
    status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                  "devAddr must be a multiple of 8, but got %p", address);
  }
  if (status.ok()) status = check_known_range(call, "devAddr", address, sizeof(uint64_t));
  return status;
}

}  // namespace

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return guarded_status(ValueWrite::kCall, [&](const char* call) {
    PinnedStream own;
    Status status = check_value_address(call, devAddr);
    if (status.ok()) status = check_zero(call, "flag", flag);
    if (status.ok()) status = find_working_stream(call, stream, &own);
    if (!status.ok()) return status;
    auto job = std::make_unique<ValueWrite>(ValueWrite{devAddr, value});
    observe_job(*own, *job);
    submit_job(*own, std::move(job), true);
    return status;
  });
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return guarded_status(ValueWait::kCall, [&](const char* call) {
    PinnedStream own;
    Status status = check_value_address(call, devAddr);
    if (status.ok() && flag > ACL_STREAM_WAIT_VALUE_NOR) {
      status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                    "flag must be in [0, 3], but got %u", flag);
    }
    if (status.ok()) status = find_working_stream(call, stream, &own);
    if (!status.ok()) return status;
    auto job = std::make_unique<ValueWait>(ValueWait{devAddr, value, flag});
    observe_job(*own, *job);
    const bool idle = own.get() != Stream::running_here() && !own->records() && own->query();
    if (idle && job->ready()) return status;
    return hand_over_job(call, *own, std::move(job));
  });
}
