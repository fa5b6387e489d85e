// SPDX-License-Identifier: Apache-2.0
// What failed on a device: nothing that could be repaired on a CPU; and the tasks that fail, for
// the callbacks of the program.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"
#include "core/support/named_callbacks.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

struct rtExceptionInfo {
  openaclnn::FailedTask task;
};

using namespace openaclnn;

namespace {

constexpr uint32_t kInvalid = 0xffffffff;  // "no such information"

constinit thread_local const rtExceptionInfo* reported = nullptr;

struct ExceptionCallbacks {
  ExceptionCallbacks() { hold_across_fork(mutex); }

  static ExceptionCallbacks& get() {
    static constinit NoDestructor<ExceptionCallbacks> callbacks;
    return callbacks.get();
  }

  std::mutex mutex;
  aclrtExceptionInfoCallback only = nullptr;        // of aclrtSetExceptionInfoCallback
  std::vector<aclrtExceptionInfoCallback> several;  // of aclrtExceptionInfoCallbackRegister
};

void report(const FailedTask& task) {
  ExceptionCallbacks& callbacks = ExceptionCallbacks::get();
  std::vector<aclrtExceptionInfoCallback> called;
  {
    std::lock_guard lock(callbacks.mutex);
    called = callbacks.several;
    if (callbacks.only != nullptr) called.push_back(callbacks.only);
  }
  rtExceptionInfo info{task};
  info.task.device = static_cast<uint32_t>(current_device());
  const rtExceptionInfo* const outer = std::exchange(reported, &info);
  for (const auto callback : called) callback(&info);
  reported = outer;
}

// What this thread reports now, or nullptr: a saved or foreign address is not read.
const FailedTask* task_of(const aclrtExceptionInfo* info) {
  return info == nullptr || info != reported ? nullptr : &info->task;
}

// Calls change(callbacks) and listens to failures where a callback is left.
template <class F>
Status change_callbacks(const char* call, F change) {
  return guarded(call, ACL_ERROR_RT_MEMORY_ALLOCATION, [&] {
    ExceptionCallbacks& callbacks = ExceptionCallbacks::get();
    std::lock_guard lock(callbacks.mutex);
    change(callbacks);
    const bool any = callbacks.only != nullptr || !callbacks.several.empty();
    task_failure_listener = any ? report : nullptr;
    return Status();
  });
}

Status check_callback(const char* call, aclrtExceptionInfoCallback callback) {
  if (callback != nullptr) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::null_argument, call, "callback must not be NULL");
}

}  // namespace

// ---- faults ----

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  constexpr const char* call = "aclrtGetErrorVerbose";
  Status status = not_null(call, "errorInfo", errorInfo);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) *errorInfo = {};
  return status.code();
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  constexpr const char* call = "aclrtRepairError";
  Status status = not_null(call, "errorInfo", errorInfo);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok() && static_cast<int>(errorInfo->errorType) != ACL_RT_NO_ERROR) {
    status = fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
                  "errorType %d cannot be repaired: a CPU reports no faults of a device",
                  static_cast<int>(errorInfo->errorType));
  }
  return status.code();
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t,
                            size_t* retSize) {
  constexpr const char* call = "aclrtGetMemUceInfo";
  Status status = not_null(call, "memUceInfoArray", memUceInfoArray);
  if (status.ok()) status = not_null(call, "retSize", retSize);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (status.ok()) *retSize = 0;
  return status.code();
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize) {
  constexpr const char* call = "aclrtMemUceRepair";
  Status status = not_null(call, "memUceInfoArray", memUceInfoArray);
  if (status.ok()) status = check_device(call, "deviceId", deviceId);
  if (!status.ok()) return status.code();
  if (arraySize == 0 || arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "arraySize must be in [1, %d], but got %zu", MAX_MEM_UCE_INFO_ARRAY_SIZE, arraySize)
        .code();
  }
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, call,
              "memory of a CPU cannot be repaired; aclrtGetMemUceInfo never lists any")
      .code();
}

// ---- abandoning the work of a device ----

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) {
  return guarded_status("aclrtSetDeviceTaskAbortCallback", [&](const char* call) {
    return DeviceAbortCallbacks::get().set(call, regName, callback, args);
  });
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  return guarded_status("aclrtDeviceTaskAbort", [&](const char* call) {
    constexpr uint32_t kLongest = 36 * 60 * 1000;
    Status status = check_device(call, "deviceId", deviceId);
    if (status.ok() && timeout > kLongest) {
      status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                    "timeout must be at most %u ms (0: no limit), but got %u", kLongest, timeout);
    }
    if (status.ok() && Stream::running_here() != nullptr) {
      status = fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                    "a task must not abort the device it runs on");
    }
    if (!status.ok()) return status;
    const auto notify = [&](aclrtDeviceTaskAbortStage stage) {
      DeviceAbortCallbacks::get().for_each(
          [&](aclrtDeviceTaskAbortCallback function, void* argument) {
            (void)function(deviceId, stage, timeout, argument);
          });
    };
    notify(ACL_RT_DEVICE_TASK_ABORT_PRE);
    streams().for_each([&](Stream& stream) {
      const PinnedContext owner(contexts(), stream.owner());
      if (!owner || owner->device != deviceId) return;
      stream.abort();
      notify_synchronised(&stream);
    });
    notify(ACL_RT_DEVICE_TASK_ABORT_POST);
    return Status();
  });
}

// ---- callbacks for tasks that fail ----

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  return change_callbacks("aclrtSetExceptionInfoCallback",
                          [=](ExceptionCallbacks& all) { all.only = callback; })
      .code();
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  constexpr const char* call = "aclrtExceptionInfoCallbackRegister";
  Status status = check_callback(call, callback);
  if (status.ok()) {
    status = change_callbacks(call, [=](ExceptionCallbacks& all) {
      const auto found = std::find(all.several.begin(), all.several.end(), callback);
      if (found == all.several.end()) all.several.push_back(callback);
    });
  }
  return status.code();
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  constexpr const char* call = "aclrtExceptionInfoCallbackUnregister";
  Status status = check_callback(call, callback);
  if (status.ok()) {
    status =
        change_callbacks(call, [=](ExceptionCallbacks& all) { std::erase(all.several, callback); });
  }
  return status.code();
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  const FailedTask* const failed = task_of(info);
  return failed == nullptr ? kInvalid : failed->task;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  const FailedTask* const failed = task_of(info);
  return failed == nullptr ? kInvalid : failed->stream;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  const FailedTask* const failed = task_of(info);
  return failed == nullptr ? kInvalid : failed->thread;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  const FailedTask* const failed = task_of(info);
  return failed == nullptr ? kInvalid : failed->device;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  const FailedTask* const failed = task_of(info);
  return failed == nullptr ? kInvalid : static_cast<uint32_t>(failed->code);
}

// No task of a CPU has the arguments or the handle of a kernel.
aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo*, void**, uint32_t*) {
  return static_cast<aclError>(kInvalid);
}

aclError aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo*, aclrtFuncHandle*) {
  return static_cast<aclError>(kInvalid);
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  constexpr const char* call = "aclrtGetThreadLastTaskId";
  Status status = not_null(call, "taskId", taskId);
  if (!status.ok()) return status.code();
  *taskId = last_task_of_thread();
  if (*taskId != 0) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
              "this thread has not submitted a task yet")
      .code();
}
