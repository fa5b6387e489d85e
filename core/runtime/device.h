// SPDX-License-Identifier: Apache-2.0
// Devices and contexts. All devices are this machine; a context owns streams, one of them its
// default stream.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/support/handles.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"
#include "core/support/waiting.h"

namespace openaclnn {

inline constexpr int kContextOptions = 3;
inline constexpr int32_t kMaxDevices = 64;

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
// The number that an existing device had before that list.
int32_t visible_device(int32_t device);
// Returns the context of the calling thread. If it has none, or a destroyed one, returns that of
// the default device, or nothing if there is no default device.
PinnedContext current_context();
int32_t current_device();  // of that context, or 0

// The device of threads that set none (aclInit); negative for none.
void set_default_device(int32_t device);
// Fails unless the device exists.
Status check_device(const char* call, const char* argument, int32_t device);
Status no_context(const char* call);  // the failure of a call that needs a current context

// Waits for all work on the device of the current context; returns its first failure.
Status synchronize_device(const char* call, Deadline deadline);
// The same for a device that need not be current.
Status synchronize_device(const char* call, int32_t device, Deadline deadline);

// ---- what the C functions are made of (device_api.cpp) ----

// Fails, and pins nothing, unless the handle is a live context.
Status find_context(const char* call, const void* handle, PinnedContext* context);
// nullptr, with a sentence, when there are too many contexts or streams.
Context* create_context(const char* call, int32_t device, bool is_default);
// Waits for the work of the context. Streams made in it stay as handles that can only be destroyed.
// Calls of other threads that have found its default stream end before that does.
Status destroy_context(const char* call, Context* context);
// Makes the default context of the device current, for so many more users; nullptr, with a
// sentence, when there are too many contexts.
Context* enter_device(const char* call, int32_t device, uint64_t users);
// Takes one user, or with `force` all of them; the default context ends with the last.
Status reset_device(const char* call, int32_t device, bool force);
void set_current_context(Context* context);
bool has_default_context(int32_t device);

}  // namespace openaclnn
