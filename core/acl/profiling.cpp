// SPDX-License-Identifier: Apache-2.0
// Profiling: from aclprofStart to aclprofStop the work of streams is written into a folder PROF_*
// below that of aclprofInit, and `msprof` makes tables and a timeline of it.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "acl/acl_prof.h"
#include "core/acl/description.h"
#include "core/acl/profile_records.h"
#include "core/acl/profiling.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/no_destructor.h"

struct aclprofConfig {
  std::set<uint32_t> devices;
  uint64_t data_types;
};

struct aclprofStepInfo {
  int64_t times[2] = {0, 0};
};

struct aclprofSubscribeConfig {
  void* file;
};

using namespace openaclnn;

namespace {

constexpr size_t kMostPath = 4096, kMostValue = 256;

HandlePool<aclprofConfig>& profiles() { return pool_of<aclprofConfig>(1 << 10); }
HandlePool<aclprofStepInfo>& steps() { return pool_of<aclprofStepInfo>(1 << 14); }
HandlePool<aclprofSubscribeConfig>& subscriptions() {
  return pool_of<aclprofSubscribeConfig>(1 << 10);
}

// Under profile_mutex().
struct Profiling {
  static Profiling& get() {
    static constinit NoDestructor<Profiling> profiling;
    return profiling.get();
  }

  bool initialised = false;
  std::string folder;
  std::set<const aclprofConfig*> started;
};

// Calls change(state) with the lock.
template <class F>
aclError with_profiling(const char* call, F change) {
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    Profiling& state = Profiling::get();
    std::lock_guard lock(profile_mutex());
    return change(state).code();
  });
}

Status check_text(const char* call, const char* name, const char* text, size_t length,
                  size_t most) {
  if (Status null = not_null(call, name, text); !null.ok()) return null;
  if (length >= 1 && length <= most && strnlen(text, length + 1) == length) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "the length must be that of %s and in [1, %zu], but got %zu", name, most, length);
}

Status find_devices(const char* call, const aclprofConfig* handle, std::set<uint32_t>* devices) {
  HandlePool<aclprofConfig>::Hold found;
  const Status status = find_object(profiles(), call, "profilerConfig", handle, &found);
  if (status.ok()) *devices = found->devices;
  return status;
}

Status not_running(const char* call) {
  return fail(ACL_ERROR_PROF_NOT_RUN, Reason::call_missing, call,
              "profiling was not initialised; call aclprofInit first");
}

}  // namespace

namespace openaclnn {

bool profiling_started() {
  Profiling& state = Profiling::get();
  std::lock_guard lock(profile_mutex());
  return !state.started.empty();
}

}  // namespace openaclnn

aclError aclprofInit(const char* profilerResultPath, size_t length) {
  constexpr const char* call = "aclprofInit";
  return with_profiling(call, [&](Profiling& state) {
    Status status = check_text(call, "profilerResultPath", profilerResultPath, length, kMostPath);
    if (!status.ok()) return status;
    if (state.initialised) {
      return fail(ACL_ERROR_PROF_ALREADY_RUN, Reason::already_done, call,
                  "profiling is initialised already; call aclprofFinalize first");
    }
    if (mkdir(std::string(profilerResultPath, length).c_str(), 0777) != 0 && errno != EEXIST) {
      return fail(ACL_ERROR_PROFILING_FAILURE, Reason::wrong_value, call,
                  "profilerResultPath \"%s\" cannot be made: %s", profilerResultPath,
                  std::strerror(errno));
    }
    state.folder.assign(profilerResultPath, length);
    state.initialised = true;
    return status;
  });
}

aclError aclprofFinalize(void) {
  constexpr const char* call = "aclprofFinalize";
  return with_profiling(call, [&](Profiling& state) {
    if (!state.initialised) return not_running(call);
    state.initialised = false;
    state.started.clear();
    return profile_ends(call, true);
  });
}

aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics aicoreMetrics,
                                   const aclprofAicoreEvents* aicoreEvents,
                                   uint64_t dataTypeConfig) {
  constexpr const char* call = "aclprofCreateConfig";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> aclprofConfig* {
    const auto refuse = [&](const char* sentence) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "%s", sentence).null();
    };
    const int metrics = static_cast<int>(aicoreMetrics);
    if (aicoreEvents != nullptr) return refuse("aicoreEvents must be NULL");
    if (metrics != ACL_AICORE_NONE && (metrics < 0 || metrics > ACL_AICORE_MEMORY_ACCESS))
      return refuse("aicoreMetrics must be in [0, 8] or ACL_AICORE_NONE");
    if (deviceIdList == nullptr && deviceNums > 0) return refuse("deviceIdList must not be NULL");
    aclprofConfig made{{}, dataTypeConfig};
    for (uint32_t i = 0; i < deviceNums; ++i) {
      if (Status status = check_device(call, "deviceIdList", static_cast<int32_t>(deviceIdList[i]));
          !status.ok())
        return status.null();
      made.devices.insert(deviceIdList[i]);
    }
    aclprofConfig* own = profiles().create(made);
    if (own == nullptr) return refuse("too many live objects");
    return own;
  });
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  return end_object(profiles(), "aclprofDestroyConfig", "profilerConfig", profilerConfig);
}

aclError aclprofSetConfig(aclprofConfigType configType, const char* config, size_t configLength) {
  constexpr const char* call = "aclprofSetConfig";
  const int type = static_cast<int>(configType);
  Status status = check_text(call, "config", config, configLength, kMostValue);
  if (status.ok() && (type <= ACL_PROF_ARGS_MIN || type >= ACL_PROF_ARGS_MAX)) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "configType must be in (0, %d), but got %d", ACL_PROF_ARGS_MAX, type);
  }
  return status.code();
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  constexpr const char* call = "aclprofStart";
  return with_profiling(call, [&](Profiling& state) {
    std::set<uint32_t> devices;
    Status status = find_devices(call, profilerConfig, &devices);
    if (!status.ok()) return status;
    if (!state.initialised) return not_running(call);
    if (state.started.count(profilerConfig) == 0) {
      status = profile_begins(call, state.folder, devices);
      if (status.ok()) state.started.insert(profilerConfig);
      return status;
    }
    return fail(ACL_ERROR_PROF_ALREADY_RUN, Reason::already_done, call,
                "profiling was started with this configuration already");
  });
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  constexpr const char* call = "aclprofStop";
  return with_profiling(call, [&](Profiling& state) {
    std::set<uint32_t> devices;
    const Status status = find_devices(call, profilerConfig, &devices);
    if (!status.ok()) return status;
    if (state.started.erase(profilerConfig) > 0) {
      return state.started.empty() ? profile_ends(call, false) : status;
    }
    return fail(ACL_ERROR_PROF_NOT_RUN, Reason::call_missing, call,
                "profiling was not started with this configuration; call aclprofStart first");
  });
}

// ---- steps ----

aclprofStepInfo* aclprofCreateStepInfo(void) {
  aclprofStepInfo* made = steps().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclprofCreateStepInfo",
              "too many live objects")
      .null();
}

void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) { steps().destroy(stepinfo); }

aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag,
                                 aclrtStream stream) {
  constexpr const char* call = "aclprofGetStepTimestamp";
  HandlePool<aclprofStepInfo>::Hold found;
  const int end = static_cast<int>(tag);
  PinnedStream own;
  Status status = find_object(steps(), call, "stepInfo", stepInfo, &found);
  if (status.ok() && end != ACL_STEP_START && end != ACL_STEP_END) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "tag must be 0 (start) or 1 (end), but got %d", end);
  }
  if (status.ok()) status = find_working_stream(call, stream, &own);
  return status.code();
}

// ---- subscription to a model ----

aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics,
                                                     void* fd) {
  constexpr const char* call = "aclprofCreateSubscribeConfig";
  if (timeInfoSwitch != 0 && timeInfoSwitch != 1) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "timeInfoSwitch must be 0 or 1, but got %d", timeInfoSwitch)
        .null();
  }
  aclprofSubscribeConfig* made = subscriptions().create(aclprofSubscribeConfig{fd});
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
}

aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* profSubscribeConfig) {
  return end_object(subscriptions(), "aclprofDestroySubscribeConfig", "profSubscribeConfig",
                    profSubscribeConfig);
}
