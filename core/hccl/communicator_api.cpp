// SPDX-License-Identifier: Apache-2.0
// The C functions that create, describe and destroy communicators.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "acl/acl_rt.h"
#include "core/hccl/calls.h"
#include "core/hccl/task.h"
#include "core/runtime/stream_library.h"

using namespace openaclnn::hccl;

namespace {

constexpr uint32_t kMostRanks = 1 << 16;

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
    join_ranks(text, name, rank, ranks, comm);
  });
}

}  // namespace

namespace openaclnn::hccl {

void join_ranks(const std::string& root_info, const std::string& name, uint32_t rank,
                uint32_t ranks, void** comm) {
  *comm = communicators().create(
      engine().join(root_info, name, rank, ranks, openaclnn_device_here(), timeouts()));
  if (*comm == nullptr) throw Failure(kInternal, "too many live communicators");
}

std::string name_in(const void* config) {
  constexpr size_t name = 32, length = 128;  // where the name lies
  if (config == nullptr || *static_cast<const size_t*>(config) < name + length) return "";
  const char* begin = static_cast<const char*>(config) + name;
  return std::string(begin, strnlen(begin, length));
}

}  // namespace openaclnn::hccl

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
  return join("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, name_in(config).c_str(), comm);
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
void join_all(uint32_t count, const int32_t* devices, void** comms) {
  const std::string root = engine().root_info(timeouts());
  std::vector<std::shared_ptr<Communicator>> joined(count);
  std::vector<std::string> problems(count);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        joined[rank] = engine().join(root, "", rank, count, devices[rank], timeouts());
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
    join_all(ndev, devices, comms);
  });
}

// 3: the settings of a communicator include its name.
uint32_t HcclGetCommConfigCapability(void) { return 3; }

// Results are the same in every run, whatever is set.
int32_t HcclSetConfig(int32_t config, int32_t) {
  return guarded("HcclSetConfig", [&] {
    if (config != 0 && config != 1)
      throw Failure(kParameter,
                    "config must be 0 (HCCL_DETERMINISTIC) or 1 (HCCL_ACCELERATOR), but got " +
                        std::to_string(config));
  });
}

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
