// SPDX-License-Identifier: Apache-2.0
// Copies and fills: their checks against allocations, and their run, here or as a task of a stream.
#include "core/memory/transfer.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/memory/memory.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

// About what a core copies in the time of waking a worker.
constexpr size_t kBriefBytes = 64 << 10;

constexpr size_t kAddressable = size_t{1} << 56;  // of x86-64 with five levels of pages

Status check_limit(const char* call, const char* limit, size_t most, size_t count) {
  if (count <= most) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "count must be at most %s, but %zu > %zu", limit, count, most);
}

// Whether the memory may be gone when the call returns.
bool is_foreign(const void* address) {
  return address != nullptr && bytes_behind(address) == 0 && !is_registered(address);
}

// Ranges may overlap. Eight aligned bytes may be a value that aclrtValueWait polls.
void copy_bytes(char* to, const char* from, size_t count) {
  if (count == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(to) % count == 0) {
    uint64_t value;
    std::memcpy(&value, from, count);
    std::atomic_ref(*reinterpret_cast<uint64_t*>(to)).store(value, std::memory_order_release);
  } else {
    std::memmove(to, from, count);
  }
}

}  // namespace

void Transfer::run() const {
  ran = true;
  if (watched) [[unlikely]] {
    const Work work(call);
    Transfer here = *this;
    here.dst = reachable(dst);
    if (src != nullptr) here.src = reachable(src);
    here.move();
  } else {
    move();
  }
}

void Transfer::move() const {
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  for (size_t row = 0; row < rows; ++row, to += dst_pitch) {
    if (from == nullptr) {
      std::memset(to, value, count);
    } else {
      copy_bytes(to, from, count);
      from += src_pitch;
    }
  }
}

Range Transfer::written() const {
  return {src == nullptr ? "devPtr" : "dst", dst, written_span(), true};
}

void Transfer::notify(const Stream* stream) const {
  if (observer == nullptr) [[likely]]
    return;
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  for (size_t row = 0; row < rows; ++row, to += dst_pitch) {
    const Range ranges[] = {{src == nullptr ? "devPtr" : "dst", to, count, true},
                            {"src", from, count, false}};
    observer->touches(call, ranges, src == nullptr ? 1 : 2, stream);
    if (from != nullptr) from += src_pitch;
  }
}

Status check_range(const char* call, const char* argument, const void* address, size_t count) {
  const Allocation own = find_allocation(address);
  if (own.unmapped) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "nothing is mapped at %s %p, a reserved address", argument, address);
  }
  if (own.behind == 0 && count > kAddressable) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "count must be at most %zu, what a process can address, but got %zu", kAddressable,
                count);
  }
  if (own.behind == 0 || count <= own.behind) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "count must be at most %zu, the bytes reserved from %s to the end of its "
              "allocation (the program asked for %zu of them), but got %zu",
              own.behind, argument, own.asked, count);
}

Status check_known_range(const char* call, const char* argument, const void* address,
                         size_t count) {
  if (is_foreign(address)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                "%s %p is not memory of acl: allocate it with aclrtMalloc, or register it with "
                "aclrtHostRegister",
                argument, address);
  }
  return check_range(call, argument, address, count);
}

Status check_copy(const char* call, const Transfer& copy, size_t room, aclrtMemcpyKind kind) {
  const auto value = static_cast<int>(kind);  // a hint: the addresses decide the direction
  if (observer != nullptr) [[unlikely]] {
    Status status =
        observer->inspect_transfer(call, copy.dst, room, copy.src, copy.written_span(), value);
    if (!status.ok()) return status;
  }
  if (value < ACL_MEMCPY_HOST_TO_HOST || value > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "kind must be in [0, 7], but got %d", value);
  }
  Status status = not_null(call, "dst", copy.dst, ObjectKind::device_memory);
  if (status.ok()) status = not_null(call, "src", copy.src, ObjectKind::device_memory);
  if (status.ok()) status = check_limit(call, "destMax", room, copy.written_span());
  if (status.ok()) status = check_range(call, "dst", copy.dst, copy.written_span());
  if (status.ok()) status = check_range(call, "src", copy.src, copy.read_span());
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

Status run_now(const Transfer& transfer) {
  Status status = check_capture_modes(transfer.call);
  if (status.ok()) transfer.notify(nullptr), transfer.run();
  return status;
}

Status enqueue(const char* call, const Transfer& transfer, aclrtStream handle) {
  PinnedStream stream;
  if (Status status = find_working_stream(call, handle, &stream); !status.ok()) return status;
  const bool foreign = is_foreign(transfer.dst) || is_foreign(transfer.src);
  if (foreign && !is_bound(*stream)) {
    Status status = check_not_captured(
        call, *stream, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
        "a copy that a graph repeats needs memory of aclrtMalloc, aclrtMallocHost or "
        "aclrtHostRegister");
    if (status.ok()) status = check_capture_modes(call);
    if (!status.ok()) return status;
  }
  if (foreign && stream.get() == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task may enqueue work on its own stream only for memory that acl allocated");
  }
  const bool records = stream->records();
  if (!records) transfer.notify(stream.get());
  const auto run = [](void* own) { static_cast<const Transfer*>(own)->run(); };
  if (foreign || transfer.rows * transfer.count <= kBriefBytes) {
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
    later->ran = records;  // the observer hears of each replay
    Task task = {run, drop, later.get(), call};
    task.observe = [](void* own, const Stream& on) { static_cast<Transfer*>(own)->notify(&on); };
    stream->submit(task);
    (void)later.release();
    if (foreign) {
      (void)stream->synchronize();
      notify_synchronised(stream.get());
    }
    return {};
  });
}

}  // namespace openaclnn
