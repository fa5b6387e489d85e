// SPDX-License-Identifier: Apache-2.0
// Devices and contexts. A device is a name for this machine; a context owns streams, one of them
// its default.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/runtime/deadline.h"
#include "core/runtime/handles.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

inline constexpr int kContextOptions = 3;

struct Context {
  static constexpr bool kPinned = true;

  int32_t device;
  bool is_default;  // made by aclrtSetDevice, shared by all threads on that device, ends with
                    // aclrtResetDevice
  Stream* stream = nullptr;  // the default stream, a handle of streams()
  std::atomic<int64_t> options[kContextOptions] = {-1, -1, -1};  // aclSysParamOpt; -1: not set

  Context(int32_t its_device, bool by_default) : device(its_device), is_default(by_default) {}
};

HandlePool<Context>& contexts();
using PinnedContext = HandlePool<Context>::Pin;

// OPENACLNN_DEVICES (default LOCAL_WORLD_SIZE, or 1), restricted to the devices that
// ASCEND_RT_VISIBLE_DEVICES lists.
int32_t device_count();
// Returns the context of the calling thread. If it has none, or a destroyed one, returns that of
// the default device, or nothing if there is no default device.
PinnedContext current_context();
int32_t current_device();  // of that context, or 0

// The device of threads that set none (aclInit); negative for none.
void set_default_device(int32_t device);
// Fails unless there is such a device.
Status check_device(const char* call, const char* argument, int32_t device);
Status no_context(const char* call);  // the failure of a call that needs a current context

}  // namespace openaclnn
