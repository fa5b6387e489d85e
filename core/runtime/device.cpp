// SPDX-License-Identifier: Apache-2.0
// Devices are counters, contexts own streams. Every thread has a current context; one that was
// destroyed by another thread is found out by its handle.
#include "core/runtime/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "acl/acl_rt.h"
#include "core/runtime/fork.h"
#include "core/runtime/product.h"

namespace openaclnn {
namespace {

constexpr int32_t kMaxDevices = 64;
constexpr size_t kMaxContexts = 1 << 14;

struct Device {
  uint64_t users = 0;  // aclrtSetDevice calls that no aclrtResetDevice has answered
  Context* context = nullptr;
};

struct Devices {
  Devices() { hold_across_fork(mutex); }

  static Devices& get() {
    static auto& devices = *new Devices;
    return devices;
  }

  std::mutex mutex;
  Device at[kMaxDevices];
};

thread_local Context* current = nullptr;

// -1 when the text is not a number.
int32_t to_number(std::string_view text) {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

int32_t count_devices() {
  const char* wish = std::getenv("OPENACLNN_DEVICES");
  const int32_t number = wish == nullptr ? -1 : to_number(wish);
  const int32_t present = number < 0 ? 1 : std::min(number, kMaxDevices);
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (visible == nullptr) return present;
  std::string_view list = visible;  // ascending ids; the first that is not one ends the list
  int32_t count = 0;
  for (int32_t last = -1; !list.empty(); ++count) {
    const size_t comma = std::min(list.find(','), list.size());
    const int32_t id = to_number(list.substr(0, comma));
    if (id <= last || id >= present) break;
    last = id;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return count;
}

Status check_device(const char* call, int32_t device) {
  const int32_t count = device_count();
  if (device >= 0 && device < count) return {};
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: deviceId must be in [0, %d), but got %d", call,
              count, device);
}

Status null(const char* call, const char* argument) {
  return fail(ACL_ERROR_INVALID_PARAM, "%s: %s must not be NULL", call, argument);
}

Status find_context(const char* call, aclrtContext handle, Context** context) {
  if (handle == nullptr) return null(call, "context");
  *context = contexts().find(handle);
  if (*context != nullptr) return {};
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              "%s: context must be alive, but %p was destroyed or never created", call, handle);
}

// nullptr, with a sentence, when there are too many.
Context* create_context(const char* call, int32_t device, bool is_default) {
  Context* context = contexts().create(Context{device, is_default, nullptr});
  if (context != nullptr) {
    context->stream = streams().create(context);
    if (context->stream != nullptr) return context;
    contexts().destroy(context);
  }
  (void)fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "%s: all contexts or streams are in use", call);
  return nullptr;
}

bool runs_in(const Context* context) {
  const Stream* stream = Stream::running_here();
  return stream != nullptr && stream->owner() == context;
}

// Waits for its work. Streams made in it stay as handles that can only be destroyed.
Status destroy_context(const char* call, Context* context) {
  Stream* stream = context->stream;
  if (!contexts().destroy(context)) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: context was destroyed by another thread", call);
  }
  drain_streams([](Stream& any, void* owner) { return any.orphan(static_cast<Context*>(owner)); },
                context);
  streams().destroy(stream);
  return {};
}

Status reset(const char* call, int32_t device, bool force) {
  if (Status status = check_device(call, device); !status.ok()) return status;
  Devices& devices = Devices::get();
  Device& own = devices.at[device];
  Context* context;
  {
    std::lock_guard lock(devices.mutex);
    if (own.users == 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: device %d must be set, but it was reset already",
                  call, device);
    }
    const bool last = force || own.users == 1;
    if (last && runs_in(own.context)) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: device %d must not be reset by a task that runs on it", call, device);
    }
    own.users = last ? 0 : own.users - 1;
    if (!last) return {};
    context = std::exchange(own.context, nullptr);
  }
  return destroy_context(call, context);
}

// The default context for one more user, or nullptr when it has yet to be made.
Context* join_device(int32_t device, Context* made) {
  Devices& devices = Devices::get();
  std::lock_guard lock(devices.mutex);
  Device& own = devices.at[device];
  if (own.context == nullptr) own.context = made;
  if (own.context != nullptr) ++own.users;
  return own.context;
}

}  // namespace

