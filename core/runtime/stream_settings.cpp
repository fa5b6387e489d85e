// SPDX-License-Identifier: Apache-2.0
// What a program sets and asks about a stream; the end of its work before it is done.
#include <cstring>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/named_callbacks.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

constexpr uint32_t kPriorities = 8;  // 0 is the most urgent

HandlePool<aclrtStreamConfigHandle>& configs() { return pool_of<aclrtStreamConfigHandle>(1 << 14); }

using HeldConfig = HandlePool<aclrtStreamConfigHandle>::Hold;

Status ended_config(const char* call, const aclrtStreamConfigHandle* handle) {
  return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
              "handle %p was destroyed or never created", static_cast<const void*>(handle));
}

Status find_config(const char* call, const aclrtStreamConfigHandle* handle, HeldConfig* config) {
  if (Status null = not_null(call, "handle", handle); !null.ok()) return null;
  *config = HeldConfig(configs(), handle);
  return *config ? Status() : ended_config(call, handle);
}

// Calls ask(stream) with the stream behind a handle.
template <class F>
aclError with_stream(const char* call, aclrtStream handle, F ask) {
  PinnedStream stream;
  if (Status status = find_stream(handle, &stream, call); !status.ok()) {
    return with_call(status, call).code();
  }
  return ask(*stream).code();
}

template <class T, class F>
aclError read_from_stream(const char* call, aclrtStream handle, const char* argument, T* result,
                          F read) {
  if (Status null = not_null(call, argument, result); !null.ok()) return null.code();
  return with_stream(call, handle, [&](const Stream& stream) {
    *result = static_cast<T>(read(stream));
    return Status();
  });
}

Status set_failure_mode(const char* call, Stream& stream, uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
                "mode must be 0 (continue) or 1 (stop on failure), but got %llu",
                static_cast<unsigned long long>(mode));
  }
  if (stream.stops_on_failure()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
                "the stream stops on failure already; the mode can be set once");
  }
  if (mode == ACL_STOP_ON_FAILURE) stream.stop_on_failure();
  return {};
}

Status check_switch(const char* call, const char* name, uint32_t value) {
  if (value <= 1) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "%s must be 0 or 1, but got %u",
              name, value);
}

// A task must not end or await the work that it is part of.
Status check_outside(const char* call, const Stream& stream) {
  if (&stream != Stream::running_here()) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
              "a task must not stop the stream it runs on");
}

Status set_option(const char* call, aclrtStreamConfigHandle& config, int attribute,
                  const void* value, size_t size) {
  void* places[] = {&config.workptr, &config.workSize, &config.flag, &config.priority};
  const size_t sizes[] = {sizeof config.workptr, sizeof config.workSize, sizeof config.flag,
                          sizeof config.priority};
  if (attribute < ACL_RT_STREAM_WORK_ADDR_PTR || attribute > ACL_RT_STREAM_PRIORITY) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "attr must be in [0, 3], but got %d", attribute);
  }
  // The flags are 32 bits, and programs pass a variable of that size.
  const bool short_flag = attribute == ACL_RT_STREAM_FLAG && size == sizeof(uint32_t);
  if (size != sizes[attribute] && !short_flag) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "valueSize of attr %d must be %zu, but got %zu", attribute, sizes[attribute], size);
  }
  if (attribute == ACL_RT_STREAM_PRIORITY) {
    uint32_t priority;
    std::memcpy(&priority, value, sizeof priority);
    if (priority >= kPriorities) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "the priority must be in [0, %u), but got %u", kPriorities, priority);
    }
  }
  if (short_flag) config.flag = 0;
  std::memcpy(places[attribute], value, size);
  return {};
}

}  // namespace

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  constexpr const char* call = "aclrtSetStreamFailureMode";
  return with_stream(call, stream, [&](Stream& own) { return set_failure_mode(call, own, mode); });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return read_from_stream("aclrtStreamGetId", stream, "streamId", streamId,
                          [](const Stream& own) { return own.id; });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  return read_from_stream("aclrtStreamGetPriority", stream, "priority", priority,
                          [](const Stream& own) { return own.priority.load(); });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  return read_from_stream("aclrtStreamGetFlags", stream, "flags", flags,
                          [](const Stream& own) { return own.settings.flags; });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  constexpr const char* call = "aclrtCtxGetCurrentDefaultStream";
  if (Status null = not_null(call, "stream", stream); !null.ok()) return null.code();
  const PinnedContext context = current_context();
  if (!context) return no_context(call).code();
  *stream = context->stream;
  return ACL_SUCCESS;
}

