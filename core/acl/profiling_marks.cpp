// SPDX-License-Identifier: Apache-2.0
// Marks of a program for a profile, and the readers of records that only a model would deliver.
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_prof.h"
#include "core/acl/description.h"
#include "core/acl/profile_records.h"
#include "core/acl/profiling.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

constexpr uint32_t kMostMessage = 127;
constexpr size_t kRecordBytes = 32;  // of an operator, for programs that allocate

struct Stamp {
  std::string message;
};

struct OpenMark {
  std::string message;
  int64_t begin;
};

HandlePool<Stamp>& stamps() { return pool_of<Stamp>(1 << 14); }

struct Ranges {
  Ranges() { hold_across_fork(mutex); }

  static Ranges& get() {
    static constinit NoDestructor<Ranges> ranges;
    return ranges.get();
  }

  std::mutex mutex;
  uint32_t last = 0;
  std::map<uint32_t, OpenMark> open;
};

thread_local std::vector<OpenMark> pushed;

Status refuse_mark(const char* call, const char* why) {
  return fail(ACL_ERROR_FEATURE_UNSUPPORTED, Reason::call_missing, call, "%s", why);
}

using HeldStamp = HandlePool<Stamp>::Hold;

Status find_stamp(const char* call, void* handle, HeldStamp* stamp) {
  *stamp = HeldStamp(stamps(), handle);
  return *stamp ? Status() : refuse_mark(call, "stamp is not one of aclprofCreateStamp");
}

Status no_records(const char* call) {
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "opInfo holds no record: only a model delivers records, and none can be loaded");
}

// A reader of a number.
template <class T>
aclError read_record(const char* call, const void* info, const char* name, T* result) {
  Status status = not_null(call, "opInfo", info);
  if (status.ok()) status = not_null(call, name, result);
  if (!status.ok()) return status.code();
  *result = {};
  return no_records(call).code();
}

uint64_t read_record(const char* call) {
  (void)no_records(call).code();
  return 0;
}

}  // namespace

void* aclprofCreateStamp(void) {
  constexpr const char* call = "aclprofCreateStamp";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> void* {
    if (!profiling_started())
      return refuse_mark(call, "profiling was not started; call aclprofStart first").null();
    Stamp* made = stamps().create();
    return made != nullptr ? made : refuse_mark(call, "too many live objects").null();
  });
}

void aclprofDestroyStamp(void* stamp) { stamps().destroy(stamp); }

aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  constexpr const char* call = "aclprofSetStampTraceMessage";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HeldStamp own;
    Status status = find_stamp(call, stamp, &own);
    if (status.ok() && (msg == nullptr || msgLen > kMostMessage))
      status = refuse_mark(call, "msg must not be NULL and have at most 127 bytes");
    if (status.ok()) own->message.assign(msg, msgLen);
    return status.code();
  });
}

aclError aclprofMark(void* stamp) {
  constexpr const char* call = "aclprofMark";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HeldStamp own;
    const Status status = find_stamp(call, stamp, &own);
    const int64_t now = steady_nanoseconds();
    if (status.ok()) profile_mark(own->message, now, now);
    return status.code();
  });
}

aclError aclprofPush(void* stamp) {
  constexpr const char* call = "aclprofPush";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HeldStamp own;
    const Status status = find_stamp(call, stamp, &own);
    if (status.ok()) pushed.push_back({own->message, steady_nanoseconds()});
    return status.code();
  });
}

aclError aclprofPop(void) {
  constexpr const char* call = "aclprofPop";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    if (pushed.empty())
      return refuse_mark(call, "this thread has no open mark; call aclprofPush first").code();
    const OpenMark mark = std::move(pushed.back());
    pushed.pop_back();
    profile_mark(mark.message, mark.begin, steady_nanoseconds());
    return Status().code();
  });
}

aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  constexpr const char* call = "aclprofRangeStart";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HeldStamp own;
    Status status = find_stamp(call, stamp, &own);
    if (status.ok() && rangeId == nullptr) status = refuse_mark(call, "rangeId must not be NULL");
    if (!status.ok()) return status.code();
    Ranges& ranges = Ranges::get();
    std::lock_guard lock(ranges.mutex);
    ranges.open[*rangeId = ++ranges.last] = {own->message, steady_nanoseconds()};
    return ACL_SUCCESS;
  });
}

aclError aclprofRangeStop(uint32_t rangeId) {
  constexpr const char* call = "aclprofRangeStop";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    Ranges& ranges = Ranges::get();
    std::unique_lock lock(ranges.mutex);
    const auto ended = ranges.open.extract(rangeId);
    lock.unlock();
    if (ended.empty())
      return refuse_mark(call, "rangeId is not an open range of aclprofRangeStart").code();
    profile_mark(ended.mapped().message, ended.mapped().begin, steady_nanoseconds());
    return Status().code();
  });
}

aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream) {
  constexpr const char* call = "aclprofMarkEx";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    PinnedStream own;
    Status status = not_null(call, "msg", msg);
    if (status.ok() && (msgLen == 0 || msgLen > kMostMessage)) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "msgLen must be in [1, %u], but got %zu", kMostMessage, msgLen);
    }
    if (status.ok()) status = find_working_stream(call, stream, &own);
    const int64_t now = steady_nanoseconds();
    if (status.ok()) profile_mark(std::string(msg, msgLen), now, now);
    return status.code();
  });
}

// ---- records ----

aclError aclprofGetOpDescSize(size_t* opDescSize) {
  const Status status = not_null("aclprofGetOpDescSize", "opDescSize", opDescSize);
  if (status.ok()) *opDescSize = kRecordBytes;
  return status.code();
}

aclError aclprofGetOpNum(const void* opInfo, size_t, uint32_t* opNumber) {
  return read_record("aclprofGetOpNum", opInfo, "opNumber", opNumber);
}

aclError aclprofGetOpTypeLen(const void* opInfo, size_t, uint32_t, size_t* opTypeLen) {
  return read_record("aclprofGetOpTypeLen", opInfo, "opTypeLen", opTypeLen);
}

aclError aclprofGetOpNameLen(const void* opInfo, size_t, uint32_t, size_t* opNameLen) {
  return read_record("aclprofGetOpNameLen", opInfo, "opNameLen", opNameLen);
}

aclError aclprofGetOpType(const void* opInfo, size_t, uint32_t, char* opType, size_t) {
  return read_record("aclprofGetOpType", opInfo, "opType", opType);
}

aclError aclprofGetOpName(const void* opInfo, size_t, uint32_t, char* opName, size_t) {
  return read_record("aclprofGetOpName", opInfo, "opName", opName);
}

uint64_t aclprofGetOpStart(const void*, size_t, uint32_t) {
  return read_record("aclprofGetOpStart");
}

uint64_t aclprofGetOpEnd(const void*, size_t, uint32_t) { return read_record("aclprofGetOpEnd"); }

uint64_t aclprofGetOpDuration(const void*, size_t, uint32_t) {
  return read_record("aclprofGetOpDuration");
}

size_t aclprofGetModelId(const void*, size_t, uint32_t) { return read_record("aclprofGetModelId"); }