HandlePool<Context>& contexts() { return pool_of<Context>(kMaxContexts); }

int32_t device_count() {
  static const int32_t count = count_devices();
  return count;
}

Context* current_context() { return contexts().find(current); }

Status no_context(const char* call) {
  return fail(ACL_ERROR_RT_CONTEXT_NULL,
              "%s: a device must be set for this thread: call aclrtSetDevice first", call);
}

}  // namespace openaclnn

using namespace openaclnn;

aclError aclrtSetDevice(int32_t deviceId) {
  if (Status status = check_device("aclrtSetDevice", deviceId); !status.ok()) return status.code();
  Context* context = join_device(deviceId, nullptr);
  if (context == nullptr) {
    Context* made = create_context("aclrtSetDevice", deviceId, true);
    if (made == nullptr) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
    context = join_device(deviceId, made);
    if (context != made) (void)destroy_context("aclrtSetDevice", made);  // another thread was first
  }
  current = context;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) {
  return reset("aclrtResetDevice", deviceId, false).code();
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return reset("aclrtResetDeviceForce", deviceId, true).code();
}

aclError aclrtGetDevice(int32_t* deviceId) {
  if (deviceId == nullptr) return null("aclrtGetDevice", "deviceId").code();
  const Context* context = current_context();
  if (context == nullptr) return no_context("aclrtGetDevice").code();
  *deviceId = context->device;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  if (count == nullptr) return null("aclrtGetDeviceCount", "count").code();
  *count = static_cast<uint32_t>(device_count());
  return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  if (runMode == nullptr) return null("aclrtGetRunMode", "runMode").code();
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice() {
  const Context* context = current_context();
  if (context == nullptr) return no_context("aclrtSynchronizeDevice").code();
  int32_t device = context->device;
  const auto on_device = [](Stream& stream, void* wanted) {
    const Context* owner = contexts().find(stream.owner());
    return owner != nullptr && owner->device == *static_cast<int32_t*>(wanted);
  };
  if (const Stream* own = Stream::running_here(); own != nullptr && own->owner() != nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtSynchronizeDevice: a task must not wait for the device it runs on")
        .code();
  }
  drain_streams(on_device, &device);
  return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  if (context == nullptr) return null("aclrtCreateContext", "context").code();
  if (Status status = check_device("aclrtCreateContext", deviceId); !status.ok()) {
    return status.code();
  }
  Context* made = create_context("aclrtCreateContext", deviceId, false);
  if (made == nullptr) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  *context = current = made;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  Context* own;
  if (Status status = find_context("aclrtDestroyContext", context, &own); !status.ok()) {
    return status.code();
  }
  if (own->is_default) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtDestroyContext: context must come from aclrtCreateContext; the default "
                "context of a device ends with aclrtResetDevice")
        .code();
  }
  if (runs_in(own)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtDestroyContext: context must not be destroyed by a task that runs in it")
        .code();
  }
  return destroy_context("aclrtDestroyContext", own).code();
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  Context* own;
  Status status = find_context("aclrtSetCurrentContext", context, &own);
  if (status.ok()) current = own;
  return status.code();
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (context == nullptr) return null("aclrtGetCurrentContext", "context").code();
  Context* own = current_context();
  if (own == nullptr) return no_context("aclrtGetCurrentContext").code();
  *context = own;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName() {
  static const char* const wish = [] {  // copied, for setenv moves the environment
    const char* value = std::getenv("OPENACLNN_SOC_NAME");
    return value == nullptr ? nullptr : strdup(value);
  }();
  if (wish == nullptr) return products[current_product()].soc_name;
  return *wish == '\0' ? nullptr : wish;
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  if (majorVersion == nullptr) return null("aclrtGetVersion", "majorVersion").code();
  if (minorVersion == nullptr) return null("aclrtGetVersion", "minorVersion").code();
  if (patchVersion == nullptr) return null("aclrtGetVersion", "patchVersion").code();
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}
