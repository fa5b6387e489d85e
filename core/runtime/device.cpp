// SPDX-License-Identifier: Apache-2.0
// A device is a use count, a context owns streams. Every thread has a current context, a handle:
// whether another thread has destroyed it is checked at each use.
#include "core/runtime/device.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/support/environment.h"
#include "core/support/fork.h"
#include "core/support/named_callbacks.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxContexts = 1 << 14;

struct Device {
  uint64_t users = 0;          // aclrtSetDevice calls without their aclrtResetDevice
  Context* context = nullptr;  // may exist without users, made for the default device
  bool was_set = false;        // ever
};

struct Devices {
  Devices() { hold_across_fork(mutex); }

  static Devices& get() {
    static constinit NoDestructor<Devices> devices;
    return devices.get();
  }

  std::mutex mutex;
  Device at[kMaxDevices];
};

thread_local Context* current = nullptr;
std::atomic<int32_t> default_device = -1;

// -1 when the text is not a number.
int32_t to_number(std::string_view text) {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

void warn_device_list(const char* list, int32_t present, int32_t used) {
  char must_be[80], first[40];
  std::snprintf(must_be, sizeof must_be, "ascending numbers below %d, separated by commas",
                present);
  std::snprintf(first, sizeof first, "the list up to entry %d", used);
  warn_environment("ASCEND_RT_VISIBLE_DEVICES", must_be, list, used == 0 ? "no device" : first);
}

int32_t visible[kMaxDevices];  // numbers before ASCEND_RT_VISIBLE_DEVICES

int32_t count_devices() {
  // Set by torchrun and accelerate, which use one device for each process.
  const int64_t processes = environment_number("LOCAL_WORLD_SIZE", 1);
  const auto present = static_cast<int32_t>(environment_number("OPENACLNN_DEVICES", processes));
  for (int32_t i = 0; i < kMaxDevices; ++i) visible[i] = i;
  const char* chosen = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (chosen == nullptr) return present;
  std::string_view list = chosen;  // ascending ids; the first that is not one ends the list
  int32_t count = 0;
  for (int32_t last = -1; !list.empty(); ++count) {
    const size_t comma = std::min(list.find(','), list.size());
    const int32_t id = to_number(list.substr(0, comma));
    if (id <= last || id >= present) {
      warn_device_list(chosen, present, count);
      break;
    }
    visible[count] = last = id;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return count;
}

// Adds users to the default context of the device; nullptr: not made yet, pass it in `made`.
Context* join_device(int32_t device, uint64_t users, Context* made) {
  Devices& devices = Devices::get();
  std::lock_guard lock(devices.mutex);
  Device& own = devices.at[device];
  if (own.context == nullptr) own.context = made;
  if (own.context != nullptr) own.users += users, own.was_set = true;
  return own.context;
}

bool on_device(Stream& stream, void* wanted) {
  const PinnedContext owner(contexts(), stream.owner());
  return owner && stream.awaited() && owner->device == *static_cast<int32_t*>(wanted);
}

}  // namespace

HandlePool<Context>& contexts() {
  return pool_of<Context>(kMaxContexts, [] { contexts().forget_pins(); });
}

int32_t device_count() {
  static constinit NoDestructor<int32_t> count;
  return count.get(count_devices);
}

int32_t visible_device(int32_t device) {
  (void)device_count();
  return visible[device];
}

Status check_device(const char* call, const char* argument, int32_t device) {
  const int32_t count = device_count();
  if (device >= 0 && device < count) return {};
  char remedy[60] = "";
  if (device >= 0 && device < kMaxDevices && std::getenv("ASCEND_RT_VISIBLE_DEVICES") == nullptr) {
    std::snprintf(remedy, sizeof remedy, "; OPENACLNN_DEVICES=%d makes %d device%s", device + 1,
                  device + 1, device == 0 ? "" : "s");
  }
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, {Reason::wrong_value, ObjectKind::device}, call,
              "%s must be in [0, %d), but got %d%s", argument, count, device, remedy);
}

