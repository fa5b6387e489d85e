// SPDX-License-Identifier: Apache-2.0
// Creation and destruction of communicators, and their work as tasks of streams. The calling thread
// does not wait, so ranks may call two communicators in different orders; failures are the
// stream's.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "acl/acl_rt.h"
#include "core/hccl/calls.h"
#include "core/hccl/task.h"
#include "core/acl/backend.h"
#include "core/runtime/environment.h"
#include "core/runtime/handles.h"
#include "core/runtime/no_destructor.h"
#include "core/runtime/observer.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

namespace openaclnn::hccl {
namespace {

HandlePool<Shared>& communicators() { return pool_of<Shared>(1 << 12); }

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
  constexpr int64_t longest = INT32_MAX / 1000;  // in milliseconds it is an int
  static constinit NoDestructor<Timeouts> found;
  return found.get([] {
    return Timeouts{environment_number("HCCL_CONNECT_TIMEOUT", 1, longest, 120),
                    environment_number("HCCL_EXEC_TIMEOUT", 1, longest, 1836)};
  });
}

// In check mode the program's device addresses are not readable.
void* read_at(void* address) { return address == nullptr ? nullptr : openaclnn_reachable(address); }

struct Job {
  Shared communicator;
  Collective collective;

  void run() {
    collective.send = read_at(collective.send), collective.receive = read_at(collective.receive);
    for (Part& part : collective.parts) part.data = read_at(part.data);
    const char* call = collective.call;
    const auto failed = [&](Result result, const char* sentence) {
      fail_context(
          {code_of(result), reason_of(result), call + (" of " + communicator->name), sentence});
    };
    try {
      communicator->perform(collective);
    } catch (const Failure& failure) {
      failed(failure.code, failure.what());
    } catch (const std::exception& error) {
      failed(kInternal, error.what());
    }
  }
};

constexpr uint32_t kMostRanks = 1 << 16;

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

int32_t join(const char* call, uint32_t ranks, const char* root, uint32_t rank, const char* name,
             void** comm) {
  return guarded(call, [&] {
    not_null("rootInfo", root);
    not_null("comm", comm);
    *comm = nullptr;
    if (ranks > kMostRanks)
      throw Failure(kParameter, "nRanks must be at most " + std::to_string(kMostRanks) +
                                    ", but got " + std::to_string(ranks));
    if (rank >= ranks)
      throw Failure(kParameter, "rank must be in [0, nRanks), but got " + std::to_string(rank) +
                                    " of " + std::to_string(ranks));
    const std::string text(root, strnlen(root, kRootInfoBytes));
    *comm = communicators().create(engine().join(text, name, rank, ranks, timeouts()));
    if (*comm == nullptr) throw Failure(kInternal, "too many live communicators");
  });
}

}  // namespace

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
  if (openaclnn_is_checked()) {
    const std::vector<Range> ranges = ranges_of(collective, *communicator);
    openaclnn_works(call, ranges.data(), static_cast<int>(ranges.size()), stream);
  }
  auto* job = new Job{std::move(communicator), std::move(collective)};
  const auto run = [](void* own) { static_cast<Job*>(own)->run(); };
  const auto drop = [](void* own) { delete static_cast<Job*>(own); };
  if (openaclnn_hand_over(stream, run, drop, job) != 0)
    throw Failure(kInternal, "not submitted: " + take_sentence());
}

}  // namespace openaclnn::hccl

using namespace openaclnn::hccl;

int32_t HcclGetRootInfo(char* rootInfo) {
  return guarded("HcclGetRootInfo", [&] {
    not_null("rootInfo", rootInfo);
    std::memset(rootInfo, 0, kRootInfoBytes);
    const std::string text = engine().root_info(timeouts());
    std::memcpy(rootInfo, text.data(), std::min(text.size(), kRootInfoBytes - 1));
  });
}

int32_t HcclCommInitRootInfo(uint32_t nRanks, const char* rootInfo, uint32_t rank, void** comm) {
  return join("HcclCommInitRootInfo", nRanks, rootInfo, rank, "", comm);
}

