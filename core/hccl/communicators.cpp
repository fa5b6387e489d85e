// SPDX-License-Identifier: Apache-2.0
// Communicators and their work as tasks of streams. The calling thread does not wait, so ranks may
// call two communicators in different orders; failures are the stream's.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "acl/acl_rt.h"
#include "core/hccl/calls.h"
#include "core/hccl/task.h"
#include "core/acl/backend.h"
#include "core/support/environment.h"
#include "core/support/handles.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"
#include "core/runtime/stream_library.h"

namespace openaclnn::hccl {
namespace {

int32_t code_of(Result result) {
  switch (result) {
    case kParameter:
    case kNull: return ACL_ERROR_INVALID_PARAM;
    case kNotSupported: return ACL_ERROR_API_NOT_SUPPORT;
    case kTimeout: return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    default: return ACL_ERROR_RT_INTERNAL_ERROR;
  }
}

Reason reason_of(Result result) {
  switch (result) {
    case kParameter: return Reason::wrong_value;
    case kNull: return Reason::null_argument;
    case kNotSupported: return Reason::not_supported;
    case kTimeout: return Reason::timed_out;
    case kConnect:
    case kRemote: return Reason::unreachable;
    default: return Reason::internal;
  }
}

// In check mode the program's device addresses are not readable.
void* read_at(void* address) { return address == nullptr ? nullptr : openaclnn_reachable(address); }

struct Job {
  Shared communicator;
  const Collective collective;
  std::vector<Range> ranges;  // for check mode
  Fault fault;

  void observe(const Stream& stream) const {
    openaclnn_works(collective.call, ranges.data(), static_cast<int>(ranges.size()),
                    const_cast<Stream*>(&stream));
  }
  void run() const {
    Collective here = collective;  // a graph runs it again
    here.send = read_at(here.send), here.receive = read_at(here.receive);
    for (Part& part : here.parts) part.data = read_at(part.data);
    const char* call = collective.call;
    const auto failed = [&](Result result, const char* sentence) {
      fail_context(
          {code_of(result), reason_of(result), call + (" of " + communicator->name), sentence});
    };
    try {
      commit(fault);
      communicator->perform(here);
    } catch (const Failure& failure) {
      failed(failure.code, failure.what());
    } catch (const std::exception& error) {
      failed(kInternal, error.what());
    }
  }
};

void check_rank(const char* name, uint32_t rank, uint32_t ranks) {
  if (rank >= ranks)
    throw Failure(kParameter, std::string(name) + " must be in [0, " + std::to_string(ranks) +
                                  "), but got " + std::to_string(rank));
}

// Checks whatever would crash the task.
void check(const Collective& c, const Communicator& own) {
  using Kind = Collective::Kind;
  for (const Part& part : c.parts) {
    (void)width(part.dtype);
    check_buffer(part.data, part.count, own.ranks);
    check_rank("a rank", part.peer, own.ranks);
  }
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    check_buffer(c.send, c.sizes[i], own.ranks);
    check_buffer(c.send, c.starts[i], own.ranks);
  }
  if (c.kind == Kind::exchange || c.kind == Kind::batch) return;
  (void)width(c.dtype);
  if (reduces(c.kind) && (c.operation < 0 || c.operation > 3))
    throw Failure(kNotSupported, "op must be in [0, 3], but got " + std::to_string(c.operation));
  check_buffer(c.send, c.sizes.empty() ? c.count : 0, own.ranks);
  if (c.kind == Kind::broadcast || c.kind == Kind::reduce) check_rank("root", c.root, own.ranks);
  if (c.kind == Kind::broadcast || (c.kind == Kind::reduce && c.root != own.rank)) return;
  check_buffer(c.receive, c.count, own.ranks);
}

// The memory that the call reads and writes.
std::vector<Range> ranges_of(const Collective& c, const Communicator& own) {
  using Kind = Collective::Kind;
  std::vector<Range> ranges;
  const auto add = [&](const char* name, const void* data, uint64_t count, int32_t dtype,
                       bool written) {
    if (count > 0) ranges.push_back({name, data, count * width(dtype), written});
  };
  for (const Part& part : c.parts)
    add(part.sends ? "sendBuf" : "recvBuf", part.data, part.count, part.dtype, !part.sends);
  const bool root = own.rank == c.root;
  switch (c.kind) {
    case Kind::exchange:
    case Kind::batch: return ranges;
    case Kind::broadcast: add("buf", c.send, c.count, c.dtype, !root); return ranges;
    case Kind::reduce_scatter:
      for (size_t i = 0; i < c.sizes.size(); ++i)
        add("sendBuf", static_cast<char*>(c.send) + c.starts[i] * width(c.dtype), c.sizes[i],
            c.dtype, false);
      if (c.sizes.empty()) add("sendBuf", c.send, c.count * own.ranks, c.dtype, false);
      break;
    default: add("sendBuf", c.send, c.count, c.dtype, false);
  }
  const uint64_t received = c.kind == Kind::all_gather ? c.count * own.ranks : c.count;
  if (c.kind != Kind::reduce || root) add("recvBuf", c.receive, received, c.dtype, true);
  return ranges;
}

}  // namespace