PinnedContext current_context() {
  PinnedContext found(contexts(), current);
  while (!found && default_device >= 0) {
    const Context* entered = enter_device("aclInit", default_device, 0);
    if (entered == nullptr) break;
    found = PinnedContext(contexts(), entered);  // unless it was reset meanwhile
  }
  return found;
}

int32_t current_device() {
  const PinnedContext context = current_context();
  return context ? context->device : 0;
}

void set_default_device(int32_t device) { default_device = device; }

Status no_context(const char* call) {
  return fail(ACL_ERROR_RT_CONTEXT_NULL, {Reason::no_context, ObjectKind::device}, call,
              "no device is set for this thread; call aclrtSetDevice first");
}

Status synchronize_device(const char* call, Deadline deadline) {
  PinnedContext context = current_context();
  if (!context) return no_context(call);
  const int32_t device = context->device;
  context.release();  // the wait may be long
  return synchronize_device(call, device, deadline);
}

Status synchronize_device(const char* call, int32_t device, Deadline deadline) {
  if (Stream::owner_here() != nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task must not wait for the device it runs on");
  }
  if (!drain_streams(on_device, &device, deadline)) {
    return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, Reason::timed_out, call,
                "timed out: device %d is still working", device);
  }
  return take_failures(call, on_device, &device);
}

Status find_context(const char* call, const void* handle, PinnedContext* context) {
  if (Status status = not_null(call, "context", handle, ObjectKind::context); !status.ok())
    return status;
  *context = PinnedContext(contexts(), handle);
  if (*context) return {};
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::context, "context", handle);
}

Context* create_context(const char* call, int32_t device, bool is_default) {
  Context* context = contexts().create(device, is_default);
  if (context != nullptr) {
    context->stream = streams().create(context);
    if (context->stream != nullptr) {
      notify_stream_state(context->stream, ACL_RT_STREAM_STATE_CREATE_POST);
      return context;
    }
    contexts().destroy(context);
  }
  (void)fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
             "too many live contexts or streams");
  return nullptr;
}

Status destroy_context(const char* call, Context* context) {
  Stream* stream = nullptr;
  if (!contexts().destroy(context, [&](const Context& own) { stream = own.stream; })) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, {Reason::dead_handle, ObjectKind::context}, call,
                "context was destroyed by another thread");
  }
  notify_stream_state(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  drain_streams([](Stream& any, void* owner) { return any.orphan(static_cast<Context*>(owner)); },
                context);
  streams().destroy(stream);
  return {};
}

Status reset_device(const char* call, int32_t device, bool force) {
  if (Status status = check_device(call, "deviceId", device); !status.ok()) return status;
  Devices& devices = Devices::get();
  Device& own = devices.at[device];
  const Context* here = Stream::owner_here();  // takes a lock, so before ours
  Context* context;
  {
    std::lock_guard lock(devices.mutex);
    if (own.context == nullptr) {
      if (own.was_set)
        return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::already_done, ObjectKind::device}, call,
                    "device %d was reset already", device);
      return fail(ACL_ERROR_RT_PARAM_INVALID, {Reason::call_missing, ObjectKind::device}, call,
                  "device %d was never set", device);
    }
    const bool last = force || own.users <= 1;
    if (last && own.context == here) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                  "device %d must not be reset by a task that runs on it", device);
    }
    own.users = last ? 0 : own.users - 1;
    if (!last) return {};
    context = std::exchange(own.context, nullptr);
  }
  return destroy_context(call, context);
}

Context* enter_device(const char* call, int32_t device, uint64_t users) {
  Context* context = join_device(device, users, nullptr);
  if (context == nullptr) {
    Context* made = create_context(call, device, true);
    if (made == nullptr) return nullptr;
    context = join_device(device, users, made);
    if (context != made) (void)destroy_context(call, made);  // another thread was first
  }
  return current = context;
}

void set_current_context(Context* context) { current = context; }

bool has_default_context(int32_t device) {
  Devices& devices = Devices::get();
  std::lock_guard lock(devices.mutex);
  return devices.at[device].context != nullptr;
}

}  // namespace openaclnn