int32_t HcclCommInitRootInfoConfig(uint32_t nRanks, const char* rootInfo, uint32_t rank,
                                   const void* config, void** comm) {
  constexpr size_t name = 32, length = 128;  // where the name lies
  std::string text;
  if (config != nullptr && *static_cast<const size_t*>(config) >= name + length) {
    const char* begin = static_cast<const char*>(config) + name;
    text.assign(begin, strnlen(begin, length));
  }
  return join("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, text.c_str(), comm);
}

int32_t HcclCommDestroy(void* comm) {
  return guarded("HcclCommDestroy", [&] {
    const Shared own = find(comm);
    communicators().destroy(comm);
    own->flush();
  });
}

int32_t HcclGetCommName(void* comm, char* name) {
  return guarded("HcclGetCommName", [&] {
    not_null("commName", name);
    snprintf(name, 128, "%s", find(comm)->name.c_str());
  });
}

int32_t HcclGetCommAsyncError(void* comm, int32_t* error) {
  return guarded("HcclGetCommAsyncError", [&] {
    not_null("asyncError", error);
    const Shared own = find(comm);
    const auto failure = own->failure();
    *error = failure ? failure->code : kSuccess;
    // torch_npu's watchdog ends the process with the recent message of the watchdog's thread.
    if (failure)
      (void)failed("HcclGetCommAsyncError", failure->code,
                   (own->name + ": " + failure->what()).c_str());
  });
}

int32_t HcclGetRankSize(void* comm, uint32_t* rankSize) {
  return guarded("HcclGetRankSize", [&] {
    not_null("rankSize", rankSize);
    *rankSize = find(comm)->ranks;
  });
}

int32_t HcclGetRankId(void* comm, uint32_t* rank) {
  return guarded("HcclGetRankId", [&] {
    not_null("rank", rank);
    *rank = find(comm)->rank;
  });
}

const char* HcclGetErrorString(int32_t code) {
  switch (code) {
    case kSuccess: return "no error";
    case kParameter: return "parameter error";
    case kNull: return "empty pointer";
    case kInternal: return "internal error";
    case kNotSupported: return "not supported";
    case kTimeout: return "timeout";
    case kConnect: return "cannot connect to other ranks";
    case kRemote: return "error of another rank";
    default: return "unknown error";
  }
}

namespace {

// Ranks in one process, a thread for each until all have joined.
void join_all(uint32_t count, void** comms) {
  const std::string root = engine().root_info(timeouts());
  std::vector<std::shared_ptr<Communicator>> joined(count);
  std::vector<std::string> problems(count);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        joined[rank] = engine().join(root, "", rank, count, timeouts());
      } catch (const std::exception& error) {
        problems[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) {
    if (!problem.empty()) throw Failure(kConnect, problem);
  }
  for (uint32_t rank = 0; rank < count; ++rank) {
    comms[rank] = communicators().create(std::move(joined[rank]));
    if (comms[rank] == nullptr) throw Failure(kInternal, "too many live communicators");
  }
}

int32_t refuse_rank_table(const char* call, const char* info, void** comm) {
  return guarded(call, [&] {
    not_null("clusterInfo", info);
    not_null("comm", comm);
    *comm = nullptr;
    throw Failure(kNotSupported, "rank tables are not supported; call HcclCommInitRootInfo");
  });
}

}  // namespace

int32_t HcclCommInitAll(uint32_t ndev, int32_t* devices, void** comms) {
  constexpr const char* call = "HcclCommInitAll";
  return guarded(call, [&] {
    not_null("devices", devices);
    not_null("comms", comms);
    uint32_t count = 0;
    (void)aclrtGetDeviceCount(&count);
    if (ndev == 0 || ndev > count)
      throw Failure(kParameter, "ndev must be in [1, " + std::to_string(count) +
                                    "], the number of devices (OPENACLNN_DEVICES), but got " +
                                    std::to_string(ndev));
    for (uint32_t i = 0; i < ndev; ++i) {
      const bool repeated = std::find(devices, devices + i, devices[i]) != devices + i;
      if (devices[i] < 0 || static_cast<uint32_t>(devices[i]) >= count || repeated)
        throw Failure(kParameter, "devices must be different numbers below " +
                                      std::to_string(count) + ", but got " +
                                      std::to_string(devices[i]));
      comms[i] = nullptr;
    }
    join_all(ndev, comms);
  });
}

int32_t HcclCommInitClusterInfo(const char* clusterInfo, uint32_t, void** comm) {
  return refuse_rank_table("HcclCommInitClusterInfo", clusterInfo, comm);
}

int32_t HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t, void*, void** comm) {
  return refuse_rank_table("HcclCommInitClusterInfoConfig", clusterInfo, comm);
}

// 3: the settings of a communicator include its name.
uint32_t HcclGetCommConfigCapability(void) { return 3; }

int32_t HcclSetConfig(int32_t, int32_t) { return kSuccess; }

// HCCL_DETERMINISTIC: always.
int32_t HcclGetConfig(int32_t config, int32_t* configValue) {
  return guarded("HcclGetConfig", [&] {
    not_null("configValue", configValue);
    if (config != 0)
      throw Failure(kParameter,
                    "config must be 0 (HCCL_DETERMINISTIC), but got " + std::to_string(config));
    *configValue = 1;
  });
}