HandlePool<Shared>& communicators() { return pool_of<Shared>(1 << 12); }

Engine& engine() {
  static constinit NoDestructor<Engine*> known;
  Engine* const found = known.get([] {
    const auto find = reinterpret_cast<FindEngine>(find_in_backend(kFindEngine));
    return find == nullptr ? nullptr : find();
  });
  if (found == nullptr)
    throw Failure(kNotSupported,
                  "HCCL backend not loaded; build the program with `openaclnn cc --aten`, or start "
                  "it with `openaclnn npu`");
  return *found;
}

// Read once, so that an invalid value is reported once.
const Timeouts& timeouts() {
  static constinit NoDestructor<Timeouts> found;
  return found.get([] {
    return Timeouts{environment_number("HCCL_CONNECT_TIMEOUT", 120),
                    environment_number("HCCL_EXEC_TIMEOUT", 1836)};
  });
}

// 12 to 14 and 17 have no torch dtype.
size_t width(int32_t dtype) {
  constexpr uint8_t widths[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 0, 0, 0, 1, 1};
  const bool known = dtype >= 0 && dtype < static_cast<int32_t>(sizeof widths);
  if (!known || widths[dtype] == 0)
    throw Failure(kNotSupported,
                  "dataType must be in [0, 11], 15 or 16, but got " + std::to_string(dtype));
  return widths[dtype];
}

// The elements of all ranks: sizes in bytes (up to 16 for an element) cannot overflow.
constexpr uint64_t kMostElements = uint64_t{1} << 58;

void check_buffer(const void* data, uint64_t count, uint32_t ranks) {
  if (count > kMostElements / ranks)
    throw Failure(kParameter, "a count must be at most 2^58 for all ranks together, but got " +
                                  std::to_string(count) + " of " + std::to_string(ranks));
  if (data == nullptr && count > 0)
    throw Failure(kNull, "a buffer must not be NULL where its count is " + std::to_string(count));
}

int32_t failed(const char* call, Result result, const char* sentence) {
  (void)fail(code_of(result), reason_of(result), call, "%s", sentence).code();
  return result;
}

Shared find(void* handle) {
  const HandlePool<Shared>::Hold hold(communicators(), handle);
  if (!hold) throw Failure(kParameter, "comm was destroyed or never created");
  return *hold;
}

void submit(Shared communicator, Collective collective, void* stream) {
  check(collective, *communicator);
  const char* call = collective.call;
  std::vector<Range> ranges;
  if (openaclnn_is_checked()) ranges = ranges_of(collective, *communicator);
  const bool records = openaclnn_records(stream);
  if (!ranges.empty() && !records)
    openaclnn_works(call, ranges.data(), static_cast<int>(ranges.size()), stream);
  const Fault fault = fault_of(communicator->rank);
  auto* job = new Job{std::move(communicator), std::move(collective), std::move(ranges), fault};
  const auto run = [](void* own) { static_cast<Job*>(own)->run(); };
  const auto drop = [](void* own) { delete static_cast<Job*>(own); };
  Task task = {run, drop, job, call};
  task.observe = [](void* own, const Stream& on) { static_cast<Job*>(own)->observe(on); };
  if (openaclnn_hand_over(stream, &task) != 0)
    throw Failure(kInternal, "not submitted: " + take_sentence());
}

}  // namespace openaclnn::hccl
