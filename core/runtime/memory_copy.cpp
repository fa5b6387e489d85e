// SPDX-License-Identifier: Apache-2.0
// Copies and fills, synchronous or as a task of a stream, checked against allocations.
#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "core/runtime/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/memory.h"
#include "core/runtime/observer.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

// About what a core copies in the time of waking a worker.
constexpr size_t kBriefBytes = 64 << 10;

// A copy; a fill if src is nullptr.
struct Transfer {
  void* dst;
  const void* src;
  size_t count;
  int value;
  const char* call;
  mutable bool ran = false;

  void run() const {
    ran = true;
    if (watched) [[unlikely]] {
      const Work work(call);
      Transfer{reachable(dst), src == nullptr ? nullptr : reachable(src), count, value, call}
          .move();
    } else {
      move();
    }
  }
  void move() const {
    if (src == nullptr) {
      std::memset(dst, value, count);
    } else {
      std::memmove(dst, src, count);  // ranges may overlap
    }
  }

  Range written() const { return {src == nullptr ? "devPtr" : "dst", dst, count, true}; }
  void notify(const Stream* stream) const {
    if (observer == nullptr) [[likely]]
      return;
    const Range ranges[] = {written(), {"src", src, count, false}};
    observer->touches(call, ranges, src == nullptr ? 1 : 2, stream);
  }
};

Status check_range(const char* call, const char* argument, const void* address, size_t count) {
  const Allocation own = find_allocation(address);
  if (own.unmapped) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "nothing is mapped at %s %p, a reserved address", argument, address);
  }
  if (own.behind == 0 || count <= own.behind) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "count must be at most %zu, the bytes reserved from %s to the end of its "
              "allocation (the program asked for %zu of them), but got %zu",
              own.behind, argument, own.asked, count);
}

Status check_limit(const char* call, const char* limit, size_t most, size_t count) {
  if (count <= most) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "count must be at most %s, but %zu > %zu", limit, count, most);
}

Status check_copy(const char* call, const Transfer& copy, size_t room, aclrtMemcpyKind kind) {
  const auto value = static_cast<int>(kind);  // a hint: the addresses decide the direction
  if (observer != nullptr) [[unlikely]] {
    Status status = observer->inspect_transfer(call, copy.dst, room, copy.src, copy.count, value);
    if (!status.ok()) return status;
  }
  if (value < ACL_MEMCPY_HOST_TO_HOST || value > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "kind must be in [0, 7], but got %d", value);
  }
  Status status = not_null(call, "dst", copy.dst, ObjectKind::device_memory);
  if (status.ok()) status = not_null(call, "src", copy.src, ObjectKind::device_memory);
  if (status.ok()) status = check_limit(call, "destMax", room, copy.count);
  if (status.ok()) status = check_range(call, "dst", copy.dst, copy.count);
  if (status.ok()) status = check_range(call, "src", copy.src, copy.count);
  if (status.ok() && !current_context()) status = no_context(call);
  return status;
}

Status check_fill(const char* call, const Transfer& fill, size_t room) {
  if (observer != nullptr) [[unlikely]] {
    Status status = observer->inspect_transfer(call, fill.dst, room, nullptr, fill.count, -1);
    if (!status.ok()) return status;
  }
  Status status = not_null(call, "devPtr", fill.dst, ObjectKind::device_memory);
  if (status.ok()) status = check_limit(call, "maxCount", room, fill.count);
  if (status.ok()) status = check_range(call, "devPtr", fill.dst, fill.count);
  if (status.ok() && !current_context()) status = no_context(call);
  return status;
}

// Memory that acl did not allocate may be freed when the call returns, so the call waits.
Status enqueue(const char* call, const Transfer& transfer, aclrtStream handle) {
  PinnedStream stream;
  if (Status status = find_stream(handle, &stream); !status.ok()) {
    return with_call(status, call);
  }
  const bool foreign = bytes_behind(transfer.dst) == 0 ||
                       (transfer.src != nullptr && bytes_behind(transfer.src) == 0);
  if (foreign && stream.get() == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task may enqueue work on its own stream only for memory that acl allocated");
  }
  transfer.notify(stream.get());
  const auto run = [](void* own) { static_cast<const Transfer*>(own)->run(); };
  if (foreign || transfer.count <= kBriefBytes) {
    Transfer now = transfer;
    if (stream->run_if_idle(run, &now)) {
      if (foreign) notify_synchronised(stream.get());
      return {};
    }
  }
  const auto drop = [](void* own) {
    const std::unique_ptr<const Transfer> owned(static_cast<Transfer*>(own));
    if (!owned->ran && observer != nullptr) [[unlikely]]
      observer->dropped(owned->call, owned->written());
  };
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&]() -> Status {
    auto later = std::make_unique<Transfer>(transfer);
    stream->submit({run, drop, later.get()});
    (void)later.release();
    if (foreign) {
      (void)stream->synchronize();
      notify_synchronised(stream.get());
    }
    return {};
  });
}

}  // namespace

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer copy{dst, src, count, 0, "aclrtMemcpy"};
  const Status status = check_copy(copy.call, copy, destMax, kind);
  if (status.ok()) copy.notify(nullptr), copy.run();
  return status.code();
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer copy{dst, src, count, 0, "aclrtMemcpyAsync"};
  Status status = check_copy(copy.call, copy, destMax, kind);
  if (status.ok() && kind == ACL_MEMCPY_HOST_TO_HOST) {
    status = fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, "aclrtMemcpyAsync",
                  "ACL_MEMCPY_HOST_TO_HOST cannot run in a stream; use aclrtMemcpy");
  }
  if (status.ok()) status = enqueue(copy.call, copy, stream);
  return status.code();
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer fill{devPtr, nullptr, count, value, "aclrtMemset"};
  const Status status = check_fill(fill.call, fill, maxCount);
  if (status.ok()) fill.notify(nullptr), fill.run();
  return status.code();
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  const Transfer fill{devPtr, nullptr, count, value, "aclrtMemsetAsync"};
  Status status = check_fill(fill.call, fill, maxCount);
  if (status.ok()) status = enqueue(fill.call, fill, stream);
  return status.code();
}