// ---- how a stream is created ----

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void) {
  constexpr const char* call = "aclrtCreateStreamConfigHandle";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> aclrtStreamConfigHandle* {
    aclrtStreamConfigHandle* made = configs().create();
    if (made != nullptr) return made;
    return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
  });
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  constexpr const char* call = "aclrtDestroyStreamConfigHandle";
  Status status = not_null(call, "handle", handle);
  if (status.ok() && !configs().destroy(handle)) status = ended_config(call, handle);
  return status.code();
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) {
  constexpr const char* call = "aclrtSetStreamConfigOpt";
  HeldConfig config;
  Status status = find_config(call, handle, &config);
  if (status.ok()) status = not_null(call, "attrValue", attrValue);
  if (status.ok()) status = set_option(call, *config, attr, attrValue, valueSize);
  return status.code();
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  constexpr const char* call = "aclrtCreateStreamV2";
  HeldConfig config;
  if (Status status = find_config(call, handle, &config); !status.ok()) return status.code();
  const aclrtStreamConfigHandle given = *config;
  config.release();
  return create_stream(call, stream, {static_cast<uint32_t>(given.flag), given.priority}).code();
}

// ---- attributes of a live stream ----

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* call = "aclrtSetStreamAttribute";
  if (Status null = not_null(call, "value", value); !null.ok()) return null.code();
  return with_stream(call, stream, [&](Stream& own) -> Status {
    Status status;
    switch (static_cast<int>(stmAttrType)) {
      case ACL_STREAM_ATTR_FAILURE_MODE: return set_failure_mode(call, own, value->failureMode);
      case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        status = check_switch(call, "overflowSwitch", value->overflowSwitch);
        if (status.ok()) own.overflow_switch = value->overflowSwitch;
        return status;
      case ACL_STREAM_ATTR_USER_CUSTOM_TAG: own.tag = value->userCustomTag; return {};
      case ACL_STREAM_ATTR_CACHE_OP_INFO:
        return check_switch(call, "cacheOpInfoSwitch", value->cacheOpInfoSwitch);
      case ACL_STREAM_ATTR_PRIORITY:
        if (value->streamPriority < kPriorities) {
          own.priority = value->streamPriority;
          return {};
        }
        return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "streamPriority must be in [0, %u), but got %u", kPriorities,
                    value->streamPriority);
      default: break;
    }
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "stmAttrType must be in [1, 5], but got %d", static_cast<int>(stmAttrType));
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* call = "aclrtGetStreamAttribute";
  if (Status null = not_null(call, "value", value); !null.ok()) return null.code();
  return with_stream(call, stream, [&](const Stream& own) -> Status {
    *value = {};
    switch (static_cast<int>(stmAttrType)) {
      case ACL_STREAM_ATTR_FAILURE_MODE: value->failureMode = own.stops_on_failure(); return {};
      case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        value->overflowSwitch = own.overflow_switch;
        return {};
      case ACL_STREAM_ATTR_USER_CUSTOM_TAG: value->userCustomTag = own.tag; return {};
      case ACL_STREAM_ATTR_CACHE_OP_INFO: return {};
      case ACL_STREAM_ATTR_PRIORITY: value->streamPriority = own.priority; return {};
      default: break;
    }
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "stmAttrType must be in [1, 5], but got %d", static_cast<int>(stmAttrType));
  });
}

// ---- ending work before it is done ----

aclError aclrtStreamAbort(aclrtStream stream) {
  constexpr const char* call = "aclrtStreamAbort";
  return with_stream(call, stream, [&](Stream& own) {
    Status status = check_outside(call, own);
    if (status.ok()) own.abort(), notify_synchronised(&own);
    return status;
  });
}

aclError aclrtStreamStop(aclrtStream stream) {
  constexpr const char* call = "aclrtStreamStop";
  if (Status null = not_null(call, "stream", stream, ObjectKind::stream); !null.ok())
    return null.code();
  return with_stream(call, stream, [&](Stream& own) {
    Status status = check_outside(call, own);
    if (status.ok()) own.wait_for_running_task();
    return status;
  });
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) {
  return guarded_status("aclrtRegStreamStateCallback", [&](const char* call) {
    return StreamStateCallbacks::get().set(call, regName, callback, args);
  });
}
